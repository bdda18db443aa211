"""The stages of TruthRL's training: GRPO; with the setting `knowledge`, a probe first finds the
questions that the policy cannot answer.
"""

from collections.abc import Sequence
from dataclasses import replace

from workbench.methods.bench import Bench
from workbench.methods.method import Method, training_questions
from workbench.methods.truthrl.boundary import out_of_knowledge, read_probe
from workbench.methods.truthrl.config import TruthRL
from workbench.methods.truthrl.probing import (
    FILE,
    local_sampler,
    outcomes,
    probe_questions,
    read_rows,
)
from workbench.metrics.boundary import boundary_report
from workbench.policies.generate import Sampling
from workbench.policies.load import load_policy
from workbench.training.grpo import grpo_stage
from workbench.training.grpo_config import question_order
from workbench.training.stage import Job, Stage, Status
from workbench.types import Grade, Question
from workbench.util.config import check_values
from workbench.util.jsonl import write_json

REPORT = "report.json"


def stages(config: TruthRL, bench: Bench, method: Method) -> Sequence[Stage]:
    """Return the stages of a training.

    Raises:
        WorkbenchError: invalid settings, no questions or missing checks.
    """
    questions = training_questions(config.prompts, bench)
    if not (config.knowledge and config.probe.probe_samples):
        grade = method.grader(config, bench.checks)
        return [grpo_stage(config.grpo, lambda job: (questions, grade), method.name)]
    method.grader(replace(config, knowledge=False), bench.checks)  # raises for missing checks

    def given(job: Job) -> tuple[Sequence[Question], Grade]:
        check = out_of_knowledge(read_probe(job.stages["probe"] / FILE))
        verify = {**bench.checks.verify, "out_of_knowledge": check}
        return questions, method.grader(config, replace(bench.checks, verify=verify))

    return [_probe(config, questions, bench), grpo_stage(config.grpo, given, method.name)]


def _probe(config: TruthRL, questions: Sequence[Question], bench: Bench) -> Stage:
    """Probe only the questions that the training will sample (section 3.2)."""
    check_values(config.probe)
    grade, sampling = outcomes(bench.checks), config.grpo.sampling
    how = Sampling(sampling.max_new_tokens, samples=config.probe.probe_samples)

    def probe(job: Job) -> Status:
        # in training order, each question once: a short run does not sample all questions
        numbers = dict.fromkeys(question_order(config.grpo, len(questions), job.seed))
        probed = [questions[number] for number in numbers]
        sampler = local_sampler(load_policy(job.start), grade, replace(how, seed=job.seed))
        probe_questions(sampler, probed, job.out, how.samples, bench.shown, sampling.max_failed)
        rows = read_rows(job.out, probed, how.samples)
        write_json(job.out / REPORT, boundary_report(rows, how.samples))
        return "done"

    return Stage("probe", probe)
