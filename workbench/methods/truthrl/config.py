"""The settings of TruthRL, with the paper's defaults, and their values at smaller benches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.methods.method import AT_ONCE, Prompts, Training
from workbench.methods.truthrl.probing import Probing
from workbench.methods.truthrl.reward import (
    additive,
    binary,
    conditional,
    knowledge,
    multiplicative,
    reasoning,
    ternary,
)
from workbench.pipeline import THINK_SECTIONS
from workbench.training.grpo_config import GRPO
from workbench.training.settings import KL, LoRA, Optim, Sampling
from workbench.types import RewardFn
from workbench.util.config import check_values, setting

# The paper's (appendix, "Training details"), but for what is marked as ours.
PAPER = GRPO(
    steps=100,  # (ours)
    prompts_per_step=64,
    group_size=8,  # (ours)
    clip=0.2,
    loss_type="grpo",  # §3.2: mean over a response's tokens, then over responses
    micro_batch=2,  # (ours) fits one 80 GB GPU, by `workbench plan`
    generation_batch=128,  # (ours)
    # (ours) for the adapter; the paper, training all parameters: 1e-6
    optim=Optim(learning_rate=2e-5, schedule="constant", warmup=0.0),
    sampling=Sampling(max_new_tokens=2048),
    kl=KL(beta=0.001),
    lora=LoRA(lora_r=64, lora_alpha=128),  # (ours)
)
PROMPTS, PROBE = Prompts(), Probing()


@dataclass(frozen=True)
class TruthRL:
    """The paper's settings."""

    reward: Literal["ternary", "binary"] = setting(
        "ternary", "ternary: an abstention is paid apart; binary: like a wrong answer"
    )
    correct: float = setting(1.0, "paid for a correct answer")  # §3.2
    abstain: float = setting(0.0, "paid for an abstention")  # of the ternary reward
    wrong: float = setting(-1.0, "paid for a wrong answer")
    # §3.2
    knowledge: bool = setting(
        False, "pay for abstentions where the model cannot know, as a probe or the judge says"
    )
    reasoning: Literal["none", "multiplicative", "additive", "conditional"] = setting(
        "none", "how the quality of the reasoning changes the outcome's reward"
    )  # §4.6, table 8
    # (appendix)
    reasoning_weight: float = setting(
        0.5, "λ: weight of the reasoning, where it is additive", range=(0, 2, 0.05)
    )
    prompts: Prompts = PROMPTS
    probe: Probing = PROBE
    grpo: GRPO = PAPER


def reward(config: TruthRL) -> RewardFn:
    """Feedback with the outcome (and the verdicts that the enhanced rewards look at) -> reward,
    paid at the response's end.
    """
    check_values(config)
    base = binary(config.correct, config.wrong)
    if config.reward == "ternary":
        base = ternary(config.correct, config.abstain, config.wrong)
    if config.knowledge:
        base = knowledge(base, other=config.wrong)
    if config.reasoning == "none":
        return base
    ways = {
        "multiplicative": multiplicative,
        "additive": additive(config.reasoning_weight),
        "conditional": conditional,
    }
    return reasoning(base, ways[config.reasoning])


def checks(config: TruthRL) -> tuple[str, ...]:
    """The outcome, and what the enhanced rewards look at."""
    boundary = ("out_of_knowledge",) if config.knowledge else ()
    return ("outcome", *boundary, *(("reasoning",) if config.reasoning != "none" else ()))


def sections(config: TruthRL) -> frozenset[str]:
    """What the reasoning claims, where it is looked at."""
    return THINK_SECTIONS if config.reasoning != "none" else frozenset()


def training(config: TruthRL) -> Training:
    return Training(idle=() if config.knowledge else {"probe"})


PARTS = {
    "outcome": ("outcome", "for a correct, an abstaining or an incorrect final answer"),
    "reasoning": ("reasoning", "what the quality of the reasoning adds or takes"),
}
# *(ours)*, for 1M parameters on two CPU cores; tuned on the validation split.
TINY = {
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
}
