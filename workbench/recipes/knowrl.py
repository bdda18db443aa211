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
from typing import TYPE_CHECKING, Literal

from workbench.recipes import assemble
from workbench.types import Grade, RewardFn

if TYPE_CHECKING:
    from workbench.bench import Bench
    from workbench.checks import Checks

METHOD = "knowrl"
CHECKS = ("fact", "outcome")


@dataclass(frozen=True)
class KnowRL:
    """The reward's constants (paper, "Asymmetric correctness reward")."""

    form: float = 1.0  # r_format is + or - this
    correct: float = 2.0
    refusal: float = 1.0  # -1 is the paper's ablation
    wrong: float = -1.0
    facts: Literal["always", "if_wrong"] = "always"  # the paper; "if_wrong" is the code
    length_penalty: bool = False  # (code, off) r_fact times FActScore's exp(1 - 10/M) for M <= 10 claims
    answer_tag: bool = False  # (code, off) without a closed, non-empty <answer>, r_correct is that of a wrong answer
    no_abstaining: bool = False  # (code, off) thinking that only abstains has r_fact 0


def reward(config: KnowRL) -> RewardFn:
    """Feedback with the outcome and "fact" verdicts on the thinking's claims -> reward, paid at the end of the response."""
    from workbench.config import check_values
    from workbench.reward import knowrl

    check_values(config)
    return knowrl(
        config.form, config.correct, config.refusal, config.wrong, config.facts,
        config.length_penalty, config.answer_tag, config.no_abstaining,
    )  # fmt: skip


def checks(config: KnowRL) -> tuple[str, ...]:
    return CHECKS


def grader(config: KnowRL, bench: Bench | Checks) -> Grade:
    """Responses -> feedback with the outcome and verdicts on the thinking's claims, and the reward under "knowrl"."""
    return assemble(bench, {METHOD: reward(config)}, checks(config), lambda claim: claim.section == "think")
