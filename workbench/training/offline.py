"""SFT and DPO (arXiv 2305.18290) on TRL's trainers with a LoRA adapter, on rows that exist before
the training.

SFT: a row of a weight below 0 is unlearnt by unlikelihood training, and the loss is a mean over a
step's tokens of answers, however a step is split. DPO: the policy with its adapter switched off is
the reference. A killed training continues from its last complete checkpoint and ends with the
weights of an uninterrupted one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workbench.runs.checkpoints import rewind
from workbench.training.loading import Trainee, load_trainee, save_merged, save_policy
from workbench.training.recorder import MetricsLog, finite
from workbench.training.rows import Card, Row, check_rows, example_ids, keep_data, pair_ids, within
from workbench.training.settings import (
    LoRA,
    Optim,
    Passes,
    Saving,
    check_one_process,
    check_passes,
    check_report_to,
)
from workbench.training.stage import Job, Stage, Status, order
from workbench.training.trl_common import (
    Offline,
    finish_trainer,
    report_callback,
    trainer_arguments,
)
from workbench.util.config import setting
from workbench.util.jsonl import write_json

if TYPE_CHECKING:
    import torch

SFT_LOGGED = ("loss", "learning_rate", "grad_norm")
DPO_LOGGED = (
    "loss",
    "rewards/chosen",
    "rewards/rejected",
    "rewards/margins",
    "rewards/accuracies",
    "logps/chosen",
    "logps/rejected",
    "learning_rate",
    "grad_norm",
)
# least 1 − p in an unlikelihood *(code: that of Welleck et al.)*: a surer token is left alone
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


@dataclass(frozen=True)
class DPO:
    """Settings of DPO. Defaults: TruthRL's baselines' (arXiv 2509.25760, appendix), which does
    not state β.
    """

    beta: float = setting(
        0.1, "β: how much a log-ratio to the reference counts; of IPO its τ", above=0
    )
    loss_type: Literal["sigmoid", "ipo"] = setting(
        "sigmoid", "sigmoid: DPO's own; ipo: (Δ of the means by token − 1/2β)²"
    )
    passes: Passes = Passes()
    optim: Optim = Optim(learning_rate=3e-6)
    lora: LoRA = LoRA()
    saving: Saving = Saving(save_every=50)


def check(config: SFT | DPO) -> None:
    """Raise a WorkbenchError naming the field for settings that cannot work."""
    check_passes(config)
    check_report_to(config.saving)


def offline_stage(
    config: SFT | DPO,
    make: Callable[[Job], tuple[Sequence[Row], Card]],
    *,
    merged: bool = False,
    name: str = "",
    cache_key: Any = None,
) -> Stage:
    """`train_offline` as a stage on the rows that `make` returns; their card goes to `card.json`
    of its folder.

    Args:
        merged: leave a full checkpoint, which another stage can start from.
        name: "sft" or "dpo" by default.
        cache_key: see `Stage`.

    Raises:
        WorkbenchError: settings that cannot work.
    """
    check(config)

    def run(job: Job) -> Status:
        rows, card = make(job)
        write_json(job.out / "card.json", card.to_row())
        return train_offline(config, rows, job.start, job.out, seed=job.seed, merged=merged)

    return Stage(name or type(config).__name__.lower(), run, cache_key=cache_key)


def steps_of(passes: Passes, rows: int) -> int:
    """How many steps a training on so many rows has; the last one is filled up from the next
    pass *(ours)*.
    """
    return passes.steps or math.ceil((passes.epochs or 1.0) * rows / passes.batch)


def train_offline(
    config: SFT | DPO,
    rows: Sequence[Row],
    policy: str,
    out: Path,
    *,
    seed: int,
    merged: bool = False,
) -> Status:
    """Train `policy` on `rows` (examples for SFT, pairs for DPO) in the folder `out`, continuing
    what is there; the result goes to `out/policy`.

    Args:
        policy: folder or hub name of the initial checkpoint.
        merged: leave a full checkpoint there instead of an adapter.

    Returns:
        "done", or "interrupted" after Ctrl-C: then a checkpoint of the last finished step was
        written.

    Raises:
        WorkbenchError: settings or rows that cannot work, rows that are too long, several
        processes, no such policy, a folder begun with other rows.
    """
    check(config)
    check_rows(rows)
    check_one_process(type(config).__name__)
    passes, supervised = config.passes, isinstance(config, SFT)
    trainee = load_trainee(
        policy, **vars(config.lora), seed=seed, max_length=passes.max_length, unsloth=False
    )
    encode: Any = example_ids if supervised else pair_ids
    every = [encode(trainee.tokenizer, row) for row in rows]
    used = [every[n] for n in within(rows, list(map(length_of, every)), passes.max_length)]
    steps, batch = steps_of(passes, len(used)), passes.batch
    keep_data(out, len(rows), used, steps)
    checkpoint, done = rewind(out)
    numbers = order(len(used), steps * batch, seed)
    with MetricsLog(out, steps=steps, done=done, shown=("loss",)) as journal:

        def log(state: Any, logs: Mapping[str, Any]) -> None:
            step = state.global_step
            learnt = [used[number] for number in numbers[(step - 1) * batch : step * batch]]
            row = {
                "step": step,
                **{
                    name: finite(logs.get(name))
                    for name in (SFT_LOGGED if supervised else DPO_LOGGED)
                },
                "tokens": sum(map(tokens_of, learnt)),
                "seconds": round(journal.lap_seconds(), 3),
            }
            journal.write(row)

        micro = passes.micro_batch or batch
        arguments = dict(
            **trainer_arguments(config, out, steps=steps, seed=seed),
            per_device_train_batch_size=micro,
            gradient_accumulation_steps=batch // micro,
            train_sampling_strategy="sequential",  # the rows are in order: resuming skips rows
            max_length=None,
        )
        make_trainer: Any = sft_trainer if supervised else dpo_trainer
        trainer = make_trainer(
            config, trainee, arguments, in_order(used, numbers), report_callback(journal, log)
        )
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if journal.stopped:
        return "interrupted"
    (save_merged if merged else save_policy)(trainee, out)
    return "done"


def length_of(row: Mapping[str, Any]) -> int:
    """The tokens of prompt and answer of an encoded row, of a pair's longer answer."""
    if "input_ids" in row:
        return len(row["input_ids"])
    return len(row["prompt_ids"]) + max(len(row["chosen_ids"]), len(row["rejected_ids"]))


def tokens_of(row: Mapping[str, Any]) -> int:
    """How many tokens of an encoded row the loss is taken on."""
    if "labels" in row:
        return sum(label != -100 for label in row["labels"])
    return len(row["chosen_ids"]) + len(row["rejected_ids"])


def in_order(rows: Sequence[Mapping[str, Any]], numbers: Sequence[int]) -> Any:
    """The rows of all steps for a trainer that takes them as they come."""
    from datasets import Dataset

    return Dataset.from_list(list(rows)).select(numbers)


def dpo_trainer(
    config: DPO, trainee: Trainee, arguments: dict[str, Any], rows: Any, callback: Any
) -> Any:
    """TRL's trainer with no setting but those of `config`, kept off the network."""
    from trl import DPOConfig, DPOTrainer

    class Trainer(Offline, DPOTrainer):
        def _prepare_dataset(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
            """The rows are token ids already."""
            return dataset

    asked_for = dict(**arguments, beta=config.beta, loss_type=[config.loss_type])
    trainer = Trainer(
        model=trainee.model,
        args=DPOConfig(**asked_for),
        train_dataset=rows,
        processing_class=trainee.tokenizer,
        callbacks=[callback],
    )
    finish_trainer(trainer, asked_for)
    return trainer


def sft_trainer(
    config: SFT, trainee: Trainee, arguments: dict[str, Any], rows: Any, callback: Any
) -> Any:
    """TRL's trainer with no setting but those of `config`, kept off the network."""
    from trl import SFTConfig, SFTTrainer
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    class Trainer(Offline, SFTTrainer):
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
        **arguments,
        dataset_kwargs={"skip_prepare_dataset": True},
        loss_type="nll",  # leaves the model's logits to `loss`
    )
    trainer = Trainer(
        model=trainee.model,
        args=SFTConfig(**asked_for),
        train_dataset=rows,
        processing_class=trainee.tokenizer,
        data_collator=with_weights,
        compute_loss_func=loss,
        callbacks=[callback],
    )
    finish_trainer(trainer, asked_for)
    return trainer


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
