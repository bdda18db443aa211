"""Risk–coverage curve, AURC and AUROC of answers with confidences.

Answers are sorted by confidence, highest first. After the first k of n answers, the coverage is
k/n, and the risk is the share of wrong answers among these k.

* AURC is the mean risk over k = 1 … n (Geifman et al. 2019, arXiv 1805.08206, section 3). For
  answers with equal confidences, it is averaged over all their orders *(ours)*.
* AUROC is the probability that a right answer is more confident than a wrong answer. A tie counts
  half.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from workbench.metrics.rows import Row

if TYPE_CHECKING:
    import numpy as np


POINTS = 100  # most points of a curve


@dataclass(frozen=True)
class Ranked:
    """Right and wrong answers with their confidences, most confident first."""

    questions: tuple[str, ...]
    confidences: tuple[float, ...]
    right: tuple[bool, ...]
    starts: tuple[int, ...]  # the first index of each group of equal confidences


NO_ANSWERS = Ranked((), (), (), ())


def ranked(rows: Sequence[Row]) -> Ranked:
    """Return the right and wrong answers that have a confidence, most confident first.

    Abstentions and ungraded answers are left out.
    """
    return in_order(
        (row.question_id, row.confidence, row.outcome == "correct")
        for row in rows
        if row.confidence is not None and row.outcome in ("correct", "incorrect")
    )


def in_order(answers: Iterable[tuple[str, float, bool]]) -> Ranked:
    """Sort answers by confidence, highest first.

    Args:
        answers: (question id, confidence, whether the answer is right) of each answer.
    """
    ordered = sorted(answers, key=lambda item: (-item[1], item[0], item[2]))
    questions, confidences, right = zip(*ordered, strict=True) if ordered else ((), (), ())
    starts = tuple(i for i, p in enumerate(confidences) if i == 0 or p != confidences[i - 1])
    return Ranked(questions, confidences, right, starts)


def risk_coverage(answers: Ranked) -> list[dict[str, float]]:
    """Return the risk–coverage curve as at most 100 (`POINTS`) points; [] without answers.

    Each point is `{coverage, risk, threshold}`. `coverage` is the share of answers whose confidence
    is at least `threshold`. `risk` is the share of wrong answers among them.
    """
    n = len(answers.right)
    if not n:
        return []
    ends = [*answers.starts[1:], n]
    # at most `POINTS` of the ends, evenly spaced, the first and the last included
    coverages = {ends[round(i * (len(ends) - 1) / (POINTS - 1))] for i in range(POINTS)}
    wrong = [0, *accumulate(not right for right in answers.right)]
    return [
        {"coverage": k / n, "risk": wrong[k] / k, "threshold": answers.confidences[k - 1]}
        for k in sorted(coverages)
    ]


def areas(answers: Ranked, weights_RN: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return AURC and AUROC of R resamples as two arrays (R,), with NaN where undefined.

    Args:
        answers: N ranked answers.
        weights_RN: how often each resample counts each answer. Without weights, R is 1 and each
            answer counts once.
    """
    import numpy as np

    n = len(answers.right)
    weights_RN = np.ones((1, n)) if weights_RN is None else weights_RN
    if not n:
        undefined_R = np.full(len(weights_RN), np.nan)
        return undefined_R, undefined_R
    right_N = np.array(answers.right, dtype=float)
    # sums over groups of equal confidence
    right_RG = np.add.reduceat(weights_RN * right_N, answers.starts, axis=1)
    wrong_RG = np.add.reduceat(weights_RN * (1 - right_N), answers.starts, axis=1)
    return _aurc(right_RG, wrong_RG), _auroc(right_RG, wrong_RG)


def _aurc(right_RG: np.ndarray, wrong_RG: np.ndarray) -> np.ndarray:
    import numpy as np

    size_RG = right_RG + wrong_RG
    before_RG = np.cumsum(size_RG, axis=1) - size_RG  # how many answers are more confident
    errors_RG = np.cumsum(wrong_RG, axis=1) - wrong_RG
    rate_RG = np.divide(wrong_RG, size_RG, out=np.zeros_like(size_RG), where=size_RG > 0)
    total_R = size_RG.sum(axis=1)
    harmonic_K = np.cumsum([0.0, *(1 / np.arange(1, int(total_R.max(initial=0)) + 1))])
    steps_RG = harmonic_K[(before_RG + size_RG).astype(int)] - harmonic_K[before_RG.astype(int)]
    # The group has m answers and error rate ρ; k answers with E errors come before it. Its j-th
    # answer has expected risk (E + jρ)/(k + j). The sum over j is ρm + (E − ρk)(H(k+m) − H(k)),
    # where H are harmonic numbers.
    area_R = (rate_RG * size_RG + (errors_RG - rate_RG * before_RG) * steps_RG).sum(axis=1)
    return np.divide(area_R, total_R, out=np.full(len(area_R), np.nan), where=total_R > 0)


def _auroc(right_RG: np.ndarray, wrong_RG: np.ndarray) -> np.ndarray:
    import numpy as np

    # how many wrong answers are less confident
    below_RG = wrong_RG.sum(axis=1, keepdims=True) - np.cumsum(wrong_RG, axis=1)
    wins_R = (right_RG * (below_RG + wrong_RG / 2)).sum(axis=1)
    pairs_R = right_RG.sum(axis=1) * wrong_RG.sum(axis=1)
    return np.divide(wins_R, pairs_R, out=np.full(len(wins_R), np.nan), where=pairs_R > 0)
