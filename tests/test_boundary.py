"""The knowledge boundary from k samples per question: reports by hand, and verdicts."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import write
from workbench.methods.truthrl.probing import read_probe
from workbench.metrics.boundary import Majority, Probed, Sample, boundary_report
from workbench.types import OUTCOMES, Claims, Question, Response
from workbench.verdicts.checks import world_checks
from workbench.world import load_world

RIGHT, IDK, FAILED = Sample("rome", "correct"), Sample(None, "uncertain"), Sample("rome", None)
LYON, LIMA = Sample("lyon", "incorrect"), Sample("lima", "incorrect")


def probed(*samples: Sample, exposures: int | None = None, name: str = "q") -> Probed:
    return Probed(name, samples, exposures)


def test_ties_in_the_majority_go_to_the_answer_sampled_first() -> None:
    assert probed(LYON, RIGHT, RIGHT).majority == Majority("rome", "correct", 2 / 3)
    assert probed(LYON, RIGHT, RIGHT, LYON).majority == Majority("lyon", "incorrect", 0.5)
    assert probed(IDK, RIGHT, IDK).majority == Majority(None, "uncertain", 2 / 3)
    assert probed(FAILED, FAILED, LIMA).majority == Majority("lima", "incorrect", 1.0)
    assert probed(FAILED).majority is None


@given(st.lists(st.sampled_from([RIGHT, IDK, FAILED, LYON, LIMA])), st.none() | st.integers(0, 9))
def test_a_row_keeps_all_samples_in_order(samples: Sequence[Sample], exposures: int | None) -> None:
    one = probed(*samples, exposures=exposures)
    row = json.loads(json.dumps(one.to_row(), allow_nan=False))
    assert Probed.from_row(row) == one
    assert (
        row["correct"] + row["abstained"] + row["wrong"] + row["failed"]
        == row["samples"]
        == len(samples)
    )


# Four samples each: known; lucky on a fact without exposures; never right in spite of exposures;
# out of knowledge.
ROWS = [
    probed(RIGHT, LYON, RIGHT, RIGHT, exposures=28, name="known"),
    probed(LYON, LIMA, RIGHT, LYON, exposures=0, name="lucky"),
    probed(LYON, IDK, LYON, LIMA, exposures=2, name="forgotten"),
    probed(IDK, IDK, IDK, LYON, exposures=0, name="never"),
]


def test_a_report_by_hand() -> None:
    report = boundary_report(ROWS, 4)
    assert (report["k"], report["n"], report["ook"], report["ook_share"]) == (4, 4, 2, 0.5)
    # With 1 or 2 samples, lucky, forgotten and never are labelled; two of these have no exposures.
    by_k = report["agreement"]["by_k"]
    assert list(by_k) == ["1", "2", "4"]
    assert (
        by_k["2"]
        == by_k["1"]
        == {"precision": 2 / 3, "recall": 1.0, "labelled": 3, "unknown": 2, "both": 2}
    )
    assert by_k["4"] == {"precision": 0.5, "recall": 0.5, "labelled": 2, "unknown": 2, "both": 1}
    assert {name: report["agreement"][name] for name in by_k["4"]} == by_k["4"]
    assert report["majority"]["1"] == {"accuracy": 0.25, "abstention": 0.25, "hallucination": 0.5}
    assert report["majority"]["4"] == {"accuracy": 0.25, "abstention": 0.25, "hallucination": 0.5}
    assert report["exposure"]["0"] == {"n": 2, "correct": 1 / 8, "abstain": 3 / 8, "wrong": 4 / 8}
    assert report["exposure"]["28"] == {"n": 1, "correct": 3 / 4, "abstain": 0.0, "wrong": 1 / 4}
    assert list(report["exposure"]) == ["0", "2", "28"]
    # Answers by confidence: known .75, right; lucky and forgotten .5, wrong. Risks 0, 1/2, 2/3.
    # Abstentions are left out.
    assert [(point["coverage"], point["risk"]) for point in report["risk_coverage"]] == [
        (1 / 3, 0.0),
        (1.0, 2 / 3),
    ]
    assert report["aurc"] == pytest.approx((0 + 1 / 2 + 2 / 3) / 3)
    bins = {bin["low"]: bin for bin in report["confidence_bins"] if bin["n"]}
    assert bins[0.5] == {
        "low": 0.5,
        "high": 0.6,
        "n": 2,
        "correct": 0.0,
        "abstain": 0.0,
        "wrong": 1.0,
    }
    assert bins[0.7]["n"] == 2 and (bins[0.7]["correct"], bins[0.7]["abstain"]) == (0.5, 0.5)
    assert len(report["confidence_bins"]) == 10 and report["confidence_bins"][0]["wrong"] is None


def test_undefined_values_are_null_and_never_nan() -> None:
    for rows in ([], [probed(FAILED, FAILED)], [probed(IDK, IDK)], ROWS[:1]):
        json.dumps(boundary_report(rows, 2), allow_nan=False)
    failed = boundary_report([probed(FAILED, FAILED, exposures=0)], 2)
    counts = (failed["ook"], failed["ook_share"], failed["unsettled"], failed["failed"])
    assert counts == (0, None, 1, 2)
    assert (
        failed["agreement"]["precision"] is failed["agreement"]["recall"] is failed["aurc"] is None
    )
    assert failed["majority"]["2"] == {"accuracy": None, "abstention": None, "hallucination": None}
    assert boundary_report(ROWS[:1], 4)["agreement"]["precision"] is None
    # without exposure counts
    uncounted = boundary_report([probed(IDK, IDK)], 2)
    assert uncounted["agreement"] is uncounted["exposure"] is None


def test_read_probe_returns_which_questions_are_out_of_knowledge(tmp_path: Path) -> None:
    rows = [ROWS[0], ROWS[3], probed(FAILED, name="open")]
    file = write(tmp_path / "probe.jsonl", [row.to_row() for row in rows])
    assert read_probe(file) == {"known": False, "never": True, "open": None}
    for broken in ({"question_id": "q"}, {"ook": True}, {"question_id": "q", "ook": "yes"}):
        write(file, [broken])
        with raises_error("row 1 was not written by `workbench probe`"):
            read_probe(file)


def test_the_worlds_verdict_agrees_with_its_documents() -> None:
    """A question is out of knowledge if one of its facts is not stated in any document."""
    world = load_world(0, 0.1)
    stated = {fact for document in world.documents for fact in document.fact_ids}
    check, labels = world_checks(world).verify["out_of_knowledge"], set()
    asked = [
        question
        for question in world.all_questions
        if question.kind in ("single", "two_hop", "comparison")
    ]
    for question, checked in zip(
        asked, check([(Response("r", q, "?"), Claims()) for q in asked]), strict=True
    ):
        [verdict] = checked.verdicts
        known = set(question.meta["fact_ids"]) <= stated
        assert (verdict.label, verdict.error) == ("known" if known else "unknown", None)
        assert (world.shown(question) == 0) is not known
        labels.add(verdict.label)
    assert labels == {"known", "unknown"} and set(OUTCOMES).isdisjoint(labels)
    [checked] = check([(Response("r", Question("q", "Who wrote Emma?"), "?"), Claims())])
    assert checked.verdicts[0].label is None and checked.verdicts[0].error.kind == "not_probed"  # type: ignore[union-attr]
