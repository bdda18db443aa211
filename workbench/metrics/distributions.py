"""Compute the numbers of RLFH's figures 4 to 9 from graded responses.

Source: arXiv 2406.12221, section 4.3 and appendix C. The accuracy of a response is the share of its
claims that are supported; off-subject claims count too. A response counts as refused if it abstains
or makes no claim, as in the paper. Responses whose claims were not all judged are left out.

A bin includes its lower but not its upper edge. The last bin includes both.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from workbench.metrics.rows import Row, mean, share
from workbench.types import JsonObject
from workbench.util.grouping import group_by

T = TypeVar("T")
COUNTS = ("all", "correct", "wrong")
FINE, COARSE = 10, 5  # bins of accuracy in figure 4, and in figures 7 and 8


def responded(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that have claims, all of which are labelled (`Row.state` is "scored")."""
    return [row for row in rows if row.state == "scored"]


def binned(pairs: Iterable[tuple[float, T]], bins: int) -> list[tuple[JsonObject, list[T]]]:
    """Group (accuracy, value) pairs into `bins` bins of equal width from 0 to 1.

    Return a pair ({low, high}, values) for each bin. Empty bins are included.
    """
    values: list[list[T]] = [[] for _ in range(bins)]
    for accuracy, value in pairs:
        # in floats 0.29 · 100 is 28.999…, which belongs to bin 29
        values[min(int(accuracy * bins + 1e-9), bins - 1)].append(value)
    return [({"low": i / bins, "high": (i + 1) / bins}, values[i]) for i in range(bins)]


def accuracy_distribution(rows: Iterable[Row]) -> list[JsonObject]:
    """Return the numbers of RLFH's figure 4: `{low, high, n, share}` for each bin of accuracy.

    `n` is the number of responses in the bin. `share` is `n` divided by the number of all responses
    that were not refused; None if all were refused.
    """
    answered = responded(rows)
    return [
        {**edges, "n": len(group), "share": share(len(group), len(answered))}
        for edges, group in binned(((row.accuracy or 0.0, row) for row in answered), FINE)
    ]


def accuracy_and_claims(rows: Iterable[Row]) -> list[JsonObject]:
    """Return the points of RLFH's figure 5: `{question_id, accuracy, claims}` of each response.

    `claims` is the number of claims. Refused responses are left out.
    """
    return [
        {"question_id": r.question_id, "accuracy": r.accuracy, "claims": len(r.labels)}
        for r in responded(rows)
    ]


def claims_per_response(rows: Iterable[Row], which: str = "all") -> list[JsonObject]:
    """Return the numbers of RLFH's figure 6: how many responses have 1, 2, 3, … claims.

    For example, `{"claims": 3, "n": 20, "share": 0.1}` means that 20 responses (10 %) have 3
    claims. Refused responses are left out.

    Args:
        which: the claims to count: "all", "correct" or "wrong".
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


def claims_by_accuracy(rows: Iterable[Row]) -> list[JsonObject]:
    """Return the numbers of RLFH's figure 7: `{low, high, n, mean, claims}` per bin of accuracy.

    `claims` lists the number of claims of each response in the bin. `mean` is the mean of these
    numbers; None in an empty bin. Refused responses are left out.
    """
    pairs = ((row.accuracy or 0.0, len(row.labels)) for row in responded(rows))
    return [
        {**edges, "n": len(counts), "claims": sorted(counts), "mean": mean(counts)}
        for edges, counts in binned(pairs, COARSE)
    ]


def refusal_by_accuracy(before: Iterable[Row], after: Iterable[Row]) -> list[JsonObject]:
    """Return the numbers of RLFH's figure 8: the share of refusals by accuracy before training.

    Questions are grouped into bins by the mean accuracy of their responses before training. Each
    bin is `{low, high, questions, responses, refused}`:

    * `questions`: number of questions in the bin.
    * `responses`: number of responses to these questions after training.
    * `refused`: share of these responses that are refused; None in an empty bin.

    Questions whose responses before training were all refused are left out.
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
        for edges, group in binned(pairs, COARSE)
    ]


def trade_off(runs: Mapping[str, Sequence[Row]]) -> list[JsonObject]:
    """Return the points of RLFH's figure 9: `{run, step, n, accuracy, claims}` per step of a run.

    `n` is the number of responses that were not refused. `accuracy` and `claims` are the mean
    accuracy and the mean number of claims of these responses. The paper measures helpfulness by the
    number of claims.

    Args:
        runs: label of a run -> its rows. For rows without a step, `step` is None.
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
