"""Risk–coverage, AURC and AUROC, worked by hand and against brute force."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.metrics.confidence import areas, ranked, risk_coverage
from workbench.metrics.rows import Row, reduce_row

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


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), min_size=1, max_size=6))
def test_areas_equal_brute_force(answers: Answers) -> None:
    """AURC is the mean over all orders by falling confidence; AUROC counts pairs."""
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
    r"""Only tokens inside \boxed{} count: here the third."""
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
    assert reduce_row(row).confidence == pytest.approx(0.4)
    row["response"], row["tokens"] = (
        "Rome",
        {"offsets": [[0, 2], [2, 4]], "logprobs": [math.log(0.2), math.log(0.6)]},
    )
    assert reduce_row(row).confidence == pytest.approx(0.4)
    for broken in ([], [math.nan, -1], [800.0, -1]):
        tokens = {"offsets": [[0, 2], [2, 4]][: len(broken)], "logprobs": broken}
        assert reduce_row({**row, "tokens": tokens}).confidence is None
