"""KnowRL's reward and the format of a response, worked by hand."""

from dataclasses import replace

import pytest

from tests.helpers.errors import raises_error
from tests.helpers.reward_rows import failure, payer, row, with_verdicts
from workbench.methods.knowrl.config import KnowRL
from workbench.methods.knowrl.reward import reward
from workbench.text import well_formed
from workbench.types import Failure, Feedback, Reward, Verdict

pay = payer(reward, KnowRL())


def answered(outcome: str, think: str | None = "correct:5 wrong:5 vague:3 correct:1") -> Feedback:
    """By default two of four facts in the thinking are supported; the answer's claim is not
    checked.
    """
    return row(
        "wrong:5", think=think, tagged=True, verdicts=[Verdict("outcome", "answer", outcome)]
    )


@pytest.mark.parametrize(
    ("outcome", "always", "if_wrong", "no_bonus"),
    [  # format 1 + correct + fact .5
        ("correct", 1 + 2 + 0.5, 1 + 2, 1 + 2 + 0.5),
        ("uncertain", 1 + 1 + 0.5, 1 + 1, 1 - 1 + 0.5),
        ("incorrect", 1 - 1 + 0.5, 1 - 1 + 0.5, 1 - 1 + 0.5),
    ],
)
def test_by_hand(outcome: str, always: float, if_wrong: float, no_bonus: float) -> None:
    feedback = answered(outcome)
    assert pay(feedback).value == pytest.approx(always)
    assert pay(feedback, KnowRL(facts="if_wrong")).value == pytest.approx(if_wrong)
    assert pay(feedback, KnowRL(refusal=-1.0)).value == pytest.approx(no_bonus)
    assert pay(feedback, KnowRL(facts="never")).value == pytest.approx(always - 0.5)
    answered_alone = always - 0.5 if outcome == "uncertain" else always
    assert pay(feedback, KnowRL(facts="if_answered")).value == pytest.approx(answered_alone)
    assert pay(feedback).tokens[-1] == pytest.approx(always) and not any(pay(feedback).tokens[:-1])


def test_supported_facts() -> None:
    assert pay(answered("correct", "hedged_correct:3 hedged_wrong:3 vague:3")).parts[
        "fact"
    ] == pytest.approx(1 / 3)
    # M = 0
    assert pay(answered("correct", "")).parts == {"format": 1.0, "correct": 2.0, "fact": 0.0}
    untagged = row("correct:5", verdicts=[Verdict("outcome", "answer", "correct")])
    # claims outside the thinking earn nothing
    assert pay(untagged).parts == {"format": -1.0, "correct": 2.0, "fact": 0.0}


def test_the_format_of_many_tags_is_checked_quickly() -> None:
    """Trying every pair of tags would take minutes."""
    assert not well_formed("<think>a" + "</think><answer>b" * 50_000 + "</answer>.")


def test_failures() -> None:
    bad = Failure("verify", "timeout", "no reply")
    feedback = answered("correct")
    for target, aspect in (("outcome", "answer"), ("claim:0", "fact")):
        assert pay(with_verdicts(feedback, Verdict(target, aspect, error=bad))) == Reward(
            None, error=bad
        )
    assert failure(pay(replace(feedback, error=bad))) == bad
    assert "outcome" in failure(pay(row(think="correct:5", tagged=True))).message
    # The reward does not use the answer's claim. It needs the facts of a correct answer even with
    # facts=if_wrong, where they earn nothing.
    assert pay(
        with_verdicts(feedback, Verdict("claim:4", "fact", error=bad))
    ).value == pytest.approx(3.5)
    spoilt = with_verdicts(feedback, Verdict("claim:0", "fact", error=bad))
    assert pay(spoilt, KnowRL(facts="if_wrong")) == Reward(None, error=bad)
    assert pay(
        replace(feedback, verdicts=feedback.verdicts[-1:]), KnowRL(facts="if_wrong")
    ).value == pytest.approx(3.0)
    with raises_error("choose one of always, if_wrong"):
        reward(KnowRL(facts="sometimes"))  # type: ignore[arg-type]
