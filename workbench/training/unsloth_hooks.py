"""Handle the differences between Unsloth's GRPO trainer and TRL's.

Unsloth lacks some settings (see `choose_unsloth`), and its token tensors have other columns. B is
the number of responses, T the number of tokens of the longest response.

* TRL's columns: tensors are (B, T), and column 0 has the first sampled token.
* Unsloth's columns: tensors are (B, T + W). W is the largest left padding of a prompt, in tokens. A
  response whose prompt has p tokens of padding starts in column W − p.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.training.grpo_config import GRPO
from workbench.types import WorkbenchError

if TYPE_CHECKING:
    from torch import Tensor

    Batch = Mapping[str, Tensor]  # TRL's inputs of the loss

# TRL's keys of log-probabilities that are computed before the loss
STORED_LOGPROBS = ("old_per_token_logps", "ref_per_token_logps")


def check_patched(trainer: object) -> None:
    """Check that an Unsloth model's trainer is derived from Unsloth's own `trl.GRPOTrainer`.

    On its import, Unsloth replaces `trl.GRPOTrainer`. A subclass that was defined earlier is still
    derived from TRL's original class.

    Raises:
        WorkbenchError: TRL's trainer was used in this process before Unsloth was imported.
    """
    import trl

    if not isinstance(trainer, trl.GRPOTrainer):
        raise WorkbenchError(
            "Unsloth was imported after TRL's trainer was used in this process and cannot patch it"
            " any more: train in a new process"
        )


def choose_unsloth(config: GRPO, unsloth: bool | None) -> bool | None:
    """Return `unsloth`, or False if Unsloth's trainer does not support the training.

    Unsloth's trainer does not support several processes, nor some settings, such as `redraws` and
    `vllm`.

    Args:
        unsloth: True requires Unsloth, False excludes it, None uses it if it runs here.

    Raises:
        WorkbenchError: Unsloth does not support the training, but is required or already imported.
    """
    lacking = {
        "grpo.importance_sampling=trajectory": config.importance_sampling == "trajectory",
        "grpo.entropy": config.entropy,
        "grpo.self_certainty": config.self_certainty,
        "grpo.redraws": config.redraws,
        "grpo.vllm": config.vllm != "none",
        "several processes": int(os.environ.get("WORLD_SIZE", "1")) > 1,
    }
    used = ", ".join(name for name, value in lacking.items() if value)
    if not used:
        return unsloth
    if unsloth:
        raise WorkbenchError(
            f"unsloth is True, but Unsloth's trainer does not support {used}: set unsloth to None,"
            " or leave these settings out"
        )
    if "unsloth" in sys.modules:
        raise WorkbenchError(
            f"Unsloth was imported in this process, and its trainer does not support {used}: train"
            " in a process without Unsloth, or leave these settings out"
        )
    return False


def loss_inputs(batch: Batch) -> dict[str, Tensor]:
    """Return TRL's batch in the form that Unsloth's loss reads.

    Advantages are converted by `left_aligned`. The completion mask is copied to `tool_mask`, the
    only mask that Unsloth reads from the batch.
    """
    # Unsloth computes the completion mask again from the ids. The only mask that it reads from the
    # batch is `tool_mask`.
    return {**batch, "advantages": left_aligned(batch), "tool_mask": batch["completion_mask"]}


def left_aligned(batch: Batch) -> Tensor:
    """Return the advantages of a batch, (B, T), in the columns of Unsloth's trainer, (B, T + W).

    B is the number of responses, T the number of tokens of the longest response, and W the largest
    left padding of a prompt, in tokens. A response whose prompt has p tokens of padding starts in
    column W − p. Advantages per response, (B,), are returned unchanged.
    """
    advantages_BT = batch["advantages"]
    if advantages_BT.dim() == 1:
        return advantages_BT
    columns_BT, width = _columns(batch)
    rows, length = advantages_BT.shape
    return advantages_BT.new_zeros(rows, length + width).scatter_(1, columns_BT, advantages_BT)


def right_aligned(batch: Batch) -> dict[str, Tensor]:
    """Return the batch with its log-probabilities moved from Unsloth's columns to TRL's.

    The tensors "old_per_token_logps" and "ref_per_token_logps" are moved, if the batch has them.
    Their shape changes from (B, T + W) to (B, T), for B responses of at most T tokens. W is the
    largest left padding of a prompt, in tokens. In Unsloth's columns, a response whose prompt has p
    tokens of padding starts in column W − p.
    """
    columns_BT, _ = _columns(batch)
    return {
        **batch,
        **{
            name: batch[name].gather(1, columns_BT)
            for name in STORED_LOGPROBS
            if batch.get(name) is not None
        },
    }


def _columns(batch: Batch) -> tuple[Tensor, int]:
    """Return the index of Unsloth's column for each sampled token, (B, T), and W.

    W is the largest padding among the rows whose log-probabilities were computed together. If the
    batch has no log-probabilities, these are the rows of the batch.
    """
    import torch

    length = batch["completion_ids"].shape[1]
    padding_B = (batch["prompt_mask"] == 0).sum(1)
    # the loss computes the log-probabilities itself if none are stored
    stored = next((batch[name] for name in STORED_LOGPROBS if batch.get(name) is not None), None)
    width = int(padding_B.max()) if stored is None else stored.shape[1] - length
    return torch.arange(length, device=padding_B.device) + (width - padding_B)[:, None], width
