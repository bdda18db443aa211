"""How good a verifier is on labelled pairs: `workbench verifier evaluate`."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.verifier.calibrate import reliability
from workbench.verifier.rows import LABELS, Row
from workbench.verifier.verifier import Verifier

CLAIM_LABELS = ("correct", "vague", "wrong")
Judged = tuple[Row, int, tuple[float, float, float]]  # a row, its verdict and its probabilities


def evaluate_verifier(verifier: Verifier, rows: Sequence[Row]) -> dict[str, Any]:
    """Measure accuracy by source and class, confusions, calibration, claim labels and speed.

    Evidence longer than a window is read in windows, as `Verifier.check` does. Balanced accuracy
    is the mean recall of the classes that occur; `support` is the task of telling supported from
    all else (p(support) ≥ `settings.split`).
    """
    bound = verifier.settings.split
    start = time.perf_counter()
    checks = verifier.check_all([(row.claim, [row.premise]) for row in rows])
    seconds = time.perf_counter() - start
    triples = [(check.support, check.contradict, check.neutral) for check in checks]
    predicted = [max(range(3), key=triple.__getitem__) for triple in triples]
    judged = list(zip(rows, predicted, triples, strict=True))
    by_source: dict[str, list[Judged]] = {}
    for case in judged:
        by_source.setdefault(case[0].source, []).append(case)
    return {
        "n": len(rows),
        **_measure(judged, bound),
        "by_source": {
            source: {"n": len(by_source[source]), **_measure(by_source[source], bound)}
            for source in sorted(by_source)
        },
        "by_class": {name: _class(judged, number) for number, name in enumerate(LABELS)},
        "confusion": _confusion(rows, [LABELS[number] for number in predicted], LABELS),
        "calibration": reliability(
            [max(triple) for triple in triples], [row.label == top for row, top, _ in judged]
        ),
        "support_calibration": reliability(
            [triple[0] for triple in triples], [row.label == 0 for row in rows]
        ),
        "labels": _confusion(rows, [verifier.label(check) for check in checks], CLAIM_LABELS),
        "windows": sum(check.windows for check in checks),
        "seconds": seconds,
        "claims_per_second": len(rows) / seconds,
    }


def _measure(judged: Sequence[Judged], bound: float) -> dict[str, Any]:
    recalls = [_class(judged, number)["recall"] for number in range(3)]
    present = [recall for recall in recalls if recall is not None]
    return {
        "accuracy": sum(row.label == predicted for row, predicted, _ in judged) / len(judged),
        "balanced_accuracy": sum(present) / len(present),
        "support": _support(judged, bound),
    }


def _support(judged: Sequence[Judged], bound: float) -> Mapping[str, float | None]:
    """Balanced accuracy and AUROC of p(support) for "supported" against all else;
    None where only one of the two occurs."""
    inside = [triple[0] for row, _, triple in judged if row.label == 0]
    outside = sorted(triple[0] for row, _, triple in judged if row.label != 0)
    if not inside or not outside:
        return {"balanced_accuracy": None, "auroc": None}
    recall = sum(p >= bound for p in inside) / len(inside)
    wins = sum((bisect_left(outside, p) + bisect_right(outside, p)) / 2 for p in inside)
    return {
        "balanced_accuracy": (recall + bisect_left(outside, bound) / len(outside)) / 2,
        "auroc": wins / (len(inside) * len(outside)),
    }


def _class(judged: Sequence[Judged], number: int) -> dict[str, Any]:
    gold = [predicted for row, predicted, _ in judged if row.label == number]
    named = [row.label for row, predicted, _ in judged if predicted == number]
    return {
        "n": len(gold),
        "recall": gold.count(number) / len(gold) if gold else None,
        "precision": named.count(number) / len(named) if named else None,
    }


def _confusion(
    rows: Sequence[Row], predicted: Sequence[str], names: Sequence[str]
) -> dict[str, dict[str, int]]:
    table = {label: dict.fromkeys(names, 0) for label in LABELS}
    for row, name in zip(rows, predicted, strict=True):
        table[LABELS[row.label]][name] += 1
    return table
