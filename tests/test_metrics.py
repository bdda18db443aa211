"""Claim metrics, rows and reports on feedback small enough to work out by hand."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import write
from workbench.metrics import compare_files, summarise
from workbench.metrics.bootstrap import FEWEST
from workbench.metrics.claims import claim_terms, factual_sentences, median_claims, penalty
from workbench.metrics.outcomes import rates
from workbench.metrics.report import Settings, compare
from workbench.metrics.rows import Row, reduce_row
from workbench.pipeline import grade
from workbench.types import CLAIM_LABELS, Failure, JsonObject, Question, Response
from workbench.verdicts import outcome

FAST: JsonObject = {"resamples": 200}
CLAIM_KEYS = (
    "correct",
    "incorrect",
    "factscore",
    "factscore_penalised",
    "precision",
    "fact_per_query",
    "fact_per_sentence",
)
LETTERS = {"c": "correct", "h": "hedged_correct", "v": "vague", "e": "hedged_wrong", "w": "wrong"}


def stored(
    question: str, labels: str = "", *, sentences: Sequence[int] | None = None, **fields: Any
) -> JsonObject:
    """A stored row whose claims have the labels of these letters; "f" is a failed verdict, "-" a
    missing one.
    """
    claims, verdicts = [], []
    for i, letter in enumerate(labels):
        claims.append(
            {"id": i, "text": "x", "section": "body", "sentence": sentences[i] if sentences else i}
        )
        error = (
            {"stage": "verify", "kind": "timeout", "message": "", "raw": ""}
            if letter == "f"
            else None
        )
        if letter != "-":
            label = LETTERS.get(letter)
            verdicts.append(
                {
                    "target": f"claim:{i}",
                    "aspect": "fact",
                    "label": label,
                    "p": None,
                    "error": error,
                }
            )
    text = "Some text." if labels else fields.pop("text", "Certainly!")
    return {
        "id": f"r-{question}",
        "question_id": question,
        "response": text,
        "claims": claims,
        "verdicts": verdicts,
        **fields,
    }


def with_outcome(row: JsonObject, label: str | None) -> JsonObject:
    error = None if label else {"stage": "verify", "kind": "no_gold", "message": "", "raw": ""}
    verdict = {"target": "outcome", "aspect": "answer", "label": label, "error": error}
    return {**row, "verdicts": [*row["verdicts"], verdict]}


def row(question: str, labels: str = "", **fields: Any) -> Row:
    return reduce_row(stored(question, labels, **fields))


def test_a_sentence_is_factual_if_all_its_claims_are() -> None:
    assert factual_sentences(row("q", "cwhc", sentences=[0, 0, 1, 1])) == [False, True]
    unknown = reduce_row(
        {
            **stored("q"),
            "claims": [{"text": "a", "label": "correct"}, {"text": "b", "label": "wrong"}],
        }
    )
    assert factual_sentences(unknown) == [True, False]  # without sentences, each claim is one


def test_the_upper_median_counts_responses_with_claims() -> None:
    assert (
        median_claims(
            [row("a", "c"), row("b", "ccc"), row("c", "ccccc"), row("d", "ccccccc"), row("e")]
        )
        == 5
    )
    assert median_claims([row("a")]) is None


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (stored("q", "cw"), "scored"),
        (stored("q", "cf"), "failed"),
        (stored("q", "c-"), "unverified"),  # one claim was not judged, and no failure recorded
        (stored("q"), "no_claims"),
        (stored("q", text="I don't know."), "abstained"),
        # the judge of the outcome decides
        (with_outcome(stored("q", text="I don't know."), "incorrect"), "no_claims"),
        # claims in the reasoning, abstention in the answer
        (with_outcome(stored("q", "cc"), "uncertain"), "abstained"),
        (
            stored("q", "c", error={"stage": "extract", "kind": "x", "message": "", "raw": ""}),
            "failed",
        ),
        ({**stored("q"), "claims": [{"text": "a", "label": "nonsense"}]}, "failed"),
        ({**stored("q"), "schema": 1}, "not_judged"),
        # no claims found
        ({**stored("q"), "schema": 1, "sentences": [[0, 10]]}, "no_claims"),
        (
            {
                **stored("q"),
                "schema": 1,
                "rewards": {"trl:accuracy": {"value": 1.0, "error": None}},
            },
            "not_judged",
        ),
        (
            {
                **stored("q", text=""),
                "schema": 1,
                "rewards": {"rlfh": {"value": 0.0, "error": None}},
            },
            "no_claims",
        ),
        # no gold answer
        ({**with_outcome(stored("q"), None), "schema": 1}, "not_judged"),
    ],
)
def test_the_state_of_a_row(found: JsonObject, state: str) -> None:
    reduced = reduce_row(found)
    assert reduced.state == state
    assert bool(reduced.labels) == (state == "scored")


def test_sections_select_claims() -> None:
    found = stored("q", "cw")
    found["claims"][1]["section"] = "think"
    assert reduce_row(found, ["body", "answer"]).labels == ("correct",)
    assert reduce_row(found, ["think"]).labels == ("wrong",)


def test_a_file_worked_by_hand(tmp_path: Path) -> None:
    """Two scored responses (S/n = 3/4 and 1/2), one without claims, one abstention, one failure."""
    rows = [
        stored("a", "cccw"),
        stored("b", "hv"),
        stored("c"),
        stored("d", text="I do not know."),
        stored("e", "cf"),
    ]
    found = compare_files(write(tmp_path / "rows.jsonl", rows), k=4, **FAST)
    assert found["n"] == found["questions"] == 5
    assert found["excluded"] == {
        "no_claims": 1,
        "abstained": 1,
        "failed": 1,
        "unverified": 0,
        "not_judged": 0,
    }
    assert found["failed"] == 1
    value = {
        name: cell["value"]
        for name, cell in found.items()
        if isinstance(cell, dict) and "value" in cell
    }
    assert value["responded"] == 0.5  # 2 of the 4 that did not fail
    assert value["correct"] == 2 and value["incorrect"] == 0.5 and value["vague"] == 0.5
    assert value["factscore"] == value["precision"] == pytest.approx(0.625)
    assert value["factscore_penalised"] == pytest.approx(
        (0.75 * math.exp(-1.5) + 0.5 * math.exp(-4)) / 2
    )
    assert [penalty(n) for n in (9, 10, 11)] == [pytest.approx(math.exp(-1 / 9)), 1, 1]
    assert value["recall@4"] == pytest.approx((3 / 4 + 1 / 4) / 4)
    assert value["f1@4"] == pytest.approx((0.75 + 1 / 3) / 4)
    assert found["veriscore_k"] == 4 and value["veriscore"] == value["f1@4"]
    assert value["fact_per_query"] == 0 and value["fact_per_sentence"] == pytest.approx(4 / 6)
    assert found["accuracy"]["value"] is None
    assert found["accuracy"]["reason"] == "no response has an outcome"


def test_outcomes(tmp_path: Path) -> None:
    """2 correct, 1 abstention, 1 wrong; a missing gold answer is not a failure."""
    labels = ["correct", "correct", "uncertain", "incorrect", None]
    path = write(
        tmp_path / "rows.jsonl",
        [with_outcome(stored(f"q{i}"), label) for i, label in enumerate(labels)],
    )
    found = compare_files(path, **FAST)
    assert [found[name]["value"] for name in ("accuracy", "abstention", "hallucination")] == [
        0.5,
        0.25,
        0.25,
    ]
    assert found["truthfulness"]["value"] == 0.25
    # F = 2C / (N + A) = 2 · 2 / (4 + 3)
    assert found["f_score"]["value"] == pytest.approx(4 / 7)
    assert found["outcomes"] == {"scored": 4, "failed": 0, "no_gold": 1} and found["failed"] == 0
    # no extraction
    assert found["factscore"]["value"] is None and found["responded"]["value"] is None
    assert found["factscore"]["reason"] == "no response has claims"


def test_training_logs_do_not_count_missing_gold_answers_as_failures() -> None:
    answers = {"gold": ("Rome",), "none": ()}
    graded = grade([outcome()], {})(
        [Response(name, Question(name, "Where?", gold), "Rome.") for name, gold in answers.items()]
    )
    found = rates(graded)
    assert found["failed"] == 0 and found["accuracy"] == 1
    failure = Failure("verify", "timeout", "late")
    late = [replace(one, verdicts=(replace(one.verdicts[0], error=failure),)) for one in graded]
    assert rates(late)["failed"] == 2


def test_an_undefined_accuracy_of_attempted_answers_has_its_reason(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [with_outcome(stored("q", text="No idea."), "uncertain")])
    cell = compare_files(path, **FAST)["attempted_accuracy"]
    assert (cell["value"], cell["reason"]) == (None, "every response is an abstention")


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [stored("a")],
        [stored("a", "f"), stored("b", "cf")],
        [with_outcome(stored("a", text="I don't know."), "uncertain")],
        [with_outcome(stored("a"), None)],
    ],
)
def test_undefined_metrics_are_none_not_nan(rows: list[JsonObject], tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", rows)
    found = compare_files(path, path if rows else None, **FAST)
    json.dumps(found, allow_nan=False)
    cells = [cell for cell in found.values() if isinstance(cell, dict) and "value" in cell]
    assert len(cells) == 26
    for cell in (*cells, *found.get("paired", {}).values()):
        assert (cell["value"] is None) == ("reason" in cell)
        if cell["value"] is None:
            assert cell.get("other") is cell.get("diff") is None
        few = {cell[key] for key in ("low", "high", "p") if key in cell}
        assert few == {None}, "no interval over fewer than five questions"
    if not any(row["claims"] for row in rows):
        assert all(found[name]["value"] is None for name in CLAIM_KEYS)


def rated(question: str, labels: str, ratings: Sequence[int | None], **subjects: str) -> JsonObject:
    """A row with the informativeness of its claims, and subject verdicts on some claims
    (c2="other").
    """
    found = stored(question, labels)
    for verdict, rating in zip(found["verdicts"], ratings, strict=True):
        verdict["informativeness"] = rating
    for name, label in subjects.items():
        found["verdicts"].append(
            {"target": f"claim:{name[1:]}", "aspect": "subject", "label": label}
        )
    return found


def test_on_subject_metrics_leave_out_claims_about_another_subject() -> None:
    """c c c w v: without subject verdicts, a rating of 1 means off subject. Of 5 claims 3 are
    correct, 2 of them on subject.
    """
    judged = claim_terms(reduce_row(rated("q", "cccwv", [5, 3, 1, 1, 2])))
    assert (judged["factscore"], judged["correct"]) == ((pytest.approx(0.6), 1), (3, 1))
    assert (
        judged["factscore_on_subject"] == judged["precision_on_subject"] == (pytest.approx(0.4), 1)
    )
    assert (judged["correct_on_subject"], judged["off_subject"]) == (
        (2, 1),
        (pytest.approx(0.4), 1),
    )


def test_a_subject_verdict_overrides_the_rating() -> None:
    """The second claim repeats the first, the third is about another person, the fourth is
    unreadable.
    """
    row = rated("q", "cccv", [5, 1, 1, 1], c1="asked", c2="other")
    row["verdicts"][3]["evidence"] = [{"unparsed": "form"}]
    assert reduce_row(row).off_subject == (False, False, True, False)


def test_paired_tests_are_antisymmetric_and_0_for_equal_files() -> None:
    letters = ["ccw", "cww", "ccc", "c", "wv", "hhw", "", "cccc"]
    a = [row(f"q{i}", text) for i, text in enumerate(letters)]
    b = [row(f"q{i}", text) for i, text in enumerate(reversed(letters))]
    settings = Settings(veriscore_k=2, resamples=300)
    one, two = (compare(*pair, settings)["paired"] for pair in ((a, b), (b, a)))
    for name in ("factscore", "correct", "recall@32", "responded"):
        assert one[name]["diff"] == pytest.approx(-two[name]["diff"])
        assert (one[name]["low"], one[name]["p"]) == (
            pytest.approx(-two[name]["high"]),
            pytest.approx(two[name]["p"]),
        )
        same = compare(a, a, settings)["paired"][name]
        assert [same[key] for key in ("diff", "low", "high", "p")] == [0, 0, 0, 1]
        assert same["value"] == same["other"]


def test_a_failure_or_abstention_on_one_side_removes_the_pair(tmp_path: Path) -> None:
    a = write(
        tmp_path / "a.jsonl",
        [
            stored("1", "cc"),
            stored("2", "cf"),
            stored("3", text="I don't know."),
            stored("4", "cw"),
        ],
    )
    b = write(
        tmp_path / "b.jsonl",
        [stored("1", "cw"), stored("2", "ww"), stored("3", "ww"), stored("4", "cc")],
    )
    found = compare_files(a, b, **FAST)
    assert (found["factscore"]["value"], found["other"]["factscore"]["value"]) == (0.75, 0.375)
    # questions 1 and 4 count in both values and in their difference
    cell = found["paired"]["factscore"]
    assert [cell[key] for key in ("value", "other", "diff", "n")] == [0.75, 0.75, 0.0, 2]
    # for the response rate, an abstention is a value
    assert found["paired"]["responded"]["n"] == 3


def test_rollouts_of_several_steps_are_not_compared(tmp_path: Path) -> None:
    """For a run's folder, the answers of the evaluation after training are compared instead."""
    rows = [with_outcome(stored(f"q{i}"), "correct") | {"step": i} for i in (1, 2)]
    runs = [tmp_path / name for name in "ab"]
    for folder in runs:
        (folder / "evaluation").mkdir(parents=True)
        write(folder / "rollouts.jsonl", rows)
    for pair in (runs, [run / "rollouts.jsonl" for run in runs]):
        with raises_error(r"rollouts of 2 steps.*workbench evaluate RUN"):
            compare_files(*pair, **FAST)
    assert compare_files(runs[0], **FAST)["steps"] == 2
    for folder, label in zip(runs, ("correct", "incorrect"), strict=True):
        write(folder / "evaluation" / "after.jsonl", [with_outcome(stored("v"), label)])
    found = compare_files(*runs, **FAST)
    assert found["paired"]["truthfulness"]["diff"] == 2
    assert found["file"] == str(runs[0] / "evaluation" / "after.jsonl")


def test_a_file_with_nothing_judged_is_refused_with_the_remedy(tmp_path: Path) -> None:
    bare = write(
        tmp_path / "bare.jsonl",
        [{**stored("a"), "schema": 1}, {**with_outcome(stored("b"), None), "schema": 1}],
    )
    good = write(tmp_path / "good.jsonl", [stored("a", "c")])
    for files in ((bare,), (good, bare), (bare, good)):
        with raises_error(r"0 of 2 rows are judged.*`workbench score --in .*bare\.jsonl --out"):
            compare_files(*files, **FAST)


@pytest.mark.parametrize(
    "line",
    ['{"response": "x"}', '{"question_id": "q", "claims": [3]}', '{"id": "q", "verdicts": [{}]}'],
)
def test_files_without_feedback_rows_are_refused(line: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(stored("q", "c")) + "\n" + line + "\n")
    with raises_error(r"row 2 is not a feedback row .*\(id (None|'q'), "):
        compare_files(path)
    with raises_error("no such file"):
        compare_files(tmp_path / "none.jsonl")


@given(st.lists(st.lists(st.sampled_from(CLAIM_LABELS), max_size=6), min_size=1, max_size=8))
def test_shares_are_between_0_and_1(responses: list[list[str]]) -> None:
    rows = [
        Row(
            f"r{i}",
            f"q{i}",
            "scored" if labels else "no_claims",
            tuple(labels),
            tuple(range(len(labels))),
        )
        for i, labels in enumerate(responses)
    ]
    found = summarise(rows, Settings(resamples=20))
    for (
        name
    ) in "factscore factscore_penalised precision recall@32 f1@32 veriscore responded".split():
        cell = found[name]
        if cell["value"] is not None:
            bounds = [cell[key] for key in ("low", "high") if cell["n"] >= FEWEST]
            assert bounds == sorted(bounds)
            assert all(-1e-9 <= share <= 1 + 1e-9 for share in (cell["value"], *bounds))
    if found["factscore"]["value"] is not None:
        assert found["factscore_penalised"]["value"] <= found["factscore"]["value"] + 1e-12
