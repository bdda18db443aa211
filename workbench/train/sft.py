"""Supervised fine-tuning on TRL's trainer with a LoRA adapter; a row of a weight below 0 is
unlearnt by unlikelihood training.

The loss is a mean over a step's tokens of answers, however a step is split. A killed training
goes on from its last complete checkpoint and ends with the weights of an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.train.models import Trainee
from workbench.train.offline import TokenizedRows, fit, on_rows
from workbench.train.rows import Card, Example, check_rows, example_ids
from workbench.train.settings import LoRA, Optim, Passes, Saving, check_passes, check_report_to
from workbench.train.stage import Job, Stage, Status
from workbench.train.trl_trainer import check_kept, quiet, ready

if TYPE_CHECKING:
    import torch

# of 1 − p in an unlikelihood *(code: that of Welleck et al.)*; a token surer than that is left
# alone
LEAST = 1e-5


@dataclass(frozen=True)
class SFT:
    """Settings of supervised fine-tuning. Defaults: TruthRL's baselines' (arXiv 2509.25760,
    appendix), where it states them.
    """

    passes: Passes = Passes(batch=16)
    optim: Optim = Optim(learning_rate=5e-6)
    lora: LoRA = LoRA()
    saving: Saving = Saving(save_every=50)


def check(config: SFT) -> None:
    """Raise a WorkbenchError naming the field for settings that cannot work."""
    check_passes(config)
    check_report_to(config.saving)


def sft_stage(
    config: SFT,
    make: Callable[[Job], tuple[Sequence[Example], Card]],
    *,
    merged: bool = False,
    name: str = "sft",
    rests_on: Any = None,
) -> Stage:
    """`train_sft` as a stage on the rows that `make` returns: see `on_rows`, and `Stage` for
    `rests_on`.

    Raises:
        WorkbenchError: settings that cannot work.
    """
    check(config)
    return on_rows(name, train_sft, config, make, merged, rests_on)


def train_sft(
    config: SFT, rows: Sequence[Example], policy: str, out: Path, *, seed: int, merged: bool = False
) -> Status:
    """Train `policy` on `rows` in the folder `out`, continuing what is there; the result goes to
    `out/policy`.

    Args:
        policy: folder or hub name of the starting checkpoint.
        merged: leave a full checkpoint there, which another stage can start from, instead of an
        adapter.

    Returns:
        "done", or "interrupted" after Ctrl-C: then a checkpoint of the last finished step was
        written.

    Raises:
        WorkbenchError: settings or rows that cannot work, no such policy, a folder begun with
        other rows.
    """
    check(config)
    check_rows(rows)

    def length(row: Mapping[str, Any]) -> int:
        return len(row["input_ids"])

    return fit(
        config, rows, example_ids, length, make_trainer, policy, out, seed=seed, merged=merged
    )


def learnt(row: Mapping[str, Any]) -> int:
    """How many of a row's tokens the loss is taken on."""
    return sum(label != -100 for label in row["labels"])


def make_trainer(
    config: SFT, trainee: Trainee, tokenized: TokenizedRows, out: Path, seed: int
) -> Any:
    """TRL's trainer with no setting but those of `config`, kept off the network."""
    from trl import SFTConfig, SFTTrainer
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    class Trainer(quiet(SFTTrainer)):  # type: ignore[misc]
        def _set_signature_columns_if_needed(self) -> None:
            self._signature_columns = ["input_ids", "labels", "weight"]

        def compute_loss(
            self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any
        ) -> Any:
            self.weights_B = inputs.pop("weight")
            return super().compute_loss(model, inputs, *args, **kwargs)

    collate = DataCollatorForLanguageModeling(pad_token_id=trainee.tokenizer.pad_token_id)

    def with_weights(rows: list[dict[str, Any]]) -> dict[str, Any]:
        import torch

        return {**collate(rows), "weight": torch.tensor([row["weight"] for row in rows])}

    def loss(outputs: Any, labels_BT: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
        return weighted_loss(outputs.logits, labels_BT, trainer.weights_B, num_items_in_batch)

    asked_for = dict(
        **tokenized.arguments(config, out, seed),
        dataset_kwargs={"skip_prepare_dataset": True},
        loss_type="nll",  # leaves the model's logits to `loss`
    )
    trainer = Trainer(
        model=trainee.model,
        args=SFTConfig(**asked_for),
        train_dataset=tokenized.dataset(),
        processing_class=trainee.tokenizer,
        data_collator=with_weights,
        compute_loss_func=loss,
        callbacks=[tokenized.callback(("loss", "learning_rate", "grad_norm"), learnt)],
    )
    check_kept(trainer, asked_for)
    return ready(trainer)


def weighted_loss(
    logits_BTV: torch.Tensor, labels_BT: torch.Tensor, weights_B: torch.Tensor, tokens: Any
) -> torch.Tensor:
    """w · (−log p) on the tokens of rows with w > 0, |w| · (−log(1 − p)) on those with w < 0,
    summed, over `tokens`.

    The second is the unlikelihood of Welleck et al. (arXiv 1908.04319), with all that a bad
    response says as its negative candidates, as FoRAG's baseline has it (arXiv 2406.13779,
    section 6.3).

    Args:
        labels_BT: the ids themselves, -100 where no loss is taken.
        tokens: of the whole step, which `logits_BTV` may be a part of.
    """
    import torch
    from trl.trainer.utils import selective_log_softmax

    targets_BT = labels_BT[:, 1:]
    mask_BT = targets_BT != -100
    logprobs_BT = selective_log_softmax(
        logits_BTV[:, :-1], targets_BT.masked_fill(~mask_BT, 0)
    ).float()
    unlikely_BT = -torch.log((-torch.expm1(logprobs_BT)).clamp(min=LEAST))
    losses_BT = (
        torch.where(weights_B[:, None] > 0, -logprobs_BT, unlikely_BT) * weights_B.abs()[:, None]
    )
    return (losses_BT * mask_BT).sum() / tokens
