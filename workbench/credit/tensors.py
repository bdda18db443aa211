"""Credit in tensors: what every token of a batch is given, between the estimators of
`workbench.credit` and the trainers.

Shapes: B responses, T tokens of the longest. Masks are 1 for what is learnt from; what they hide
may hold anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from workbench.credit.advantages import Estimator, Rewarded
from workbench.types import Response

if TYPE_CHECKING:
    import torch


def with_token_stats(response: Response, row: int, **tensors_BT: torch.Tensor | None) -> Response:
    """The response with its tokens' numbers: row `row` of each tensor, under the name of a
    field.
    """
    count = len(response.token_ids)
    # nine digits tell float32 numbers apart
    found: dict[str, Any] = {
        name: tuple(float(f"{value:.9g}") for value in values_BT[row, :count].tolist())
        for name, values_BT in tensors_BT.items()
        if values_BT is not None
    }
    return replace(response, **found)


def token_advantages(
    rows: Sequence[Rewarded], group_size: int, estimator: Estimator
) -> list[tuple[float, ...]]:
    """Advantages of each row's tokens; `group_size` rows after one another answer one prompt."""
    groups = [rows[start : start + group_size] for start in range(0, len(rows), group_size)]
    return list(chain.from_iterable(estimator(groups)))


def minus_kl(row: Rewarded, penalties: Sequence[float], values: Sequence[float]) -> Rewarded:
    """Subtract a KL penalty from each token reward, and add the critic's values."""
    if row.rewards is None:
        return row
    rewards = tuple(
        reward - penalty for reward, penalty in zip(row.rewards, penalties, strict=False)
    )
    return replace(row, rewards=rewards, values=tuple(values[: row.length]))


def as_tensor(rows: Sequence[Sequence[float]], like_BT: torch.Tensor) -> torch.Tensor:
    """Ragged rows as float32 of the shape of `like_BT`: column t is sampled token t, what is
    beyond a row's end is 0.
    """
    import torch

    filled_BT = torch.zeros(like_BT.shape, dtype=torch.float32)
    for row, values in enumerate(rows):
        filled_BT[row, : len(values)] = torch.tensor(values, dtype=torch.float32)
    return filled_BT.to(like_BT.device)


def without(rows: Sequence[int], batch: dict[str, Any], accelerator: Any) -> dict[str, Any]:
    """Return the batch with the tokens of some rows masked: they count neither in the number of
    tokens nor in the KL.
    """
    mask_BT = batch["completion_mask"].clone()
    mask_BT[list(rows)] = 0
    loss_mask_BT = mask_BT * batch["tool_mask"] if "tool_mask" in batch else mask_BT
    return {
        **batch,
        "completion_mask": mask_BT,
        "num_items_in_batch": accelerator.gather(loss_mask_BT.sum()).sum(),
    }


def masked(values_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
    """Return the values with 0 where the mask is 0. A product would keep NaN and infinity."""
    import torch

    return torch.where(
        mask_BT.bool(), values_BT, torch.zeros((), dtype=values_BT.dtype, device=values_BT.device)
    )


def masked_mean(values_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
    return masked(values_BT, mask_BT).sum() / mask_BT.sum().clamp(min=1)


def whitened(advantages_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
    """Return the advantages with mean 0 and variance 1 over the unmasked tokens."""
    centred_BT = advantages_BT - masked_mean(advantages_BT, mask_BT)
    return masked(centred_BT * (masked_mean(centred_BT**2, mask_BT) + 1e-8).rsqrt(), mask_BT)


def ratio_of(logprobs_BT: torch.Tensor, old_logprobs_BT: torch.Tensor) -> torch.Tensor:
    """Return the probability ratios exp(new − old), between e⁻²⁰ and e²⁰."""
    return (logprobs_BT - old_logprobs_BT).clamp(-20, 20).exp()


def whole_responses(
    logprobs_BT: torch.Tensor, old_logprobs_BT: torch.Tensor, mask_BT: torch.Tensor
) -> torch.Tensor:
    """What `old_logprobs_BT` would have to be for every token's ratio to be its whole
    response's, π(o) / π_old(o) = exp Σ_t log π/π_old: a loss by token that is given these, with
    the gradient that they carry, has that ratio and its gradient.

    The ratio is kept between e⁻²⁰ and e²⁰ *(ours)*: a sum over hundreds of tokens overflows;
    beyond, its gradient is 0. The loss has to bound it more nearly: for a negative advantage it
    takes the ratio as it is.
    """
    log_ratio_B = masked(logprobs_BT.float() - old_logprobs_BT, mask_BT).sum(1).clamp(-20, 20)
    return logprobs_BT.float() - log_ratio_B[:, None]


def kl_of(
    logprobs_BT: torch.Tensor, ref_logprobs_BT: torch.Tensor, kind: str, most: float = 10.0
) -> torch.Tensor:
    """A token's part of the KL to the reference ρ, no larger than `most`: k1 = log π/ρ, k3 = ρ/π
    − 1 − log ρ/π.
    """
    log_ratio_BT = (ref_logprobs_BT - logprobs_BT).clamp(-20, 20)
    kl_BT = -log_ratio_BT if kind == "k1" else log_ratio_BT.exp() - 1 - log_ratio_BT
    return kl_BT.clamp(-most, most)
