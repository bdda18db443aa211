"""Agreement of two feedback files, with numbers worked by hand."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import Cli, printed
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import write
from workbench.scoring.agree import agreement, compare
from workbench.types import JsonObject

LABEL = st.sampled_from(["correct", "vague", "wrong"])


def row(name: str, claims: list[tuple[str, str]], **more: Any) -> JsonObject:
    return {
        "id": name,
        "response": "X.",
        "claims": [{"text": text, "label": label} for text, label in claims],
        **more,
    }


def agreed(folder: Path, first: list[Any], second: list[Any]) -> JsonObject:
    return agreement(write(folder / "a.jsonl", first), write(folder / "b.jsonl", second))


def test_accuracy_kappa_and_scores_by_hand() -> None:
    # 10 claims: both correct 4, both wrong 3, correct→wrong 2, wrong→correct 1.
    pairs = (
        [("correct", "correct")] * 4
        + [("wrong", "wrong")] * 3
        + [("correct", "wrong")] * 2
        + [("wrong", "correct")]
    )
    found = compare(pairs)
    assert (found["n"], found["accuracy"]) == (10, 0.7)
    # chance: correct .6·.5 + wrong .4·.5 = .5; κ = (.7 − .5) / .5
    assert found["kappa"] == pytest.approx(0.4)
    assert found["labels"]["correct"] == {
        "first": 6,
        "second": 5,
        "precision": 0.8,
        "recall": pytest.approx(2 / 3, abs=1e-6),
        "f1": pytest.approx(8 / 11, abs=1e-6),
    }
    assert found["labels"]["wrong"]["precision"] == 0.6
    assert found["labels"]["wrong"]["recall"] == 0.75


def test_undefined_statistics_are_none() -> None:
    assert compare([])["kappa"] is compare([])["accuracy"] is None
    same = compare([("vague", "vague")] * 3)
    assert (same["accuracy"], same["kappa"]) == (1.0, None)
    never = compare([("wrong", "correct"), ("correct", "correct")])["labels"]["wrong"]
    assert (never["precision"], never["recall"], never["f1"]) == (None, 0.0, 0.0)


@given(st.lists(st.tuples(LABEL, LABEL), min_size=1))
def test_kappa_is_symmetric_and_at_most_one(pairs: list[tuple[str, str]]) -> None:
    found, turned = compare(pairs), compare([(b, a) for a, b in pairs])
    assert found["accuracy"] == turned["accuracy"]
    assert (found["kappa"] is None) == (turned["kappa"] is None)
    if found["kappa"] is not None:
        assert found["kappa"] == pytest.approx(turned["kappa"], abs=1e-5)
        assert found["kappa"] <= 1
        assert (found["kappa"] == 1) == (found["accuracy"] == 1)


def test_claims_are_matched_by_text_and_unmatched_claims_are_counted(tmp_path: Path) -> None:
    first = [
        row(
            "a",
            [("Ada paints", "correct"), ("Ada sings", "wrong"), ("Only here", "vague")],
            outcome="correct",
        ),
        row("b", [], outcome="uncertain"),
        row("gone", [("x", "correct")]),
    ]
    second = [
        row("b", [], outcome="incorrect"),
        row(
            "a",
            [("Ada sings", "vague"), ("  ada PAINTS ", "correct"), ("Only there", "vague")],
            outcome="correct",
        ),
        row("new", []),
        {"id": "b", "response": 3},
    ]
    found = agreed(tmp_path, first, second)
    assert found["rows"] == 2
    assert (found["claims"]["n"], found["claims"]["accuracy"]) == (2, 0.5)
    assert (found["outcomes"]["n"], found["outcomes"]["accuracy"]) == (2, 0.5)
    assert found["excluded"] == {
        "only_first": 1,
        "only_second": 1,
        "unreadable": 1,
        "other_response": 0,
        "not_judged": 0,
        "claims": 2,
        "outcomes": 0,
        "items": 0,
        "reasoning": 0,
        "verdicts": 0,
    }
    assert "items" not in found


def test_the_same_claim_twice_is_matched_twice(tmp_path: Path) -> None:
    first = [row("a", [("x", "correct"), ("x", "wrong")])]
    second = [row("a", [("y", "vague"), ("x", "correct"), ("x", "correct")])]
    found = agreed(tmp_path, first, second)
    assert found["claims"]["n"] == 2
    assert found["excluded"]["claims"] == 1


def test_failed_verdicts_are_left_out_and_counted(tmp_path: Path) -> None:
    error = {"stage": "judge", "kind": "timeout", "message": "no reply", "raw": ""}
    failing = {
        "id": "a",
        "response": "X.",
        "claims": [{"text": "x"}, {"text": "y"}],
        "sentences": [],
        "verdicts": [
            {"target": "claim:0", "aspect": "fact", "label": None, "error": error},
            {"target": "claim:1", "label": "wrong"},
        ],
    }
    found = agreed(tmp_path, [row("a", [("x", "correct"), ("y", "wrong")])], [failing])
    assert (found["claims"]["n"], found["excluded"]["verdicts"]) == (1, 1)


UNJUDGED = {"schema": 1, "question": "?", "claims": [], "verdicts": [], "sentences": []}


def test_rows_with_another_response_are_left_out(tmp_path: Path) -> None:
    names = "abcdefgh"
    first = [row(name, [("x", "correct")]) for name in names]
    changed = [
        row(name, [("x", "wrong")], **({} if name in "ab" else {"response": f"{name}."}))
        for name in names
    ]
    changed[1]["response"] = " X. \n"  # white space is ignored
    found = agreed(tmp_path, first, changed)
    assert (found["rows"], found["claims"]["n"], found["excluded"]["other_response"]) == (2, 2, 6)
    with raises_error("but with different responses"):
        agreed(tmp_path, first, changed[2:])


def test_unjudged_rows_are_left_out_and_a_file_of_them_is_refused(tmp_path: Path) -> None:
    first = write(
        tmp_path / "a.jsonl", [row("a", [("x", "correct")]), row("b", [("x", "correct")])]
    )
    second = write(
        tmp_path / "b.jsonl",
        [row("a", [("x", "correct")]), {"id": "b", "response": "X.", **UNJUDGED}],
    )
    found = agreement(first, second)
    assert (found["rows"], found["excluded"]["not_judged"], found["excluded"]["claims"]) == (
        1,
        1,
        0,
    )
    bare = write(tmp_path / "bare.jsonl", [{"id": "b", "response": "X.", **UNJUDGED}])
    for files in ((first, bare), (bare, first)):
        with raises_error(r"no readable row with verdicts.*bare\.jsonl"):
            agreement(*files)


def test_command(tmp_path: Path, cli: Cli) -> None:
    first = write(tmp_path / "a.jsonl", [row("a", [("x", "correct"), ("y", "wrong")])])
    second = write(tmp_path / "b.jsonl", [row("a", [("x", "correct"), ("y", "correct")])])
    assert printed(cli(f"agree {first} {second} --json"))["claims"]["accuracy"] == 0.5
    code, out, _ = cli(f"agree {first} {second}")
    assert code == 0 and "claims: n 2, accuracy 0.5, kappa 0" in out
