"""Define `Stage`: one training of a run, such as a cold start or the final RL training.

`experiments.experiment` runs the stages of a method in order.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from workbench.types import Grade, Question

Status = Literal["done", "interrupted"]


@dataclass(frozen=True)
class Job:
    """The arguments of `Stage.run`.

    Attributes:
        start: folder or hub name of the policy to start from. It is the policy that an earlier
            stage trained (the latest, if several did), otherwise the run's initial policy.
        out: folder to write to.
        seed: the run's seed.
        stages: stage name -> folder, for all stages of the run except the last.
    """

    start: str
    out: Path
    seed: int
    stages: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Stage:
    """One training of a run, such as a cold start, a reward model or the policy itself.

    The last stage trains the policy in the run's folder. Earlier stages use the subfolders
    `stages/NAME`.

    Attributes:
        run: does the training, from where an earlier call stopped. Returns "done", or "interrupted"
            if the user stopped it.
        steps: number of training steps, each a row in metrics.jsonl; None if not known in advance.
        plain: True if the stage needs TRL's trainer without Unsloth's patches. The run then does
            not import Unsloth.
        check: function of the run's initial policy, called before any work. It raises a
            WorkbenchError if the stage cannot use the policy.
        cache_key: the part of the run's config that determines the stage's result, as JSON. Two
            runs of a queue share the result if this key and the keys of all earlier stages are
            equal. None: the result is not shared.
    """

    name: str
    run: Callable[[Job], Status]
    steps: int | None = None
    plain: bool = False
    check: Callable[[str], None] = lambda policy: None
    cache_key: object = None


# job -> the training questions, and the function that grades their responses
Inputs = Callable[[Job], tuple[Sequence[Question], Grade]]


def training(
    name: str,
    train: Callable[..., Status],
    config: object,
    inputs: Inputs,
    method: str,
    plain: bool = False,
) -> Stage:
    """Return a stage that runs `train(config, questions, grade, policy, out, method=…, seed=…)`.

    Args:
        name: name of the stage.
        train: a trainer, such as `train_grpo`.
        config: settings of the trainer. If it has `steps`, they are the stage's number of steps.
        inputs: function that returns (training questions, grading function). It is called when the
            stage runs, with the `Job`: the stage's folder, seed and initial policy.
        method: name of the reward to train on.
        plain: True if `train` needs TRL's trainer without Unsloth's patches.
    """

    def run(job: Job) -> Status:
        return train(config, *inputs(job), job.start, job.out, method=method, seed=job.seed)

    return Stage(name, run, getattr(config, "steps", None), plain)


def order(count: int, length: int, seed: int) -> list[int]:
    """Return `length` indices from 0 to `count` − 1 in random order.

    Each index occurs once before any index occurs again. For example, `count=3` and `length=5` may
    give [2, 0, 1, 1, 2].
    """
    # the text in the seed keeps this generator different from other uses of the run's seed
    rng = random.Random(f"order-{seed}")
    numbers: list[int] = []
    while len(numbers) < length:
        # whole passes, so that no question is used twice before all are used once
        numbers += rng.sample(range(count), count)
    return numbers[:length]
