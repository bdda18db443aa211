"""Outcome verdicts: abstention first, then the rules of answer matching."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.types import Claims, Question, Response, Verdict
from workbench.verify import outcome

CITY = Question("q", "Where was Toma Ardel born?", ("Vetra", "the city of Vetra"))


def verdicts(responses: list[Response], **settings: Any) -> list[Verdict]:
    """The single verdict of each response."""
    checked = outcome(**settings)([(response, Claims()) for response in responses])
    return [verdict for one in checked for verdict in one.verdicts]


def response(text: str, question: Question = CITY) -> Response:
    return Response("r", question, text)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("<think>x</think> Vetra.", "correct"),
        ("Lomar", "incorrect"),
        ("I don’t know.", "uncertain"),
        ("<think>Vetra</think> I do not know.", "uncertain"),
        ("I don't know. Vetra", "correct"),
        ("I don't know. Lomar", "incorrect"),
        ("Vetra or Lomar", "incorrect"),
        ("<think>Vetra", "incorrect"),
        ("<think>I don't know", "incorrect"),
        ("", "incorrect"),
        ("invalid question", "incorrect"),
        # the question gives the name
        ("Toma Ardel is a painter. He was born in Vetra.", "correct"),
        ("Toma Ardel comes from Lomar. He was born in Vetra.", "incorrect"),
    ],
)
def test_outcome(text: str, label: str) -> None:
    [verdict] = verdicts([response(text)])
    assert (verdict.target, verdict.aspect, verdict.by) == ("outcome", "answer", "rule")
    assert (verdict.label, verdict.error) == (label, None)


@pytest.mark.parametrize(
    ("kind", "answers", "text", "label"),
    [
        ("false_premise", ("invalid question",), "Invalid question.", "correct"),
        ("false_premise", ("invalid question",), "I don't know.", "uncertain"),
        ("numeric", ("1921",), "in the year 1921", "correct"),
        ("numeric", ("1921",), "1921 or 1922", "incorrect"),
        ("yes_no", ("sia",), "Sia.", "correct"),
        ("list", ("Ana", "Belu"), "Belu and Ana", "correct"),
        ("list", ("Ana", "Belu"), "Ana", "incorrect"),
        ("single", ("unknown",), "unknown", "uncertain"),
    ],
)
def test_outcome_by_kind(kind: str, answers: tuple[str, ...], text: str, label: str) -> None:
    [verdict] = verdicts([response(text, Question("q", "?", answers, kind=kind))])
    assert verdict.label == label


def test_required_box() -> None:
    texts = (r"\boxed{Vetra}", "Vetra", r"\boxed{I don't know}", "I don't know")
    labels = [verdict.label for verdict in verdicts(list(map(response, texts)), require_box=True)]
    assert labels == ["correct", "incorrect", "uncertain", "incorrect"]


def test_extra_abstentions() -> None:
    [verdict] = verdicts([response("Zu neska.")], abstentions=["zu neska"])
    assert verdict.label == "uncertain"


def test_no_gold_answer_fails_that_row_alone() -> None:
    bare = Question("bare", "Tell me about Toma Ardel.", kind="biography")
    answer, abstention, other = verdicts(
        [response("Vetra", bare), response("I don't know", bare), response("Vetra")]
    )
    for verdict in (answer, abstention):
        assert verdict.label is None
        assert verdict.error is not None
        assert (verdict.error.stage, verdict.error.kind) == ("verify", "no_gold")
        assert "'bare'" in verdict.error.message
    assert other.label == "correct"
