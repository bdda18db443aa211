"""Compute each distinct prompt of a batch once (Prefix Grouper, arXiv 2506.05433).

In GRPO the responses of a group share their prompt, so the same prompt would be computed many
times. Here the distinct prompts are computed first. The responses then attend to the keys and
values of their prompt. Gradients also flow through these keys and values.
"""

import inspect
from typing import TYPE_CHECKING

from workbench.policies.decode import plain_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor
    from transformers import PreTrainedModel
    from transformers.modeling_outputs import CausalLMOutput


def shared_prefix(model: "PreTrainedModel") -> "Callable[..., CausalLMOutput]":
    """Return a replacement for `model` that computes each distinct prompt of a batch once.

    The replacement is called like `model`. It returns the same last `logits_to_keep` logits, except
    for rounding. Some models are returned unchanged, such as models with gradient checkpointing.
    """
    plain = plain_model(model)
    if (
        plain is None
        or any(getattr(module, "gradient_checkpointing", False) for module in model.modules())
        or not {"logits_to_keep", "position_ids"}
        <= set(inspect.signature(plain.forward).parameters)
    ):
        return model

    def forward(
        input_ids: "Tensor", attention_mask: "Tensor", logits_to_keep: int, **more: object
    ) -> "CausalLMOutput":
        """Return an output whose `logits` are (B, T + 1, V).

        Shapes: B rows, G distinct prompts of P tokens, padded on the left, T = `logits_to_keep` − 1
        tokens of responses, L = P + T, vocabulary V.
        """
        import torch
        from transformers import DynamicCache
        from transformers.modeling_outputs import CausalLMOutput

        length = logits_to_keep - 1
        mask_BP, ids_BT = attention_mask[:, :-length], input_ids[:, -length:]
        # equal prompts may differ in the ids of their padding, so these are set to 0
        prompts_G2P, places_B = torch.stack((input_ids[:, :-length] * mask_BP, mask_BP), 1).unique(
            dim=0, return_inverse=True
        )
        # two passes only save time if there are at least twice as many rows as distinct prompts
        if 2 * len(prompts_G2P) > len(input_ids) or set(more) - {"use_cache"}:
            return model(
                input_ids=input_ids,
                attention_mask=attention_mask,
                logits_to_keep=logits_to_keep,
                **more,
            )
        ids_GP, mask_GP = prompts_G2P.unbind(1)
        cache = DynamicCache(config=plain.config)
        caching = {"past_key_values": cache, "use_cache": True}
        positions_GP, positions_BL = (
            (mask.cumsum(1) - 1).clamp(min=0) for mask in (mask_GP, attention_mask)
        )
        first_G1V = model(
            input_ids=ids_GP,
            attention_mask=mask_GP,
            position_ids=positions_GP,
            logits_to_keep=1,
            **caching,
        ).logits
        # copies the keys and values of its prompt to each row, differentiably
        cache.reorder_cache(places_B)
        logits_BTV = model(
            input_ids=ids_BT,
            attention_mask=attention_mask,
            position_ids=positions_BL[:, -length:],
            **caching,
        ).logits
        return CausalLMOutput(logits=torch.cat((first_G1V[places_B], logits_BTV), 1))

    return forward
