"""Credit in tensors: what every token of a batch is given, between the estimators of `workbench.credit` and the trainers.

Shapes: B responses, T tokens of the longest. Masks are 1 for what is learnt from; what they hide may hold anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from workbench.credit.advantages import ESTIMATORS, Rewarded
from workbench.types import Response

if TYPE_CHECKING:
    import torch


@dataclass
class Trained:
    """What the loss was given for one response and made of it: numbers by token, empty where there are none."""

    response: Response
    advantages: tuple[float, ...] = ()
    logprobs: tuple[float, ...] = ()
    ref_logprobs: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    ratios: tuple[float, ...] = ()

    def note(self, row: int, **tensors_BT: torch.Tensor | None) -> None:
        """Keep this response's numbers of tensors in which it is `row`."""
        for name, values_BT in tensors_BT.items():
            if values_BT is not None:
                setattr(self, name, numbers(values_BT[row, : len(self.response.token_ids)]))

    def recorded(self) -> Response:
        numbers = {name: value for name, value in vars(self).items() if name != "response" and value}
        return replace(self.response, **numbers)


def numbers(values_T: torch.Tensor) -> tuple[float, ...]:
    """Float32 numbers with the digits that tell them apart, and no more."""
    return tuple(float(f"{value:.9g}") for value in values_T.tolist())


def token_advantages(rows: Sequence[Rewarded], group_size: int, estimator: str) -> list[tuple[float, ...]]:
    """Advantages of each row's tokens; `group_size` rows after one another answer one prompt."""
    groups = [rows[start : start + group_size] for start in range(0, len(rows), group_size)]
    return list(chain.from_iterable(ESTIMATORS[estimator](groups)))


def as_tensor(rows: Sequence[Sequence[float]], like_BT: torch.Tensor) -> torch.Tensor:
    """Ragged rows as float32 of the shape of `like_BT`: column t is sampled token t, what is beyond a row's end is 0."""
    import torch

    filled_BT = torch.zeros(like_BT.shape, dtype=torch.float32)
    for row, values in enumerate(rows):
        filled_BT[row, : len(values)] = torch.tensor(values, dtype=torch.float32)
    return filled_BT.to(like_BT.device)


def without(unscored: Iterable[int], batch: dict[str, Any], accelerator: Any) -> dict[str, Any]:
    """The batch with the tokens of unscored rows masked out: they are no tokens of the batch's total and pay no KL."""
    from accelerate.utils import gather_object

    rows = list(unscored)
    if not any(gather_object([bool(rows)])):
        return batch
    mask_BT = batch["completion_mask"].clone()
    mask_BT[rows] = 0
    loss_mask_BT = mask_BT * batch["tool_mask"] if "tool_mask" in batch else mask_BT
    return {**batch, "completion_mask": mask_BT, "num_items_in_batch": accelerator.gather(loss_mask_BT.sum()).sum()}


def left_aligned(batch: Mapping[str, Any]) -> torch.Tensor:
    """A batch's advantages as Unsloth lays out log-probabilities: (B, T + W), each row further right by as many columns as its
    prompt has less padding on the left than the most padded prompt, which has W. Those of whole responses stay (B,)."""
    import torch

    advantages_BT = batch["advantages"]
    if advantages_BT.dim() == 1:
        return advantages_BT
    rows, length = advantages_BT.shape
    padding_B = (batch["prompt_mask"] == 0).sum(1)
    width = int(batch.get("max_left_pad", padding_B.max()))
    columns_BT = torch.arange(length, device=advantages_BT.device) + (width - padding_B)[:, None]
    return advantages_BT.new_zeros(rows, length + width).scatter_(1, columns_BT, advantages_BT)


def shown(values_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
    """0 wherever the mask is: a product would keep what is not finite."""
    import torch

    return torch.where(mask_BT.bool(), values_BT, torch.zeros((), dtype=values_BT.dtype, device=values_BT.device))


def mean(values_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
    return shown(values_BT, mask_BT).sum() / mask_BT.sum().clamp(min=1)


def whitened(advantages_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
    """Mean 0 and variance 1 over the tokens."""
    centred_BT = advantages_BT - mean(advantages_BT, mask_BT)
    return shown(centred_BT * (mean(centred_BT**2, mask_BT) + 1e-8).rsqrt(), mask_BT)


def ratio_of(logprobs_BT: torch.Tensor, old_logprobs_BT: torch.Tensor) -> torch.Tensor:
    """How likely a token is now to how likely it was, between e⁻²⁰ and e²⁰."""
    return (logprobs_BT - old_logprobs_BT).clamp(-20, 20).exp()


def kl_of(logprobs_BT: torch.Tensor, ref_logprobs_BT: torch.Tensor, kind: str, most: float = 10.0) -> torch.Tensor:
    """A token's part of the KL to the reference ρ, no larger than `most`: k1 = log π/ρ, k3 = ρ/π − 1 − log ρ/π."""
    log_ratio_BT = (ref_logprobs_BT - logprobs_BT).clamp(-20, 20)
    kl_BT = -log_ratio_BT if kind == "k1" else log_ratio_BT.exp() - 1 - log_ratio_BT
    return kl_BT.clamp(-most, most)


def gae(rewards_BT: torch.Tensor, values_BT: torch.Tensor, mask_BT: torch.Tensor, gamma: float, lam: float) -> torch.Tensor:
    """Generalised advantages (arXiv 1506.02438, eq. 16): Σ_l (γλ)^l δ_{t+l}, δ_t = r_t + γ V_{t+1} − V_t; 0 beyond the end.

    `workbench.credit.advantages.gae` in tensors, for what a step computes.
    """
    import torch

    rewards_BT, values_BT = shown(rewards_BT, mask_BT), shown(values_BT, mask_BT)
    advantages_BT = torch.zeros_like(rewards_BT)
    advantage_B = following_B = torch.zeros_like(rewards_BT[:, 0])
    for t in reversed(range(rewards_BT.shape[1])):
        delta_B = rewards_BT[:, t] + gamma * following_B - values_BT[:, t]
        advantage_B = advantages_BT[:, t] = shown(delta_B + gamma * lam * advantage_B, mask_BT[:, t])
        following_B = values_BT[:, t]
    return advantages_BT
