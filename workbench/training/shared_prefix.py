"""Compute log-probabilities without holding all logits, and each distinct prompt of a batch once.

The latter is Prefix Grouper (arXiv 2506.05433). In GRPO the responses of a group share their
prompt, so the same prompt would be computed many times. Here the distinct prompts are computed
first. The responses then attend to the keys and values of their prompt. Gradients also flow through
these keys and values.
"""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.modeling_outputs import BaseModelOutput

from workbench.policies.decode import plain_model
from workbench.types import JsonMapping

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Logprobs = tuple[Tensor, Tensor | None, None]  # log-probabilities, entropies, no auxiliary loss


def chunked_logprobs(
    compute: Callable[..., Logprobs],
    model: "PreTrainedModel",
    input_ids: Tensor,
    attention_mask: Tensor,
    length: int,
    options: JsonMapping,
) -> Logprobs:
    """Return (log-probabilities, entropies, None) of the response tokens.

    The first two have the shape (B, `length`), for B responses. None takes the place of the
    auxiliary loss, which TRL's function returns there.

    Args:
        compute: TRL's `_chunked_logps`, which never holds the logits of all tokens at once.
        length: number of response columns, the last columns of the batch.
        options: keyword arguments of TRL's `_get_per_token_logps_and_entropies`. `batch_size` is
            the number of rows to compute at once (None: all). Without `compute_entropy`, the
            entropies are None.
    """
    part = shared_prefix(model, length)
    more = {key: options[key] for key in options.keys() - {"batch_size", "compute_aux_loss"}}
    size = options.get("batch_size") or len(input_ids)
    parts = [
        compute(part, *rows, length, **more)
        for rows in zip(input_ids.split(size), attention_mask.split(size), strict=True)
    ]
    logprobs, entropies, _ = zip(*parts, strict=True)
    return torch.cat(logprobs), None if entropies[0] is None else torch.cat(entropies), None


def shared_prefix(model: "PreTrainedModel", length: int) -> "PreTrainedModel | SharedPrefix":
    """Return a replacement for `model` that computes each distinct prompt of a batch only once.

    The model is returned unchanged if it uses gradient checkpointing, if its forward pass takes no
    `position_ids`, or if `decode.plain_model` does not support it, for example because of
    sliding-window attention.

    Args:
        length: number of response columns, the last columns of a batch.
    """
    plain = plain_model(model)
    if (
        plain is None
        or any(getattr(module, "gradient_checkpointing", False) for module in model.modules())
        or "position_ids" not in inspect.signature(plain.base_model.forward).parameters
    ):
        return model
    return SharedPrefix(plain, length)


class SharedPrefix(torch.nn.Module):
    """Stand-in for a model, with the attributes that TRL's `_chunked_logps` reads.

    These are `config`, `get_output_embeddings` and `base_model`. The first two are those of the
    model without its PEFT wrapper.
    """

    def __init__(self, model: "PreTrainedModel", length: int) -> None:
        super().__init__()
        self.model, self.length = model, length
        self.config, self.get_output_embeddings = model.config, model.get_output_embeddings

    def base_model(
        self, input_ids: Tensor, attention_mask: Tensor, use_cache: bool = False
    ) -> BaseModelOutput:
        """Return the decoder's last hidden states, (B, T + 1, H), for the last T + 1 columns.

        They equal the result of a usual forward pass, except for rounding.

        Shapes: B rows of L = P + T columns. The first P columns are prompts, padded on the left, G
        of them distinct. The last T columns are responses. H is the hidden size.
        """
        decoder, length = self.model.base_model, self.length
        mask_BP, ids_BT = attention_mask[:, :-length], input_ids[:, -length:]
        # equal prompts may differ in the ids of their padding, so these are set to 0
        prompts_G2P, places_B = torch.stack((input_ids[:, :-length] * mask_BP, mask_BP), 1).unique(
            dim=0, return_inverse=True
        )
        # two passes only save time if there are at least twice as many rows as distinct prompts
        if 2 * len(prompts_G2P) > len(input_ids):
            hidden_BLH = decoder(
                input_ids=input_ids, attention_mask=attention_mask, use_cache=False
            ).last_hidden_state
            return BaseModelOutput(last_hidden_state=hidden_BLH[:, -length - 1 :])
        ids_GP, mask_GP = prompts_G2P.unbind(1)
        cache = DynamicCache(config=self.config)
        caching = {"past_key_values": cache, "use_cache": True}
        positions_GP, positions_BL = (
            (mask.cumsum(1) - 1).clamp(min=0) for mask in (mask_GP, attention_mask)
        )
        hidden_GPH = decoder(
            input_ids=ids_GP, attention_mask=mask_GP, position_ids=positions_GP, **caching
        ).last_hidden_state
        # copies the keys and values of its prompt to each row, differentiably
        cache.reorder_cache(places_B)
        hidden_BTH = decoder(
            input_ids=ids_BT,
            attention_mask=attention_mask,
            position_ids=positions_BL[:, -length:],
            **caching,
        ).last_hidden_state
        return BaseModelOutput(
            last_hidden_state=torch.cat((hidden_GPH[places_B, -1:], hidden_BTH), 1)
        )
