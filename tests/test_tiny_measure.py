"""Measures on a tiny policy's card: scripted replies to real questions get the expected rates."""

from collections.abc import Callable, Sequence

import pytest

from workbench.experiments.tiny.measure import (
    rates,
    reading_questions,
    reasoned,
    reasoned_questions,
)
from workbench.pipeline import grade
from workbench.types import Feedback, Question, Response
from workbench.verdicts import outcome
from workbench.world import load_world


@pytest.fixture(scope="module")
def world():
    return load_world(0)


def graded_replies(
    questions: Sequence[Question], reply: Callable[[Question], str], finish: str = "stop"
) -> list[Feedback]:
    return grade([outcome()], {})([Response(q.id, q, reply(q), finish=finish) for q in questions])


@pytest.mark.parametrize(
    ("kind", "reply", "accuracy", "abstention"),
    [
        ("several", lambda q: f"{q.answers[0]}.", 1.0, 0.0),
        ("stale", lambda q: "I do not know.", 0.0, 1.0),
        ("none", lambda q: "painter.", None, 0.0),  # unanswerable
    ],
)
def test_rates_of_correct_replies_and_of_abstentions(world, kind, reply, accuracy, abstention):
    found = rates(graded_replies(reading_questions(world, kind, 40, 0), reply))
    assert found == {"n": 40, "accuracy": accuracy, "abstention": abstention}


def test_calling_every_question_invalid_fails_the_true_premises(world):
    asked = [
        q for q in reasoned_questions(world, "test") if q.kind in ("false_premise", "true_premise")
    ]
    found = reasoned(
        graded_replies(asked, lambda q: "<think> a</think><answer> invalid question.</answer>")
    )
    assert found["false_premise"]["accuracy"] == 1.0 and found["true_premise"]["accuracy"] == 0.0
    assert found["false_premise"]["n"] == found["true_premise"]["n"] > 50
    right = reasoned(
        graded_replies(asked, lambda q: f"<think> a</think><answer> {q.answers[0]}.</answer>")
    )
    assert all(cell["accuracy"] == 1.0 for cell in right.values())
