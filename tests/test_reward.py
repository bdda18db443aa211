"""TruthRL's rewards, against numbers worked by hand from the paper's equations."""

from typing import Any

import pytest

from tests.helpers import examples
from tests.helpers.reward_rows import failure
from workbench.methods.truthrl.config import TruthRL
from workbench.methods.truthrl.method import checks
from workbench.methods.truthrl.reward import binary, reward, ternary
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
def test_truthrl_rewards(
    reward: RewardFn, correct: float, uncertain: float, incorrect: float
) -> None:
    """TruthRL, section 3: r_binary = +1, −1; r_ternary = +1, 0, −1."""
    for label, value in (("correct", correct), ("uncertain", uncertain), ("incorrect", incorrect)):
        paid = reward(
            feedback(Verdict("reasoning", "quality", "good"), Verdict("outcome", "answer", label))
        )
        assert paid == Reward(value, {"outcome": value}, (Event("outcome", value, end=None),))
        assert sum(event.value for event in paid.events) == value


@pytest.mark.parametrize("reward", [binary(), ternary()])
def test_a_failed_row_has_no_reward(reward: RewardFn) -> None:
    lacking = Failure("verify", "no_gold", "nothing to compare with")
    paid = reward(feedback(Verdict("outcome", "answer", error=lacking)))
    assert paid == Reward(None, error=lacking)
    for row, kind in (
        (feedback(), "no_verdict"),
        (feedback(Verdict("outcome", "answer", "right")), "undeclared_label"),
    ):
        paid = reward(row)
        assert not paid.parts and not paid.events
        assert (failure(paid).stage, failure(paid).kind) == ("reward", kind)


OUTCOMES = ("correct", "uncertain", "incorrect")


def answered(label: str, *more: Verdict) -> Feedback:
    return feedback(Verdict("outcome", "answer", label), *more)


def check_unscored(config: TruthRL, bad: Verdict) -> None:
    """There is no reward if a needed verdict is missing or unreadable."""
    for more in ((), (bad,)):
        assert [reward(config)(answered(label, *more)).value for label in OUTCOMES] == [None] * 3


@pytest.mark.parametrize(
    ("config", "known", "unknown"),
    # for a correct answer, an abstention, a wrong answer; out of knowledge, only the abstention
    # earns +1
    [
        (TruthRL(knowledge=True), [1, 0, -1], [-1, 1, -1]),
        (TruthRL(knowledge=True, reward="binary"), [1, -1, -1], [-1, 1, -1]),
        # +1 whatever `correct` is
        (TruthRL(knowledge=True, correct=3, abstain=0.5, wrong=-2), [3, 0.5, -2], [-2, 1, -2]),
    ],
)
def test_knowledge_enhanced(config: TruthRL, known: list[float], unknown: list[float]) -> None:
    for boundary, values in (("known", known), ("unknown", unknown)):
        verdict = Verdict("response", "out_of_knowledge", boundary)
        assert [reward(config)(answered(label, verdict)).value for label in OUTCOMES] == values
    check_unscored(config, Verdict("response", "out_of_knowledge", "maybe"))


@pytest.mark.parametrize(
    ("config", "good", "poor"),
    [
        (TruthRL(reasoning="multiplicative"), [2, 0, -2], [1, 0, -1]),  # r·(1 + ρ)
        (TruthRL(reasoning="additive"), [1.5, 0.5, -0.5], [1, 0, -1]),  # r + .5·ρ
        (TruthRL(reasoning="additive", reasoning_weight=0.2), [1.2, 0.2, -0.8], [1, 0, -1]),
        (TruthRL(reasoning="conditional"), [1, 0, -1], [0, 0, -1]),  # r·ρ where r = 1
        (TruthRL(reasoning="multiplicative", reward="binary"), [2, -2, -2], [1, -1, -1]),
    ],
)
def test_reasoning_enhanced(config: TruthRL, good: list[float], poor: list[float]) -> None:
    for quality, values in (("good", good), ("poor", poor)):
        for label, value in zip(OUTCOMES, values, strict=True):
            paid = reward(config)(answered(label, Verdict("reasoning", "reasoning", quality)))
            assert paid.value == pytest.approx(value) == pytest.approx(sum(paid.parts.values()))
            assert sum(event.value for event in paid.events) == pytest.approx(value)
    unread = Failure("verify", "parse", "not an object")
    check_unscored(config, Verdict("reasoning", "reasoning", error=unread))
    lost = feedback(Verdict("outcome", "answer", error=unread))
    assert reward(config)(lost) == Reward(None, error=unread)


@pytest.mark.parametrize(
    ("way", "value"), [("multiplicative", 2.0), ("additive", 1.5), ("conditional", 1.0)]
)
def test_knowledge_and_reasoning_together(way: Any, value: float) -> None:
    """Out of knowledge, an abstention has r = +1; "conditional" applies only to correct answers."""
    verdicts = (
        Verdict("response", "out_of_knowledge", "unknown"),
        Verdict("reasoning", "reasoning", "good"),
    )
    paid = reward(TruthRL(knowledge=True, reasoning=way))(answered("uncertain", *verdicts))
    assert (paid.value, paid.parts["outcome"]) == (value, 1.0)


def test_poor_reasoning_earns_no_more_than_good_out_of_knowledge() -> None:
    """A lucky correct answer has r = −1; "conditional" multiplies only r = +1 (section 4.6)."""
    pay = reward(TruthRL(knowledge=True, reasoning="conditional"))
    unknown = Verdict("response", "out_of_knowledge", "unknown")
    for quality in ("good", "poor"):
        row = answered("correct", unknown, Verdict("reasoning", "reasoning", quality))
        assert pay(row).value == -1


def test_the_string_match_verifier_accepts_only_the_gold_answer() -> None:
    """Table 5: regardless of the judge, the answer must equal a gold answer after normalisation; an
    abstention stays an abstention.
    """
    pay = reward(TruthRL(verifier="string_match"))
    question = Question("q", "Where?", answers=("Paris", "the city of Paris", "+"))
    for text, label, value in examples("string_matches"):
        response = Response("r", question, text, offsets=((0, len(text)),))
        row = Feedback(response, verdicts=(Verdict("outcome", "answer", label),))
        assert pay(row).value == value


def test_config_values_and_the_checks_they_need() -> None:
    assert checks(TruthRL()) == ("outcome",)
    assert checks(TruthRL(knowledge=True, reasoning="additive")) == (
        "outcome",
        "out_of_knowledge",
        "reasoning",
    )
