"""Define the method KnowRL: the parts of its reward, its training and its tiny-bench settings.

The training is a cold start on the policy's own samples, then GRPO.
"""

from collections.abc import Sequence
from dataclasses import asdict

from workbench.methods.bench import Bench
from workbench.methods.knowrl.config import KnowRL
from workbench.methods.knowrl.reward import reward
from workbench.methods.method import AT_ONCE, Method, Training, scaled, training_questions
from workbench.pipeline import THINK_SECTIONS
from workbench.training.collect import collect_in_stage
from workbench.training.grpo import grpo_stage
from workbench.training.offline import offline_stage
from workbench.training.pairs import cold_start_knowrl
from workbench.training.rows import Card, Example
from workbench.training.stage import Job, Stage, order
from workbench.util.config import check_values
from workbench.world.schema import THINK

PARTS = {
    "format": ("format", "positive or negative, for the think and answer tags"),
    "correct": ("outcome", "for a correct, a refusing or a wrong final answer"),
    "fact": ("facts in the thinking", "share of the thinking's claims that the evidence supports"),
}
# *(ours)*, for 1M parameters on two CPU cores. The learning rate was chosen on the validation
# split: `knowrl_rates.toml` in benchmarks/findings.
ADAPTER = {"lora_r": 16, "lora_alpha": 32, **AT_ONCE}
TINY = scaled(
    KnowRL(),
    prompts={"system": THINK},
    cold={"cold_samples": 4, "cold_questions": 200},
    sft={"learning_rate": 2e-4, "batch": 64, **ADAPTER},
    grpo={
        "steps": 120,
        "learning_rate": 4e-4,
        "schedule": "constant",
        "warmup": 0.0,
        "prompts_per_step": 16,
        "group_size": 8,
        "beta": 0.0,
        "max_new_tokens": 48,
        **ADAPTER,
        "save_every": 5,
    },
)


def stages(config: KnowRL, bench: Bench) -> Sequence[Stage]:
    """Return the training stages of a run: a cold start, then GRPO.

    There is no cold start if `cold_samples` is 0.

    Raises:
        WorkbenchError: invalid settings, no questions, or a judge without the needed checks.
    """
    check_values(config)
    questions = training_questions(config.prompts, bench)
    grade = METHOD.grader(config, bench.checks)
    grpo = grpo_stage(config.grpo, lambda job: (questions, grade), METHOD.name)
    # without a cold start, the policy must already write the tags that the reward reads
    if not config.cold.cold_samples:
        return [grpo]

    def rows(job: Job) -> tuple[Sequence[Example], Card]:
        count = min(config.cold.cold_questions, len(questions))
        chosen = [questions[number] for number in order(len(questions), count, job.seed)]
        sampling, samples = config.grpo.sampling, config.cold.cold_samples
        return cold_start_knowrl(
            collect_in_stage(job, chosen, grade, sampling, samples, method=METHOD.name)
        )

    # with the settings of the reward, because the cold start stores its samples with their rewards
    cache_key = {**asdict(config), "grpo": asdict(config.grpo.sampling)}
    cold = offline_stage(config.sft, rows, merged=True, name="cold_start", cache_key=cache_key)
    return [cold, grpo]


METHOD: Method = Method(
    "knowrl",
    "KnowRL",
    KnowRL,
    reward,
    lambda config: ("fact", "outcome"),
    lambda config: THINK_SECTIONS,
    stages,
    PARTS,
    {"tiny": TINY},
    lambda config: Training(
        idle=() if config.cold.cold_samples else {"sft", "cold.cold_questions"}
    ),
)
