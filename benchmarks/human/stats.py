"""Statistics on weighted rows, with intervals; a resample is a weight for every row."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench.metrics.bootstrap import wilson as bounds

RESAMPLES = 1000
Statistic = Callable[[np.ndarray], float]  # weights (rows,) -> value, NaN where it is undefined


def interval(statistic: Statistic, groups: Sequence[Any], seed: int) -> dict[str, float | None]:
    """Return the value and the middle 95 % of `RESAMPLES` bootstrap draws of whole groups.

    Rows that share a text are one group.
    """
    names = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    member = np.array([names[group] for group in groups])
    drawn = np.random.default_rng(seed).multinomial(
        len(names), [1 / len(names)] * len(names), size=RESAMPLES
    )
    values = np.array([statistic(weights[member].astype(float)) for weights in drawn])
    known = values[~np.isnan(values)]
    low, high = np.percentile(known, [2.5, 97.5]) if len(known) else (np.nan, np.nan)
    return {
        "value": number(statistic(np.ones(len(member)))),
        "low": number(low),
        "high": number(high),
    }


def once_each(
    names: Sequence[str], hits: Sequence[bool] | np.ndarray
) -> dict[str, float | int | None]:
    """Return Wilson's interval over distinct names, each with the share of its rows that hit."""
    rows: dict[str, list[float]] = {}
    for name, hit in zip(names, hits, strict=True):
        rows.setdefault(name, []).append(float(hit))
    return wilson(sum(sum(some) / len(some) for some in rows.values()), len(rows))


def wilson(hits: float, n: int) -> dict[str, float | int | None]:
    """Return the proportion of independent rows with Wilson's interval, not empty at 0 or 1."""
    if not n:
        return {"value": None, "low": None, "high": None, "n": 0}
    low, high = bounds(hits, n)
    return {"value": number(hits / n), "low": number(low), "high": number(high), "n": n}


def accuracy(right: np.ndarray, weights: np.ndarray) -> float:
    return float(weights @ right / weights.sum())


def balanced(gold: np.ndarray, said: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean recall of the classes in `gold`; NaN if a resample has lost one."""
    recalls = []
    for label in np.unique(gold):
        inside = weights * (gold == label)
        if not inside.sum():
            return float("nan")
        recalls.append(inside @ (said == label) / inside.sum())
    return float(np.mean(recalls))


def auroc(gold: np.ndarray, score: np.ndarray) -> Statistic:
    """Return the share of (positive, negative) pairs in the right order; ties count half."""
    inside, outside = score[gold], score[~gold]
    wins = (inside[:, None] > outside[None]) + 0.5 * (inside[:, None] == outside[None])

    def statistic(weights: np.ndarray) -> float:
        positive, negative = weights[gold], weights[~gold]
        pairs = positive.sum() * negative.sum()
        return float(positive @ wins @ negative / pairs) if pairs else float("nan")

    return statistic


def ece(p: np.ndarray, gold: np.ndarray, weights: np.ndarray, bins: int = 10) -> float:
    """Return the expected calibration error over equal-width bins.

    Source: arXiv 1706.04599, section 2.
    """
    place = np.minimum(bins - 1, (p * bins).astype(int))
    gaps = [abs((weights * (place == one)) @ (p - gold)) for one in range(bins)]
    return float(sum(gaps) / weights.sum())


def precision_recall_f1(
    hit: np.ndarray, said: np.ndarray, gold: np.ndarray
) -> dict[str, Statistic]:
    """Return micro-averages over rows with `hit` units in common of `said` and `gold` units.

    If nothing is said, precision is undefined and F1 is 0.
    """

    def ratio(top: float, bottom: float) -> float:
        return float(top / bottom) if bottom else float("nan")

    return {
        "precision": lambda weights: ratio(weights @ hit, weights @ said),
        "recall": lambda weights: ratio(weights @ hit, weights @ gold),
        "f1": lambda weights: ratio(2 * weights @ hit, weights @ (said + gold)),
    }


def number(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 4)
