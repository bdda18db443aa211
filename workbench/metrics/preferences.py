"""Win rate: each pair of answers is judged twice, with the order swapped (KLCF, arXiv
2509.23765, appendix A.4.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workbench.jsonl import iter_rows
from workbench.metrics.bootstrap import collect, intervals, wilson
from workbench.metrics.confidence import in_order
from workbench.metrics.outcomes import RESAMPLES
from workbench.types import WorkbenchError

ORDERS = ("ab", "ba")  # whose answer is shown first: "ab" = the first file's
VALUES = {"first": 1.0, "tie": 0.5, "second": 0.0}  # of the answer that is shown first
LEAST = 5  # questions that an interval is told of
REASONS = {
    "win_rate": "no pair was judged in both orders",
    "win_rate_like_length": "no pair that was judged in both orders is known to be of like length",
    "position_bias": "no pair of different answers was judged in both orders",
    "first_place": "the order decided no pair",
}


class Duel(NamedTuple):
    """A pair that was judged in both orders: the first file's value where its answer stood
    first, and where it stood second.
    """

    question_id: str
    leading: float
    following: float
    asked: bool = True  # two identical answers are a tie that nobody was asked for
    words: tuple[int, int] | None = None  # of both answers

    @property
    def score(self) -> float:
        """1 if both orders prefer the first file's answer, 0 if both prefer the other's, else a
        tie: what one order says alone may be said of a place. Where a judge gives no ties that
        is the paper's mean of both trials."""
        values = (self.leading, self.following)
        return 1.0 if min(values) > 0.5 else 0.0 if max(values) < 0.5 else 0.5

    @property
    def swayed(self) -> bool:
        """Whether the two orders say different things, so that the places had a part in it."""
        return self.leading != self.following

    @property
    def alike(self) -> bool:
        """Whether the shorter answer has at least four fifths of the words of the longer one."""
        return self.words is not None and 5 * min(self.words) >= 4 * max(self.words)


def read_preferences(path: Path | str) -> list[dict[str, Any]]:
    """Rows `{question_id, order: "ab"|"ba", label: "first"|"second"|"tie"}`; a row with an
    `error` has no label.

    Where a question has several pairs of answers, `step` and `sample` tell them apart.
    """
    rows = list(iter_rows(path))
    for number, row in enumerate(rows, start=1):
        sound = row.get("order") in ORDERS and (row.get("label") in VALUES or row.get("error"))
        if "question_id" not in row or not sound:
            raise WorkbenchError(
                f'{path}: row {number} is not {{"question_id", "order": "ab" or "ba", "label":'
                ' "first", "second" or "tie"}'
            )
    return rows


def duels(preferences: Iterable[Mapping[str, Any]]) -> tuple[list[Duel], int]:
    """The pairs that were judged in both orders, and how many lack an order: they are left out,
    for one order alone would carry the judge's preference for a place. Several verdicts in one
    order are averaged first."""
    trials: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    sizes: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in preferences:
        key = (row["question_id"], row.get("step"), row.get("sample"))
        by_order = trials.setdefault(key, {order: [] for order in ORDERS})
        sizes.setdefault(key, row)
        if not row.get("error"):
            value = VALUES[row["label"]]
            by_order[row["order"]].append(value if row["order"] == "ab" else 1 - value)
    judged = [
        Duel(key[0], _mean(by_order["ab"]), _mean(by_order["ba"]), **_told(sizes[key]))
        for key, by_order in trials.items()
        if all(by_order.values())
    ]
    return judged, len(trials) - len(judged)


def win_rate(
    preferences: Iterable[Mapping[str, Any]], seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """What a judge's preferences tell of the first file's answers against the second's.

    `win_rate` counts ties half; `win_rate_like_length` is the same of pairs that are `alike`,
    for judges like long answers. `position_bias` is the share of pairs of different answers on
    which the two orders disagree, `first_place` the share of these in which the place was the
    first. All have 95 % bootstraps over questions; where all questions say the same, from which
    nothing else can be drawn, Wilson's bounds; of fewer than `LEAST` questions none *(ours)*.
    `words` has the mean words of both answers, where they are known; `pairs` counts pairs.
    """
    judged, incomplete = duels(preferences)
    sums = collect([(duel.question_id, _terms(duel)) for duel in judged], tuple(REASONS))
    drawn = intervals(sums, in_order(()), resamples, seed)
    cells: dict[str, Any] = {}
    for name, reason in REASONS.items():
        cell = drawn[name] | _bounds(drawn[name])
        cells[name] = cell if cell["value"] is not None else {**cell, "reason": reason}
    scores = [duel.score for duel in judged]
    counts = {
        "n": len(judged),
        "won": scores.count(1.0),
        "tied": scores.count(0.5),
        "lost": scores.count(0.0),
        "identical": sum(not duel.asked for duel in judged),
        "incomplete": incomplete,
    }
    known = [duel.words for duel in judged if duel.words]
    means = map(_mean, zip(*known, strict=True)) if known else (None, None)
    words = dict(zip(("feedback", "other"), means, strict=True))
    return cells | {"words": words, "pairs": counts}


def _bounds(cell: Mapping[str, Any]) -> dict[str, float | None]:
    """The interval of a share, wide enough for the number of its questions."""
    if cell["value"] is None or cell["n"] < LEAST:
        return {"low": None, "high": None}
    agreed = cell["low"] == cell["high"]
    low, high = (
        wilson(cell["value"] * cell["n"], cell["n"]) if agreed else (cell["low"], cell["high"])
    )
    return {"low": low, "high": high}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    words = row.get("words")
    known = isinstance(words, Sequence) and len(words) == len(ORDERS)
    return {"asked": not row.get("identical"), "words": tuple(words) if known and words else None}


def _terms(duel: Duel) -> dict[str, tuple[float, float]]:
    terms = {"win_rate": (duel.score, 1.0)}
    if duel.alike:
        terms["win_rate_like_length"] = (duel.score, 1.0)
    if duel.asked:
        terms["position_bias"] = (float(duel.swayed), 1.0)
    if duel.swayed:
        terms["first_place"] = (float(duel.leading > duel.following), 1.0)
    return terms
