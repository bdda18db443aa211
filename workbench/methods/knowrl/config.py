"""Settings of KnowRL (arXiv 2506.19807), with the paper's defaults."""

from dataclasses import dataclass
from typing import Literal

from workbench.methods.method import Prompts
from workbench.training.grpo_config import GRPO
from workbench.training.offline import SFT
from workbench.training.settings import KL, LoRA, Optim, Passes, Sampling
from workbench.util.config import setting

PROMPTS = Prompts(
    system=(
        "Think between <think> and </think> about what you know. Then give the final answer between"
        " <answer> and </answer>. If you do not know it, answer: I don't know."
    )
)
ADAPTER = LoRA(lora_r=128, lora_alpha=256)
COLD = SFT(Passes(batch=16, micro_batch=2), Optim(learning_rate=1e-4), ADAPTER)  # (ours)
PAPER = GRPO(
    steps=200,  # the paper's best; 300 and more over-optimise
    prompts_per_step=8,  # 80 responses per step (20 x 4)
    group_size=10,  # (code)
    loss_type="grpo",
    micro_batch=4,
    optim=Optim(learning_rate=1e-5),
    sampling=Sampling(max_new_tokens=1024),  # (code)
    kl=KL(beta=1e-3),
    lora=ADAPTER,
)


@dataclass(frozen=True)
class ColdStart:
    """Settings of the cold start, which is SFT on sampled responses of the policy before RL.

    SFT uses the samples that have the required think and answer tags, a correct answer or a
    refusal, and no wrong claim.
    """

    cold_samples: int = setting(8, "sampled responses per question; 0: no cold start", least=0)
    cold_questions: int = setting(1000, "number of questions of the cold start", least=1)


@dataclass(frozen=True)
class KnowRL:
    """Settings of KnowRL's reward and of its training.

    The paper's section on the reward is "Asymmetric correctness reward".
    """

    form: float = setting(
        1.0, "reward of correct think and answer tags; -form for a response without them"
    )
    correct: float = setting(2.0, "reward of a correct answer")
    refusal: float = setting(1.0, "reward of a refusal; -1 is the paper's ablation")
    wrong: float = setting(-1.0, "reward of a wrong answer")
    facts: Literal["always", "if_wrong", "if_answered", "never"] = setting(
        "always",
        "reward facts in the thinking always, only if the answer is wrong, only if it is not a"
        " refusal, or never",
    )  # "always": the paper; "if_wrong": the code; "if_answered": (ours); "never": an ablation
    prompts: Prompts = PROMPTS
    cold: ColdStart = ColdStart()
    sft: SFT = COLD
    grpo: GRPO = PAPER
