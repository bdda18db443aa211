"""Accuracy, abstention, hallucination and truthfulness with intervals: arithmetic on graded
responses.

A question's outcome is correct, uncertain (an abstention) or incorrect. Truthfulness =
accuracy − hallucination (TruthRL, arXiv 2509.25760, section 2.1, with weights 1, 0, 1). A
response without an outcome has failed: it is counted, and left out of every rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from workbench.metrics.bootstrap import collect, intervals
from workbench.metrics.confidence import in_order
from workbench.types import OUTCOMES, Feedback

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
    found = [label for feedback in feedbacks if (label := outcome_of(feedback))]
    shares = [found.count(label) / max(1, len(found)) for label in OUTCOMES]
    values = dict(zip(RATES, (*shares, shares[0] - shares[2]), strict=True))
    failed = sum(map(outcome_failed, feedbacks))
    return {**(values if found else dict.fromkeys(RATES)), "failed": failed}


def outcome_terms(outcome: str | None) -> dict[str, tuple[float, float]]:
    """What one response adds to each rate's numerator and denominator; nothing where its outcome
    is not known.
    """
    if outcome is None:
        return {}
    shares = [float(outcome == label) for label in OUTCOMES]
    values = (*shares, shares[0] - shares[2])
    return {name: (value, 1.0) for name, value in zip(RATES, values, strict=True)}


def table(
    feedbacks: Sequence[Feedback], *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """`{n, accuracy: {value, low, high, n}, abstention, hallucination, truthfulness, failed}` of
    graded responses.

    `n` counts questions. Rates are over responses; the 95 % intervals are a percentile bootstrap
    over questions, in which all responses to one question are drawn together. Nothing scored
    gives null values.
    """
    terms = [(one.response.question.id, outcome_terms(outcome_of(one))) for one in feedbacks]
    sums = collect(terms, RATES)
    cells = intervals(sums, in_order(()), resamples, seed)
    failed = sum(map(outcome_failed, feedbacks))
    return {"n": len(sums.questions), **{name: cells[name] for name in RATES}, "failed": failed}


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
