"""One token from each row of logits, as transformers' own processors define temperature and
top-p, by inverting the CDF.

`torch.multinomial` draws a random number for every token of the vocabulary; one for every row is
enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from workbench.generate import Sampling
from workbench.types import WorkbenchError

# logits_BV, a number in [0, 1) for each row -> token ids
Draw = Callable[[Any, Sequence[float]], list[int]]


def drawing(how: Sampling) -> Draw:
    """How a row's next token comes of its logits and one uniform number; greedy decoding does
    not look at the number.
    """
    return _most_probable if how.greedy else _sampling(how)


def _most_probable(logits_BV: Any, _: Sequence[float]) -> list[int]:
    ids: list[int] = logits_BV.argmax(dim=-1).tolist()
    return ids


def _sampling(how: Sampling) -> Draw:
    import torch
    from transformers import TemperatureLogitsWarper, TopPLogitsWarper

    processors: list[Callable[[Any, Any], Any]] = []
    if how.temperature != 1.0:
        processors.append(TemperatureLogitsWarper(float(how.temperature)))
    if how.top_p < 1.0:
        processors.append(TopPLogitsWarper(how.top_p))

    def draw(logits_BV: Any, uniforms: Sequence[float]) -> list[int]:
        scores_BV = logits_BV.float()
        for process in processors:
            scores_BV = process(None, scores_BV)
        uniforms_B1 = torch.tensor(uniforms, dtype=torch.float64, device=scores_BV.device)[:, None]
        return inverse_cdf(torch.softmax(scores_BV, dim=-1), uniforms_B1)

    return draw


def inverse_cdf(probabilities_BV: Any, uniforms_B1: Any) -> list[int]:
    """For each row the first token whose cumulative probability exceeds the row's number.

    A token of probability 0 adds nothing to the sum, so it is never the first. Numbers are below
    1 and are scaled to the sum, so rounding cannot lead past the last token. The sums are in
    double precision: in single precision, tokens whose probability is below 6e-8 would vanish.

    Raises:
        WorkbenchError: the probabilities are not numbers.
    """
    import torch

    cumulative_BV = probabilities_BV.cumsum(dim=-1, dtype=torch.float64)
    ids: list[int] = (
        torch.searchsorted(cumulative_BV, uniforms_B1 * cumulative_BV[:, -1:], right=True)
        .squeeze(1)
        .tolist()
    )
    if max(ids) >= probabilities_BV.shape[1]:
        raise WorkbenchError(
            "the policy's probabilities are not numbers: its weights have diverged; lower the"
            " learning rate"
        )
    return ids
