"""Accuracy, abstention, hallucination and truthfulness of graded responses, with intervals.

An outcome is correct, uncertain (an abstention) or incorrect. Truthfulness = accuracy −
hallucination (TruthRL, arXiv 2509.25760, section 2.1, with weights 1, 0, 1). SimpleQA (arXiv
2411.04368, section 2) adds the accuracy of the attempted answers, and the F-score: the harmonic
mean of this accuracy and the overall accuracy. A response without an outcome is left out of every
rate.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from workbench.metrics.bootstrap import collect, intervals
from workbench.types import LACKING, OUTCOMES, Feedback, JsonMapping, JsonObject
from workbench.util.grouping import group_by

Graded = TypeVar("Graded")
RATES = ("accuracy", "abstention", "hallucination", "truthfulness")
SIMPLEQA = ("attempted_accuracy", "f_score")
RESAMPLES = 2000


def outcome_of(feedback: Feedback) -> str | None:
    """Return the label of the outcome verdict; None if there is no verdict or grading failed."""
    verdict = feedback.verdict("outcome")
    if feedback.error or verdict is None or verdict.error or verdict.label not in OUTCOMES:
        return None
    return verdict.label


def outcome_failed(feedback: Feedback) -> bool:
    """Whether a response should have an outcome but has none, because grading failed.

    An outcome verdict without a valid label counts as a failure, too. A question without gold
    answers does not.
    """
    verdict = feedback.verdict("outcome")
    lacking = verdict is not None and verdict.error is not None and verdict.error.kind in LACKING
    expected = bool(feedback.response.question.answers) or (verdict is not None and not lacking)
    return outcome_of(feedback) is None and (expected or feedback.error is not None)


def rates(feedbacks: Sequence[Feedback]) -> dict[str, float | None]:
    """Return `RATES` without intervals, and `failed`, the number of ungraded responses.

    The rates are None if no response has an outcome.
    """
    outcomes = [label for feedback in feedbacks if (label := outcome_of(feedback))]
    values = _rates([outcomes.count(label) / max(1, len(outcomes)) for label in OUTCOMES])
    failed = sum(map(outcome_failed, feedbacks))
    return {**(values if outcomes else dict.fromkeys(RATES)), "failed": failed}


def _rates(shares: Sequence[float]) -> dict[str, float]:
    """Return `RATES` from the shares of `OUTCOMES`."""
    return dict(zip(RATES, (*shares, shares[0] - shares[2]), strict=True))


def outcome_terms(outcome: str | None) -> dict[str, tuple[float, float]]:
    """Return `{metric: (numerator, denominator)}` of one response; empty without an outcome.

    With C correct answers, A attempted answers and N responses, the F-score, the harmonic mean of
    C/N and C/A, is 2C / (N + A).
    """
    if outcome is None:
        return {}
    values = _rates([float(outcome == label) for label in OUTCOMES])
    correct, attempted = values["accuracy"], 1.0 - values["abstention"]
    return {name: (value, 1.0) for name, value in values.items()} | {
        "attempted_accuracy": (correct, attempted),
        "f_score": (2 * correct, 1.0 + attempted),
    }


def table(
    feedbacks: Sequence[Feedback], *, seed: int = 0, resamples: int = RESAMPLES
) -> JsonObject:
    """Return the rates of graded responses with 95 % intervals.

    The result is `{n, accuracy: {value, low, high, n}, abstention, hallucination, truthfulness,
    attempted_accuracy, f_score, failed}`. `n` counts questions. Rates are over responses; with k
    samples per question they are Avg@k. The intervals are from a percentile bootstrap over
    questions: a resample has all responses to a question or none. Values are None if no response
    has an outcome, and for `attempted_accuracy` also if all responses abstain.
    """
    names = (*RATES, *SIMPLEQA)
    terms = [(f.response.question.id, outcome_terms(outcome_of(f))) for f in feedbacks]
    sums = collect(terms, names)
    cells = intervals(sums, resamples, seed)
    failed = sum(map(outcome_failed, feedbacks))
    return {"n": len(sums.questions), **{name: cells[name] for name in names}, "failed": failed}


def breakdown(
    graded: Sequence[Graded],
    key: Callable[[Graded], str | None],
    summary: Callable[[Sequence[Graded]], JsonObject],
) -> JsonObject:
    """Return {group: summary of its responses}, sorted by group, which is the result of `key`.

    Responses whose key is None are left out.
    """
    groups = group_by(graded, key)
    return {name: summary(groups[name]) for name in sorted(n for n in groups if n is not None)}


def share_of_oracle(before: JsonMapping, after: JsonMapping) -> float | None:
    """Return the gain in truthfulness by training, as a share of an oracle's gain.

    Both arguments are results of `table`. With truthfulness T, the share is (T_after − T_before) /
    (T_oracle − T_before). The oracle answers like `before`, but abstains where `before` was wrong.
    0 means no gain, and 1 means the gain of the oracle; more than 1 needs new correct answers. None
    if a table is empty or `before` is never wrong.
    """
    start, end = (table["truthfulness"]["value"] for table in (before, after))
    oracle = before["accuracy"]["value"]  # without wrong answers, truthfulness equals accuracy
    if start is None or end is None or oracle is None or oracle == start:
        return None
    return (end - start) / (oracle - start)
