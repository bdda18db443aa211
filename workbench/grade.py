"""Verify and reward as one callable: all that a trainer sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from workbench.types import Feedback, Grade, Response, RewardFn, Verify


def grade(verify: Verify, rewards: Mapping[str, RewardFn]) -> Grade:
    """Check a batch of responses in one call and pay each method's reward for what was found, in the order given.

    What could not be checked is a failed verdict and spoils the rewards of its own row alone. An exception in a reward
    function is a mistake in that function and is raised.
    """

    def run(responses: Sequence[Response]) -> list[Feedback]:
        verdicts = verify(responses)
        assert len(verdicts) == len(responses), (len(verdicts), len(responses))
        checked = (Feedback(response, verdicts=found) for response, found in zip(responses, verdicts, strict=True))
        return [rescore(feedback, rewards) for feedback in checked]

    return run


def rescore(feedback: Feedback, rewards: Mapping[str, RewardFn]) -> Feedback:
    """Pay the given methods anew from the row alone, without asking anyone; the rewards of other methods stay."""
    return replace(feedback, rewards={**feedback.rewards, **{method: pay(feedback) for method, pay in rewards.items()}})
