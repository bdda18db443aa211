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
from typing import Any

from workbench.metrics.rows import Row

COUNTS = ("all", "correct", "wrong")


def responded(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.state == "scored"]


def bin_of(accuracy: float, bins: int) -> int:
    # 0.3 · 10 is 2.9999…, and belongs to [0.3, 0.4)
    return min(int(accuracy * bins + 1e-9), bins - 1)


def accuracy_distribution(rows: Iterable[Row], bins: int = 10) -> list[dict[str, Any]]:
    """Figure 4: `{low, high, n, share}` for each bin of accuracy; shares are of the responses
    that were not refused.
    """
    counts = Counter(bin_of(row.accuracy or 0.0, bins) for row in responded(rows))
    total = sum(counts.values())
    return [
        {
            "low": i / bins,
            "high": (i + 1) / bins,
            "n": counts[i],
            "share": counts[i] / total if total else None,
        }
        for i in range(bins)
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
    groups: dict[int, list[int]] = {}
    for row in responded(rows):
        groups.setdefault(bin_of(row.accuracy or 0.0, bins), []).append(len(row.labels))
    return [
        {
            "low": i / bins,
            "high": (i + 1) / bins,
            "n": len(groups.get(i, ())),
            "claims": sorted(groups.get(i, ())),
        }
        | {"mean": sum(groups[i]) / len(groups[i]) if i in groups else None}
        for i in range(bins)
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
    bin_by_question = {
        question: bin_of(sum(values) / len(values), bins) for question, values in accuracies.items()
    }
    refused: dict[int, list[bool]] = {}
    questions: dict[int, set[str]] = {}
    for row in after:
        if row.question_id in bin_by_question and row.state in ("scored", "no_claims", "abstained"):
            place = bin_by_question[row.question_id]
            refused.setdefault(place, []).append(row.state != "scored")
            questions.setdefault(place, set()).add(row.question_id)
    return [
        {
            "low": i / bins,
            "high": (i + 1) / bins,
            "questions": len(questions.get(i, ())),
            "responses": len(refused.get(i, ())),
        }
        | {"refused": sum(refused[i]) / len(refused[i]) if i in refused else None}
        for i in range(bins)
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
            accuracy = sum(row.accuracy or 0.0 for row in group) / len(group)
            claims = sum(len(row.labels) for row in group) / len(group)
            points.append(
                {
                    "run": label,
                    "step": step,
                    "n": len(group),
                    "accuracy": accuracy,
                    "claims": claims,
                }
            )
    return points
