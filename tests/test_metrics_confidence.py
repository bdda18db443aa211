"""Risk–coverage, AURC, AUROC and win rate, worked by hand and against brute force."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.metrics import compare_files
from workbench.metrics.confidence import areas, ranked, risk_coverage
from workbench.metrics.preferences import duels, read_preferences, win_rate
from workbench.metrics.rows import Row, reduce_row
from workbench.types import WorkbenchError

Answers = list[tuple[float, bool]]


def rows(*answers: tuple[float | None, str | bool]) -> list[Row]:
    names: dict[object, str] = {True: "correct", False: "incorrect", "uncertain": "uncertain"}
    return [
        Row(f"r{i}", f"q{i}", "no_claims", outcome=names[right], confidence=p)
        for i, (p, right) in enumerate(answers)
    ]


def area(answers: Answers) -> tuple[float, float]:
    aurc, auroc = areas(ranked(rows(*answers)))
    return float(aurc[0]), float(auroc[0])


def test_four_answers_by_hand() -> None:
    """Risks 0, 1/2, 1/3, 1/2; three of the four right–wrong pairs are in order."""
    answers: Answers = [(0.9, True), (0.8, False), (0.7, True), (0.6, False)]
    assert area(answers) == (pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4), 0.75)
    curve = risk_coverage(ranked(rows(*answers)))
    assert [point["coverage"] for point in curve] == [0.25, 0.5, 0.75, 1]
    assert [point["risk"] for point in curve] == pytest.approx([0, 1 / 2, 1 / 3, 1 / 2])
    assert [point["threshold"] for point in curve] == [0.9, 0.8, 0.7, 0.6]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), min_size=1, max_size=6))
def test_areas_equal_brute_force(answers: Answers) -> None:
    """AURC is the mean over all orders that fall in confidence; AUROC counts pairs."""
    orders = [
        order
        for order in itertools.permutations(answers)
        if all(a[0] >= b[0] for a, b in itertools.pairwise(order))
    ]
    risks = [
        sum(not right for _, right in order[:k]) / k
        for order in orders
        for k in range(1, len(order) + 1)
    ]
    aurc, auroc = area(answers)
    assert aurc == pytest.approx(sum(risks) / len(risks))
    pairs = [(a, b) for a, right in answers if right for b, other in answers if not other]
    if pairs:
        assert auroc == pytest.approx(sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs))
    else:
        assert math.isnan(auroc)


def test_confidence_is_the_mean_probability_of_the_answers_tokens() -> None:
    r"""The tokens of what stands in \boxed{}: here the third alone."""
    row: dict[str, Any] = {
        "id": "r",
        "question_id": "q",
        "response": r"So \boxed{Rome}",
        "outcome": "correct",
        "tokens": {
            "offsets": [[0, 3], [3, 10], [10, 14], [14, 15]],
            "logprobs": [-9, -9, math.log(0.4), -9],
        },
    }
    assert reduce_row(row, {}).confidence == pytest.approx(0.4)
    row["response"], row["tokens"] = (
        "Rome",
        {"offsets": [[0, 2], [2, 4]], "logprobs": [math.log(0.2), math.log(0.6)]},
    )
    assert reduce_row(row, {}).confidence == pytest.approx(0.4)
    assert reduce_row({**row, "tokens": {"offsets": [], "logprobs": []}}, {}).confidence is None


def test_confidence_may_be_a_verdicts_p() -> None:
    verdicts = [
        {"target": "claim:0", "aspect": "fact", "label": "correct"},
        {"target": "claim:1", "aspect": "fact", "label": "wrong"},
        {"target": "claim:0", "aspect": "truth", "p": 0.9},
        {"target": "claim:1", "aspect": "truth", "p": 0.3},
    ]
    row = {
        "id": "r",
        "question_id": "q",
        "response": "x",
        "claims": [{"id": 0}, {"id": 1}],
        "verdicts": verdicts,
    }
    reduced = reduce_row(row, {}, confidence="truth")
    assert reduced.claim_confidence == (0.9, 0.3)
    assert ranked([reduced]).right == (True, False) and float(areas(ranked([reduced]))[1][0]) == 1
    whole = {
        **row,
        "claims": [],
        "outcome": "incorrect",
        "verdicts": [{"target": "response", "aspect": "factuality", "p": 0.8}],
    }
    assert reduce_row(whole, {}, confidence="factuality").confidence == 0.8


def test_a_win_is_what_both_orders_say(tmp_path: Path) -> None:
    """a wins both; b is judged by position alone, which is a tie; c ties once, which is one; d
    lacks an order; e loses both.
    """
    path = tmp_path / "preferences.jsonl"
    found = [
        ("a", "ab", "first"),
        ("a", "ba", "second"),
        ("b", "ab", "first"),
        ("b", "ba", "first"),
    ]
    found += [
        ("c", "ab", "tie"),
        ("c", "ba", "second"),
        ("d", "ab", "first"),
        ("e", "ab", "second"),
        ("e", "ba", "first"),
    ]
    path.write_text(
        "".join(
            json.dumps({"question_id": q, "order": o, "label": label}) + "\n"
            for q, o, label in found
        )
    )
    judged, incomplete = duels(read_preferences(path))
    assert [(one.question_id, one.score, one.swayed) for one in judged] == [
        ("a", 1.0, False),
        ("b", 0.5, True),
        ("c", 0.5, True),
        ("e", 0.0, False),
    ]
    assert incomplete == 1
    cells = win_rate(read_preferences(path), resamples=100)
    assert cells["win_rate"]["value"] == 0.5 and cells["position_bias"]["value"] == 0.5
    # Of the two that the order decided, b is for the place shown first and c, preferred where it
    # stands second, for the other.
    assert (cells["first_place"]["value"], cells["first_place"]["n"]) == (0.5, 2)
    assert (
        cells["words"] == {"feedback": None, "other": None}
        and cells["win_rate_like_length"]["value"] is None
    )
    rows_file = tmp_path / "rows.jsonl"
    rows_file.write_text('{"question_id": "a", "response": "x"}\n')
    both = compare_files(rows_file, rows_file, preferences=path, resamples=50)
    assert both["win_rate"]["value"] == 0.5
    assert both["pairs"] == {
        "n": 4,
        "won": 1,
        "tied": 2,
        "lost": 1,
        "identical": 0,
        "incomplete": 1,
    }


@pytest.mark.parametrize(
    ("words", "alike"),
    [((10, 8), True), ((8, 10), True), ((100, 79), False), ((0, 0), True), ((1, 0), False)],
)
def test_lengths_are_alike_within_a_fifth(words: tuple[int, int], alike: bool) -> None:
    orders = [
        {"question_id": "a", "order": "ab", "label": "first"},
        {"question_id": "a", "order": "ba", "label": "second"},
    ]
    cells = win_rate([row | {"words": words} for row in orders], resamples=10)
    assert cells["win_rate_like_length"]["n"] == alike and cells["words"] == {
        "feedback": words[0],
        "other": words[1],
    }


def test_a_failed_preference_is_no_loss() -> None:
    error = {"question_id": "a", "order": "ab", "error": {"kind": "timeout"}}
    failed: list[dict[str, Any]] = [error, {"question_id": "a", "order": "ba", "label": "tie"}]
    assert duels(failed) == ([], 1)
    cells = win_rate(failed, resamples=10)
    assert (
        cells["win_rate"]["value"] is None
        and cells["win_rate"]["reason"] == "no pair was judged in both orders"
    )


@pytest.mark.parametrize(
    "line",
    ['{"question_id": "a", "order": "AB", "label": "first"}', '{"order": "ab", "label": "tie"}'],
)
def test_other_preferences_are_refused(line: str, tmp_path: Path) -> None:
    path = tmp_path / "preferences.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(WorkbenchError, match="row 1 is not"):
        read_preferences(path)
