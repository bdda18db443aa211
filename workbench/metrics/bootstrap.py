"""Bootstrap confidence intervals of metrics, by resampling questions.

A metric is a sum of numerators over responses, divided by a sum of denominators. `intervals`
returns the intervals of one set of answers. `paired` returns the intervals of the differences
between two sets of answers to the same questions. With several *runs* (trainings with different
seeds), both functions resample questions and runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from workbench.metrics.confidence import NO_ANSWERS, Ranked, areas
from workbench.util.jsonl import finite

if TYPE_CHECKING:
    import numpy as np

FEWEST = 5  # fewest questions for an interval or a p-value (ours)
CELLS = 1_000_000  # most resampling weights in memory at once
CACHED = 4_000_000  # most resampling weights that are cached, in one or two bytes each
AREAS = ("aurc", "auroc")

# The letters at the end of an array's name are its axes: Q questions, M metrics, R resamples,
# N answers, G groups of equal confidence, S runs, D resamples that define the metric.


@dataclass(frozen=True)
class Sums:
    """Numerators and denominators of M metrics for Q questions, summed over their responses.

    The arrays have the shape (Q, M): a row per question in `questions`, a column per metric in
    `names`.
    """

    questions: tuple[str, ...]
    names: tuple[str, ...]
    top_QM: np.ndarray  # numerators
    bottom_QM: np.ndarray  # denominators; 0 where a question does not define the metric


def collect(
    terms: Sequence[tuple[str, Mapping[str, tuple[float, float]]]], names: Sequence[str]
) -> Sums:
    """Add up the numerators and denominators of metrics over the responses to each question.

    Args:
        terms: one pair (question id, {metric: (numerator, denominator)}) for each response. A
            metric that is missing for a response adds 0 to both sums.
        names: names of the metrics, in the order of the result's columns.
    """
    import numpy as np

    questions = sorted({question for question, _ in terms})
    position = {question: row for row, question in enumerate(questions)}
    column = {name: number for number, name in enumerate(names)}
    top_QM, bottom_QM = (np.zeros((len(questions), len(names))) for _ in range(2))
    for question, by_metric in terms:
        for name, (top, bottom) in by_metric.items():
            top_QM[position[question], column[name]] += top
            bottom_QM[position[question], column[name]] += bottom
    return Sums(tuple(questions), tuple(names), top_QM, bottom_QM)


def evaluate(sums: Sums, answers: Ranked, weights_RQ: np.ndarray | None = None) -> np.ndarray:
    """Return the metrics of R resamples as an array (R, M + 2), with NaN where undefined.

    The columns are the M metrics of `sums`, then two metrics of the confidences in `answers`: AURC
    (area under the risk–coverage curve) and AUROC (area under the ROC curve).

    Args:
        weights_RQ: how often each resample counts each question. Without weights, R is 1 and each
            question counts once.
    """
    import numpy as np

    weights_RQ = np.ones((1, len(sums.questions))) if weights_RQ is None else weights_RQ
    top_RM, bottom_RM = weights_RQ @ sums.top_QM, weights_RQ @ sums.bottom_QM
    ratios_RM = np.divide(top_RM, bottom_RM, out=np.full(top_RM.shape, np.nan), where=bottom_RM > 0)
    position = {question: row for row, question in enumerate(sums.questions)}
    index_N = [position[question] for question in answers.questions]
    return np.column_stack([ratios_RM, *areas(answers, weights_RQ[:, index_N])])


def draws(
    questions: int, answers: int, resamples: int, seed: int, runs: int
) -> Iterator[np.ndarray]:
    """Yield the weights of bootstrap resamples, in arrays with one row for each resample.

    To save memory, the resamples are divided among several arrays of shape (R, runs · questions).

    A weight is the number of times that a question is drawn, with replacement. With several runs,
    runs are drawn too, and this number is multiplied by the number of draws of the question's run.

    Args:
        questions: number of questions in each run.
        answers: number of ranked answers. R is chosen so that an array (R, answers) is small too.
        resamples: number of resamples in all arrays together.
        runs: number of runs (trainings with different seeds).
    """
    # in pieces: all resamples at once would need gigabytes for large files
    rows = max(1, CELLS // max(1, runs * questions, answers))
    draw = _cached_draws if runs * resamples * questions <= CACHED else _draws
    pieces = draw(questions, rows, resamples, seed, runs)
    return (weights_RQ.astype(float) for weights_RQ in pieces)


def _draws(questions: int, rows: int, resamples: int, seed: int, runs: int) -> Iterator[np.ndarray]:
    import numpy as np

    generator = np.random.default_rng(seed)
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        weights_RQ = generator.multinomial(questions, [1 / questions] * questions, size=size)
        if runs > 1:
            runs_RS = generator.multinomial(runs, [1 / runs] * runs, size=size)
            weights_RQ = (runs_RS[:, :, None] * weights_RQ[:, None, :]).reshape(size, -1)
        yield weights_RQ.astype(np.min_scalar_type(runs * questions))


@lru_cache(maxsize=4)  # the blocks of a report often have the same number of questions
def _cached_draws(*arguments: int) -> tuple[np.ndarray, ...]:
    return tuple(_draws(*arguments))


def intervals(
    sums: Sums, resamples: int, seed: int, runs: int = 1, answers: Ranked = NO_ANSWERS
) -> dict[str, dict[str, float | None]]:
    """Return each metric with its 95 % bootstrap interval: `{metric: {value, low, high, n}}`.

    The metrics are those of `sums`, "aurc" and "auroc". `n` is the number of questions for which
    the metric is defined. If n is 0, `value` is None; below `FEWEST`, `low` and `high` are None.

    Args:
        sums: numerators and denominators. With several runs, it has all questions of the first run,
            then all questions of the second run, and so on.
        runs: number of runs (trainings with different seeds) in `sums`.
        answers: ranked answers; without answers, "aurc" and "auroc" are None.
    """
    import numpy as np

    names = (*sums.names, *AREAS)
    if not sums.questions:
        return {name: {"value": None, "low": None, "high": None, "n": 0} for name in names}
    counts = _defined(sums.bottom_QM > 0, runs) + [len({*answers.questions})] * len(AREAS)
    values_M = evaluate(sums, answers)[0]
    count = len(sums.questions) // runs
    pieces = draws(count, len(answers.right), resamples=resamples, seed=seed, runs=runs)
    samples_RM = np.concatenate([evaluate(sums, answers, weights_RQ) for weights_RQ in pieces])
    return {
        name: {"value": finite(value), **interval(samples_R, value, n), "n": n}
        for name, value, samples_R, n in zip(names, values_M, samples_RM.T, counts, strict=True)
    }


def paired(
    a: tuple[Sums, Ranked], b: tuple[Sums, Ranked], resamples: int, seed: int, runs: int
) -> dict[str, dict[str, float | None]]:
    """Compare two sets of answers: return `{metric: {value, other, diff, low, high, p, n}}`.

    * `value`, `other`: the metric of `a` and of `b`.
    * `diff`: `value` − `other`.
    * `low`, `high`: the 95 % interval of `diff`.
    * `p`: the two-sided bootstrap p-value. It is at least 2/2^n, the smallest p-value of an exact
      sign test on n questions *(ours)*.
    * `n`: the number of questions for which the metric is defined in `a` and in `b`. Only these
      questions count.

    Undefined values are None, and `low`, `high` and `p` also if n is below `FEWEST`. Each resample
    draws the same questions from both sets.

    Args:
        a, b: each set's sums, and its answers ranked by confidence. Both must have the same
            questions, in the same order.
        runs: number of runs (trainings with different seeds) in `a` and in `b`. The sums have all
            questions of the first run, then all questions of the second run, and so on.
    """
    import numpy as np

    assert a[0].questions == b[0].questions, (len(a[0].questions), len(b[0].questions))
    names = (*a[0].names, *AREAS)
    if not a[0].questions:
        undefined = dict.fromkeys(("value", "other", "diff", "low", "high", "p"))
        return {name: {**undefined, "n": 0} for name in names}
    both_QM = (a[0].bottom_QM > 0) & (b[0].bottom_QM > 0)
    count = len(a[0].questions) // runs
    counts = _defined(both_QM, runs)
    counts += [len({*a[1].questions} & {*b[1].questions})] * len(AREAS)
    first, second = (
        (replace(sums, top_QM=sums.top_QM * both_QM, bottom_QM=sums.bottom_QM * both_QM), ranked)
        for sums, ranked in (a, b)
    )
    a_M, b_M = evaluate(*first)[0], evaluate(*second)[0]
    diffs_M = a_M - b_M
    # where one side is undefined, there is no difference, and neither value is shown
    unknown_M = np.isnan(diffs_M)
    a_M[unknown_M] = b_M[unknown_M] = np.nan
    answers = max(len(a[1].right), len(b[1].right))
    pieces = draws(count, answers, resamples=resamples, seed=seed, runs=runs)
    samples_RM = np.concatenate([evaluate(*first, w) - evaluate(*second, w) for w in pieces])
    columns = zip(names, a_M, b_M, diffs_M, samples_RM.T, counts, strict=True)
    return {
        name: {
            "value": finite(value),
            "other": finite(other),
            "diff": finite(diff),
            **interval(samples_R, diff, n),
            "p": _p_value(samples_R, diff, n),
            "n": n,
        }
        for name, value, other, diff, samples_R, n in columns
    }


def _defined(known_QM: np.ndarray, runs: int) -> list[int]:
    """Return, for each metric, how many questions define it in at least one of the runs."""
    runs_SQM = known_QM.reshape(runs, len(known_QM) // runs, -1)
    return list(map(int, runs_SQM.any(axis=0).sum(axis=0)))


def wilson(hits: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % bounds (low, high) of the proportion `hits / n`.

    If all n outcomes are equal, a bootstrap interval is a single point, but Wilson's interval is
    not.
    """
    z = 1.959964  # quantile .975 of the normal distribution
    middle, spread = hits + z * z / 2, z * math.sqrt(hits * (n - hits) / n + z * z / 4)
    return max(0.0, (middle - spread) / (n + z * z)), min(1.0, (middle + spread) / (n + z * z))


def interval(samples_R: np.ndarray, value: float, questions: int) -> dict[str, float | None]:
    """Return the 95 % percentile interval of R resampled values of a metric: `{low, high}`.

    NaN samples are ignored. Both bounds are None if there are fewer than `FEWEST` questions, if all
    samples are NaN, or if `value`, the metric without resampling, is NaN.
    """
    import numpy as np

    known_D = samples_R[~np.isnan(samples_R)]
    if questions < FEWEST or np.isnan(value) or not len(known_D):
        return {"low": None, "high": None}
    low, high = np.percentile(known_D, [2.5, 97.5])
    return {"low": float(low), "high": float(high)}


def _p_value(samples_R: np.ndarray, value: float, questions: int) -> float | None:
    import numpy as np

    known_D = samples_R[~np.isnan(samples_R)]
    if questions < FEWEST or np.isnan(value) or not len(known_D):
        return None
    # Twice the share of differences ≤ 0 or ≥ 0, whichever is smaller. The bound 2/2^n keeps a
    # difference on a few questions from looking significant. Sums of floats are rounded: a
    # difference this small counts as 0.
    tail = min((known_D <= 1e-12).sum(), (known_D >= -1e-12).sum())
    return min(1.0, max(2 * (int(tail) + 1) / (len(known_D) + 1), 2.0 ** (1 - questions)))
