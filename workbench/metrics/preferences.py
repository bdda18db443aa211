"""Win rate: each pair of responses is judged twice, with the order swapped (KLCF, arXiv 2509.23765, appendix A.4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from workbench.jsonl import iter_rows
from workbench.types import WorkbenchError

ORDERS = ("ab", "ba")  # whose response is shown first: "ab" = the first file's
VALUES = {"first": 1.0, "tie": 0.5, "second": 0.0}  # of the response that is shown first


def read_preferences(path: Path | str) -> list[dict[str, Any]]:
    """Rows `{question_id, order: "ab"|"ba", label: "first"|"second"|"tie"}`; a row with an `error` has no label."""
    rows = list(iter_rows(path))
    for number, row in enumerate(rows, start=1):
        sound = row.get("order") in ORDERS and (row.get("label") in VALUES or row.get("error"))
        if "question_id" not in row or not sound:
            raise WorkbenchError(
                f'{path}: row {number} is not {{"question_id", "order": "ab" or "ba", "label": "first", "second" or "tie"}}'
            )
    return rows


def wins(preferences: Iterable[Mapping[str, Any]]) -> tuple[dict[str, tuple[float, bool]], int]:
    """`{question: (the first file's win in [0, 1], whether both orders agree)}`, and how many questions lack an order.

    A win is the mean of the two trials; several verdicts in one order are averaged first. Both trials are needed: one
    alone would carry the judge's preference for a position.
    """
    trials: dict[str, dict[str, list[float]]] = {}
    for row in preferences:
        by_order = trials.setdefault(row["question_id"], {order: [] for order in ORDERS})
        if not row.get("error"):
            value = VALUES[row["label"]]
            by_order[row["order"]].append(value if row["order"] == "ab" else 1 - value)
    means = {
        question: [sum(values) / len(values) for values in by_order.values()]
        for question, by_order in trials.items()
        if all(by_order.values())
    }
    return {q: ((a + b) / 2, a == b) for q, (a, b) in means.items()}, len(trials) - len(means)
