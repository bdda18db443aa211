"""The method TruthRL: its checks, the parts of its reward, and its settings at smaller benches."""

from workbench.methods.method import AT_ONCE, Method, Training, scaled
from workbench.methods.truthrl.config import TruthRL
from workbench.methods.truthrl.reward import reward
from workbench.methods.truthrl.stages import stages
from workbench.pipeline import THINK_SECTIONS

PARTS = {
    "outcome": ("outcome", "for a correct, an abstaining or an incorrect final answer"),
    "reasoning": ("reasoning", "change of the reward by the quality of the reasoning"),
}
# *(ours)*, for 1M parameters on two CPU cores; tuned on the validation split.
TINY = scaled(
    TruthRL(),
    grpo={
        "steps": 48,
        "learning_rate": 4e-4,
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
    """Return the checks that the reward reads: the outcome, and those of the enhanced variants."""
    boundary = ("out_of_knowledge",) if config.knowledge else ()
    return ("outcome", *boundary, *(("reasoning",) if config.reasoning != "none" else ()))


METHOD: Method = Method(
    "truthrl",
    "TruthRL",
    TruthRL,
    reward,
    checks,
    # only the check of the reasoning reads claims
    lambda config: THINK_SECTIONS if config.reasoning != "none" else frozenset(),
    lambda config, bench: stages(config, bench, METHOD),
    PARTS,
    {"tiny": TINY, "small": SMALL},
    lambda config: Training(idle=() if config.knowledge else {"probe"}),
)
