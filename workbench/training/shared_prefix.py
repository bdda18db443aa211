"""A forward pass that reads a prompt once, however many of its responses are learnt from (Prefix
Grouper, arXiv 2506.05433).

In GRPO a group's responses share their prompt, and short answers are a small part of what a
usual pass reads. Here the distinct prompts are read first, the responses then attend to what was
kept of theirs; gradients go the same way back.
"""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

from workbench.policies.decode import plain_model


def shared_prefix(model: Any) -> Any:
    """What is called as `model` is, and gives the logits of the last `logits_to_keep` places,
    equal but for rounding; `model` itself where that is not possible: its layers are computed
    again in the backward pass, or keep more than keys and values."""
    kept = plain_model(model)
    again = any(getattr(module, "gradient_checkpointing", False) for module in model.modules())
    if (
        kept is None
        or again
        or not {"logits_to_keep", "position_ids"} <= set(inspect.signature(kept.forward).parameters)
    ):
        return model

    def forward(input_ids: Any, attention_mask: Any, logits_to_keep: int, **more: Any) -> Any:
        """(B, P + T) ids, prompts padded on the left, T = logits_to_keep − 1 -> `logits` (B, T +
        1, V).
        """
        import torch
        from transformers import DynamicCache

        length = logits_to_keep - 1
        mask_BP, ids_BT = attention_mask[:, :-length], input_ids[:, -length:]
        asked, places_B = torch.stack((input_ids[:, :-length] * mask_BP, mask_BP), 1).unique(
            dim=0, return_inverse=True
        )
        if 2 * len(asked) > len(input_ids) or set(more) - {"use_cache"}:
            return model(
                input_ids=input_ids,
                attention_mask=attention_mask,
                logits_to_keep=logits_to_keep,
                **more,
            )
        ids_GP, mask_GP = asked.unbind(1)
        cache = DynamicCache(config=kept.config)
        read = {"past_key_values": cache, "use_cache": True}
        at_GP, at_BL = ((mask.cumsum(1) - 1).clamp(min=0) for mask in (mask_GP, attention_mask))
        first_G1V = model(
            input_ids=ids_GP, attention_mask=mask_GP, position_ids=at_GP, logits_to_keep=1, **read
        ).logits
        # differentiable: the keys and values of every row are selected from its prompt's
        cache.reorder_cache(places_B)
        inputs = {
            "input_ids": ids_BT,
            "attention_mask": attention_mask,
            "position_ids": at_BL[:, -length:],
        }
        logits_BTV = model(**inputs, **read).logits
        return SimpleNamespace(logits=torch.cat((first_G1V[places_B], logits_BTV), 1))

    return forward
