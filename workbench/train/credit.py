"""What every token of a batch is credited with, between the estimators of `workbench.credit` and a TRL trainer's tensors.

Rows come in the order in which they were rewarded; with several processes a group may lie on two of them, so the rows of all
are gathered, grouped and cut again.
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
    ratios: tuple[float, ...] = ()

    def recorded(self) -> Response:
        numbers = {name: value for name, value in vars(self).items() if name != "response" and value}
        return replace(self.response, **numbers)


def token_advantages(rows: Sequence[Rewarded], group_size: int, estimator: str) -> list[tuple[float, ...]]:
    """Advantages of each row's tokens; `group_size` rows after one another answer one prompt."""
    groups = [rows[start : start + group_size] for start in range(0, len(rows), group_size)]
    return list(chain.from_iterable(ESTIMATORS[estimator](groups)))


def as_tensor(advantages_BT: Sequence[Sequence[float]], like_BT: torch.Tensor) -> torch.Tensor:
    """Ragged rows as float32 of the shape of `like_BT`: column t is sampled token t, what is beyond a row's end is 0."""
    import torch

    filled_BT = torch.zeros(like_BT.shape, dtype=torch.float32)
    for row, values in enumerate(advantages_BT):
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
