"""Rewards, against numbers worked by hand from the papers' equations."""

from __future__ import annotations

import pytest

from workbench.reward import binary, ternary
from workbench.types import Event, Failure, Feedback, Question, Response, Reward, RewardFn, Verdict

RESPONSE = Response("r", Question("q", "?", ("Vetra",)), "Vetra")


def feedback(*verdicts: Verdict) -> Feedback:
    return Feedback(RESPONSE, verdicts=verdicts)


@pytest.mark.parametrize(
    ("reward", "correct", "uncertain", "incorrect"),
    [
        (binary(), 1.0, -1.0, -1.0),
        (ternary(), 1.0, 0.0, -1.0),
        (binary(correct=2, wrong=0), 2.0, 0.0, 0.0),
        (ternary(correct=2, abstain=0.5, wrong=-3), 2.0, 0.5, -3.0),
    ],
)
def test_truthrl_rewards(reward: RewardFn, correct: float, uncertain: float, incorrect: float) -> None:
    """TruthRL, section 3: r_binary = +1, −1; r_ternary = +1, 0, −1."""
    for label, value in (("correct", correct), ("uncertain", uncertain), ("incorrect", incorrect)):
        paid = reward(feedback(Verdict("reasoning", "quality", "good"), Verdict("outcome", "answer", label)))
        assert paid == Reward(value, {"outcome": value}, (Event("outcome", value, end=None),))
        assert sum(event.value for event in paid.events) == value


def test_only_the_ternary_reward_tells_abstaining_from_hallucinating() -> None:
    """The paper's example: a group of one abstention and one hallucination has no advantage under the binary reward."""
    group = [feedback(Verdict("outcome", "answer", label)) for label in ("uncertain", "incorrect")]
    assert [binary()(row).value for row in group] == [-1.0, -1.0]
    assert [ternary()(row).value for row in group] == [0.0, -1.0]


@pytest.mark.parametrize("reward", [binary(), ternary()])
def test_a_failure_is_never_a_number(reward: RewardFn) -> None:
    failure = Failure("verify", "no_gold", "nothing to compare with")
    assert reward(feedback(Verdict("outcome", "answer", error=failure))) == Reward(None, error=failure)
    for row, kind in ((feedback(), "no_verdict"), (feedback(Verdict("outcome", "answer", "right")), "undeclared_label")):
        paid = reward(row)
        assert paid.value is None and not paid.parts and not paid.events
        assert paid.error is not None and (paid.error.stage, paid.error.kind) == ("reward", kind)
