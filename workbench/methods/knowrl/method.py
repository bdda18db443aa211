"""The method KnowRL: the parts of its reward, and its settings at the tiny bench."""

from workbench.methods.knowrl.config import KnowRL
from workbench.methods.knowrl.reward import reward
from workbench.methods.knowrl.stages import stages
from workbench.methods.method import AT_ONCE, Method, Training, scaled
from workbench.pipeline import THINK_SECTIONS
from workbench.world.schema import THINK

PARTS = {
    "format": ("format", "positive or negative, for the think and answer tags"),
    "correct": ("outcome", "for a correct, a refusing or a wrong final answer"),
    "fact": ("facts in the thinking", "share of the thinking's claims that the evidence supports"),
}
# *(ours)*, for 1M parameters on two CPU cores; chosen on the validation split, see
# benchmarks/README.md.
ADAPTER = {"lora_r": 16, "lora_alpha": 32, **AT_ONCE}
TINY = scaled(
    KnowRL(),
    prompts={"system": THINK},
    cold={"cold_samples": 4, "cold_questions": 200},
    sft={"learning_rate": 2e-4, "batch": 64, **ADAPTER},
    grpo={
        "steps": 40,
        "learning_rate": 4e-4,
        "schedule": "linear",
        "warmup": 0.0,
        "prompts_per_step": 32,
        "group_size": 8,
        "beta": 0.0,
        "max_new_tokens": 40,
        **ADAPTER,
        "save_every": 5,
    },
)


METHOD: Method = Method(
    "knowrl",
    "KnowRL",
    KnowRL,
    reward,
    lambda config: ("fact", "outcome"),
    lambda config: THINK_SECTIONS,
    lambda config, bench: stages(config, bench, METHOD),
    PARTS,
    {"tiny": TINY},
    lambda config: Training(
        idle=() if config.cold.cold_samples else {"sft", "cold.cold_questions"}
    ),
)
