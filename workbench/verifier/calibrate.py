"""Fit the temperature and the thresholds of a verifier on labelled pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.types import JsonObject
from workbench.verifier.rows import Row
from workbench.verifier.verifier import Settings, Verifier

if TYPE_CHECKING:
    import numpy as np
    import torch

BINS = 10  # bins of equal width in the expected calibration error
# Candidate thresholds of a label: at least .5, so that no label is less likely than not.
BAND = [round(0.50 + 0.05 * step, 2) for step in range(9)]
SPLIT = [round(0.20 + 0.05 * step, 2) for step in range(7)]
# Cost of the label correct, vague or wrong (column) for a supported, contradicted or neutral claim
# (row) *(ours)*. An undecided or overconfident label costs 1, the opposite label 2.
COST = ((0.0, 1.0, 2.0), (2.0, 1.0, 0.0), (1.0, 0.0, 1.0))


def calibrate(verifier: Verifier, rows: Sequence[Row]) -> Settings:
    """Fit a verifier's temperature and label thresholds; return its settings with the new values.

    Args:
        verifier: the verifier, which is not changed.
        rows: pairs of a premise and a claim, with the gold class of each.
    """
    import torch

    scores_NK = verifier.scores([(row.premise, row.claim) for row in rows]).double()  # N rows
    gold_N = torch.tensor([row.label for row in rows])
    temperature = fit_temperature(scores_NK, gold_N)
    settings = replace(verifier.settings, temperature=temperature)
    return fit_band(settings, (scores_NK / temperature).softmax(-1).numpy(), gold_N.numpy())


def fit_temperature(scores: torch.Tensor, gold: torch.Tensor) -> float:
    """Return the temperature T > 0 that fits `softmax(scores / T)` best to the gold classes.

    It minimises the negative log-likelihood, which has one minimum in 1/T. Source: Guo et al.,
    arXiv 1706.04599, section 4.2.

    Args:
        scores: raw scores of the classes (N, 3).
        gold: index of the gold class of each row (N).
    """
    import numpy as np
    import torch
    from scipy.optimize import minimize_scalar

    def loss(log_t: float) -> float:
        return float(torch.nn.functional.cross_entropy(scores / np.exp(log_t), gold))

    fitted = minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-6})
    return round(float(np.exp(fitted.x)), 4)


def fit_band(settings: Settings, p_NK: np.ndarray, gold_N: np.ndarray) -> Settings:
    """Fit the thresholds of a verifier, and return `settings` with them.

    * `support` and `contradict` are the thresholds of the labels "correct" and "wrong". They
      minimise the cost of wrong labels (`COST`). Each gold class has the same total weight.
    * `split` is the threshold of p(support) for the decision "supported or not". It is the value
      from .2 to .5 that maximises the balanced accuracy of this decision.

    Args:
        settings: the settings to change.
        p_NK: probabilities of the three classes, in the order of `LABELS`, for each of N rows.
        gold_N: indices of the gold classes.
    """
    import numpy as np
    from sklearn.metrics import balanced_accuracy_score

    weight_N = 1 / np.bincount(gold_N, minlength=3)[gold_N]
    cost_KK, support_N, contradict_N = np.array(COST), p_NK[:, 0], p_NK[:, 1]

    def cost(high: float, low: float) -> float:
        correct_N = (support_N >= high) & (support_N >= contradict_N)
        wrong_N = ~correct_N & (contradict_N >= low) & (contradict_N > support_N)
        predicted_N = np.where(correct_N, 0, np.where(wrong_N, 2, 1))
        return round(float((cost_KK[gold_N, predicted_N] * weight_N).sum()), 9)

    def balanced_accuracy_at(split: float) -> float:
        return round(float(balanced_accuracy_score(gold_N == 0, support_N >= split)), 9)

    # the tuples break ties: the highest thresholds, the split nearest to .5
    _, high, low = min((cost(high, low), -high, -low) for high in BAND for low in BAND)
    _, _, split = max((balanced_accuracy_at(split), split - 0.5, split) for split in SPLIT)
    return replace(settings, support=-high, contradict=-low, split=split)


def reliability(
    confidence: Sequence[float] | np.ndarray, right: Sequence[float] | np.ndarray
) -> JsonObject:
    """Return the expected calibration error ("ece") over 10 equal-width bins, and the "bins".

    ECE = Σ |bin| / n · |mean confidence − share right| (Guo et al., arXiv 1706.04599, section 2). A
    bin is `{"low", "high", "n", "confidence", "accuracy"}`; empty bins are left out.

    Args:
        confidence: the probability of each of n predictions.
        right: whether each prediction is right.
    """
    import numpy as np

    p_N, right_N = np.asarray(confidence, float), np.asarray(right, float)
    bin_N = np.minimum((p_N * BINS).astype(int), BINS - 1)
    cells: list[JsonObject] = [
        {
            "low": number / BINS,
            "high": (number + 1) / BINS,
            "n": int((bin_N == number).sum()),
            "confidence": float(p_N[bin_N == number].mean()),
            "accuracy": float(right_N[bin_N == number].mean()),
        }
        for number in np.unique(bin_N).tolist()
    ]
    gaps = [cell["n"] * abs(cell["confidence"] - cell["accuracy"]) for cell in cells]
    return {"ece": sum(gaps) / max(1, len(p_N)), "bins": cells}
