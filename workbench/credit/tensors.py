"""Tensor functions on token rewards, advantages and log-probabilities, shared by the trainers.

Shapes: B responses, T tokens of the longest response. A mask is 1 for the tokens in the loss and 0
for the others, whose values may be NaN or infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from workbench.credit.advantages import Estimator, Rewarded
from workbench.types import Response
from workbench.util.grouping import split_batches

if TYPE_CHECKING:
    from accelerate import Accelerator
    from torch import Tensor


def with_token_stats(response: Response, row: int, **tensors_BT: Tensor | None) -> Response:
    """Return the response with fields such as `logprobs` filled from row `row` of the tensors.

    Each keyword is the name of a field of `Response`; its value is a (B, T) tensor, or None to
    leave the field unchanged.
    """
    count = len(response.token_ids)
    fields: dict[str, Any] = {
        # nine digits distinguish all float32 numbers
        name: tuple(float(f"{value:.9g}") for value in values_BT[row, :count].tolist())
        for name, values_BT in tensors_BT.items()
        if values_BT is not None
    }
    return replace(response, **fields)


def token_advantages(
    rows: Sequence[Rewarded], group_size: int, estimator: Estimator
) -> list[tuple[float, ...]]:
    """Return the token advantages of each row; `group_size` successive rows form a group."""
    return list(chain.from_iterable(estimator(split_batches(rows, group_size))))


def minus_kl(row: Rewarded, penalties: Sequence[float], values: Sequence[float]) -> Rewarded:
    """Return a row with a KL penalty subtracted from its token rewards, and the critic's values.

    A row that was not scored is returned unchanged.
    """
    if row.rewards is None:
        return row
    # the penalties of a padded row are longer than its rewards
    rewards = tuple(
        reward - penalty for reward, penalty in zip(row.rewards, penalties, strict=False)
    )
    return replace(row, rewards=rewards, values=tuple(values[: row.length]))


def as_tensor(rows: Sequence[Sequence[float]], like_BT: Tensor) -> Tensor:
    """Return rows of different lengths as one float32 tensor (B, T), padded with 0 on the right.

    The tensor has the shape and the device of `like_BT`.
    """
    import torch

    filled_BT = torch.zeros(like_BT.shape, dtype=torch.float32)
    for row, values in enumerate(rows):
        filled_BT[row, : len(values)] = torch.tensor(values, dtype=torch.float32)
    return filled_BT.to(like_BT.device)


def without(
    rows: Sequence[int], batch: dict[str, Tensor], accelerator: Accelerator
) -> dict[str, Tensor]:
    """Return the batch with all tokens of the rows `rows` masked.

    Masked tokens do not count in the loss, in the number of tokens that divides the loss, or in the
    KL.
    """
    mask_BT = batch["completion_mask"].clone()
    mask_BT[list(rows)] = 0
    # TRL's loss multiplies both masks
    loss_mask_BT = mask_BT * batch["tool_mask"] if "tool_mask" in batch else mask_BT
    return {
        **batch,
        "completion_mask": mask_BT,
        # TRL divides the loss by this number, which counts the tokens of all processes
        "num_items_in_batch": accelerator.gather(loss_mask_BT.sum()).sum(),
    }


def masked(values_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Set the values to 0 where the mask is 0, also NaN and ∞ (whose product with 0 is NaN)."""
    return values_BT.masked_fill(mask_BT == 0, 0)


def masked_mean(values_BT: Tensor, mask_BT: Tensor) -> Tensor:
    return masked(values_BT, mask_BT).sum() / mask_BT.sum().clamp(min=1)


def whitened(advantages_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return the advantages with mean 0 and variance 1 over the unmasked tokens."""
    centred_BT = advantages_BT - masked_mean(advantages_BT, mask_BT)
    return masked(centred_BT * (masked_mean(centred_BT**2, mask_BT) + 1e-8).rsqrt(), mask_BT)


def ratio_of(logprobs_BT: Tensor, old_logprobs_BT: Tensor) -> Tensor:
    """Return the probability ratios exp(new − old), clamped between e⁻²⁰ and e²⁰."""
    return (logprobs_BT - old_logprobs_BT).clamp(-20, 20).exp()


def whole_responses(logprobs_BT: Tensor, old_logprobs_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return "old" log-probabilities that turn a token-level loss into a response-level loss.

    A token-level loss computes the ratio exp(new − old) of each token. If `old` is replaced by the
    returned values, every token of a response o gets the ratio of the whole response instead,
    π(o) / π_old(o) = exp Σ_t log(π / π_old), with its gradient.

    The ratio is clamped between e⁻²⁰ and e²⁰ *(ours)*, because a sum over hundreds of tokens can
    overflow; beyond the bounds its gradient is 0. For negative advantages the loss needs a smaller
    bound of its own, because the clipped surrogate then takes the unclipped ratio.
    """
    # the sum has a gradient, so the difference from the new log-probabilities has it too
    log_ratio_B = masked(logprobs_BT.float() - old_logprobs_BT, mask_BT).sum(1).clamp(-20, 20)
    return logprobs_BT.float() - log_ratio_B[:, None]


def kl_of(logprobs_BT: Tensor, ref_logprobs_BT: Tensor, kind: str) -> Tensor:
    """Estimate the KL divergence from a reference policy for each token, clamped to ±10.

    With the token's probabilities π under the policy and ρ under the reference policy, the
    estimator `kind` "k1" is log(π/ρ), and "k3" is ρ/π − 1 − log(ρ/π).
    """
    log_ratio_BT = (ref_logprobs_BT - logprobs_BT).clamp(-20, 20)  # exp must not overflow
    kl_BT = -log_ratio_BT if kind == "k1" else log_ratio_BT.exp() - 1 - log_ratio_BT
    return kl_BT.clamp(-10, 10)
