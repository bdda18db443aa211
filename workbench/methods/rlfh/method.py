"""The method RLFH: its checks, the parts of its reward, and its settings at the tiny bench."""

from workbench.methods.method import AT_ONCE, Method, Training, scaled
from workbench.methods.rlfh.config import RLFH
from workbench.methods.rlfh.reward import reward
from workbench.methods.rlfh.stages import stages

PARTS = {
    "truth": ("truthfulness", "sum over the claims of α · f(verdict) · |g(informativeness)|"),
    "info": (
        "informativeness",
        "sum over the sentences of β · ln(1 + max(ε, Σ g(informativeness)))",
    ),
}
# *(ours)*, for 1M parameters on two CPU cores; chosen on the validation split, see
# benchmarks/README.md. Rewards reach about 10 within few updates. A critic clipped to .2 around its
# old values would not get there, and with λ below 1 the critic has to carry the cost of a whole
# biography back to its first word.
SHORT = {"steps": 30, "max_new_tokens": 64, **AT_ONCE, "save_every": 5}
TINY = scaled(
    RLFH(),
    prompts={"kinds": "biography", "eval_kinds": "biography"},
    ppo={
        **SHORT,
        "learning_rate": 2e-3,
        "critic_learning_rate": 3e-2,
        "minibatch": 32,
        "value_clip": 50.0,
        "lam": 1.0,
    },
    grpo={**SHORT, "learning_rate": 3e-3, "schedule": "linear", "warmup": 0.0, "beta": 0.0},
)


def checks(config: RLFH) -> tuple[str, ...]:
    """Return the checks that the reward reads; a single pass extracts and verifies in one call."""
    return ("fact",) if config.mode == "pipeline" else ("single_pass",)


def training(config: RLFH) -> Training:
    return Training(
        config.trainer,
        idle={"ppo", "grpo"} - {config.trainer},
        resident_models=int(config.annotator in ("self", "recall")),
    )


METHOD: Method = Method(
    "rlfh",
    "RLFH",
    RLFH,
    reward,
    checks,
    stages=lambda config, bench: stages(config, bench, METHOD),
    parts=PARTS,
    scales={"tiny": TINY},
    training=training,
)
