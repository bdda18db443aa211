"""Grading a batch: one verifier call, independent rows, and rescoring of stored rows."""

import json
import math
from collections.abc import Sequence

import pytest

from workbench.methods.truthrl.reward import binary, ternary
from workbench.pipeline import grade, rescore
from workbench.types import (
    Checked,
    Claim,
    Claims,
    Cost,
    Failure,
    Feedback,
    Question,
    Response,
    Reward,
    Verdict,
)
from workbench.util.jsonl import encode
from workbench.verdicts import outcome

CITY = Question("city", "Where was Toma Ardel born?", ("Vetra",))
BARE = Question("bare", "Tell me about Toma Ardel.")
BATCH = [
    Response(f"r{number}", question, text)
    for number, (question, text) in enumerate(
        [(CITY, "Vetra"), (BARE, "Vetra"), (CITY, "I don't know."), (CITY, "Lomar")]
    )
]


def test_rows_keep_their_order_and_failures_stay_on_their_row() -> None:
    rows = grade([outcome()], {"ternary": ternary(), "binary": binary()})(BATCH)
    assert [row.response for row in rows] == BATCH
    assert [row.rewards["ternary"].value for row in rows] == [1.0, None, 0.0, -1.0]
    assert [row.rewards["binary"].value for row in rows] == [1.0, None, -1.0, -1.0]
    error = rows[1].rewards["binary"].error
    assert error is not None and error.kind == "no_gold"


def test_the_batch_is_verified_in_one_call_and_a_missing_row_is_an_error() -> None:
    sizes = []

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        sizes.append(len(batch))
        return outcome()(batch)

    assert len(grade([verify], {})(BATCH)) == len(BATCH)
    assert grade([verify], {})([]) == []
    assert sizes == [len(BATCH), 0]
    with pytest.raises(AssertionError):
        grade([lambda batch: outcome()(batch)[1:]], {})(BATCH)


def test_a_row_without_sentences_counts_as_not_extracted() -> None:
    """Without sentences from the extractor, a text with words is a failure."""
    from workbench.methods import method_configs, reward_fns

    pay = reward_fns(method_configs(("rlfh", "truthrl")))
    responses = [Response("a", CITY, " ?! "), Response("b", CITY, " ")]
    extract = grade([outcome()], pay, lambda batch: [Claims()] * len(batch))
    [lost] = extract([Response("c", CITY, "Paris is big.")])
    assert lost.error and lost.error.stage == "extract" and lost.rewards["rlfh"].value is None
    read, blank = extract(responses)
    assert (read.sentences, blank.sentences) == (((1, 3),), ())
    assert read.rewards["rlfh"].value is not None and blank.rewards["rlfh"].value is not None
    unread, blank = grade([outcome()], pay)(responses)
    error = unread.rewards["rlfh"].error
    assert error is not None
    assert error.kind == "not_extracted"
    assert unread.rewards["truthrl"].value == -1.0
    assert blank.rewards["rlfh"].error is None


@pytest.mark.parametrize("p", [math.nan, math.inf, -math.inf])
def test_a_probability_that_is_not_finite_fails_only_its_own_row(p: float) -> None:
    read = Verdict("claim:0", "truth", p=p, by="reader")
    claims = Claims(((0, 5),), (Claim(0, "Vetra"),), (read,))

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        values = [p, 0.5, 0.25, 0.25]
        return [Checked((Verdict("claim:0", "fact", "correct", one, 5),)) for one in values]

    rows = grade(
        [verify],
        {"pay": lambda feedback: Reward(sum(verdict.p or 0.0 for verdict in feedback.verdicts))},
        lambda _: [claims, *[Claims()] * 3],
    )(BATCH)
    assert len(rows[0].verdicts) == 2
    for verdict in rows[0].verdicts:
        assert (verdict.label, verdict.p, verdict.informativeness) == (None, None, None)
        assert verdict.error and (verdict.error.stage, verdict.error.kind) == (
            "verify",
            "not_finite",
        )
        assert verdict.target in verdict.error.message and verdict.by in verdict.error.message
    assert [row.rewards["pay"].value for row in rows] == [0.0, 0.5, 0.25, 0.25]
    assert all(verdict.error is None for row in rows[1:] for verdict in row.verdicts)
    assert json.loads(encode(rows[0].to_row()))["verdicts"][1]["p"] is None  # it can be stored


def test_rescore_replays_from_the_stored_row() -> None:
    row = grade([outcome()], {"truthrl": ternary(), "other": binary()})(BATCH)[2]
    stored = Feedback.from_row(row.to_row(), CITY)
    again = rescore(stored, {"truthrl": ternary(abstain=0.5)})
    assert again.rewards["truthrl"].value == 0.5
    assert again.rewards["other"] == row.rewards["other"]
    assert rescore(stored, {"truthrl": ternary()}) == row


def test_extraction_precedes_verification_and_costs_add_up() -> None:
    claim = Claim(0, "Toma Ardel was born in Vetra.", sentence=0, span=(0, 5), end=5)
    lost = Failure("extract", "parse", "not an object", "{")
    correct = Verdict("claim:0", "fact", "correct")
    read = Claims(((0, 5),), (claim,), (correct,), cost=Cost(calls=1))

    def count(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        cost = Cost(calls=2, cached=1)
        return [
            Checked((Verdict("response", "count", p=len(found.claims)),), cost)
            for _, found in batch
        ]

    run = grade(
        [outcome(), count],
        {"truthrl": ternary()},
        lambda _: [read, Claims(error=lost, cost=Cost(calls=3))],
    )
    good, bad = run(BATCH[:1] + BATCH[3:])
    assert (good.sentences, good.claims, good.error) == (((0, 5),), (claim,), None)
    assert [verdict.target for verdict in good.verdicts] == ["claim:0", "outcome", "response"]
    assert good.verdicts[-1].p == 1 and (bad.error, bad.claims) == (lost, ())
    assert (good.cost, bad.cost) == (Cost(calls=3, cached=1), Cost(calls=5, cached=1))
    assert (good.rewards["truthrl"].value, bad.rewards["truthrl"].value) == (1.0, -1.0)
