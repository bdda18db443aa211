"""KnowRL (arXiv 2506.19807): format, the final answer, and the share of supported facts in the
thinking.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import exp, fsum
from typing import Literal

from workbench.methods.lookup import (
    Table,
    check_not_failed,
    claims,
    find,
    label,
    on_claim,
    scored,
    supported,
    total,
)
from workbench.text import is_abstention, thinking, well_formed
from workbench.types import OUTCOMES, Event, Feedback, Reward, RewardFn, Verdict

# outcomes
PAID = {
    "always": OUTCOMES,
    "if_wrong": ("incorrect",),
    "if_answered": ("correct", "incorrect"),
    "never": (),
}
ENOUGH = 10  # claims up to which FActScore (arXiv 2305.14251) takes something off


def knowrl(
    form: float = 1.0,
    correct: float = 2.0,
    refusal: float = 1.0,
    wrong: float = -1.0,
    facts: Literal["always", "if_wrong", "if_answered", "never"] = "always",
    length_penalty: bool = False,
    answer_tag: bool = False,
    no_abstaining: bool = False,
) -> RewardFn:
    """R = r_format + r_correct + r_fact, paid at the end of the response.

    r_format is ±`form` (see `answers.well_formed`). r_fact is the share of the thinking's claims
    that are supported, hedged or not *(ours)*, and 0 if there are none; with `facts="if_wrong"`
    *(code)* it is only paid where the answer is wrong, and with "never" nowhere (an ablation).
    With "if_answered" *(ours)* it is not paid before a refusal, where any true trivium would do.
    A failed verdict on one of these claims leaves the response unscored in any case.

    Args:
        length_penalty: r_fact of M ≤ 10 claims is multiplied by exp(1 − 10/M), as FActScore does
            *(code)*.
        answer_tag: what has no closed `<answer>` with something in it behind the thinking is paid
            like a wrong answer: a bare refusal earns −`form` and `wrong` *(code)*.
        no_abstaining: thinking that only abstains has an r_fact of 0 *(code; what abstains, by the
            rules of `answers`)*.
    """
    values = {"correct": correct, "uncertain": refusal, "incorrect": wrong}

    @scored
    def reward(feedback: Feedback, verdicts: Table) -> Reward:
        text, prefill = feedback.response.text, feedback.response.prefill
        thought = claims(feedback, lambda claim: claim.section == "think")
        outcome = label(find(verdicts, "outcome", None), values)
        for claim in thought:
            check_not_failed(verdicts, f"claim:{claim.id}", "fact")
        parts = {
            "format": form if well_formed(text, prefill) else -form,
            "correct": wrong if answer_tag and not _answers(prefill + text) else values[outcome],
        }
        if outcome in PAID[facts]:
            share = _supported(
                [on_claim(verdicts, claim, "fact") for claim in thought], length_penalty
            )
            parts["fact"] = (
                0.0 if no_abstaining and is_abstention(thinking(text, prefill)) else share
            )
        events = tuple(Event(name, value) for name, value in parts.items())
        return Reward(total(events), parts, events)

    return reward


def _answers(text: str) -> bool:
    """Whether something stands in an answer element behind the thinking."""
    element = re.search(r"<answer>(.*?)</answer>", text.rpartition("</think>")[2], re.S)
    return element is not None and bool(element[1].strip())


def _supported(facts: Sequence[Verdict], length_penalty: bool) -> float:
    """The share of claims that are supported, 0 of none."""
    if not facts:
        return 0.0
    share = fsum(map(supported, facts)) / len(facts)
    return (
        share * exp(1 - ENOUGH / len(facts)) if length_penalty and len(facts) <= ENOUGH else share
    )
