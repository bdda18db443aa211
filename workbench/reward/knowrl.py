"""KnowRL (arXiv 2506.19807): format, the final answer, and the share of supported facts in the thinking."""

from __future__ import annotations

from typing import Literal

from workbench.answers import well_formed
from workbench.reward.verdicts import P_TRUE, Table, claims, find, label, on_claim, scored, total
from workbench.types import Event, Feedback, Reward, RewardFn

SUPPORTED = ("correct", "hedged_correct")


def knowrl(
    form: float = 1.0,
    correct: float = 2.0,
    refusal: float = 1.0,
    wrong: float = -1.0,
    facts: Literal["always", "if_wrong"] = "always",
) -> RewardFn:
    """R = r_format + r_correct + r_fact, paid at the end of the response.

    r_format is ±`form` (see `answers.well_formed`). r_fact is the share of the thinking's claims that are supported, hedged or
    not *(ours)*, and 0 if there are none; with `facts="if_wrong"` *(code)* it is only paid where the answer is wrong.
    """

    @scored
    def reward(feedback: Feedback, verdicts: Table) -> Reward:
        thought = claims(feedback, lambda claim: claim.section == "think")
        outcome = label(find(verdicts, "outcome", None), ("correct", "uncertain", "incorrect"))
        parts = {
            "format": form if well_formed(feedback.response.text, feedback.response.prefill) else -form,
            "correct": {"correct": correct, "uncertain": refusal, "incorrect": wrong}[outcome],
        }
        if facts == "always" or outcome == "incorrect":
            labels = [label(on_claim(verdicts, claim, "fact"), P_TRUE) for claim in thought]
            parts["fact"] = sum(name in SUPPORTED for name in labels) / len(labels) if labels else 0.0
        events = tuple(Event(name, value) for name, value in parts.items())
        return Reward(total(events), parts, events)

    return reward
