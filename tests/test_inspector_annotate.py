"""A person's labels: stored in their own files, requested claim by claim, and compared with the
judge's."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import examples
from tests.helpers.errors import raises_error
from tests.test_inspector import record, rollout
from workbench.inspector.annotate import annotator
from workbench.inspector.annotated import annotate, labels
from workbench.inspector.opened import open_row, show
from workbench.inspector.runs import Runs
from workbench.inspector.what_if import labeller
from workbench.runs.store import iter_feedback
from workbench.scoring.agree import agreement
from workbench.types import JsonObject


def asked(runs: Runs, **request: Any) -> JsonObject:
    found = annotator(runs)(request)
    assert "error" not in found, found
    output: JsonObject = json.loads(found["text"])
    return output


def given(runs: Runs, place: list[Any], label: str | None, **request: Any) -> JsonObject:
    return asked(runs, given={"place": place, "label": label}, **request)


def test_every_claim_is_offered_once(tmp_path: Path) -> None:
    record(tmp_path / "run", [rollout(1, 0), rollout(1, 3)])
    runs, output, seen = Runs(tmp_path), asked(Runs(tmp_path), order="recorded"), []
    assert (output["done"], output["total"], output["agreement"]["n"]) == (
        0,
        8,
        0,
    ) and "judge" not in json.dumps(output["claim"])
    while claim := output["claim"]:
        seen.append(tuple(claim["place"]))
        output = asked(runs, order="recorded", given={"place": claim["place"], "label": "correct"})
        assert output["done"] == len(seen)
    assert seen == [(f"tarven/1/{sample}", claim) for sample in (0, 3) for claim in range(4)]
    # The judge's labels: correct, correct, wrong, hedged_correct; for the other answer correct,
    # correct, correct, hedged_correct.
    assert (output["agreement"]["n"], output["agreement"]["accuracy"]) == (8, 0.625)
    rows = list(iter_feedback(tmp_path / "annotations" / "run"))
    assert [row.response.id for row in rows] == ["tarven/1/0", "tarven/1/3"] and all(
        len(row.verdicts) == 4 for row in rows
    )
    # equal to `workbench agree`
    compared = agreement(tmp_path / "annotations" / "run", tmp_path / "run")
    assert compared["claims"]["accuracy"] == 0.625 and compared["excluded"]["unreadable"] == 0


def test_the_random_order_depends_on_ids_alone(tmp_path: Path) -> None:
    record(tmp_path / "run")
    runs = Runs(tmp_path)
    passed: list[Any] = []
    for _ in range(48):
        passed.append(asked(runs, passed=passed)["claim"]["place"])
    assert asked(runs, passed=passed)["claim"] is None
    assert len({(row, claim) for row, claim in passed}) == 48
    assert asked(Runs(tmp_path))["claim"]["place"] == passed[0]
    rows = list(dict.fromkeys(row for row, _ in passed))
    assert rows != sorted(rows) and asked(runs, order="recorded")["claim"]["place"] == [
        "tarven/1/0",
        0,
    ]


def test_a_label_is_changed_and_removed(tmp_path: Path) -> None:
    record(tmp_path / "run")
    runs, row, place = Runs(tmp_path), rollout(1, 0), ["tarven/1/0", 2]
    context = given(runs, place, "correct")
    assert context["last"] == {
        "place": place,
        "text": row.claims[2].text,
        "label": "correct",
        "judge": "wrong",
    }
    context = given(runs, place, "wrong", at=place)
    assert (context["done"], context["claim"]["label"], context["agreement"]["accuracy"]) == (
        1,
        "wrong",
        1.0,
    )
    given(runs, ["tarven/1/0", 0], "vague")
    assert labels(runs, "run", row) == {0: "vague", 2: "wrong"}
    context = given(runs, place, None, at=place)
    assert context["done"] == 1
    assert context["last"]["label"] is None and context["claim"]["label"] is None
    given(runs, ["tarven/1/0", 0], None)
    assert (tmp_path / "annotations" / "run" / "rollouts.jsonl").read_text() == ""
    given(runs, place, None)  # a claim without a label


def test_a_file_and_a_folder_with_the_same_name_have_separate_labels(tmp_path: Path) -> None:
    record(tmp_path / "run")
    rows = (tmp_path / "run" / "rollouts.jsonl").read_text()
    (tmp_path / "run.jsonl").write_text(rows.replace("Tarven", "Terven"))
    for file in ("questions.jsonl", "passages.jsonl"):
        (tmp_path / file).write_bytes((tmp_path / "run" / file).read_bytes())
    runs = Runs(tmp_path)
    for run, label in (("run", "wrong"), ("run.jsonl", "vague")):
        key = json.loads(show(open_row(runs, run, "tarven/2/1")))["key"]
        labeller(runs)({"key": key, "edits": {"1": {"label": label}}})
    for run, label in (("run", "wrong"), ("run.jsonl", "vague")):
        row = open_row(Runs(tmp_path), run, "tarven/2/1").feedback
        assert labels(runs, run, row) == {1: label}


def test_an_opened_row_shows_a_persons_labels(tmp_path: Path) -> None:
    record(tmp_path / "run")
    runs = Runs(tmp_path)
    key = json.loads(show(open_row(runs, "run", "tarven/2/1")))["key"]
    kept = labeller(runs)({"key": key, "edits": {"1": {"label": "wrong"}}})
    assert kept == {"path": "annotations/run/rollouts.jsonl", "labels": {"1": "wrong"}}
    labeller(runs)({"key": key, "edits": {"0": {"informativeness": 2, "label": "vague"}}})
    # a rating after a reload keeps the person's label
    labeller(runs)({"key": key, "edits": {"1": {"informativeness": 4}}})
    claims = json.loads(show(open_row(Runs(tmp_path), "run", "tarven/2/1")))["claims"]
    assert [(claim["label"], claim["person"]) for claim in claims[:3]] == [
        ("correct", "vague"),
        ("correct", "wrong"),
        ("vague", None),
    ]
    (row,) = iter_feedback(tmp_path / "annotations" / "run")
    assert {v.target: (v.label, v.informativeness) for v in row.verdicts} == {
        "claim:0": ("vague", 2),
        "claim:1": ("wrong", 4),
    }
    assert labeller(runs)({"key": key, "edits": {"1": {}}})["labels"] == {"0": "vague"}


def test_labels_of_a_changed_answer_are_ignored(tmp_path: Path) -> None:
    record(tmp_path / "run")
    runs, row = Runs(tmp_path), rollout(1, 0)
    annotate(runs, "run", row, {"0": {"label": "wrong"}})
    again = replace(row, claims=(replace(row.claims[0], text="Another claim."), *row.claims[1:]))
    assert labels(runs, "run", again) == {} and labels(runs, "run", row) == {0: "wrong"}
    annotate(runs, "run", again, {"1": {"label": "correct"}})
    (kept,) = iter_feedback(tmp_path / "annotations" / "run")
    assert [(v.target, v.label) for v in kept.verdicts] == [("claim:1", "correct")]


@pytest.mark.parametrize("request_", examples("malformed_requests"))
def test_a_malformed_request_is_refused_and_stores_nothing(
    tmp_path: Path, request_: JsonObject
) -> None:
    record(tmp_path / "run")
    found = annotator(Runs(tmp_path))(request_)
    assert "\n" not in found["error"]
    assert len(found["error"]) < 300
    assert not (tmp_path / "annotations").exists()


def test_damaged_rows_are_skipped_and_damaged_labels_are_an_error(tmp_path: Path) -> None:
    record(tmp_path / "run", [rollout(1, 0), rollout(1, 1)])
    path = tmp_path / "run" / "rollouts.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(
        lines[0]
        .replace('"offsets": [[', '"offsets": [["x", 3], [', 1)
        .replace('"sentence"', '"sent"')
        + lines[1]
    )
    runs = Runs(tmp_path)
    assert asked(runs, order="recorded")["claim"]["place"][0] == "tarven/1/1"
    given(runs, ["tarven/1/1", 0], "wrong")
    kept = tmp_path / "annotations" / "run" / "rollouts.jsonl"
    kept.write_text("[1]\n" + kept.read_text())
    assert "remove or fix that line" in annotator(runs)({})["error"]
    opened = open_row(runs, "run", "tarven/1/1")  # the row is still shown
    assert opened.labels == {} and "remove or fix that line" in opened.note
    with raises_error("fix"):
        annotate(runs, "run", rollout(1, 1), {"0": {"label": "vague"}})


@pytest.mark.parametrize(
    "name", ["annotations", "annotations/run", "annotations/run/rollouts.jsonl"]
)
def test_no_label_is_read_or_written_through_a_link(tmp_path: Path, name: str) -> None:
    record(tmp_path / "runs" / "run")
    elsewhere = record(tmp_path / "elsewhere")
    link = tmp_path / "runs" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere / "rollouts.jsonl" if name.endswith("jsonl") else elsewhere)
    before, runs = (elsewhere / "rollouts.jsonl").read_bytes(), Runs(tmp_path / "runs")
    assert (
        "is a symbolic link"
        in annotator(runs)({"given": {"place": ["tarven/1/0", 0], "label": "wrong"}})["error"]
    )
    assert (elsewhere / "rollouts.jsonl").read_bytes() == before
