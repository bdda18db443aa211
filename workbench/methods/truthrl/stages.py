"""TruthRL trains with GRPO, after a probe of what the policy cannot know if `knowledge` is set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workbench.methods.bench import Bench
from workbench.methods.method import Method, scaled, training_questions
from workbench.methods.truthrl.config import (
    PARTS,
    TINY,
    TruthRL,
    checks,
    reward,
    sections,
    training,
)
from workbench.methods.truthrl.probing import probe_stage, with_probe
from workbench.training.grpo import grpo_stage
from workbench.training.stage import Job, Stage
from workbench.types import Grade, Question


def stages(config: TruthRL, bench: Bench) -> Sequence[Stage]:
    """GRPO from the bench's policy; before it, where `knowledge` asks for that, a probe of what
    the policy cannot know.
    """
    questions = training_questions(config.prompts, bench)
    if not (config.knowledge and config.probe.probe_samples):
        grade = METHOD.grader(config, bench.checks)
        return [grpo_stage(config.grpo, lambda job: (questions, grade), METHOD.name)]
    METHOD.grader(replace(config, knowledge=False), bench.checks)  # refuses missing checks now
    probe = probe_stage(config.probe, config.grpo, questions, bench)

    def given(job: Job) -> tuple[Sequence[Question], Grade]:
        return questions, METHOD.grader(config, with_probe(bench.checks, job))

    return [probe, grpo_stage(config.grpo, given, METHOD.name)]


METHOD = Method(
    "truthrl",
    "TruthRL",
    TruthRL,
    reward,
    checks,
    sections,
    stages,
    PARTS,
    {
        "tiny": scaled(TruthRL(), grpo=TINY, probe={"probe_samples": 16}),
        "small": scaled(TruthRL(), grpo={"prompts_per_step": 16, "max_new_tokens": 512}),
    },
    training,
)
