"""Decoding by a model's forward pass: rows that end leave the batch, the next take their places,
and what several prompts begin with is computed once.

Rows of the cache are aligned at their last tokens; where a row is shorter than the longest, its
first columns are masked.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.policies.generate import Sampling
from workbench.types import WorkbenchError

FREE = 0.25  # share of the batch that is free when the next prompts are begun
# share of the rows that have ended when they are taken out, for which the cache is copied
ENDED = 0.125
# tokens that are computed in about the time that a forward pass takes however few they are
PASS = 256

Prompt = tuple[int, ...]
# logits_BV, a number in [0, 1) for each row -> token ids
Draw = Callable[[Any, Sequence[float]], list[int]]
# new ids, lengths with them, cache -> last logits_BV
Forward = Callable[[Sequence[Sequence[int]], Sequence[int], Any], Any]


@dataclass(frozen=True)
class Rows:
    """Completions under way, side by side. The lists have an entry for each row."""

    numbers: list[int]  # of the prompt that the row completes
    uniforms: list[Iterator[float]]  # the random numbers that its tokens are drawn by
    lengths: list[int]  # tokens in the cache
    tokens: list[int]  # drawn last, not in the cache yet
    cache: Any  # a `DynamicCache`: keys and values [rows, heads, columns, size] of every layer


def plain_model(model: Any) -> Any:
    """The model that `decode` takes, with the LoRA adapter that may sit in its layers; None for
    what it cannot run.

    It runs full attention whose inputs are prepared as usual. Sliding windows, recurrent layers,
    prompt tuning and models with a cache of their own are left to transformers' `generate`.
    """
    from transformers import DynamicCache, GenerationMixin
    from transformers.cache_utils import DynamicLayer

    if adapter := getattr(model, "active_peft_config", None):
        if adapter.peft_type != "LORA" or getattr(adapter, "alora_invocation_tokens", None):
            return None
        model = model.get_base_model()
    prepare = type(model).prepare_inputs_for_generation
    if (
        prepare is not GenerationMixin.prepare_inputs_for_generation
        or not model._supports_default_dynamic_cache()
        or model._is_stateful
        or model.config.is_encoder_decoder
    ):
        return None
    layers = DynamicCache(config=model.config).layers
    return model if all(type(layer) is DynamicLayer for layer in layers) else None


def decode(
    model: Any,
    pad: int,
    prompts: Sequence[Prompt],
    stop_ids: Sequence[int],
    how: Sampling,
    size: int,
) -> list[list[int]]:
    """A completion for each prompt, its end token included; prompts are begun in their order,
    `size` are under way at once.

    A completion has random numbers of its own, from torch's generator of the CPU: what is drawn
    for it does not depend on what is computed beside it, but for rounding.
    """
    return _Decoding(model, pad, prompts, stop_ids, how).run(size)


class _Decoding:
    def __init__(
        self,
        model: Any,
        pad: int,
        prompts: Sequence[Prompt],
        stop_ids: Sequence[int],
        how: Sampling,
    ) -> None:
        self.forward, self.config, self.draw = forwarding(model, pad), model.config, drawing(how)
        self.prompts, self.stops, self.how = prompts, frozenset(stop_ids), how
        self.completions: list[list[int]] = [[] for _ in prompts]
        self.of_whole_BT = self._uniforms(max(how.rows) + 1)[list(how.rows)] if how.rows else None

    def run(self, size: int) -> list[list[int]]:
        waiting = deque(range(len(self.prompts)))
        rows: Rows | None = None
        while waiting or rows:
            free = size - (len(rows.numbers) if rows else 0)
            if waiting and free >= FREE * size:
                rows = joined(
                    rows, self._begun([waiting.popleft() for _ in range(min(free, len(waiting)))])
                )
            elif rows:
                rows = self._stepped(rows)
        return self.completions

    def _uniforms(self, count: int) -> Any:
        import torch

        return torch.rand(count, self.how.max_new_tokens, dtype=torch.float64)

    def _begun(self, numbers: list[int]) -> Rows | None:
        """Rows with their first tokens; equal prompts go through the model once."""
        prompts = [self.prompts[number] for number in numbers]
        places = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
        index = [places[prompt] for prompt in prompts]
        logits_BV, cache = prefill(self.forward, self.config, list(places))
        of_whole_BT = self.of_whole_BT
        drawn_BT = self._uniforms(len(numbers)) if of_whole_BT is None else of_whole_BT[numbers]
        uniforms = [iter(row) for row in drawn_BT.tolist()]
        rows = Rows(numbers, uniforms, list(map(len, prompts)), [], cache)
        return self._going(replace(rows, tokens=self._drawn(rows, logits_BV[index])), index)

    def _stepped(self, rows: Rows) -> Rows | None:
        """Rows with one more token each; one that has ended stays as long as it is, for there
        may be no position after it.
        """
        lengths = [
            length + (not self._ended(n))
            for n, length in zip(rows.numbers, rows.lengths, strict=True)
        ]
        logits_BV = self.forward([[token] for token in rows.tokens], lengths, rows.cache)
        return self._going(replace(rows, lengths=lengths, tokens=self._drawn(rows, logits_BV)))

    def _drawn(self, rows: Rows, logits_BV: Any) -> list[int]:
        """A token for every row, added to its completion unless that has ended."""
        tokens = self.draw(logits_BV, [next(uniforms, 0.0) for uniforms in rows.uniforms])
        for number, token in zip(rows.numbers, tokens, strict=True):
            if not self._ended(number):
                self.completions[number].append(token)
        return tokens

    def _ended(self, number: int) -> bool:
        ids = self.completions[number]
        return len(ids) == self.how.max_new_tokens or (bool(ids) and ids[-1] in self.stops)

    def _going(self, rows: Rows, index: Sequence[int] | None = None) -> Rows | None:
        """The rows that have not ended; all while few have. `index` is where in the cache they
        are, if not in order.
        """
        places = [place for place, number in enumerate(rows.numbers) if not self._ended(number)]
        if not places:
            return None
        if index is None and len(places) > (1 - ENDED) * len(rows.numbers):
            return rows
        return chosen(rows, places, places if index is None else [index[place] for place in places])


def forwarding(model: Any, pad: int) -> Forward:
    """The model as a function of each row's new ids, the lengths that the rows then have, and
    the cache, which it extends.

    Rows of new ids that are shorter than the others are padded on the left, which is right for
    an empty cache alone.
    """
    import torch

    known = inspect.signature(model.forward).parameters
    last = {"logits_to_keep": 1} if "logits_to_keep" in known else {}

    def forward(ids: Sequence[Sequence[int]], lengths: Sequence[int], cache: Any) -> Any:
        new = max(map(len, ids))
        width = cache.get_seq_length() + new
        ids_BN = torch.tensor(
            [[pad] * (new - len(row)) + list(row) for row in ids], device=model.device
        )
        columns_1L = torch.arange(width, device=model.device)[None]
        padding_B1 = width - torch.tensor(lengths, device=model.device)[:, None]
        inputs = {
            "attention_mask": (columns_1L >= padding_B1).long() if min(lengths) < width else None
        }
        if "position_ids" in known:
            inputs["position_ids"] = (columns_1L[:, -new:] - padding_B1).clamp(min=0)
        return model(
            input_ids=ids_BN, past_key_values=cache, use_cache=True, **inputs, **last
        ).logits[:, -1]

    return forward


def prefill(forward: Forward, config: Any, prompts: Sequence[Prompt]) -> tuple[Any, Any]:
    """The logits after each of these different prompts, and a cache with a row for each.

    Where many prompts begin alike, the beginnings are computed first, each once, and then the
    rest of every prompt.
    """
    from transformers import DynamicCache

    lengths = [len(prompt) for prompt in prompts]
    if not (tail := rest(prompts)):
        return forward(prompts, lengths, cache := DynamicCache(config=config)), cache
    heads = {prompt[:-tail]: None for prompt in prompts}
    places = {head: place for place, head in enumerate(heads)}
    _, cache = prefill(forward, config, list(heads))
    move(cache, [places[prompt[:-tail]] for prompt in prompts], max(lengths) - tail)
    return forward([prompt[-tail:] for prompt in prompts], lengths, cache), cache


def rest(prompts: Sequence[Prompt]) -> int:
    """How many last tokens of every prompt to compute apart from what comes before, so that
    fewest tokens are computed.

    0 where that would not save the time of another pass.
    """
    widest, narrowest = max(map(len, prompts)), min(map(len, prompts))

    def computed(tail: int) -> int:
        return len({prompt[:-tail] for prompt in prompts}) * (widest - tail) + len(prompts) * tail

    best = min((n for n in range(1, narrowest) if n <= 16 or n % 16 == 0), key=computed, default=0)
    return best if best and widest * len(prompts) - computed(best) >= PASS else 0


def chosen(rows: Rows, places: Sequence[int], index: Sequence[int]) -> Rows:
    """The rows at these places, whose keys and values are at `index` of the cache."""
    lengths = [rows.lengths[place] for place in places]
    move(rows.cache, index, max(lengths))
    return Rows(
        [rows.numbers[place] for place in places],
        [rows.uniforms[place] for place in places],
        lengths,
        [rows.tokens[place] for place in places],
        rows.cache,
    )


def move(cache: Any, index: Sequence[int], width: int) -> None:
    """Make row `index[n]` the cache's row n, and keep the last `width` columns."""
    import torch

    if list(index) == list(range(len(cache.layers[0].keys))) and width == cache.get_seq_length():
        return  # as it is
    for layer in cache.layers:
        index_B = torch.tensor(index, device=layer.keys.device)
        layer.keys = layer.keys[:, :, -width:].index_select(0, index_B)
        layer.values = layer.values[:, :, -width:].index_select(0, index_B)


def joined(rows: Rows | None, more: Rows | None) -> Rows | None:
    """Both rows side by side, in the cache of the first."""
    import torch
    from torch.nn.functional import pad

    if rows is None or more is None:
        return rows or more
    width = max(rows.lengths + more.lengths)

    def stacked(*parts: Any) -> Any:
        """All rows, padded or cut on the left to one width."""
        return torch.cat([pad(part, (0, 0, width - part.shape[2], 0)) for part in parts])

    for layer, added in zip(rows.cache.layers, more.cache.layers, strict=True):
        layer.keys = stacked(layer.keys, added.keys)
        layer.values = stacked(layer.values, added.values)
    return Rows(
        rows.numbers + more.numbers,
        rows.uniforms + more.uniforms,
        rows.lengths + more.lengths,
        rows.tokens + more.tokens,
        rows.cache,
    )


def drawing(how: Sampling) -> Draw:
    """Return the function that draws the next tokens by `how`; greedy decoding ignores the numbers.

    Temperature and top-p are those of transformers. `torch.multinomial` would draw a random number
    for every token of the vocabulary; here one a row is enough.
    """
    import torch
    from transformers import TemperatureLogitsWarper, TopPLogitsWarper

    if how.greedy:
        return lambda logits_BV, _: logits_BV.argmax(dim=-1).tolist()
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
