"""The tables behind RLFH's figures 4 to 9, computed from rows of feedback.

Source: arXiv 2406.12221, section 4.3 and appendix C. Accuracy is the share of supported claims of a
response, whatever the claims are about (see the metric `off_subject`). A response is refused if it
abstains or makes no claim, as in the paper, which does not use key words. Failed rows are left out.
Bins are half-open, the last one closed; an empty bin has null values.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from workbench.metrics.rows import Row, mean, share
from workbench.types import JsonObject
from workbench.util.grouping import group_by

T = TypeVar("T")
COUNTS = ("all", "correct", "wrong")


def responded(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with judged claims, which were neither refused nor failed."""
    return [row for row in rows if row.state == "scored"]


def binned(pairs: Iterable[tuple[float, T]], bins: int) -> list[tuple[JsonObject, list[T]]]:
    """Group (accuracy, value) pairs into bins; return `{low, high}` and the values of each bin."""
    values: list[list[T]] = [[] for _ in range(bins)]
    for accuracy, value in pairs:
        # in floats 0.29 · 100 is 28.999…, which belongs to bin 29
        values[min(int(accuracy * bins + 1e-9), bins - 1)].append(value)
    return [({"low": i / bins, "high": (i + 1) / bins}, values[i]) for i in range(bins)]


def accuracy_distribution(rows: Iterable[Row], bins: int = 10) -> list[JsonObject]:
    """Return figure 4: `{low, high, n, share}` for each bin of accuracy.

    `n` counts responses; `share` is their share of the responses that were not refused.
    """
    answered = responded(rows)
    return [
        {**edges, "n": len(group), "share": share(len(group), len(answered))}
        for edges, group in binned(((row.accuracy or 0.0, row) for row in answered), bins)
    ]


def accuracy_and_claims(rows: Iterable[Row]) -> list[JsonObject]:
    """Return figure 5: `{question_id, accuracy, claims}` of each response that was not refused."""
    return [
        {"question_id": r.question_id, "accuracy": r.accuracy, "claims": len(r.labels)}
        for r in responded(rows)
    ]


def claims_per_response(rows: Iterable[Row], which: str = "all") -> list[JsonObject]:
    """Return figure 6: `{claims, n, share}` for each number of claims of a response.

    `which` counts "all" claims, only "correct" or only "wrong" claims. Refused responses are left
    out. Numbers between the smallest and the largest that do not occur have n = 0.
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


def claims_by_accuracy(rows: Iterable[Row], bins: int = 5) -> list[JsonObject]:
    """Return figure 7: `{low, high, n, mean, claims}` for each bin of accuracy.

    `claims` lists the number of claims of each response in the bin, and `mean` is their mean.
    """
    pairs = ((row.accuracy or 0.0, len(row.labels)) for row in responded(rows))
    return [
        {**edges, "n": len(counts), "claims": sorted(counts), "mean": mean(counts)}
        for edges, counts in binned(pairs, bins)
    ]


def refusal_by_accuracy(
    before: Iterable[Row], after: Iterable[Row], bins: int = 5
) -> list[JsonObject]:
    """Return figure 8: `{low, high, questions, responses, refused}` for each bin of accuracy.

    Questions are grouped by the mean accuracy of their responses before training. `refused` is the
    share of their responses after training that are refused.
    """
    answered = group_by(responded(before), lambda row: row.question_id)
    pairs = (
        (mean([one.accuracy or 0.0 for one in answered[row.question_id]]) or 0.0, row)
        for row in after
        # failed and unjudged responses are neither refused nor answered
        if row.question_id in answered and row.state in ("scored", "no_claims", "abstained")
    )
    return [
        {
            **edges,
            "questions": len({row.question_id for row in group}),
            "responses": len(group),
            "refused": mean([row.state != "scored" for row in group]),
        }
        for edges, group in binned(pairs, bins)
    ]


def trade_off(runs: Mapping[str, Sequence[Row]]) -> list[JsonObject]:
    """Return figure 9: `{run, step, n, accuracy, claims}` for each step of each run.

    `accuracy` and `claims` are means over the n responses that were not refused; the number of
    claims is the paper's measure of helpfulness. Rows without a step have the step None.
    """
    points = []
    for label, rows in runs.items():
        steps = group_by(responded(rows), lambda row: row.step)
        for step in sorted(steps, key=lambda step: -1 if step is None else step):
            group = steps[step]
            points.append(
                {
                    "run": label,
                    "step": step,
                    "n": len(group),
                    "accuracy": mean([row.accuracy or 0.0 for row in group]),
                    "claims": mean([len(row.labels) for row in group]),
                }
            )
    return points
