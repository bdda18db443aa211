"""Tensor functions on token rewards, advantages and log-probabilities, shared by the trainers.

Names of tensors end in their shape: `_BT` is (B, T), with B responses and T tokens of the longest
response. A mask is 1 for tokens that count in the loss and 0 for other tokens. Values of masked
tokens may be NaN or infinite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Return the response with token statistics, such as `logprobs`, read from (B, T) tensors.

    Args:
        row: index of the response in the tensors.
        tensors_BT: keyword arguments FIELD=TENSOR, for fields of `Response` such as `logprobs` and
            their (B, T) tensors. None leaves a field unchanged. Entries after the response's last
            token are dropped.
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
    """Return the token advantages of each response in a batch, one number per token.

    Every `group_size` successive rows are the responses to one prompt. They form a group for the
    estimator.
    """
    return list(chain.from_iterable(estimator(split_batches(rows, group_size))))


def minus_kl(row: Rewarded, penalties: Sequence[float], values: Sequence[float]) -> Rewarded:
    """Subtract the KL penalty from a response's token rewards, and store the critic's values.

    A response without a reward is returned unchanged.

    Args:
        row: the token rewards of the response.
        penalties: the KL penalty of each token; entries after the last token are ignored.
        values: the critic's value before each token; entries after the last token are ignored.
    """
    if row.rewards is None:
        return row
    # `penalties` may be padded to the longest response of the batch
    rewards = tuple(
        reward - penalty for reward, penalty in zip(row.rewards, penalties, strict=False)
    )
    return replace(row, rewards=rewards, values=tuple(values[: row.length]))


def as_tensor(rows: Sequence[Sequence[float]], like_BT: Tensor) -> Tensor:
    """Return rows of different lengths as one float32 tensor, padded with 0 on the right.

    The tensor has the shape (B, T) and the device of `like_BT`, whose values are not read.
    """
    import torch

    filled_BT = torch.zeros(like_BT.shape, dtype=torch.float32)
    for row, values in enumerate(rows):
        filled_BT[row, : len(values)] = torch.tensor(values, dtype=torch.float32)
    return filled_BT.to(like_BT.device)


def without(
    rows: Sequence[int], batch: dict[str, Tensor], accelerator: Accelerator
) -> dict[str, Tensor]:
    """Return TRL's batch with some responses left out of the loss.

    All tokens of these responses are masked. They do not count in the loss, in the KL, or in the
    number of tokens by which the loss is divided.

    Args:
        rows: indices of the responses to leave out.
        batch: TRL's inputs of the loss, such as "completion_mask", by name.
        accelerator: adds up the number of tokens over all processes.
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
    """Return the values with 0 where the mask is 0, even if they are NaN or infinite there."""
    # multiplication by the mask would not remove NaN and ∞: their products with 0 are NaN
    return values_BT.masked_fill(mask_BT == 0, 0)


def masked_mean(values_BT: Tensor, mask_BT: Tensor) -> Tensor:
    return masked(values_BT, mask_BT).sum() / mask_BT.sum().clamp(min=1)


def whitened(advantages_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return the advantages, normalised to mean 0 and variance 1 over the unmasked tokens.

    Masked tokens get 0.
    """
    centred_BT = advantages_BT - masked_mean(advantages_BT, mask_BT)
    return masked(centred_BT * (masked_mean(centred_BT**2, mask_BT) + 1e-8).rsqrt(), mask_BT)


def ratio_of(logprobs_BT: Tensor, old_logprobs_BT: Tensor) -> Tensor:
    """Return each token's probability ratio exp(new − old), clamped between e⁻²⁰ and e²⁰."""
    return (logprobs_BT - old_logprobs_BT).clamp(-20, 20).exp()


def loss_stats(batch: Mapping[str, Tensor], logprobs_BT: Tensor | None) -> dict[str, Tensor | None]:
    """Return the inputs of TRL's loss as (B, T) tensors, by name.

    The names are fields of `Response`: "advantages", "logprobs" (at sampling), "ref_logprobs"
    (under the reference policy) and "ratios" (current probability / probability at sampling). A
    missing tensor is None.

    Args:
        batch: TRL's inputs of the loss, by name.
        logprobs_BT: log-probabilities under the current policy. They are also used as "logprobs" if
            `batch` has no log-probabilities at sampling. If None, "ratios" is None.
    """
    advantages_BT, old_BT = batch["advantages"], batch.get("old_per_token_logps")
    # an advantage of a whole response, (B,), is recorded for each of its tokens
    if advantages_BT.dim() == 1:
        advantages_BT = advantages_BT[:, None].expand_as(batch["completion_ids"])
    old_BT = logprobs_BT if old_BT is None else old_BT
    return {
        "advantages": advantages_BT,
        "logprobs": old_BT,
        "ref_logprobs": batch.get("ref_per_token_logps"),
        "ratios": None if logprobs_BT is None else ratio_of(logprobs_BT, old_BT),
    }


def whole_responses(logprobs_BT: Tensor, old_logprobs_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return "old" log-probabilities, (B, T), that turn token ratios into response ratios.

    A token-level loss computes a ratio exp(new − old) for each token. With the returned tensor as
    "old", the ratio of each token is that of its whole response, and so is the ratio's gradient.
    The ratio of a response is exp(Σ (`logprobs_BT` − `old_logprobs_BT`)), summed over its unmasked
    tokens.

    The ratio is clamped between e⁻²⁰ and e²⁰ *(ours)*. Outside these bounds its gradient is 0.
    PPO's clipping does not limit the ratio for negative advantages, so the loss needs another
    bound.
    """
    # not detached: exp(new − old) has the gradient of the sum
    log_ratio_B = masked(logprobs_BT.float() - old_logprobs_BT, mask_BT).sum(1).clamp(-20, 20)
    return logprobs_BT.float() - log_ratio_B[:, None]


def kl_of(logprobs_BT: Tensor, ref_logprobs_BT: Tensor, kind: str) -> Tensor:
    """Return a per-token estimate of the KL divergence from the reference policy.

    π and ρ are the token's probabilities under the policy and the reference policy. If `kind` is
    "k1", the estimate is log(π/ρ). Otherwise it is "k3": ρ/π − 1 − log(ρ/π). Estimates are clamped
    between −10 and 10.
    """
    log_ratio_BT = (ref_logprobs_BT - logprobs_BT).clamp(-20, 20)  # exp must not overflow
    kl_BT = -log_ratio_BT if kind == "k1" else log_ratio_BT.exp() - 1 - log_ratio_BT
    return kl_BT.clamp(-10, 10)
