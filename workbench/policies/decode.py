"""Sample completions token by token from a transformers model with full attention.

The batch is continuous: a finished completion leaves it, and the next prompt takes its place. The
common beginning of several prompts is computed once.

The key-value cache has a row for each completion in the batch. Shorter rows are padded on the left,
and the padding is masked.

Shapes: B rows, N new tokens, L cached and new tokens together, V ids of the vocabulary, T tokens of
the longest completion.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.policies.generate import Sampling
from workbench.types import WorkbenchError

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import DynamicCache, PretrainedConfig, PreTrainedModel

    # logits (B, V), a number in [0, 1) for each row -> token ids
    SampleTokens = Callable[[Tensor, Sequence[float]], list[int]]
    # new ids, length of each row including its new ids, cache -> logits after the last ids (B, V)
    Forward = Callable[[Sequence[Sequence[int]], Sequence[int], DynamicCache], Tensor]

# share of free rows at which the next prompts start: prompts that start together share a pass
FREE = 0.25
# share of finished rows at which they are removed; removing rows copies the cache
ENDED = 0.125
# fixed cost of a forward pass, as the number of tokens that take as long
PASS = 256

Prompt = tuple[int, ...]


@dataclass
class Row:
    """One completion in the batch, with its row of the key-value cache."""

    number: int  # index of the prompt
    uniforms: Iterator[float]  # random numbers for sampling the tokens
    length: int  # tokens in the cache
    token: int = 0  # sampled last, not in the cache yet


def plain_model(model: PreTrainedModel) -> PreTrainedModel | None:
    """Return `model` without its PEFT wrapper, or None if `decode` cannot run the model.

    `decode` needs a decoder with full attention in every layer and transformers' default key-value
    cache. Of PEFT's adapters, only LoRA is supported (not aLoRA).
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


@dataclass
class Decoding:
    """Sampler of one completion for each prompt, with one key-value cache for the batch.

    The prompts enter the batch in the given order.

    The random numbers of a completion come from torch's CPU generator. They depend on the index of
    its prompt, not on the texts of other prompts.
    """

    forward: Forward
    config: PretrainedConfig
    prompts: Sequence[Prompt]
    stop_ids: Sequence[int]
    how: Sampling

    def __post_init__(self) -> None:
        self.sample, rows = token_sampler(self.how), list(self.how.rows)
        self.completions: list[list[int]] = [[] for _ in self.prompts]
        # row n of the cache has the keys and values of `self.rows[n]`; a layer's tensors have the
        # shape (rows, heads, columns, size)
        self.rows: list[Row] = []
        self.cache: DynamicCache = None
        # if several processes share a batch: the batch's random numbers for these prompts
        self.shared_BT = self._uniforms(max(rows) + 1)[rows] if rows else None

    def run(self, size: int) -> list[list[int]]:
        """Return the sampled token ids for each prompt, with the end token if one was sampled.

        `size` is the largest number of completions in the batch.
        """
        waiting = deque(range(len(self.prompts)))
        while waiting or self.rows:
            free = size - len(self.rows)
            if waiting and free >= FREE * size:
                self._start([waiting.popleft() for _ in range(min(free, len(waiting)))])
            else:
                self._step()
        return self.completions

    def _uniforms(self, count: int) -> Tensor:
        import torch

        return torch.rand(count, self.how.max_new_tokens, dtype=torch.float64)

    def _start(self, numbers: list[int]) -> None:
        """Sample the first token of each prompt, and add a row for each unfinished completion.

        `numbers` are the indices of the prompts. Equal prompts are computed once.
        """
        prompts = [self.prompts[number] for number in numbers]
        # the responses of a group have the same prompt
        places = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
        index = [places[prompt] for prompt in prompts]
        logits_BV, cache = prefill(self.forward, self.config, list(places))
        uniforms_BT = (
            self._uniforms(len(numbers)) if self.shared_BT is None else self.shared_BT[numbers]
        )
        rows = [
            Row(number, iter(uniforms), len(prompt))
            for number, uniforms, prompt in zip(numbers, uniforms_BT.tolist(), prompts, strict=True)
        ]
        unfinished = self._add_tokens(rows, logits_BV[index])
        if not unfinished:
            return
        rows = [rows[place] for place in unfinished]
        move(cache, [index[place] for place in unfinished], max(row.length for row in rows))
        if self.rows:
            concatenate(self.cache, cache, max(row.length for row in self.rows + rows))
        else:
            self.cache = cache
        self.rows += rows

    def _step(self) -> None:
        """Sample a token for each row; remove finished rows if their share is at least `ENDED`."""
        for row in self.rows:
            # a finished row does not grow: the model may have no position for another token
            row.length += not self._finished(row)
        lengths = [row.length for row in self.rows]
        logits_BV = self.forward([[row.token] for row in self.rows], lengths, self.cache)
        unfinished = self._add_tokens(self.rows, logits_BV)
        if len(unfinished) <= (1 - ENDED) * len(self.rows):
            self.rows = [self.rows[place] for place in unfinished]
            if self.rows:
                move(self.cache, unfinished, max(row.length for row in self.rows))

    def _add_tokens(self, rows: list[Row], logits_BV: Tensor) -> list[int]:
        """Append a sampled token to each unfinished completion of `rows`.

        Return the indices of the rows that are still unfinished. `logits_BV` has the logits of all
        `rows`, in order.
        """
        tokens = self.sample(logits_BV, [next(row.uniforms, 0.0) for row in rows])
        for row, token in zip(rows, tokens, strict=True):
            row.token = token
            if not self._finished(row):
                self.completions[row.number].append(token)
        return [place for place, row in enumerate(rows) if not self._finished(row)]

    def _finished(self, row: Row) -> bool:
        ids = self.completions[row.number]
        return len(ids) == self.how.max_new_tokens or (bool(ids) and ids[-1] in self.stop_ids)


def forward_function(model: PreTrainedModel, pad: int) -> Forward:
    """Return a function that runs the model on new token ids with a key-value cache.

    Its arguments are the new ids of each row, the length of each row, and the cache. The length
    counts cached and new tokens. The function adds the new tokens to the cache, and returns the
    logits (B, V) after the last id of each row.

    If the cache is empty, rows may have different numbers of new ids, and are padded on the left.
    Otherwise all rows need the same number.
    """
    import torch

    known = inspect.signature(model.forward).parameters
    last = {"logits_to_keep": 1} if "logits_to_keep" in known else {}

    def forward(
        ids: Sequence[Sequence[int]], lengths: Sequence[int], cache: DynamicCache
    ) -> Tensor:
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
) -> tuple[Tensor, DynamicCache]:
    """Compute the key-value cache of the prompts, and the logits (B, V) after each prompt.

    The prompts must be distinct. The cache has a row for each prompt. A beginning that many prompts
    share is computed once.
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
    """Return how many tokens at the end of each prompt `prefill` computes for that prompt alone.

    The tokens before them are the beginning of the prompt. `prefill` computes each distinct
    beginning once. The returned number makes the total of computed tokens about as small as
    possible. If this saves fewer than 256 (`PASS`) tokens, return 0: `prefill` then computes each
    prompt as a whole.
    """
    widest, narrowest = max(map(len, prompts)), min(map(len, prompts))

    def computed(tail: int) -> int:
        return len({prompt[:-tail] for prompt in prompts}) * (widest - tail) + len(prompts) * tail

    # above 16 only multiples of 16 are tried, because each trial hashes all prompts
    best = min((n for n in range(1, narrowest) if n <= 16 or n % 16 == 0), key=computed, default=0)
    return best if best and widest * len(prompts) - computed(best) >= PASS else 0


def move(cache: DynamicCache, index: Sequence[int], width: int) -> None:
    """Reorder the cache in place: row n becomes the former row `index[n]`.

    Only the last `width` tokens of each row remain.
    """
    import torch

    if list(index) == list(range(len(cache.layers[0].keys))) and width == cache.get_seq_length():
        return  # unchanged, so nothing is copied
    for layer in cache.layers:
        index_B = torch.tensor(index, device=layer.keys.device)
        layer.keys = layer.keys[:, :, -width:].index_select(0, index_B)
        layer.values = layer.values[:, :, -width:].index_select(0, index_B)


def concatenate(cache: DynamicCache, more: DynamicCache, width: int) -> None:
    """Append the rows of `more` to `cache` in place.

    All rows are padded on the left to `width` tokens.
    """
    import torch
    from torch.nn.functional import pad

    def stacked(*parts: Tensor) -> Tensor:
        return torch.cat([pad(part, (0, 0, width - part.shape[2], 0)) for part in parts])

    for layer, added in zip(cache.layers, more.layers, strict=True):
        layer.keys = stacked(layer.keys, added.keys)
        layer.values = stacked(layer.values, added.values)


def token_sampler(how: Sampling) -> SampleTokens:
    """Return a function that samples B token ids from logits (B, V) and B random numbers.

    The random numbers are in [0, 1); greedy decoding ignores them. Temperature and top-p are
    applied as in transformers.
    """
    import torch
    from transformers import TemperatureLogitsWarper, TopPLogitsWarper

    if how.greedy:
        return lambda logits_BV, _: logits_BV.argmax(dim=-1).tolist()
    processors: list[Callable[[None, Tensor], Tensor]] = []
    if how.temperature != 1.0:
        processors.append(TemperatureLogitsWarper(float(how.temperature)))
    if how.top_p < 1.0:
        processors.append(TopPLogitsWarper(how.top_p))

    def sample(logits_BV: Tensor, uniforms: Sequence[float]) -> list[int]:
        scores_BV = logits_BV.float()
        for process in processors:
            scores_BV = process(None, scores_BV)
        uniforms_B1 = torch.tensor(uniforms, dtype=torch.float64, device=scores_BV.device)[:, None]
        # not `torch.multinomial`: it needs a random number for every token of the vocabulary
        return inverse_cdf(torch.softmax(scores_BV, dim=-1), uniforms_B1)

    return sample


def inverse_cdf(probabilities_BV: Tensor, uniforms_B1: Tensor) -> list[int]:
    """Sample a token id for each row, by inverting its cumulative distribution.

    The result is the first id whose cumulative probability exceeds the row's random number in [0,
    1). A token of probability 0 is never sampled.

    Raises:
        WorkbenchError: a probability is NaN.
    """
    import torch

    # in single precision, tokens with a probability below 6e-8 would never be sampled
    cumulative_BV = probabilities_BV.cumsum(dim=-1, dtype=torch.float64)
    # times the row's sum, which rounding may leave below 1
    ids: list[int] = (
        torch.searchsorted(cumulative_BV, uniforms_B1 * cumulative_BV[:, -1:], right=True)
        .squeeze(1)
        .tolist()
    )
    if max(ids) >= probabilities_BV.shape[1]:
        raise WorkbenchError(
            "the policy's probabilities are NaN, so its weights have diverged: lower the learning"
            " rate and start the run again"
        )
    return ids
