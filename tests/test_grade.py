"""Grading a batch: one call of the verifier, each row on its own, and replay from the row."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from workbench.grade import grade, rescore
from workbench.reward import binary, ternary
from workbench.types import Feedback, Question, Response, Reward, Verdict
from workbench.verify import outcome

CITY = Question("city", "Where was Toma Ardel born?", ("Vetra",))
BARE = Question("bare", "Tell me about Toma Ardel.")
BATCH = [
    Response(f"r{number}", question, text)
    for number, (question, text) in enumerate([(CITY, "Vetra"), (BARE, "Vetra"), (CITY, "I don't know."), (CITY, "Lomar")])
]


def test_rows_keep_their_order_and_a_failure_its_row() -> None:
    rows = grade(outcome(), {"ternary": ternary(), "binary": binary()})(BATCH)
    assert [row.response for row in rows] == BATCH
    assert [row.rewards["ternary"].value for row in rows] == [1.0, None, 0.0, -1.0]
    assert [row.rewards["binary"].value for row in rows] == [1.0, None, -1.0, -1.0]
    error = rows[1].rewards["binary"].error
    assert error is not None and error.kind == "no_gold"


def test_the_batch_is_verified_in_one_call() -> None:
    sizes = []

    def verify(responses: Sequence[Response]) -> list[tuple[Verdict, ...]]:
        sizes.append(len(responses))
        return outcome()(responses)

    assert len(grade(verify, {})(BATCH)) == len(BATCH)
    assert grade(verify, {})([]) == []
    assert sizes == [len(BATCH), 0]


def test_a_lost_row_is_noticed() -> None:
    with pytest.raises(AssertionError):
        grade(lambda responses: outcome()(responses)[1:], {})(BATCH)


def test_a_broken_reward_function_raises() -> None:
    def broken(feedback: Feedback) -> Reward:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        grade(outcome(), {"broken": broken})(BATCH)


def test_rescore_replays_from_the_stored_row() -> None:
    row = grade(outcome(), {"truthrl": ternary(), "other": binary()})(BATCH)[2]
    stored = Feedback.from_row(row.to_row(), CITY)
    again = rescore(stored, {"truthrl": ternary(abstain=0.5)})
    assert again.rewards["truthrl"].value == 0.5
    assert again.rewards["other"] == row.rewards["other"]
    assert rescore(stored, {"truthrl": ternary()}) == row
