"""Train by SFT or DPO (arXiv 2305.18290) with a LoRA adapter, on rows made before the training.

Both use TRL's trainers.

- SFT: the loss is the mean over the answer tokens of a step, also if the step has several backward
  passes. A row with a negative weight is unlearned (unlikelihood training).
- DPO: the reference model is the policy without its adapter.

A killed training continues from its last complete checkpoint. It ends with the weights of an
uninterrupted training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.runs.checkpoints import rewind
from workbench.training.loading import Trainee, load_trainee, save_merged, save_policy
from workbench.training.recorder import MetricsLog
from workbench.training.rows import (
    IGNORED,
    Card,
    Example,
    Row,
    check_rows,
    example_ids,
    keep_data,
    pair_ids,
    within,
)
from workbench.training.settings import (
    LoRA,
    Optim,
    Passes,
    Saving,
    check_one_process,
    check_trainer,
)
from workbench.training.stage import Job, Stage, Status, order
from workbench.training.trl_common import (
    Offline,
    finish_trainer,
    report_callback,
    trainer_arguments,
)
from workbench.types import JsonMapping, JsonObject
from workbench.util.config import setting
from workbench.util.jsonl import finite, write_json

if TYPE_CHECKING:
    from datasets import Dataset
    from torch import Tensor
    from transformers import PreTrainedModel, Trainer, TrainerState
    from transformers.modeling_outputs import CausalLMOutput

# TRL's metrics to record for a step; those that a trainer does not report are left out
LOGGED = (
    "loss learning_rate grad_norm rewards/chosen rewards/rejected rewards/margins"
    " rewards/accuracies logps/chosen logps/rejected".split()
)
# lower bound of 1 − p in the unlikelihood *(code: Welleck et al.)*; the gradient below it is 0
LEAST = 1e-5


@dataclass(frozen=True)
class SFT:
    """Settings of supervised fine-tuning.

    The defaults are those of TruthRL's baselines (arXiv 2509.25760, appendix), where the paper
    states a value.
    """

    passes: Passes = Passes(batch=16)
    optim: Optim = Optim(learning_rate=5e-6)
    lora: LoRA = LoRA()
    saving: Saving = Saving(save_every=50)


@dataclass(frozen=True)
class DPO:
    """Settings of DPO.

    The defaults are those of TruthRL's baselines (arXiv 2509.25760, appendix). The paper does not
    state β.
    """

    beta: float = setting(
        0.1, "β: scale of the log-ratios to the reference model; with ipo its τ", above=0
    )
    loss_type: Literal["sigmoid", "ipo"] = setting(
        "sigmoid", "sigmoid: DPO's; ipo: (Δ − 1/2β)², Δ from log-ratios averaged over tokens"
    )
    passes: Passes = Passes()
    optim: Optim = Optim(learning_rate=3e-6)
    lora: LoRA = LoRA()
    saving: Saving = Saving(save_every=50)


def offline_stage(
    config: SFT | DPO,
    make: Callable[[Job], tuple[Sequence[Row], Card]],
    *,
    merged: bool = False,
    name: str = "",
    cache_key: object = None,
) -> Stage:
    """Return a `Stage`, one training of a run, that trains by SFT or DPO (`train_offline`).

    Args:
        make: function that returns the training rows and their `Card`, a description of their
            origin. It is called when the stage runs, with the `Job`: the stage's folder, seed and
            initial policy. The card is stored as `card.json` in the stage's folder.
        merged: save a full checkpoint instead of an adapter, so that another stage can start from
            it.
        name: name of the stage; "" for "sft" or "dpo".
        cache_key: the settings that determine the result, as JSON. Runs of one queue share the
            results of equal stages. None: the result is not shared.

    Raises:
        WorkbenchError: invalid settings.
    """
    check_trainer(config)

    def run(job: Job) -> Status:
        rows, card = make(job)
        write_json(job.out / "card.json", asdict(card))
        return train_offline(config, rows, job.start, job.out, seed=job.seed, merged=merged)

    return Stage(name or type(config).__name__.lower(), run, cache_key=cache_key)


def steps_of(passes: Passes, rows: int) -> int:
    """Return the number of training steps for a training set of `rows` rows.

    This is `passes.steps` or, if not set, the number of batches in `passes.epochs` epochs (default
    1). An incomplete last batch is filled with rows of a further epoch *(ours)*.
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
    """Train `policy` on `rows` (examples for SFT, pairs for DPO), and save it to `out/policy`.

    If the folder `out` has checkpoints, the training resumes from the last one.

    Args:
        policy: folder or hub name of the initial checkpoint.
        merged: save a full checkpoint instead of an adapter.

    Returns:
        "done", or "interrupted" after Ctrl-C. After "interrupted", the last finished step has a
        checkpoint.

    Raises:
        WorkbenchError: invalid settings or rows, all rows are too long, unknown policy, a launcher
            has started several processes, or `out` holds an earlier training with different rows or
            a different number of steps.
    """
    check_trainer(config)
    check_rows(rows)
    # several processes would each train on all rows and write the same files
    check_one_process(type(config).__name__)
    passes, supervised = config.passes, isinstance(config, SFT)
    trainee = load_trainee(
        policy, **vars(config.lora), seed=seed, max_length=passes.max_length, unsloth=False
    )
    tokenizer = trainee.tokenizer
    encoded = [
        example_ids(tokenizer, row) if isinstance(row, Example) else pair_ids(tokenizer, row)
        for row in rows
    ]
    fitting = within(rows, [length_of(row) for row in encoded], passes.max_length)
    used = [encoded[number] for number in fitting]
    steps, batch = steps_of(passes, len(used)), passes.batch
    keep_data(out, len(rows), used, steps)
    checkpoint, done = rewind(out)
    # fixed in advance, so that a resumed run continues with the same rows
    numbers = order(len(used), steps * batch, seed)
    with MetricsLog(out, steps=steps, done=done, progress=("loss",)) as metrics:

        def log(state: TrainerState, logs: JsonMapping) -> None:
            step = state.global_step
            step_rows = [used[number] for number in numbers[(step - 1) * batch : step * batch]]
            row = {name: finite(logs[name]) for name in LOGGED if name in logs}
            metrics.write_step(step, {**row, "tokens": sum(map(trained_tokens, step_rows))})

        from datasets import Dataset

        micro = passes.micro_batch or batch
        parts = config.optim, config.lora, config.saving
        arguments = dict(
            **trainer_arguments(*parts, out, steps=steps, seed=seed),
            per_device_train_batch_size=micro,
            gradient_accumulation_steps=batch // micro,
            train_sampling_strategy="sequential",  # the rows are in order, so resuming skips rows
            # truncates nothing, since longer rows were left out above; Unsloth would set 1,024
            max_length=passes.max_length,
        )
        make_trainer: Callable[..., Trainer] = sft_trainer if supervised else dpo_trainer
        trainer = make_trainer(
            config,
            trainee,
            arguments,
            train_dataset=Dataset.from_list(used).select(numbers),
            processing_class=tokenizer,
            callbacks=[report_callback(metrics, log)],
        )
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if metrics.stopped:
        return "interrupted"
    (save_merged if merged else save_policy)(trainee, out)
    return "done"


def length_of(row: JsonMapping) -> int:
    """Return the number of tokens of prompt and answer in an encoded SFT or DPO row.

    `example_ids` and `pair_ids` encode rows. In a DPO row, the longer of the two answers counts.
    """
    if "input_ids" in row:
        return len(row["input_ids"])
    return len(row["prompt_ids"]) + max(len(row["chosen_ids"]), len(row["rejected_ids"]))


def trained_tokens(row: JsonMapping) -> int:
    """Return the number of tokens with a loss in an encoded SFT or DPO row.

    These are the labelled tokens of an SFT row, and all tokens of both answers of a DPO row.
    """
    if "labels" in row:
        return sum(label != IGNORED for label in row["labels"])
    return len(row["chosen_ids"]) + len(row["rejected_ids"])


def dpo_trainer(config: DPO, trainee: Trainee, arguments: JsonObject, **more: object) -> Trainer:
    """Return TRL's DPO trainer, for rows that are already token ids (from `pair_ids`).

    Args:
        arguments: arguments of TRL's `DPOConfig`.
        more: further arguments of the trainer, such as `train_dataset`.
    """
    from trl import DPOConfig, DPOTrainer

    class EncodedDPOTrainer(Offline, DPOTrainer):
        def _prepare_dataset(self, dataset: Dataset, *args: object, **kwargs: object) -> Dataset:
            """Overridden to return the data set unchanged: its rows are already token ids."""
            return dataset

    requested = dict(**arguments, beta=config.beta, loss_type=[config.loss_type])
    trainer = EncodedDPOTrainer(model=trainee.model, args=DPOConfig(**requested), **more)
    finish_trainer(trainer, requested)
    return trainer


def sft_trainer(config: SFT, trainee: Trainee, arguments: JsonObject, **more: object) -> Trainer:
    """Return TRL's SFT trainer, for rows of token ids with a loss weight (from `example_ids`).

    Args:
        arguments: arguments of TRL's `SFTConfig`.
        more: further arguments of the trainer, such as `train_dataset`.
    """
    import torch
    from trl import SFTConfig, SFTTrainer
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    class WeightedSFTTrainer(Offline, SFTTrainer):
        def _set_signature_columns_if_needed(self) -> None:
            # the trainer would drop a column that the model's forward pass does not name
            self._signature_columns = ["input_ids", "labels", "weight"]

        def compute_loss(
            self, model: PreTrainedModel, inputs: dict[str, Tensor], *args: object, **kwargs: object
        ) -> Tensor:
            self.weights_B = inputs.pop("weight")  # not an argument of the model
            return super().compute_loss(model, inputs, *args, **kwargs)

    collate = DataCollatorForLanguageModeling(pad_token_id=trainee.tokenizer.pad_token_id)
    requested = dict(
        **arguments,
        # the rows are token ids already
        dataset_kwargs={"skip_prepare_dataset": True},
        loss_type="nll",  # passes the model's logits to `compute_loss_func`
    )

    def loss(outputs: CausalLMOutput, labels_BT: Tensor, num_items_in_batch: Tensor) -> Tensor:
        return weighted_loss(outputs.logits, labels_BT, trainer.weights_B, num_items_in_batch)

    trainer = WeightedSFTTrainer(
        model=trainee.model,
        args=SFTConfig(**requested),
        data_collator=lambda rows: {
            **collate(rows),
            "weight": torch.tensor([row["weight"] for row in rows]),
        },
        compute_loss_func=loss,
        **more,
    )
    finish_trainer(trainer, requested)
    return trainer


def weighted_loss(
    logits_BTV: Tensor, labels_BT: Tensor, weights_B: Tensor, tokens: int | Tensor
) -> Tensor:
    """Return the weighted loss of a batch: the sum over its tokens, divided by `tokens`.

    With a weight w > 0, a token of probability p has the loss w · (−log p). With w < 0 the loss is
    |w| · (−log(1 − p)), the unlikelihood of Welleck et al. (arXiv 1908.04319). All labelled tokens
    of a row have the row's weight, as in FoRAG's baseline (arXiv 2406.13779, section 6.3).

    Args:
        labels_BT: the token ids; `IGNORED` for tokens without loss.
        weights_B: the weight w of each row.
        tokens: number of tokens with loss in the whole training step, which may have several
            batches.
    """
    import torch
    from trl.trainer.utils import selective_log_softmax

    targets_BT = labels_BT[:, 1:]  # the logits of a column predict the next token
    mask_BT = targets_BT != IGNORED
    logprobs_BT = selective_log_softmax(
        logits_BTV[:, :-1], targets_BT.masked_fill(~mask_BT, 0)
    ).float()
    # expm1 is exact for p near 1, where 1 − p would be rounded
    unlikely_BT = -torch.log((-torch.expm1(logprobs_BT)).clamp(min=LEAST))
    losses_BT = (
        torch.where(weights_B[:, None] > 0, -logprobs_BT, unlikely_BT) * weights_B.abs()[:, None]
    )
    return (losses_BT * mask_BT).sum() / tokens
