"""The stages of KnowRL's training: a cold start on the policy's own samples, then GRPO."""

from collections.abc import Sequence
from dataclasses import asdict

from workbench.methods.bench import Bench
from workbench.methods.knowrl.config import KnowRL
from workbench.methods.method import Method, training_questions
from workbench.training.collect import collect_in_stage
from workbench.training.grpo import grpo_stage
from workbench.training.offline import offline_stage
from workbench.training.pairs import cold_start_knowrl
from workbench.training.rows import Card, Example
from workbench.training.stage import Job, Stage, order
from workbench.util.config import check_values


def stages(config: KnowRL, bench: Bench, method: Method) -> Sequence[Stage]:
    """Return the stages of a training.

    Raises:
        WorkbenchError: invalid settings, no questions or missing checks.
    """
    check_values(config)
    questions = training_questions(config.prompts, bench)
    grade = method.grader(config, bench.checks)
    grpo = grpo_stage(config.grpo, lambda job: (questions, grade), method.name)
    # without a cold start the policy must already write the tags that the reward reads
    if not config.cold.cold_samples:
        return [grpo]

    def rows(job: Job) -> tuple[Sequence[Example], Card]:
        count = min(config.cold.cold_questions, len(questions))
        chosen = [questions[number] for number in order(len(questions), count, job.seed)]
        sampling, samples = config.grpo.sampling, config.cold.cold_samples
        return cold_start_knowrl(
            collect_in_stage(job, chosen, grade, sampling, samples, method=method.name)
        )

    # the whole config, because the samples of the cold start are stored with their rewards
    cache_key = {**asdict(config), "grpo": asdict(config.grpo.sampling)}
    cold = offline_stage(config.sft, rows, merged=True, name="cold_start", cache_key=cache_key)
    return [cold, grpo]
