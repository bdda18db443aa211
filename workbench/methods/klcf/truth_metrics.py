"""How well P(true) separates true from false claims on held-out questions (KLCF, arXiv
2509.23765, table 12).
"""

import math
from collections.abc import Sequence

from workbench.methods.held_out import calibration, count_unknown_people
from workbench.methods.klcf.confidence import confidences
from workbench.methods.klcf.facts import key
from workbench.methods.klcf.truth import TextScorer
from workbench.metrics.rows import share
from workbench.policies.generate import Policy
from workbench.training.scorer import Judged
from workbench.types import JsonObject


def measured(
    score: TextScorer, base: Policy, training: Sequence[Judged], testing: Sequence[Judged]
) -> JsonObject:
    """Measure a truthfulness model on balanced claims of held-out questions, and the untuned
    base model.

    The entry `strangers` counts claims about people that the training claims do not mention.
    """
    rows = balanced(testing)
    scored = [
        (row, value)
        for row, value in zip(rows, score(rows), strict=True)
        if value is not None and math.isfinite(value)
    ]
    pairs = [(value, row.segments[0].target) for row, value in scored]
    return {
        "claims": len(pairs),
        "strangers": count_unknown_people(training, [row for row, _ in scored]),
        "too_long": len(rows) - len(scored),
        **calibration(pairs),
        **accuracy_and_f1(pairs),
        "untuned": untuned(base, training, testing),
    }


def untuned(base: Policy, training: Sequence[Judged], testing: Sequence[Judged]) -> JsonObject:
    """Measure the base model's own confidence, with the threshold that is best on the training
    claims *(ours)*.
    """
    seen, rows = balanced(training), balanced(testing)
    values = confidences(base, [*seen, *rows])
    targets = [row.segments[0].target for row in [*seen, *rows]]
    pairs = list(zip(values, targets, strict=True))
    threshold, held_out = best_threshold(pairs[: len(seen)]), pairs[len(seen) :]
    return {
        "threshold": threshold,
        "auc": calibration(held_out)["auc"],
        **accuracy_and_f1(held_out, threshold),
    }


def balanced(rows: Sequence[Judged]) -> list[Judged]:
    """Return as many true as false claims, the first of each, and each claim of a question once."""
    # keyed from the end, so that the first row of equal claims stays
    distinct = {(row.question.id, key(row.text)): row for row in reversed(rows)}
    true, false = (
        [row for row in reversed(distinct.values()) if row.segments[0].target == target]
        for target in (1.0, 0.0)
    )
    count = min(len(true), len(false))
    return [*true[:count], *false[:count]]


def accuracy_and_f1(
    pairs: Sequence[tuple[float, float]], threshold: float = 0.5
) -> dict[str, float | None]:
    """Return accuracy and F1 (of the class "true") of (value, target) pairs; None if empty.

    A claim is called true if its value is above `threshold`.
    """
    if not pairs:
        return {"accuracy": None, "f1": None}
    called = [value > threshold for value, _ in pairs]
    true = [target == 1 for _, target in pairs]
    hits = sum(map(all, zip(called, true, strict=True)))
    right = sum(one == other for one, other in zip(called, true, strict=True))
    return {"accuracy": right / len(pairs), "f1": share(2 * hits, sum(called) + sum(true))}


def best_threshold(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the lowest threshold with the best accuracy; 0.5 if there is no pair."""
    best, most = 0.5, -1
    right = sum(target == 1 for _, target in pairs)  # if every claim is called true
    for value, target in sorted(pairs):
        right += 1 if target == 0 else -1
        if right > most:
            best, most = value, right
    return best
