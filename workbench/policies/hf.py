"""transformers: prompts -> sampled token ids, on CPU or GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from workbench.policies.decode import Prompt, decode, plain_model
from workbench.policies.generate import Completion, Sampling

# responses at once, and of a model with fewer parameters
ROWS, ROWS_OF_SMALL, SMALL = 128, 512, 20_000_000
SCORED = 16  # rows whose logits are held at once: rows × tokens × vocabulary

T = TypeVar("T")


def default_rows(parameters: int) -> int:
    """Responses that are computed at once unless a batch size is given."""
    return ROWS_OF_SMALL if parameters < SMALL else ROWS


def complete(
    model: Any, pad: int, prompts: list[list[int]], stop_ids: Sequence[int], how: Sampling
) -> list[Completion]:
    """A completion for each prompt, in order: its sampled ids, and their log-probabilities where
    `how` asks for them.

    Sampling starts from `how.seed`, and the caller's random state is left as it was. With
    `how.seeds` each question's samples are computed by themselves, so that not even rounding
    depends on the others.
    """
    import torch

    if how.seeds:
        groups = [
            prompts[start : start + how.samples] for start in range(0, len(prompts), how.samples)
        ]
        alone = [replace(how, seed=seed, seeds=()) for seed in how.seeds]
        return [
            one
            for group, own in zip(groups, alone, strict=True)
            for one in complete(model, pad, group, stop_ids, own)
        ]

    order = longest_first(prompts)
    how = replace(how, rows=tuple(how.rows[index] for index in order)) if how.rows else how
    sorted_prompts = [tuple(prompts[index]) for index in order]
    scores: dict[int, tuple[float, ...]] = {}
    with (
        torch.random.fork_rng(devices=[model.device] if model.device.type == "cuda" else []),
        torch.no_grad(),
    ):
        torch.manual_seed(how.seed)
        plain = plain_model(model)
        engine = by_generate if plain is None else decode
        size = how.batch_size or default_rows(sum(p.numel() for p in model.parameters()))
        completions = engine(
            model if plain is None else plain, pad, sorted_prompts, stop_ids, how, size
        )
        sampled = dict(zip(order, completions, strict=True))
        for batch in _batches(order, SCORED) if how.logprobs else ():
            pairs = [(prompts[index], sampled[index]) for index in batch]
            scores.update(zip(batch, token_logprobs(model, pad, pairs), strict=True))
    return [(sampled[index], scores.get(index, ())) for index in range(len(prompts))]


def longest_first(prompts: Sequence[Sequence[int]]) -> list[int]:
    """In which order prompts are begun: being out of memory then shows early, and equal prompts
    and those that begin alike are neighbours."""
    return sorted(range(len(prompts)), key=lambda index: (-len(prompts[index]), prompts[index]))


def token_logprobs(
    model: Any, pad: int, pairs: Sequence[tuple[list[int], list[int]]]
) -> list[tuple[float, ...]]:
    """For each (prompt ids, sampled ids) the log-probability of every sampled id, at temperature
    1.
    """
    import torch

    if not pairs:
        return []
    input_ids_BT, mask_BT = _left_pad(model, pad, [prompt + sampled for prompt, sampled in pairs])
    logits_BTV = model(input_ids=input_ids_BT, attention_mask=mask_BT, use_cache=False).logits[
        :, :-1
    ]
    logprobs_BTV = torch.log_softmax(logits_BTV.float(), dim=-1)
    sampled_BT = logprobs_BTV.gather(-1, input_ids_BT[:, 1:, None]).squeeze(-1)
    return [
        tuple(row[len(row) - len(ids) :].tolist())
        for row, (_, ids) in zip(sampled_BT, pairs, strict=True)
    ]


def by_generate(
    model: Any,
    pad: int,
    prompts: Sequence[Prompt],
    stop_ids: Sequence[int],
    how: Sampling,
    size: int,
) -> list[list[int]]:
    """As `decode`, by transformers' `generate`, which any model has: each batch waits for its
    longest completion.
    """
    from transformers import GenerationConfig

    settings: dict[str, Any] = {"do_sample": False}
    if not how.greedy:
        settings = {
            "do_sample": True,
            "temperature": how.temperature,
            "top_p": how.top_p,
            "top_k": 0,
        }
    config = GenerationConfig(
        max_new_tokens=how.max_new_tokens,
        use_cache=True,
        repetition_penalty=1.0,
        num_beams=1,
        eos_token_id=list(stop_ids),
        pad_token_id=pad,
        **settings,
    )
    completions: list[list[int]] = []
    for batch in _batches(prompts, size):
        input_ids_BT, mask_BT = _left_pad(model, pad, batch)
        output_BT = model.generate(
            input_ids=input_ids_BT, attention_mask=mask_BT, generation_config=config
        )
        completions += [
            _until_stop(row, stop_ids) for row in output_BT[:, input_ids_BT.shape[1] :].tolist()
        ]
    return completions


def _until_stop(ids: list[int], stop_ids: Sequence[int]) -> list[int]:
    """Cut the padding after the first end token; the end token itself stays."""
    return next(
        (ids[: position + 1] for position, token in enumerate(ids) if token in stop_ids), ids
    )


def _left_pad(model: Any, pad: int, sequences: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    import torch

    width = max(len(ids) for ids in sequences)
    ids = [[pad] * (width - len(row)) + list(row) for row in sequences]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in sequences]
    return torch.tensor(ids, device=model.device), torch.tensor(mask, device=model.device)


def _batches(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
