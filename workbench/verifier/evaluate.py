"""Measure a verifier on labelled pairs (`workbench verifier evaluate`)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.types import JsonObject
from workbench.verifier.calibrate import reliability
from workbench.verifier.rows import LABELS, Row
from workbench.verifier.verifier import Verifier

if TYPE_CHECKING:
    import numpy as np

CLAIM_LABELS = ("correct", "vague", "wrong")


def evaluate_verifier(verifier: Verifier, rows: Sequence[Row]) -> JsonObject:
    """Return the accuracy, calibration and speed of a verifier on labelled pairs.

    Long evidence is read in windows, as in `Verifier.check`. The result has these keys:

    * "n" (number of pairs), "accuracy", "balanced_accuracy" (mean recall of the classes)
    * "support": balanced accuracy and AUROC of "supported or not" by p(support)
    * "by_source": the values above for each source
    * "by_class": recall and precision of each class
    * "confusion": number of pairs by gold class and predicted class
    * "labels": number of pairs by gold class and label (correct, vague, wrong)
    * "calibration" and "support_calibration": see `reliability`
    * "windows" (number read), "seconds", "claims_per_second"
    """
    import numpy as np
    from sklearn.metrics import recall_score

    start = time.perf_counter()
    checks = verifier.check_all([(row.claim, [row.premise]) for row in rows])
    seconds = time.perf_counter() - start
    p_NK = np.array([(check.support, check.contradict, check.neutral) for check in checks])
    gold_N, predicted_N = np.array([row.label for row in rows]), p_NK.argmax(1)
    sources = np.array([row.source for row in rows])

    def measure(rows_N: np.ndarray) -> JsonObject:
        gold_M, found_M = gold_N[rows_N], predicted_N[rows_N]
        recall = recall_score(gold_M, found_M, labels=np.unique(gold_M), average="macro")
        return {
            "n": int(rows_N.sum()),
            "accuracy": float((gold_M == found_M).mean()),
            "balanced_accuracy": float(recall),
            "support": _support(gold_M, p_NK[rows_N, 0], verifier.settings.split),
        }

    return {
        **measure(np.full(len(rows), True)),
        "by_source": {str(source): measure(sources == source) for source in np.unique(sources)},
        "by_class": _by_class(gold_N, predicted_N),
        "confusion": _confusion(rows, [LABELS[number] for number in predicted_N], LABELS),
        "calibration": reliability(p_NK.max(1), gold_N == predicted_N),
        "support_calibration": reliability(p_NK[:, 0], gold_N == 0),
        "labels": _confusion(rows, [verifier.label(check) for check in checks], CLAIM_LABELS),
        "windows": sum(check.windows for check in checks),
        "seconds": seconds,
        "claims_per_second": len(rows) / seconds,
    }


def _support(gold_N: np.ndarray, support_N: np.ndarray, split: float) -> dict[str, float | None]:
    """Return balanced accuracy and AUROC of p(support); both are None if only one class occurs."""
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    supported_N = gold_N == LABELS.index("support")
    if supported_N.all() or not supported_N.any():
        return {"balanced_accuracy": None, "auroc": None}
    return {
        "balanced_accuracy": float(balanced_accuracy_score(supported_N, support_N >= split)),
        "auroc": float(roc_auc_score(supported_N, support_N)),
    }


def _by_class(gold_N: np.ndarray, predicted_N: np.ndarray) -> dict[str, JsonObject]:
    """Return {class: {"n", "recall", "precision"}}.

    Recall is None for a class without rows. Precision is None for a class that is never predicted.
    """
    import numpy as np
    from sklearn.metrics import precision_recall_fscore_support

    precision, recall, _, n = (
        np.where(np.isnan(values), np.array(None), values).tolist()
        for values in precision_recall_fscore_support(
            gold_N, predicted_N, labels=range(len(LABELS)), zero_division=np.nan
        )
    )
    return {
        name: {"n": int(n[i]), "recall": recall[i], "precision": precision[i]}
        for i, name in enumerate(LABELS)
    }


def _confusion(
    rows: Sequence[Row], predicted: Sequence[str], names: Sequence[str]
) -> dict[str, dict[str, int]]:
    table = {label: dict.fromkeys(names, 0) for label in LABELS}
    for row, name in zip(rows, predicted, strict=True):
        table[LABELS[row.label]][name] += 1
    return table
