"""KnowRL trains in two stages: a cold start on the policy's own samples, then GRPO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from workbench.methods.bench import Bench
from workbench.methods.knowrl.config import PARTS, TINY, KnowRL, checks, reward, training
from workbench.methods.method import Method, training_questions
from workbench.pipeline import THINK_SECTIONS
from workbench.training.collect import collect_in_stage
from workbench.training.grpo import grpo_stage
from workbench.training.offline import offline_stage
from workbench.training.pairs import cold_start_knowrl
from workbench.training.rows import Card, Example
from workbench.training.stage import Job, Stage, order
from workbench.util.config import check_values


def stages(config: KnowRL, bench: Bench) -> Sequence[Stage]:
    """A cold start on the policy's own samples in the form, then GRPO."""
    check_values(config)
    questions, grade = (
        training_questions(config.prompts, bench),
        METHOD.grader(config, bench.checks),
    )
    grpo = grpo_stage(config.grpo, lambda job: (questions, grade), METHOD.name)
    if not config.cold.cold_samples:
        return [grpo]

    def rows(job: Job) -> tuple[Sequence[Example], Card]:
        count = min(config.cold.cold_questions, len(questions))
        asked = [questions[number] for number in order(len(questions), count, job.seed)]
        sampling, samples = config.grpo.sampling, config.cold.cold_samples
        return cold_start_knowrl(
            collect_in_stage(job, asked, grade, sampling, samples, method=METHOD.name)
        )

    # the samples of the cold start are stored with their rewards
    cache_key = {**asdict(config), "grpo": asdict(config.grpo.sampling)}
    return [
        offline_stage(config.sft, rows, merged=True, name="cold_start", cache_key=cache_key),
        grpo,
    ]


METHOD = Method(
    "knowrl",
    "KnowRL",
    KnowRL,
    reward,
    checks,
    lambda config: THINK_SECTIONS,
    stages,
    PARTS,
    {"tiny": TINY},
    training,
)
