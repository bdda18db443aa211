"""Settings of TruthRL (arXiv 2509.25760), with the paper's defaults."""

from dataclasses import dataclass
from typing import Literal

from workbench.methods.method import Prompts
from workbench.training.grpo_config import GRPO
from workbench.training.settings import KL, LoRA, Optim, Sampling
from workbench.util.config import setting

# the values of the appendix, "Training details"; those marked (ours) are not in the paper
PAPER = GRPO(
    steps=100,  # (ours)
    prompts_per_step=64,
    group_size=8,  # (ours)
    clip=0.2,
    loss_type="grpo",  # §3.2: mean over a response's tokens, then over responses
    micro_batch=2,  # (ours) fits one 80 GB GPU, by `workbench plan`
    generation_batch=128,  # (ours)
    # (ours) for the adapter; the paper trains all parameters, with 1e-6
    optim=Optim(learning_rate=2e-5, schedule="constant", warmup=0.0),
    sampling=Sampling(max_new_tokens=2048),
    kl=KL(beta=0.001),
    lora=LoRA(lora_r=64, lora_alpha=128),  # (ours)
)


@dataclass(frozen=True)
class Probing:
    """Settings of the probe, which finds questions that the policy cannot answer.

    The probe runs before the training if the setting `knowledge` is True.
    """

    probe_samples: int = setting(
        256,
        "samples per question; a question is out of knowledge if no sample is correct; 0: use the"
        " judge's check, which is exact in the closed world",
        least=0,
    )  # (appendix)


PROMPTS, PROBE = Prompts(), Probing()


@dataclass(frozen=True)
class TruthRL:
    """Settings of TruthRL's reward and of its training."""

    reward: Literal["ternary", "binary"] = setting(
        "ternary", "binary: an abstention earns `wrong`, as a wrong answer; ternary: `abstain`"
    )
    correct: float = setting(1.0, "reward of a correct answer")  # §3.2
    abstain: float = setting(0.0, "reward of an abstention")  # of the ternary reward
    wrong: float = setting(-1.0, "reward of a wrong answer")
    # §3.2
    knowledge: bool = setting(
        False, "reward abstaining (+1) on questions that a probe or the judge finds unknown"
    )
    reasoning: Literal["none", "multiplicative", "additive", "conditional"] = setting(
        "none", "how the quality of the reasoning changes the reward of the outcome"
    )  # §4.6, table 8
    # (appendix)
    reasoning_weight: float = setting(
        0.5, "λ: weight of the reasoning, if it is additive", range=(0, 2, 0.05)
    )
    verifier: Literal["judge", "string_match"] = setting(
        "judge", "judge: the judge's verdict; string_match: the answer must equal a gold answer"
    )  # table 5
    prompts: Prompts = PROMPTS
    probe: Probing = PROBE
    grpo: GRPO = PAPER
