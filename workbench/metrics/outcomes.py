"""Accuracy, abstention, hallucination and truthfulness of graded responses, with intervals.

An outcome is correct, uncertain (an abstention) or incorrect. Truthfulness = accuracy −
hallucination (TruthRL, arXiv 2509.25760, section 2.1, with weights 1, 0, 1). SimpleQA (arXiv
2411.04368, section 2) adds two metrics. One is the accuracy of the attempted answers. The other is
the F-score, the harmonic mean of this accuracy and the overall accuracy. All rates leave out
responses without an outcome.
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
    """Return the outcome of a response: "correct", "uncertain" or "incorrect".

    Return None if there is no outcome verdict, or if grading failed.
    """
    verdict = feedback.verdict("outcome")
    if feedback.error or verdict is None or verdict.error or verdict.label not in OUTCOMES:
        return None
    return verdict.label


def outcome_failed(feedback: Feedback) -> bool:
    """Return whether grading the outcome of a response failed.

    This is the case if claims could not be extracted, or if an expected outcome is missing. An
    outcome is expected if there is an outcome verdict or the question has gold answers. It is not
    expected if the error of the outcome verdict only records a missing input, such as gold answers
    (an error of a kind in `LACKING`).
    """
    if feedback.error is not None or outcome_of(feedback) is not None:
        return feedback.error is not None
    verdict = feedback.verdict("outcome")
    if verdict is None:
        return bool(feedback.response.question.answers)
    return verdict.error is None or verdict.error.kind not in LACKING


def rates(feedbacks: Sequence[Feedback]) -> dict[str, float | None]:
    """Return `{accuracy, abstention, hallucination, truthfulness, failed}` of graded responses.

    `failed` is the number of responses whose grading failed. The other values are rates over the
    responses with an outcome; None without such responses. Truthfulness is accuracy −
    hallucination.
    """
    outcomes = [label for feedback in feedbacks if (label := outcome_of(feedback))]
    values = _rates([outcomes.count(label) / max(1, len(outcomes)) for label in OUTCOMES])
    failed = sum(map(outcome_failed, feedbacks))
    return {**(values if outcomes else dict.fromkeys(RATES)), "failed": failed}


def _rates(shares: Sequence[float]) -> dict[str, float]:
    """Return the four `RATES` by name from the shares of correct, uncertain, incorrect answers."""
    return dict(zip(RATES, (*shares, shares[0] - shares[2]), strict=True))


def outcome_terms(outcome: str | None) -> dict[str, tuple[float, float]]:
    """Return what one response adds to each outcome metric: `{metric: (numerator, denominator)}`.

    The dict is empty if the outcome is None.
    """
    if outcome is None:
        return {}
    values = _rates([float(outcome == label) for label in OUTCOMES])
    correct, attempted = values["accuracy"], 1.0 - values["abstention"]
    # with C correct answers, A attempted answers and N responses, the F-score is the harmonic mean
    # of C/N and C/A, which is 2C / (N + A)
    return {name: (value, 1.0) for name, value in values.items()} | {
        "attempted_accuracy": (correct, attempted),
        "f_score": (2 * correct, 1.0 + attempted),
    }


def table(
    feedbacks: Sequence[Feedback], *, seed: int = 0, resamples: int = RESAMPLES
) -> JsonObject:
    """Return the rates of graded responses with 95 % intervals.

    * `accuracy`, `abstention`, `hallucination`, `truthfulness`, `attempted_accuracy`, `f_score`:
      each is `{value, low, high, n}`. `value` is over all responses (Avg@k with k responses per
      question). Undefined values are None. `attempted_accuracy` leaves out abstentions; `f_score`
      is the harmonic mean of this accuracy and `accuracy`.
    * `n`: the number of questions.
    * `failed`: the number of responses whose grading failed.

    The intervals are bootstrap intervals: questions are resampled, each with all its responses.
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
    """Group responses by `key`, and return {group: `summary` of its responses}, sorted by group.

    Responses for which `key` returns None are left out.
    """
    groups = group_by(graded, key)
    return {name: summary(groups[name]) for name in sorted(n for n in groups if n is not None)}


def share_of_oracle(before: JsonMapping, after: JsonMapping) -> float | None:
    """Return the gain in truthfulness by training, as a share of the gain of an oracle.

    The oracle answers like the policy before training, but abstains where this policy is wrong.
    With truthfulness T, the share is (T_after − T_before) / (T_oracle − T_before). It is None if a
    rate is undefined, or if no answer before training is wrong.

    Args:
        before, after: results of `table`, before and after training.
    """
    start, end = (table["truthfulness"]["value"] for table in (before, after))
    oracle = before["accuracy"]["value"]  # without wrong answers, truthfulness equals accuracy
    if start is None or end is None or oracle is None or oracle == start:
        return None
    return (end - start) / (oracle - start)
