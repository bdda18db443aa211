"""Decode by a model's forward pass, for transformers models with full attention.

Rows that finish leave the batch and the next prompts take their places. The common beginning of
several prompts is computed once.

The rows of the cache are aligned at their last tokens. The first columns of shorter rows are
masked. Shapes: B rows, N new tokens, L cached and new tokens together, V ids of the vocabulary, T
tokens of the longest completion.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.policies.generate import Sampling
from workbench.types import WorkbenchError

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache, PretrainedConfig, PreTrainedModel

    # logits (B, V), a number in [0, 1) for each row -> token ids
    SampleTokens = Callable[[torch.Tensor, Sequence[float]], list[int]]
    # new ids, length of each row with them, cache -> logits of the last tokens (B, V)
    Forward = Callable[[Sequence[Sequence[int]], Sequence[int], DynamicCache], torch.Tensor]

FREE = 0.25  # share of free rows at which the next prompts start
# share of finished rows at which they are removed, which copies the cache
ENDED = 0.125
# tokens whose computation takes as long as the overhead of a forward pass
PASS = 256

Prompt = tuple[int, ...]


@dataclass(frozen=True)
class Rows:
    """Unfinished completions. Each list has an entry for each row."""

    numbers: list[int]  # index of the row's prompt
    uniforms: list[Iterator[float]]  # random numbers for sampling its tokens
    lengths: list[int]  # tokens in the cache
    tokens: list[int]  # sampled last, not in the cache yet
    cache: DynamicCache  # keys and values (rows, heads, columns, size) of every layer


def plain_model(model: PreTrainedModel) -> PreTrainedModel | None:
    """Return the model that `decode` can run, with the LoRA adapter in its layers, or None.

    `decode` runs full attention with the usual preparation of inputs. Sliding windows, recurrent
    layers, prompt tuning and models with their own cache need transformers' `generate`.
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
    model: PreTrainedModel,
    pad: int,
    prompts: Sequence[Prompt],
    stop_ids: Sequence[int],
    how: Sampling,
    size: int,
) -> list[list[int]]:
    """Return a completion for each prompt, with its end token. Prompts start in the given order,
    at most `size` at once.

    Each completion has its own random numbers, from torch's CPU generator. So the samples do not
    depend on the other prompts of the batch, except for rounding.
    """
    return _Decoding(model, pad, prompts, stop_ids, how).run(size)


class _Decoding:
    def __init__(
        self,
        model: PreTrainedModel,
        pad: int,
        prompts: Sequence[Prompt],
        stop_ids: Sequence[int],
        how: Sampling,
    ) -> None:
        self.forward, self.config = forward_function(model, pad), model.config
        self.sample, self.how = token_sampler(how), how
        self.prompts, self.stops = prompts, frozenset(stop_ids)
        self.completions: list[list[int]] = [[] for _ in prompts]
        # the numbers that a batch of all processes would use for these prompts
        self.shared_BT = self._uniforms(max(how.rows) + 1)[list(how.rows)] if how.rows else None

    def run(self, size: int) -> list[list[int]]:
        waiting = deque(range(len(self.prompts)))
        rows: Rows | None = None
        while waiting or rows:
            free = size - (len(rows.numbers) if rows else 0)
            if waiting and free >= FREE * size:
                numbers = [waiting.popleft() for _ in range(min(free, len(waiting)))]
                rows = concatenate(rows, self._start(numbers))
            elif rows:
                rows = self._step(rows)
        return self.completions

    def _uniforms(self, count: int) -> torch.Tensor:
        import torch

        return torch.rand(count, self.how.max_new_tokens, dtype=torch.float64)

    def _start(self, numbers: list[int]) -> Rows | None:
        """Return rows with their first tokens; equal prompts are computed once."""
        prompts = [self.prompts[number] for number in numbers]
        places = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
        index = [places[prompt] for prompt in prompts]
        logits_BV, cache = prefill(self.forward, self.config, list(places))
        uniforms_BT = (
            self._uniforms(len(numbers)) if self.shared_BT is None else self.shared_BT[numbers]
        )
        uniforms = [iter(row) for row in uniforms_BT.tolist()]
        rows = Rows(numbers, uniforms, list(map(len, prompts)), [], cache)
        return self._unfinished(self._with_tokens(rows, logits_BV[index]), index)

    def _step(self, rows: Rows) -> Rows | None:
        """Return the rows with one more token. A finished row does not grow, because the model may
        have no position for another token.
        """
        lengths = [
            length + (not self._finished(number))
            for number, length in zip(rows.numbers, rows.lengths, strict=True)
        ]
        logits_BV = self.forward([[token] for token in rows.tokens], lengths, rows.cache)
        return self._unfinished(self._with_tokens(replace(rows, lengths=lengths), logits_BV))

    def _with_tokens(self, rows: Rows, logits_BV: torch.Tensor) -> Rows:
        """Sample a token for each row, and add it to its completion unless that is finished."""
        tokens = self.sample(logits_BV, [next(uniforms, 0.0) for uniforms in rows.uniforms])
        for number, token in zip(rows.numbers, tokens, strict=True):
            if not self._finished(number):
                self.completions[number].append(token)
        return replace(rows, tokens=tokens)

    def _finished(self, number: int) -> bool:
        ids = self.completions[number]
        return len(ids) == self.how.max_new_tokens or (bool(ids) and ids[-1] in self.stops)

    def _unfinished(self, rows: Rows, index: Sequence[int] | None = None) -> Rows | None:
        """Return the unfinished rows, or all rows if only a few are finished. `index` has their
        rows of the cache, if they are not in order.
        """
        places = [place for place, number in enumerate(rows.numbers) if not self._finished(number)]
        if not places:
            return None
        if index is None and len(places) > (1 - ENDED) * len(rows.numbers):
            return rows
        return select(rows, places, places if index is None else [index[place] for place in places])


def forward_function(model: PreTrainedModel, pad: int) -> Forward:
    """Return the model's forward pass as a function of new ids, row lengths and the cache, which
    the function extends.

    Shorter rows of new ids are padded on the left, which is only correct with an empty cache.
    """
    import torch

    known = inspect.signature(model.forward).parameters
    last = {"logits_to_keep": 1} if "logits_to_keep" in known else {}

    def forward(
        ids: Sequence[Sequence[int]], lengths: Sequence[int], cache: DynamicCache
    ) -> torch.Tensor:
        new = max(map(len, ids))
        width = cache.get_seq_length() + new
        ids_BN = torch.tensor(
            [[pad] * (new - len(row)) + list(row) for row in ids], device=model.device
        )
        columns_1L = torch.arange(width, device=model.device)[None]
        padding_B1 = width - torch.tensor(lengths, device=model.device)[:, None]
        inputs = {
            # attention is faster without a mask
            "attention_mask": (columns_1L >= padding_B1).long() if min(lengths) < width else None
        }
        if "position_ids" in known:
            inputs["position_ids"] = (columns_1L[:, -new:] - padding_B1).clamp(min=0)
        return model(
            input_ids=ids_BN, past_key_values=cache, use_cache=True, **inputs, **last
        ).logits[:, -1]

    return forward


def prefill(
    forward: Forward, config: PretrainedConfig, prompts: Sequence[Prompt]
) -> tuple[torch.Tensor, DynamicCache]:
    """Return the logits after each of these distinct prompts, (B, V), and a cache with a row for
    each.

    If many prompts have the same beginning, the distinct beginnings are computed first, and then
    the tail of every prompt.
    """
    from transformers import DynamicCache

    lengths = [len(prompt) for prompt in prompts]
    if not (tail := tail_length(prompts)):
        return forward(prompts, lengths, cache := DynamicCache(config=config)), cache
    heads = {prompt[:-tail]: None for prompt in prompts}
    places = {head: place for place, head in enumerate(heads)}
    _, cache = prefill(forward, config, list(heads))
    move(cache, [places[prompt[:-tail]] for prompt in prompts], max(lengths) - tail)
    return forward([prompt[-tail:] for prompt in prompts], lengths, cache), cache


def tail_length(prompts: Sequence[Prompt]) -> int:
    """Return the number of last tokens to compute separately for each prompt, so that the fewest
    tokens are computed in total.

    Returns 0 if this saves less time than another forward pass takes.
    """
    widest, narrowest = max(map(len, prompts)), min(map(len, prompts))

    def computed(tail: int) -> int:
        return len({prompt[:-tail] for prompt in prompts}) * (widest - tail) + len(prompts) * tail

    # not every length is tried: each one hashes all prompts
    best = min((n for n in range(1, narrowest) if n <= 16 or n % 16 == 0), key=computed, default=0)
    return best if best and widest * len(prompts) - computed(best) >= PASS else 0


def select(rows: Rows, places: Sequence[int], index: Sequence[int]) -> Rows:
    """Return the rows at `places`, whose keys and values are the rows `index` of the cache."""
    lengths = [rows.lengths[place] for place in places]
    move(rows.cache, index, max(lengths))
    return Rows(
        [rows.numbers[place] for place in places],
        [rows.uniforms[place] for place in places],
        lengths,
        [rows.tokens[place] for place in places],
        rows.cache,
    )


def move(cache: DynamicCache, index: Sequence[int], width: int) -> None:
    """Move row `index[n]` of the cache to row n, and keep only the last `width` columns."""
    import torch

    if list(index) == list(range(len(cache.layers[0].keys))) and width == cache.get_seq_length():
        return  # unchanged, so nothing is copied
    for layer in cache.layers:
        index_B = torch.tensor(index, device=layer.keys.device)
        layer.keys = layer.keys[:, :, -width:].index_select(0, index_B)
        layer.values = layer.values[:, :, -width:].index_select(0, index_B)


def concatenate(rows: Rows | None, more: Rows | None) -> Rows | None:
    """Return the rows of both arguments, in the cache of the first."""
    import torch
    from torch.nn.functional import pad

    if rows is None or more is None:
        return rows or more
    width = max(rows.lengths + more.lengths)

    def stacked(*parts: torch.Tensor) -> torch.Tensor:
        """Return all rows, padded or cut on the left to the same width."""
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


def token_sampler(how: Sampling) -> SampleTokens:
    """Return the function that samples the next tokens; greedy decoding ignores the numbers.

    Temperature and top-p are those of transformers. `torch.multinomial` would need a random number
    for every token of the vocabulary; here one for each row is enough.
    """
    import torch
    from transformers import TemperatureLogitsWarper, TopPLogitsWarper

    if how.greedy:
        return lambda logits_BV, _: logits_BV.argmax(dim=-1).tolist()
    processors: list[Callable[[None, torch.Tensor], torch.Tensor]] = []
    if how.temperature != 1.0:
        processors.append(TemperatureLogitsWarper(float(how.temperature)))
    if how.top_p < 1.0:
        processors.append(TopPLogitsWarper(how.top_p))

    def sample(logits_BV: torch.Tensor, uniforms: Sequence[float]) -> list[int]:
        scores_BV = logits_BV.float()
        for process in processors:
            scores_BV = process(None, scores_BV)
        uniforms_B1 = torch.tensor(uniforms, dtype=torch.float64, device=scores_BV.device)[:, None]
        return inverse_cdf(torch.softmax(scores_BV, dim=-1), uniforms_B1)

    return sample


def inverse_cdf(probabilities_BV: torch.Tensor, uniforms_B1: torch.Tensor) -> list[int]:
    """Return for each row the first token whose cumulative probability exceeds the row's number.

    A token of probability 0 adds nothing to the sum, so it is never sampled. Numbers are below 1
    and scaled to the sum, so rounding cannot lead past the last token. The sums are in double
    precision: in single precision, tokens with a probability below 6e-8 would never be sampled.

    Raises:
        WorkbenchError: a probability is NaN.
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
            "the policy's probabilities are NaN: its weights have diverged; lower the learning rate"
        )
    return ids
