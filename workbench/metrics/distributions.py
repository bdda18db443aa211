"""The tables behind RLFH's figures 4 to 9 (arXiv 2406.12221, section 4.3 and appendix C), from
rows of feedback.

Accuracy is the share of a response's claims that are supported, whatever they are about (the
metric `off_subject` tells that); a response is refused if it abstains or makes no claim (the
paper decides refusals by its claims, not by key words). Failed rows are left out everywhere.
Bins are half-open, the last one closed; an empty bin has null values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from workbench.metrics.rows import Row, mean

T = TypeVar("T")
COUNTS = ("all", "correct", "wrong")


def responded(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.state == "scored"]


def bin_of(accuracy: float, bins: int) -> int:
    # 0.3 · 10 is 2.9999…, and belongs to [0.3, 0.4)
    return min(int(accuracy * bins + 1e-9), bins - 1)


def binned(pairs: Iterable[tuple[float, T]], bins: int) -> list[tuple[dict[str, Any], list[T]]]:
    """Values by bin of their accuracy: for each bin `{low, high}` and its values."""
    inside: list[list[T]] = [[] for _ in range(bins)]
    for accuracy, value in pairs:
        inside[bin_of(accuracy, bins)].append(value)
    return [({"low": i / bins, "high": (i + 1) / bins}, inside[i]) for i in range(bins)]


def accuracy_distribution(rows: Iterable[Row], bins: int = 10) -> list[dict[str, Any]]:
    """Figure 4: `{low, high, n, share}` for each bin of accuracy; shares are of the responses
    that were not refused.
    """
    answered = responded(rows)
    return [
        {**edges, "n": len(found), "share": len(found) / len(answered) if answered else None}
        for edges, found in binned(((row.accuracy or 0.0, row) for row in answered), bins)
    ]


def accuracy_and_claims(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Figure 5: `{question_id, accuracy, claims}` of each response that was not refused."""
    return [
        {"question_id": r.question_id, "accuracy": r.accuracy, "claims": len(r.labels)}
        for r in responded(rows)
    ]


def claims_per_response(rows: Iterable[Row], which: str = "all") -> list[dict[str, Any]]:
    """Figure 6: `{claims, n, share}` for each number of claims: all of them, the "correct" or
    the "wrong" ones.

    Without the refused responses; numbers between the smallest and the largest that do not occur
    have n = 0.
    """
    count = {
        "all": lambda row: len(row.labels),
        "correct": lambda row: row.supported,
        "wrong": lambda row: row.wrong,
    }[which]
    counts = Counter(count(row) for row in responded(rows))
    if not counts:
        return []
    total = sum(counts.values())
    return [
        {"claims": k, "n": counts[k], "share": counts[k] / total}
        for k in range(min(counts), max(counts) + 1)
    ]


def claims_by_accuracy(rows: Iterable[Row], bins: int = 5) -> list[dict[str, Any]]:
    """Figure 7: `{low, high, n, mean, claims}` for each bin of accuracy; `claims` lists the
    numbers of claims.
    """
    pairs = ((row.accuracy or 0.0, len(row.labels)) for row in responded(rows))
    return [
        {**edges, "n": len(counts), "claims": sorted(counts), "mean": mean(counts)}
        for edges, counts in binned(pairs, bins)
    ]


def refusal_by_accuracy(
    before: Iterable[Row], after: Iterable[Row], bins: int = 5
) -> list[dict[str, Any]]:
    """Figure 8: `{low, high, questions, responses, refused}`: questions by their accuracy before
    training, and the share of their responses after training that are refused. A question's
    accuracy is the mean over its responses."""
    accuracies: dict[str, list[float]] = {}
    for row in responded(before):
        accuracies.setdefault(row.question_id, []).append(row.accuracy or 0.0)
    pairs = (
        (mean(accuracies[row.question_id]) or 0.0, row)
        for row in after
        if row.question_id in accuracies and row.state in ("scored", "no_claims", "abstained")
    )
    return [
        {
            **edges,
            "questions": len({row.question_id for row in found}),
            "responses": len(found),
            "refused": mean([row.state != "scored" for row in found]),
        }
        for edges, found in binned(pairs, bins)
    ]


def trade_off(runs: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """Figure 9: `{run, step, n, accuracy, claims}`: mean accuracy against the mean number of
    claims, which stands for helpfulness, of each run at each of its steps (None where rows have
    none); refused responses are left out."""
    points = []
    for label, rows in runs.items():
        steps: dict[int | None, list[Row]] = {}
        for row in responded(rows):
            steps.setdefault(row.step, []).append(row)
        for step in sorted(steps, key=lambda step: -1 if step is None else step):
            group = steps[step]
            accuracy = mean([row.accuracy or 0.0 for row in group])
            claims = mean([len(row.labels) for row in group])
            point = {"run": label, "step": step, "n": len(group)}
            points.append({**point, "accuracy": accuracy, "claims": claims})
    return points
