"""Fit what turns scores into probabilities, and probabilities into labels, on dev rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.verifier.rows import Row
from workbench.verifier.verifier import Settings, Verifier

if TYPE_CHECKING:
    import torch

BINS = 10
# a label needs what is more likely than not
BAND = [round(0.50 + 0.05 * step, 2) for step in range(9)]
SPLIT = [round(0.20 + 0.05 * step, 2) for step in range(7)]
# What it costs to say (column) correct, vague, wrong of a claim that is (row) supported,
# contradicted, neutral *(ours)*: right costs nothing, leaving open what is not open 1, deciding
# what is open 1, and taking true for false or false for true 2.
COST = ((0.0, 1.0, 2.0), (2.0, 1.0, 0.0), (1.0, 0.0, 1.0))


def calibrate(verifier: Verifier, rows: Sequence[Row]) -> Settings:
    """`verifier.settings` with temperature and band fitted on `rows`."""
    import torch

    scores_NK = verifier.scores([(row.premise, row.claim) for row in rows]).double()
    gold_N = torch.tensor([row.label for row in rows])
    temperature = fit_temperature(scores_NK, gold_N)
    return band(
        replace(verifier.settings, temperature=temperature),
        (scores_NK / temperature).softmax(-1),
        gold_N,
    )


def fit_temperature(scores: torch.Tensor, gold: torch.Tensor) -> float:
    """The T > 0 with the least negative log-likelihood of `softmax(scores / T)` (Guo et al.,
    arXiv 1706.04599, section 4.2).
    """
    import torch

    def loss(log_t: float) -> float:
        return float(torch.nn.functional.cross_entropy(scores / torch.tensor(log_t).exp(), gold))

    low, high = -3.0, 3.0  # the loss has one minimum in 1/T: golden-section search
    ratio = (5**0.5 - 1) / 2
    for _ in range(40):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if loss(left) < loss(right) else (left, high)
    return round(float(torch.tensor((low + high) / 2).exp()), 4)


def band(settings: Settings, probabilities: torch.Tensor, gold: torch.Tensor) -> Settings:
    """The thresholds of least mean `COST`; among equals the greatest. Classes weigh the same,
    however many rows they have.

    `split` is what parts supported from the rest best (balanced accuracy), at most .5.
    """
    import torch

    weight_N = 1 / torch.bincount(gold, minlength=3).clamp(min=1).double()[gold]
    cost_KK = torch.tensor(COST, dtype=torch.double)
    support_N, contradict_N = probabilities[:, 0], probabilities[:, 1]

    def mean_cost(high: float, low: float) -> float:
        correct_N = (support_N >= high) & (support_N >= contradict_N)
        wrong_N = ~correct_N & (contradict_N >= low) & (contradict_N > support_N)
        predicted_N = torch.where(correct_N, 0, torch.where(wrong_N, 2, 1))
        return float((cost_KK[gold, predicted_N] * weight_N).sum())

    high, low = min(
        ((h, c) for h in BAND for c in BAND),
        key=lambda pair: (round(mean_cost(*pair), 9), -pair[0], -pair[1]),
    )
    is_support_N = gold == 0

    def balanced(threshold: float) -> float:
        above_N = support_N >= threshold
        return float(
            (above_N[is_support_N].double().mean() + (~above_N[~is_support_N]).double().mean()) / 2
        )

    split = max(SPLIT, key=lambda threshold: (round(balanced(threshold), 9), -abs(threshold - 0.5)))
    return replace(settings, support=high, contradict=low, split=split)


def reliability(
    confidence: Sequence[float], right: Sequence[float], bins: int = BINS
) -> dict[str, Any]:
    """ECE over equal-width bins (Guo et al., section 2): Σ |bin| / n · |mean confidence − share
    right|, and its bins.
    """
    groups: list[list[int]] = [[] for _ in range(bins)]
    for i, value in enumerate(confidence):
        groups[min(bins - 1, int(value * bins))].append(i)
    filled = []
    for number, group in enumerate(groups):
        if group:
            mean = sum(confidence[i] for i in group) / len(group)
            share = sum(right[i] for i in group) / len(group)
            bounds = {"low": number / bins, "high": (number + 1) / bins}
            filled.append({**bounds, "n": len(group), "confidence": mean, "accuracy": share})
    ece = sum(cell["n"] * abs(cell["confidence"] - cell["accuracy"]) for cell in filled) / max(
        1, len(confidence)
    )
    return {"ece": ece, "bins": filled}
