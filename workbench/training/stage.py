"""A stage of a method's training, ready to run: what `experiments.experiment` goes through,
whatever is trained.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from workbench.types import Grade, Question

Status = Literal["done", "interrupted"]


@dataclass(frozen=True)
class Job:
    """The arguments of a stage: the policy to start from, where to write, the seed, and the folders
    of the stages before it.

    The next stage starts from the checkpoint that one leaves in `policy/` of its folder, if it
    does (a cold start, merged).
    """

    start: str
    out: Path
    seed: int
    stages: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Stage:
    """One training on a method's way: a cold start, a reward model, and at last the policy itself.

    `run` goes on where an earlier call was stopped, and returns "done" or, where the user
    stopped it, "interrupted". The last stage trains the policy in the run's own folder, each
    before it its part in `stages/NAME` of that folder. `steps` is how many rows of metrics it
    writes; None where that is not known before. With `plain` it needs TRL's trainer as TRL has
    it: Unsloth, which changes it for the whole process, is not imported for a run with such a
    stage. `check` gets the initial policy of a run, before any work, and raises a
    WorkbenchError for what cannot work with it. `cache_key` is all that the stage takes of the
    run's config, as JSON can say it: runs of a queue that agree on it, and on that of the stages
    before, share what it leaves; None where it is not shared.
    """

    name: str
    run: Callable[[Job], Status]
    steps: int | None = None
    plain: bool = False
    check: Callable[[str], None] = lambda policy: None
    cache_key: Any = None


# a job -> the questions that a training asks, and what grades their answers
Given = Callable[[Job], tuple[Sequence[Question], Grade]]


def training(
    name: str,
    train: Callable[..., Status],
    config: Any,
    given: Given,
    method: str,
    plain: bool = False,
) -> Stage:
    """A trainer as a stage: `train(config, questions, grade, policy, out, method=…, seed=…)`
    from where the run starts.
    """

    def run(job: Job) -> Status:
        return train(config, *given(job), job.start, job.out, method=method, seed=job.seed)

    return Stage(name, run, getattr(config, "steps", None), plain)


def order(count: int, wanted: int, seed: int) -> list[int]:
    """`wanted` question numbers: one shuffled pass over `count` questions after another."""
    rng = random.Random(f"order-{seed}")
    numbers: list[int] = []
    while len(numbers) < wanted:
        numbers += rng.sample(range(count), count)
    return numbers[:wanted]
