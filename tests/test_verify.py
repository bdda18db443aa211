"""Outcome verdicts: abstention first, then the rules of answer matching."""

from typing import Any

import pytest

from tests.helpers import examples
from workbench.types import Claims, Question, Response, Verdict
from workbench.verdicts import outcome

CITY = Question("q", "Where was Toma Ardel born?", ("Vetra", "the city of Vetra"))


def verdicts(responses: list[Response], **settings: Any) -> list[Verdict]:
    """The single verdict of each response."""
    checked = outcome(**settings)([(response, Claims()) for response in responses])
    return [verdict for one in checked for verdict in one.verdicts]


def response(text: str, question: Question = CITY) -> Response:
    return Response("r", question, text)


@pytest.mark.parametrize(("label", "texts"), examples("outcomes_of_texts"))
def test_outcome(label: str, texts: list[str]) -> None:
    found = verdicts(list(map(response, texts)))
    assert {(one.target, one.aspect, one.by, one.error) for one in found} == {
        ("outcome", "answer", "rule", None)
    }
    assert [one.label for one in found] == [label] * len(texts)


@pytest.mark.parametrize(
    "form",
    [
        r"\boxed{Vetra} %s",
        "<think>x</think><answer>Vetra</answer> %s",
        r"<answer>\boxed{Vetra}</answer> %s",
        r"<answer>\boxed{Vetra} %s</answer>",
        r"<think>\boxed{Lomar}? I take it back.</think><answer>Vetra</answer> %s",
    ],
)
@pytest.mark.parametrize(("after", "label"), examples("taken_back"))
def test_text_after_the_box_or_tag_may_retract_the_answer(
    form: str, after: str, label: str
) -> None:
    [verdict] = verdicts([response(form % after)])
    assert verdict.label == label


@pytest.mark.parametrize(("kind", "answers", "text", "label"), examples("outcomes"))
def test_outcome_by_kind(kind: str, answers: list[str], text: str, label: str) -> None:
    [verdict] = verdicts([response(text, Question("q", "?", tuple(answers), kind=kind))])
    assert verdict.label == label


def test_required_box() -> None:
    texts = (r"\boxed{Vetra}", "Vetra", r"\boxed{I don't know}", "I don't know")
    labels = [verdict.label for verdict in verdicts(list(map(response, texts)), require_box=True)]
    assert labels == ["correct", "incorrect", "uncertain", "incorrect"]


def test_a_missing_gold_answer_fails_only_that_row() -> None:
    bare = Question("bare", "Tell me about Toma Ardel.", kind="biography")
    *failed, other = verdicts(
        [response("Vetra", bare), response("I don't know", bare), response("Vetra")]
    )
    for verdict in failed:
        assert verdict.label is None and verdict.error is not None
        assert (verdict.error.stage, verdict.error.kind) == ("verify", "no_gold")
        assert "'bare'" in verdict.error.message
    assert other.label == "correct"
