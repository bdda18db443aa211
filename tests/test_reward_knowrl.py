"""KnowRL's reward and the form of a response, worked by hand."""

from __future__ import annotations

from dataclasses import replace
from math import exp

import pytest

from tests.helpers import examples
from tests.helpers.errors import raises_error
from tests.helpers.reward_rows import failure, row, with_verdicts
from workbench.methods.knowrl.config import KnowRL
from workbench.methods.knowrl.reward import reward
from workbench.pipeline import rescore
from workbench.text import well_formed
from workbench.types import Failure, Feedback, Reward, Verdict


def pay(feedback: Feedback, config: KnowRL | None = None) -> Reward:
    return rescore(feedback, {"knowrl": reward(config or KnowRL())}).rewards["knowrl"]


def answered(
    outcome: str,
    think: str | None = "correct:5 wrong:5 vague:3 correct:1",
) -> Feedback:
    """By default half of the four facts of the thinking are supported; the answer's one claim is
    not looked at.
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
    # what is not thought earns nothing
    assert pay(untagged).parts == {"format": -1.0, "correct": 2.0, "fact": 0.0}


@pytest.mark.parametrize(
    ("claims", "fact"),
    [  # half of them supported, times exp(1 − 10/M) for M ≤ 10
        (4, 0.5 * exp(-1.5)),
        (8, 0.5 * exp(-0.25)),
        (12, 0.5),
        (0, 0.0),
    ],
)
def test_the_codes_length_penalty(claims: int, fact: float) -> None:
    feedback = answered("incorrect", "correct:5 wrong:5 " * (claims // 2))
    for facts in ("always", "if_wrong"):
        paid = pay(feedback, KnowRL(length_penalty=True, facts=facts))
        assert paid.parts["fact"] == pytest.approx(fact) and paid.value == pytest.approx(
            1 - 1 + fact
        )
    assert pay(feedback).parts["fact"] == (0.5 if claims else 0.0)


@pytest.mark.parametrize(("text", "format", "correct"), examples("answer_tags"))
def test_the_codes_answer_tag(text: str, format: float, correct: float) -> None:
    refusal = row("", verdicts=[Verdict("outcome", "answer", "uncertain")])
    refusal = replace(
        refusal,
        response=replace(refusal.response, text=text, offsets=()),
        sentences=((0, len(text)),),
    )
    parts = {"format": format, "correct": correct, "fact": 0.0}
    assert pay(refusal, KnowRL(answer_tag=True)).parts == parts
    # the paper's refusal, tag or not
    assert pay(refusal).parts == {**parts, "correct": 1.0}
    right = with_verdicts(refusal, Verdict("outcome", "answer", "correct"))
    assert pay(right, KnowRL(answer_tag=True)).parts["correct"] == (2 if correct == 1 else -1)


def test_the_codes_abstaining_thoughts() -> None:
    """A claim that was read out of "I don't know who she is." earns 1/1, and nothing by the
    code.
    """
    for thought, fact in (
        ("I don't know who she is.", 0.0),
        ("I don't know her age. She was born in Rome.", 1.0),
    ):
        feedback = answered("uncertain", "correct:5")
        text = f"<think>{thought}</think><answer>I don't know.</answer>"
        said = replace(
            feedback,
            response=replace(feedback.response, text=text, offsets=()),
            sentences=((7, 12), (12, 20)),
        )
        assert pay(said).parts["fact"] == 1.0
        assert pay(said, KnowRL(no_abstaining=True)).parts["fact"] == fact


def test_the_form_of_many_tags_is_checked_quickly() -> None:
    """Where every tag were tried as the end of every other, this would take minutes."""
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
    # What the reward does not ask for does not spoil it: the answer's claim. The facts of a right
    # answer it did ask for, though in the code's way it does not pay them.
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
