"""Define the method Binary RAR: its check, reward, training and settings on the tiny bench."""

from collections.abc import Sequence

from workbench.methods.bench import Bench
from workbench.methods.binary_rar.config import BinaryRAR
from workbench.methods.binary_rar.reward import reward
from workbench.methods.method import AT_ONCE, Method, scaled, training_questions
from workbench.training.grpo import grpo_stage
from workbench.training.stage import Stage

PARTS = {"consistent": ("no contradiction", "1 if the evidence contradicts no claim, else 0")}
# *(ours)*, for 1M parameters on two CPU cores: the same questions and steps as RLFH. The learning
# rate was chosen on the validation split: `comparison_rates.toml` in benchmarks/findings. At
# higher rates the policy refuses most or all requests.
TINY = scaled(
    BinaryRAR(),
    prompts={"kinds": "biography", "eval_kinds": "biography"},
    grpo={
        "steps": 30,
        "learning_rate": 1.9e-4,
        "max_new_tokens": 64,
        "generation_batch": None,
        **AT_ONCE,
        "save_every": 5,
    },
)


def stages(config: BinaryRAR, bench: Bench) -> Sequence[Stage]:
    """Return the training stages of a run: one stage, GRPO.

    Raises:
        WorkbenchError: invalid settings, no questions, or a judge that cannot verify claims.
    """
    # questions for long answers have no gold answers
    questions = training_questions(config.prompts, bench, answered=False)
    grade = METHOD.grader(config, bench.checks)
    return [grpo_stage(config.grpo, lambda job: (questions, grade), METHOD.name)]


METHOD: Method = Method(
    "binary_rar",
    "Binary RAR",
    BinaryRAR,
    reward,
    lambda config: ("fact",),
    stages=stages,
    parts=PARTS,
    scales={"tiny": TINY},
    needs_tokens=lambda config: "" if config.truncated else "truncated=true",
)
