"""How good a verifier is on labelled pairs: `workbench verifier evaluate`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.entailment.calibrate import reliability
from workbench.entailment.rows import LABELS, Row
from workbench.entailment.verifier import Verifier

NEGATION = re.compile(
    r"\b(no|not|never|none|nobody|nothing|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE
)
LENGTHS = (0, 16, 32, 64, 128, 256)  # words of the premise
SAID = ("correct", "vague", "wrong")


def evaluate_verifier(verifier: Verifier, rows: Sequence[Row]) -> dict[str, Any]:
    """Accuracy by source, class, length and negation, confusions, calibration, labels of the
    band, and speed.

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
    result = {
        "n": len(rows),
        **measure(judged, bound),
        "by_source": split(judged, bound, lambda row: row.source),
        "by_class": {name: _class(judged, number) for number, name in enumerate(LABELS)},
        "confusion": _confusion(rows, [LABELS[number] for number in predicted], LABELS),
        "calibration": reliability(
            [max(triple) for triple in triples], [row.label == s for row, s, _ in judged]
        ),
        "support_calibration": reliability(
            [triple[0] for triple in triples], [row.label == 0 for row in rows]
        ),
        "labels": _confusion(rows, [verifier.label(check) for check in checks], SAID),
        "by_length": split(judged, bound, lambda row: _length(row.premise)),
        "by_negation": split(
            judged,
            bound,
            lambda row: "negated claim" if NEGATION.search(row.claim) else "other claim",
        ),
    }
    speed = {"seconds": seconds, "claims_per_second": len(rows) / seconds}
    return {**result, "windows": sum(check.windows for check in checks), **speed}


Judged = tuple[Row, int, tuple[float, float, float]]


def measure(judged: Sequence[Judged], bound: float) -> dict[str, Any]:
    right = [row.label == predicted for row, predicted, _ in judged]
    recalls = [_class(judged, number)["recall"] for number in range(3)]
    present = [recall for recall in recalls if recall is not None]
    return {
        "accuracy": sum(right) / len(right),
        "balanced_accuracy": sum(present) / len(present),
        "support": _support(judged, bound),
    }


def split(judged: Sequence[Judged], bound: float, key: Callable[[Row], str]) -> dict[str, Any]:
    """`measure` for each group of rows, in the order of their names."""
    groups: dict[str, list[Judged]] = {}
    for case in judged:
        groups.setdefault(key(case[0]), []).append(case)
    return {
        name: {"n": len(groups[name]), **measure(groups[name], bound)} for name in sorted(groups)
    }


def _support(judged: Sequence[Judged], bound: float) -> Mapping[str, float | None]:
    """Balanced accuracy (also at .5) and AUROC of p(support) for "supported" against all else;
    None where only one of the two occurs."""
    inside = [triple[0] for row, _, triple in judged if row.label == 0]
    outside = [triple[0] for row, _, triple in judged if row.label != 0]
    if not inside or not outside:
        return {"balanced_accuracy": None, "at_half": None, "auroc": None}

    def balanced(bound: float) -> float:
        return (
            sum(p >= bound for p in inside) / len(inside)
            + sum(p < bound for p in outside) / len(outside)
        ) / 2

    return {
        "balanced_accuracy": balanced(bound),
        "at_half": balanced(0.5),
        "auroc": _auroc(inside, outside),
    }


def _auroc(inside: Sequence[float], outside: Sequence[float]) -> float:
    """The share of (inside, outside) pairs in the right order, ties half, by ranks."""
    from bisect import bisect_left, bisect_right

    ordered = sorted(outside)
    wins = sum((bisect_left(ordered, p) + bisect_right(ordered, p)) / 2 for p in inside)
    return wins / (len(inside) * len(outside))


def _class(judged: Sequence[Judged], number: int) -> dict[str, Any]:
    gold = [predicted for row, predicted, _ in judged if row.label == number]
    named = [row.label for row, predicted, _ in judged if predicted == number]
    return {
        "n": len(gold),
        "recall": sum(predicted == number for predicted in gold) / len(gold) if gold else None,
        "precision": sum(label == number for label in named) / len(named) if named else None,
    }


def _confusion(
    rows: Sequence[Row], predicted: Sequence[str], names: Sequence[str]
) -> dict[str, dict[str, int]]:
    table = {label: dict.fromkeys(names, 0) for label in LABELS}
    for row, name in zip(rows, predicted, strict=True):
        table[LABELS[row.label]][name] += 1
    return table


def _length(premise: str) -> str:
    words = len(premise.split())
    low = max(bound for bound in LENGTHS if bound <= words)
    above = [bound for bound in LENGTHS if bound > low]
    return f"{low:03d}–{above[0] - 1:03d} words" if above else f"{low:03d} words or more"
