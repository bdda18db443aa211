"""Accuracy, abstention, hallucination and truthfulness with intervals: arithmetic on graded
responses.

A question's outcome is correct, uncertain (an abstention) or incorrect. Truthfulness =
accuracy − hallucination (TruthRL, arXiv 2509.25760, section 2.1, with weights 1, 0, 1). A
response without an outcome has failed: it is counted, and left out of every rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.metrics.bootstrap import interval, number
from workbench.types import OUTCOMES, Feedback

if TYPE_CHECKING:
    import numpy as np

Graded = TypeVar("Graded")
RATES = ("accuracy", "abstention", "hallucination", "truthfulness")
RESAMPLES = 2000


def outcome_of(feedback: Feedback) -> str | None:
    """The label of the outcome verdict, or None where grading failed."""
    verdict = feedback.verdict("outcome")
    if feedback.error or verdict is None or verdict.error or verdict.label not in OUTCOMES:
        return None
    return verdict.label


def outcome_failed(feedback: Feedback) -> bool:
    """Whether grading failed: there is no outcome, though the question has gold answers or
    somebody looked for one.
    """
    expected = bool(feedback.response.question.answers) or feedback.verdict("outcome") is not None
    return outcome_of(feedback) is None and (expected or feedback.error is not None)


def rates(feedbacks: Sequence[Feedback]) -> dict[str, float | None]:
    """The four rates without intervals (None when nothing was scored), and how many responses
    failed.
    """
    values_4 = _rates_of(_counts(feedbacks)[1].sum(axis=0, keepdims=True))[0]
    values = {name: number(value) for name, value in zip(RATES, values_4, strict=True)}
    return {**values, "failed": sum(map(outcome_failed, feedbacks))}


def table(
    feedbacks: Sequence[Feedback],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> dict[str, Any]:
    """`{n, accuracy: {value, low, high}, abstention, hallucination, truthfulness, failed}` of
    graded responses.

    `n` counts questions. Rates are over responses; the 95 % intervals are a percentile bootstrap
    over questions, in which all responses to one question are drawn together. Nothing scored
    gives null values.
    """
    import numpy as np

    questions, counts_QK = _counts(feedbacks)
    values_4 = _rates_of(counts_QK.sum(axis=0, keepdims=True))[0]
    drawn_R4 = np.empty((0, len(RATES)))
    if questions:
        # Questions with equal counts are interchangeable: draw how many of each sort, which has
        # the same distribution.
        sorts_UK, sizes_U = np.unique(counts_QK, axis=0, return_counts=True)
        drawn_RU = np.random.default_rng(seed).multinomial(
            len(questions), sizes_U / len(questions), size=resamples
        )
        drawn_R4 = _rates_of(drawn_RU @ sorts_UK)
    cells = {
        name: {"value": number(values_4[i]), **interval(drawn_R4[:, i], values_4[i])}
        for i, name in enumerate(RATES)
    }
    return {"n": len(questions), **cells, "failed": sum(map(outcome_failed, feedbacks))}


def breakdown(
    graded: Sequence[Graded],
    key: Callable[[Graded], str | None],
    of: Callable[[Sequence[Graded]], dict[str, Any]],
) -> dict[str, Any]:
    """What `of` says of each value of `key`, in alphabetical order; responses whose key is None
    are left out.
    """
    groups: dict[str, list[Graded]] = {}
    for one in graded:
        name = key(one)
        if name is not None:
            groups.setdefault(name, []).append(one)
    return {name: of(groups[name]) for name in sorted(groups)}


def share_of_oracle(before: Mapping[str, Any], after: Mapping[str, Any]) -> float | None:
    """How much of the way to the oracle training went: (T_after − T_before) / (oracle −
    T_before), on `table`s.

    1 is the oracle that abstains exactly where `before` was wrong, 0 no change; more than 1
    means new right answers. None where either table is empty or `before` is never wrong.
    """
    start, end = (table["truthfulness"]["value"] for table in (before, after))
    oracle = before["accuracy"]["value"]  # what the policy scores if it abstains where it is wrong
    if start is None or end is None or oracle is None or oracle == start:
        return None
    return (end - start) / (oracle - start)


def _counts(feedbacks: Sequence[Feedback]) -> tuple[list[str], np.ndarray]:
    """The questions, and (questions, outcomes): how many responses had each outcome."""
    import numpy as np

    rows: dict[str, int] = {}
    for feedback in feedbacks:
        rows.setdefault(feedback.response.question.id, len(rows))
    counts_QK = np.zeros((len(rows), len(OUTCOMES)))
    for feedback in feedbacks:
        if outcome := outcome_of(feedback):
            counts_QK[rows[feedback.response.question.id], OUTCOMES.index(outcome)] += 1
    return list(rows), counts_QK


def _rates_of(counts_NK: np.ndarray) -> np.ndarray:
    """(N, outcomes) counts -> (N, 4) rates, NaN where a row has no responses."""
    import numpy as np

    totals_N1 = counts_NK.sum(axis=1, keepdims=True)
    shares_NK = np.divide(
        counts_NK, totals_N1, out=np.full(counts_NK.shape, np.nan), where=totals_N1 > 0
    )
    return np.column_stack([shares_NK, shares_NK[:, 0] - shares_NK[:, 2]])
