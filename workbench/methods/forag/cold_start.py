"""FoRAG's cold start (arXiv 2406.13779, section 4): SFT on answers with an outline, before RL.

This module defines the settings of the cold start and collects the answers to train on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from workbench.pipeline import assemble
from workbench.training.collect import WRITTEN, collect_in_stage, ungraded, written
from workbench.training.pairs import cold_start
from workbench.training.rows import Card, Example
from workbench.training.settings import Sampling
from workbench.training.stage import Job
from workbench.types import Checks, Grade, JsonMapping, Question
from workbench.util.config import setting
from workbench.util.failures import check_failed

PLAN = (
    "Plan the answer, then write it. Under [Structure] name the pattern that organises it: general"
    " to specific, progressive, comparison, cause and effect, parallel or chronological. Under"
    " [Outline] list one to five numbered points, each ending in the number of the passage that it"
    " rests on, as in [2]. Under [Answer] write the answer, point by point, from the passages."
)


@dataclass(frozen=True)
class ColdStart:
    """Settings of the cold start, which is SFT before the other stages of training.

    They say who writes the answers for SFT, how many, and whether these begin with an outline.
    """

    outline: bool = setting(True, "whether the answers begin with an outline")
    factual: bool = setting(
        False,
        "train only on answers whose every sentence is factual: filtered MLE (section 6.3) on the"
        " data of the cold start",
    )
    writer: Literal["policy", "judge"] = setting(
        "policy",
        "author of the outlined answers: the policy with an instruction to plan, or the judge, a"
        " stronger model, as in the paper",
    )
    # (ours)
    told: str = setting(
        PLAN, "system prompt that samples outlined answers; the training prompt omits it"
    )
    cold_samples: int = setting(
        4, "sampled responses per question; a judge writes one; 0: no cold start", least=0
    )
    cold_questions: int = setting(1000, "number of questions of the cold start", least=1)

    @property
    def sampled(self) -> bool:
        return bool(self.cold_samples) and self.writer == "policy"


def plans_unprompted(config: JsonMapping) -> bool:
    """Return whether a run's cold start teaches the policy to write outlines without instruction.

    The answers in the training rows begin with an outline, but the prompts do not ask for one.

    Args:
        config: the run's stored config, as a JSON object.
    """
    cold = config.get("cold")
    return (
        isinstance(cold, Mapping) and cold.get("outline") is True and bool(cold.get("cold_samples"))
    )


def cold_start_rows(
    cold: ColdStart,
    sampling: Sampling,
    checks: Checks,
    judge: Grade,
    questions: Sequence[Question],
    job: Job,
) -> tuple[list[Example], Card]:
    """Collect answers to `questions`; return the cold start's SFT rows and a `Card` with counts.

    If `cold.writer` is "judge", the judge writes the answers. If it is "policy", the policy is
    sampled. With `cold.outline`, a system prompt asks the policy for an outline; the SFT rows do
    not contain this system prompt.

    Args:
        sampling: how the policy is sampled, and the largest accepted share of failed answers.
        checks: the judge's functions, which write answers or extract claims.
        judge: grades the claims of answers, with `cold.factual`.
        job: `job.start` is the policy to sample; `job.out` is the output folder.
    """
    if not cold.sampled:
        assert checks.write is not None  # `prepare` in run.py checks this
        folder = job.out / WRITTEN
        answers = written(checks.write, questions, job.start, folder, sampling.max_failed)
        if cold.factual:
            graded = judge([answer.response for answer in answers if answer.error is None])
            failures = [why for answer in graded if (why := ungraded(answer, "forag"))]
            what = "written answers could not be graded"
            check_failed(failures, len(graded), sampling.max_failed, what)
            answers = [*(answer for answer in answers if answer.error), *graded]
        return cold_start(answers, "cold_start_written", cold.factual)
    prompted = questions
    if cold.outline:
        prompted = [replace(question, system=cold.told) for question in questions]
    # if the cold start teaches only the form, the samples need no verdicts and no reward
    grade, method = (judge, "forag") if cold.factual else (assemble(checks, [], {}), None)
    samples = collect_in_stage(job, prompted, grade, sampling, cold.cold_samples, method=method)
    rule = "cold_start_forag" if cold.outline else "cold_start_plain"
    examples, card = cold_start(samples, rule, cold.factual)
    bare = {question.id: question for question in questions}
    return [replace(example, question=bare[example.question.id]) for example in examples], card
