"""Iterative DPO, as TruthRL's baseline has it: in every round new pairs from the policy that the
last round has made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from workbench.config import check_numbers, check_values, setting
from workbench.generate import Sampling
from workbench.train.collect import SAMPLES, collect
from workbench.train.dpo import DPO, dpo_stage
from workbench.train.dpo import check as check_dpo
from workbench.train.pairs import truthrl_pairs
from workbench.train.rows import Card, Pair
from workbench.train.stage import Job, Stage
from workbench.types import Feedback, Grade, Question, WorkbenchError

Rule = Callable[[Sequence[Feedback], int], tuple[list[Pair], Card]]  # samples and a seed -> pairs
PAPER = DPO()


@dataclass(frozen=True)
class Rounds:
    """Settings of iterative DPO (arXiv 2509.25760, table 1: 4 rounds; how many samples it takes
    the paper does not say).
    """

    rounds: int = setting(4, "rounds of sampling, pairing and DPO")
    samples: int = setting(8, "responses sampled to each question in a round")
    temperature: float = setting(1.0, "at which they are sampled")
    top_p: float = setting(1.0, "nucleus that they are sampled from")
    max_new_tokens: int = setting(256, "tokens at which one is cut off")
    chunk: int = setting(64, "questions that are sampled, graded and written at a time")
    max_failed: float = setting(
        0.2, "share of ungraded samples in a chunk above which the run stops"
    )
    dpo: DPO = PAPER


def check(config: Rounds) -> None:
    """Raise a WorkbenchError naming the field for settings that cannot work."""
    check_values(config)
    counts = ("rounds", "max_new_tokens", "chunk")
    check_numbers(
        config,
        {**dict.fromkeys(counts, 1), "samples": 2},
        positive=("temperature", "top_p"),
        shares=("top_p", "max_failed"),
    )
    check_dpo(config.dpo)


def dpo_rounds(
    config: Rounds,
    questions: Sequence[Question],
    grade: Grade,
    method: str,
    rule: Rule | None = None,
) -> list[Stage]:
    """The rounds as stages "dpo-1", "dpo-2", …; all but the last leave a full checkpoint, which
    the next one starts from.

    A round's samples lie in `samples/` of its folder. Its reference is the policy that it starts
    from *(ours)*.

    Args:
        grade: grades the samples; `method` is what it pays, and what counts as graded.
        rule: samples and a seed, which is no other round's of whatever run -> pairs; by default
        TruthRL's.

    Raises:
        WorkbenchError: settings that cannot work, no questions.
    """
    check(config)
    if not questions:
        raise WorkbenchError("no questions to sample: choose another bench, split or kinds")

    def make(number: int, job: Job) -> tuple[Sequence[Pair], Card]:
        seed = job.seed * (config.rounds + 1) + number
        how = Sampling(
            max_new_tokens=config.max_new_tokens,
            samples=config.samples,
            temperature=config.temperature,
            top_p=config.top_p,
            seed=seed,
        )
        feedbacks = collect(
            job.start,
            questions,
            grade,
            job.out / SAMPLES,
            how,
            method=method,
            chunk=config.chunk,
            max_failed=config.max_failed,
        )
        return rule(feedbacks, seed) if rule else truthrl_pairs(feedbacks, seed=seed)

    return [
        dpo_stage(
            config.dpo, partial(make, number), merged=number < config.rounds, name=f"dpo-{number}"
        )
        for number in range(1, config.rounds + 1)
    ]
