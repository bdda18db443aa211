"""Complete prompts with transformers, on a CPU or GPU: the engine `hf`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from workbench.policies.decode import Decoding, Prompt, forward_function, plain_model
from workbench.policies.generate import Completion, Sampling
from workbench.util.grouping import split_batches

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedModel

# default batch size, and the default for models with fewer than SMALL parameters
ROWS, ROWS_OF_SMALL, SMALL = 128, 512, 20_000_000
SCORED = 16  # rows whose logits are computed at once; memory is rows × tokens × vocabulary


def default_rows(parameters: int) -> int:
    """Return the default batch size of a model with this number of parameters."""
    return ROWS_OF_SMALL if parameters < SMALL else ROWS


def complete(
    model: PreTrainedModel,
    pad: int,
    prompts: Sequence[list[int]],
    stop_ids: Sequence[int],
    how: Sampling,
) -> list[Completion]:
    """Return a completion (token ids, log-probabilities) for each prompt, in order.

    The log-probabilities are () unless `how.logprobs` is set. `pad` is the id of the padding token.
    The random state of torch is the same after the call as before.
    """
    import torch

    if how.seeds:  # a batch per question: even rounding does not depend on the other questions
        return [
            completion
            for group, seed in zip(split_batches(prompts, how.samples), how.seeds, strict=True)
            for completion in complete(
                model, pad, group, stop_ids, replace(how, seed=seed, seeds=())
            )
        ]
    order = longest_first(prompts)
    how = replace(how, rows=tuple(how.rows[index] for index in order)) if how.rows else how
    sorted_prompts = [tuple(prompts[index]) for index in order]
    scores: dict[int, tuple[float, ...]] = {}
    with (
        # an evaluation in a training must not change the trainer's random numbers
        torch.random.fork_rng(devices=[model.device] if model.device.type == "cuda" else []),
        torch.no_grad(),
    ):
        torch.manual_seed(how.seed)
        size = how.batch_size or default_rows(sum(p.numel() for p in model.parameters()))
        if (plain := plain_model(model)) is None:
            completions = by_generate(model, pad, sorted_prompts, stop_ids, how, size)
        else:
            forward = forward_function(plain, pad)
            decoding = Decoding(forward, plain.config, sorted_prompts, stop_ids, how)
            completions = decoding.run(size)
        sampled = dict(zip(order, completions, strict=True))
        for batch in split_batches(order, SCORED) if how.logprobs else ():
            pairs = [(prompts[index], sampled[index]) for index in batch]
            scores.update(zip(batch, token_logprobs(model, pad, pairs), strict=True))
    return [(sampled[index], scores.get(index, ())) for index in range(len(prompts))]


def longest_first(prompts: Sequence[Sequence[int]]) -> list[int]:
    """Return the indices of the prompts in the order in which they are decoded.

    Long prompts come first, so that a lack of memory shows early. Prompts of equal length are
    sorted, so that prompts with the same beginning are neighbours: the beginning is computed once.
    """
    return sorted(range(len(prompts)), key=lambda index: (-len(prompts[index]), prompts[index]))


def token_logprobs(
    model: PreTrainedModel, pad: int, pairs: Sequence[tuple[list[int], list[int]]]
) -> list[tuple[float, ...]]:
    """Return the log-probability of each sampled token, at temperature 1.

    The result has one tuple for each pair (prompt ids, sampled ids).
    """
    import torch

    return [
        tuple(
            logits_TV.log_softmax(-1)[
                torch.arange(len(ids)), torch.tensor(ids, dtype=torch.long)
            ].tolist()
        )
        for logits_TV, (_, ids) in zip(sampled_logits(model, pad, pairs), pairs, strict=True)
    ]


def sampled_logits(
    model: PreTrainedModel, pad: int, pairs: Sequence[tuple[list[int], list[int]]]
) -> list[Tensor]:
    """Return the logits that predict the sampled tokens, for each pair (prompt ids, sampled ids).

    Each tensor is float32, (T, V), for T sampled ids and a vocabulary of V ids.
    """
    rows = [prompt + sampled for prompt, sampled in pairs]
    input_ids_BT, mask_BT = padded(rows, pad, model.device, left=True)
    output = model(input_ids=input_ids_BT, attention_mask=mask_BT, use_cache=False)
    # the logits of a column predict the next token
    return [
        logits_TV[len(logits_TV) - 1 - len(ids) : -1].float()
        for logits_TV, (_, ids) in zip(output.logits, pairs, strict=True)
    ]


def has_linear_head(model: PreTrainedModel) -> bool:
    """Return whether the logits are a plain linear layer applied to the last hidden states.

    The result is False if the model also scales or caps its logits, or if its output layer has an
    adapter.
    """
    import torch

    head, config = model.get_output_embeddings(), model.config.get_text_config()
    # TRL reads these settings, even of models that ignore them
    changes = ("logit_scale", "output_multiplier", "final_logit_softcapping")
    if type(head) is not torch.nn.Linear or any(getattr(config, name, None) for name in changes):
        return False
    with torch.no_grad():
        output = model(
            # two ids, because the embedding of a padding token is 0
            torch.tensor([[1, 2]], device=model.device),
            output_hidden_states=True,
            use_cache=False,
        )
        return bool(
            output.hidden_states and torch.equal(output.logits, head(output.hidden_states[-1]))
        )


def by_generate(
    model: PreTrainedModel,
    pad: int,
    prompts: Sequence[Prompt],
    stop_ids: Sequence[int],
    how: Sampling,
    size: int,
) -> list[list[int]]:
    """Return the sampled token ids for each prompt, by transformers' `generate`.

    It is used for models that `decode` cannot run. Each batch of `size` prompts takes as long as
    its longest completion.
    """
    from transformers import GenerationConfig

    settings = (
        {} if how.greedy else {"temperature": how.temperature, "top_p": how.top_p, "top_k": 0}
    )
    config = GenerationConfig(
        # all of them are set, because the model's own defaults would apply otherwise
        do_sample=not how.greedy,
        max_new_tokens=how.max_new_tokens,
        use_cache=True,
        repetition_penalty=1.0,
        num_beams=1,
        eos_token_id=list(stop_ids),
        pad_token_id=pad,
        **settings,
    )
    completions: list[list[int]] = []
    for batch in split_batches(prompts, size):
        input_ids_BT, mask_BT = padded(batch, pad, model.device, left=True)
        output_BT = model.generate(
            input_ids=input_ids_BT, attention_mask=mask_BT, generation_config=config
        )
        for row in output_BT[:, input_ids_BT.shape[1] :].tolist():
            ends = [end for end, token in enumerate(row, start=1) if token in stop_ids]
            completions.append(row[: ends[0]] if ends else row)  # without the padding at the end
    return completions


def padded(
    rows: Sequence[Sequence[int]], pad: int, device: torch.device, *, left: bool
) -> tuple[Tensor, Tensor]:
    """Pad rows of token ids to the longest row; return ids and attention mask, (B, T) each.

    The padding is on the left if `left` is True, otherwise on the right.
    """
    import torch
    from torch.nn.utils.rnn import pad_sequence

    pad_rows = partial(pad_sequence, batch_first=True, padding_side="left" if left else "right")
    ids = [torch.tensor(row, dtype=torch.long) for row in rows]
    mask = [torch.ones_like(row) for row in ids]
    return pad_rows(ids, padding_value=pad).to(device), pad_rows(mask).to(device)
