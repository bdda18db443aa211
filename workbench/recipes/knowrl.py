"""KnowRL: facts rewarded inside the thinking, and a bonus for refusing (arXiv 2506.19807).

The paper: with GRPO and LoRA, R = r_format + r_correct + r_fact, where r_fact is the share of the reasoning's atomic facts
that retrieved passages support and a refusal earns +1. R1-Distill-Qwen-7B on SimpleQA: incorrect 78.0 → 57.7 %, refused
40.7 %; with a refusal at -1 instead, refused 8.7 and incorrect 78.7 %. So what is gained is abstention: 1.7 % are correct.
Format and fact alone leave more errors (80.7 %) than format alone (74.0 %).

Our deviations: a hedged claim counts as supported when it is true. The released code pays r_fact only where the answer is
wrong, unlike the paper: that is `facts="if_wrong"`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.config import check_values, setting
from workbench.grade import THOUGHT
from workbench.recipes.method import Method
from workbench.reward import knowrl
from workbench.types import RewardFn


@dataclass(frozen=True)
class KnowRL:
    """The reward's constants (paper, "Asymmetric correctness reward")."""

    form: float = setting(1.0, "plus this where the think and answer tags are right, minus this where not")
    correct: float = setting(2.0, "paid for a correct answer")
    refusal: float = setting(1.0, "paid for a refusal; -1 is the paper's ablation")
    wrong: float = setting(-1.0, "paid for a wrong answer")
    facts: Literal["always", "if_wrong"] = setting(
        "always", "pay for facts in the thinking always, or only where the answer is wrong"
    )  # the paper; the code
    length_penalty: bool = setting(
        False, "FActScore's penalty exp(1 - 10/M) on the facts of thoughts of M ≤ 10 claims"
    )  # (code, off)
    answer_tag: bool = setting(False, "an answer that is not in a closed, non-empty <answer> is wrong")  # (code, off)
    no_abstaining: bool = setting(False, "thinking that only abstains earns nothing for facts")  # (code, off)


def reward(config: KnowRL) -> RewardFn:
    """Feedback with the outcome and "fact" verdicts on the thinking's claims -> reward, paid at the end of the response."""
    check_values(config)
    return knowrl(
        form=config.form, correct=config.correct, refusal=config.refusal, wrong=config.wrong, facts=config.facts,
        length_penalty=config.length_penalty, answer_tag=config.answer_tag, no_abstaining=config.no_abstaining,
    )  # fmt: skip


def checks(config: KnowRL) -> tuple[str, ...]:
    return ("fact", "outcome")


PARTS = {
    "format": ("format", "plus or minus, for the think and answer tags"),
    "correct": ("outcome", "for a correct, a refusing or a wrong final answer"),
    "fact": ("facts in the thinking", "share of the thinking's claims that the evidence supports"),
}
METHOD = Method("knowrl", "KnowRL", KnowRL, reward, checks, lambda config: THOUGHT, parts=PARTS)
