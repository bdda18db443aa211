"""The settings of KnowRL, with the paper's defaults, and their values at smaller benches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.methods.knowrl.reward import knowrl
from workbench.methods.method import AT_ONCE, Prompts, Training, scaled
from workbench.training.grpo_config import GRPO
from workbench.training.offline import SFT
from workbench.training.settings import KL, LoRA, Optim, Passes, Sampling
from workbench.types import RewardFn
from workbench.util.config import check_values, setting
from workbench.world.schema import THINK

PROMPTS = Prompts(
    system=(
        "Think between <think> and </think> about what you know. Then give the final answer between"
        " <answer> and </answer>. If you do not know it, answer: I don't know."
    )
)
ADAPTER = LoRA(lora_r=128, lora_alpha=256)
COLD = SFT(Passes(batch=16, micro_batch=2), Optim(learning_rate=1e-4), ADAPTER)  # (ours)
PAPER = GRPO(
    steps=200,  # the best; 300 and more over-optimise
    prompts_per_step=8,  # 20 x 4 responses
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
    """The policy's own samples that a cold start picks from; 0 samples: none."""

    cold_samples: int = setting(8, "sampled responses a question", least=0)
    cold_questions: int = setting(1000, "questions that they answer", least=1)


@dataclass(frozen=True)
class KnowRL:
    """The reward's constants (paper, "Asymmetric correctness reward")."""

    form: float = setting(
        1.0, "plus this where the think and answer tags are right, minus this where not"
    )
    correct: float = setting(2.0, "paid for a correct answer")
    refusal: float = setting(1.0, "paid for a refusal; -1 is the paper's ablation")
    wrong: float = setting(-1.0, "paid for a wrong answer")
    facts: Literal["always", "if_wrong", "if_answered", "never"] = setting(
        "always",
        "pay for facts in the thinking always, only where the answer is wrong, only where it is no"
        " refusal, or never",
    )  # the paper; the code; (ours); an ablation
    length_penalty: bool = setting(
        False, "FActScore's penalty exp(1 - 10/M) on the facts of thoughts of M ≤ 10 claims"
    )  # (code, off)
    # (code, off)
    answer_tag: bool = setting(
        False, "an answer that is not in a closed, non-empty <answer> is wrong"
    )
    # (code, off)
    no_abstaining: bool = setting(False, "thinking that only abstains earns nothing for facts")
    prompts: Prompts = PROMPTS
    cold: ColdStart = ColdStart()
    sft: SFT = COLD
    grpo: GRPO = PAPER


def reward(config: KnowRL) -> RewardFn:
    """Feedback with the outcome and "fact" verdicts on the thinking's claims -> reward, paid at
    the end of the response.
    """
    check_values(config)
    return knowrl(
        form=config.form,
        correct=config.correct,
        refusal=config.refusal,
        wrong=config.wrong,
        facts=config.facts,
        length_penalty=config.length_penalty,
        answer_tag=config.answer_tag,
        no_abstaining=config.no_abstaining,
    )


def checks(config: KnowRL) -> tuple[str, ...]:
    return ("fact", "outcome")


def training(config: KnowRL) -> Training:
    return Training(idle=() if config.cold.cold_samples else {"sft", "cold.cold_questions"})


PARTS = {
    "format": ("format", "plus or minus, for the think and answer tags"),
    "correct": ("outcome", "for a correct, a refusing or a wrong final answer"),
    "fact": ("facts in the thinking", "share of the thinking's claims that the evidence supports"),
}
# *(ours)*, for 1M parameters on two CPU cores; chosen on the validation split, see
# benchmarks/README.md.
TINY = scaled(
    KnowRL(),
    prompts={"system": THINK},
    cold={"cold_samples": 4, "cold_questions": 200},
    sft={"learning_rate": 2e-4, "batch": 64, **AT_ONCE, "lora_r": 16, "lora_alpha": 32},
    grpo={
        "steps": 40,
        "learning_rate": 4e-4,
        "schedule": "linear",
        "warmup": 0.0,
        "prompts_per_step": 32,
        "group_size": 8,
        "beta": 0.0,
        "max_new_tokens": 40,
        "lora_r": 16,
        "lora_alpha": 32,
        **AT_ONCE,
        "save_every": 5,
    },
)
