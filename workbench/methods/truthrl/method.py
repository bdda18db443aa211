"""Define the method TruthRL: its checks, its reward's parts, its stages and its bench settings.

The training is GRPO. With the setting `knowledge`, a probe first finds the questions that the
policy cannot answer.
"""

from collections.abc import Sequence
from dataclasses import replace

from workbench.methods.bench import Bench
from workbench.methods.method import AT_ONCE, Method, Training, scaled, training_questions
from workbench.methods.truthrl.config import TruthRL
from workbench.methods.truthrl.probing import (
    FILE,
    local_sampler,
    out_of_knowledge,
    outcomes,
    probe_questions,
    read_probe,
    read_rows,
)
from workbench.methods.truthrl.reward import reward
from workbench.metrics.boundary import boundary_report
from workbench.pipeline import THINK_SECTIONS
from workbench.policies.generate import Sampling
from workbench.policies.load import load_policy
from workbench.training.grpo import grpo_stage
from workbench.training.grpo_config import question_order
from workbench.training.stage import Job, Stage, Status
from workbench.types import Grade, Question
from workbench.util.config import check_values
from workbench.util.jsonl import write_json

PARTS = {
    "outcome": ("outcome", "for a correct, an abstaining or an incorrect final answer"),
    "reasoning": ("reasoning", "change of the reward by the quality of the reasoning"),
}
# *(ours)*, for 1M parameters on two CPU cores; the learning rate was chosen on the validation
# split: `truthrl_rates.toml` in benchmarks/findings.
TINY = scaled(
    TruthRL(),
    grpo={
        "steps": 48,
        "learning_rate": 8e-4,
        "schedule": "linear",
        "beta": 0.0,
        "max_new_tokens": 12,
        "lora_r": 16,
        "lora_alpha": 32,
        **AT_ONCE,
        "generation_batch": None,
        "save_every": 5,
    },
    probe={"probe_samples": 16},
)
SMALL = scaled(TruthRL(), grpo={"prompts_per_step": 16, "max_new_tokens": 512})


def checks(config: TruthRL) -> tuple[str, ...]:
    """Return the names of the checks that the reward reads.

    These are "outcome"; "out_of_knowledge" if the setting `knowledge` is True; and "reasoning" if
    the setting `reasoning` is not "none".
    """
    boundary = ("out_of_knowledge",) if config.knowledge else ()
    return ("outcome", *boundary, *(("reasoning",) if config.reasoning != "none" else ()))


REPORT = "report.json"


def stages(config: TruthRL, bench: Bench) -> Sequence[Stage]:
    """Return the training stages of a run: GRPO, and before it a probe if `knowledge` is True.

    The probe samples the initial policy to find the questions outside its knowledge. With
    `probe_samples=0` there is no probe. The judge's check "out_of_knowledge" then finds these
    questions.

    Raises:
        WorkbenchError: invalid settings, no questions, or a judge without the needed checks.
    """
    questions = training_questions(config.prompts, bench)
    if not (config.knowledge and config.probe.probe_samples):
        grade = METHOD.grader(config, bench.checks)
        return [grpo_stage(config.grpo, lambda job: (questions, grade), METHOD.name)]
    # raises for missing checks; "out_of_knowledge" may be missing, because the probe gives it
    METHOD.grader(replace(config, knowledge=False), bench.checks)

    def given(job: Job) -> tuple[Sequence[Question], Grade]:
        check = out_of_knowledge(read_probe(job.stages["probe"] / FILE))
        verify = {**bench.checks.verify, "out_of_knowledge": check}
        return questions, METHOD.grader(config, replace(bench.checks, verify=verify))

    return [_probe(config, questions, bench), grpo_stage(config.grpo, given, METHOD.name)]


def _probe(config: TruthRL, questions: Sequence[Question], bench: Bench) -> Stage:
    """Return the stage that probes the questions of the training (section 3.2)."""
    check_values(config.probe)
    grade, sampling = outcomes(bench.checks), config.grpo.sampling
    how = Sampling(sampling.max_new_tokens, samples=config.probe.probe_samples)

    def probe(job: Job) -> Status:
        # the questions that the training samples, in its order; a short run does not sample all
        numbers = dict.fromkeys(question_order(config.grpo, len(questions), job.seed))
        probed = [questions[number] for number in numbers]
        sampler = local_sampler(load_policy(job.start), grade, replace(how, seed=job.seed))
        probe_questions(sampler, probed, job.out, how.samples, bench.shown, sampling.max_failed)
        rows = read_rows(job.out, probed, how.samples)
        write_json(job.out / REPORT, boundary_report(rows, how.samples))
        return "done"

    return Stage("probe", probe)


METHOD: Method = Method(
    "truthrl",
    "TruthRL",
    TruthRL,
    reward,
    checks,
    # only the check of the reasoning reads claims
    lambda config: THINK_SECTIONS if config.reasoning != "none" else frozenset(),
    stages,
    PARTS,
    {"tiny": TINY, "small": SMALL},
    lambda config: Training(idle=() if config.knowledge else {"probe"}),
)
