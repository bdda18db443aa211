"""Compare samples with an exactly known distribution."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from workbench.policies.generate import Sampling


def chi_square(counts: Counter[Any], exact: Mapping[Any, float]) -> float:
    """How many standard deviations the χ² statistic is above its mean; all samples must be in
    `exact`.

    The mean is the degrees of freedom, the variance twice that. Cells with fewer than 5 expected
    samples are merged.
    """
    total = counts.total()
    assert set(counts) <= set(exact) and abs(sum(exact.values()) - 1) < 1e-4
    common = {cell for cell, p in exact.items() if total * p >= 5}
    cells: dict[Hashable, float] = {cell: exact[cell] for cell in common}
    if rest := sum(p for cell, p in exact.items() if cell not in common):
        cells["rest"] = rest
    seen = Counter(cell if cell in common else "rest" for cell in counts.elements())
    statistic = sum((seen[cell] - total * p) ** 2 / (total * p) for cell, p in cells.items())
    freedom = len(cells) - 1
    return (statistic - freedom) / (2 * freedom) ** 0.5 if freedom else 0.0


def next_probabilities(model: Any, ids: Sequence[int], how: Sampling) -> dict[int, float]:
    """The probabilities of the next token after `ids`, by a pass without a cache and transformers'
    processors.
    """
    import torch
    from transformers import TemperatureLogitsWarper, TopPLogitsWarper

    with torch.no_grad():
        scores = model(torch.tensor([ids])).logits[:, -1]
    scores = TopPLogitsWarper(how.top_p)(
        None, TemperatureLogitsWarper(how.temperature)(None, scores)
    )
    return {token: p for token, p in enumerate(scores.softmax(-1)[0].tolist()) if p > 0}
