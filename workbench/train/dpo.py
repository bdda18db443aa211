"""Direct preference optimization (arXiv 2305.18290) on TRL's trainer with a LoRA adapter;
switched off, it is the reference.

A killed training goes on from its last complete checkpoint and ends with the weights of an
uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from workbench.config import setting
from workbench.train.four_bits import FOUR_BITS
from workbench.train.journal import finite
from workbench.train.models import AGAIN, Trainee
from workbench.train.offline import Laid, check_offline, fit, on_rows
from workbench.train.rows import Card, Pair, check_pairs, pair_ids
from workbench.train.stage import Job, Stage, Status
from workbench.train.trl_trainer import check_kept, check_report_to, quiet, ready, trainer_arguments

LOGGED = (
    "loss", "rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies", "logps/chosen", "logps/rejected",
    "learning_rate", "grad_norm",
)  # fmt: skip


@dataclass(frozen=True)
class DPO:
    """Settings of DPO. Defaults: TruthRL's baselines' (arXiv 2509.25760, appendix), which does
    not state β.
    """

    steps: int | None = setting(None, "batches to learn from; none: as many as `epochs` take")
    epochs: float | None = setting(None, "passes over the pairs; none: 1, unless `steps` are given")
    batch: int = setting(32, "pairs a step")
    micro_batch: int | None = setting(
        None, "pairs per backward pass; none: the whole batch at once"
    )
    gradient_checkpointing: bool = setting(True, AGAIN)
    load_in_4bit: bool = setting(False, FOUR_BITS)
    beta: float = setting(0.1, "β: how much a log-ratio to the reference counts; of IPO its τ")
    loss_type: Literal["sigmoid", "ipo"] = setting(
        "sigmoid", "sigmoid: DPO's own; ipo: (Δ of the means by token − 1/2β)²"
    )
    learning_rate: float = setting(3e-6, "of AdamW")
    schedule: Literal["constant", "linear", "cosine"] = setting(
        "cosine", "how the learning rate goes on after the warm-up"
    )
    warmup: float = setting(0.03, "share of the steps in which the learning rate rises")
    max_length: int = setting(2048, "tokens of prompt and answer above which a pair is left out")
    lora_r: int = setting(16, "rank of the adapter")
    lora_alpha: int = setting(32, "the adapter's scale, as a multiple of 1 / rank")
    save_every: int = setting(50, "steps between checkpoints")
    report_to: Literal["none", "trackio", "wandb", "tensorboard"] = setting(
        "none", "where TRL logs to as well"
    )


def check(config: DPO) -> None:
    """Raise a WorkbenchError naming the field for settings that cannot work."""
    check_offline(config, positive=("beta",))
    check_report_to(config.report_to)


def dpo_stage(
    config: DPO,
    make: Callable[[Job], tuple[Sequence[Pair], Card]],
    *,
    merged: bool = False,
    name: str = "dpo",
) -> Stage:
    """`train_dpo` as a stage on the pairs that `make` gives, whose card goes to `card.json` of
    the stage's folder.

    Args:
        merged: see `train_dpo`; needed of a stage that another one starts from.

    Raises:
        WorkbenchError: settings that cannot work.
    """
    check(config)

    return on_rows(name, train_dpo, config, make, merged)


def train_dpo(
    config: DPO, rows: Sequence[Pair], policy: str, out: Path, *, seed: int, merged: bool = False
) -> Status:
    """Train `policy` on pairs in the folder `out`, continuing what is there; the result goes to
    `out/policy`.

    Args:
        policy: folder or hub name of the starting checkpoint, which is the reference, too.
        merged: leave a full checkpoint there, which another stage can start from, instead of an
        adapter.

    Returns:
        "done", or "interrupted" after Ctrl-C: then a checkpoint of the last finished step was
        written.

    Raises:
        WorkbenchError: settings or pairs that cannot work, no such policy, a folder begun with
        other pairs.
    """
    check(config)
    check_pairs(rows)

    def encode(tokenizer: Any) -> list[dict[str, Any]]:
        return [pair_ids(tokenizer, row) for row in rows]

    def length(row: Mapping[str, Any]) -> int:
        return len(row["prompt_ids"]) + max(len(row["chosen_ids"]), len(row["rejected_ids"]))

    return fit(config, rows, encode, length, make_trainer, policy, out, seed=seed, merged=merged)


def make_trainer(config: DPO, trainee: Trainee, laid: Laid, out: Path, seed: int) -> Any:
    """TRL's trainer, told nothing that `config` does not say and kept off the network."""
    from trl import DPOConfig, DPOTrainer

    class Trainer(quiet(DPOTrainer)):  # type: ignore[misc]
        def _prepare_dataset(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
            """The rows are token ids already."""
            return dataset

    def update(state: Any, logs: Mapping[str, Any]) -> None:
        rows = laid.rows_of(state.global_step)
        laid.journal.write(
            {
                "step": state.global_step,
                **{name: finite(logs.get(name)) for name in LOGGED},
                "tokens": sum(len(row["chosen_ids"]) + len(row["rejected_ids"]) for row in rows),
                "seconds": round(laid.journal.took(), 3),
            }
        )

    micro = config.micro_batch or config.batch
    asked_for = dict(
        **trainer_arguments(config, out, steps=laid.steps, seed=seed),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=config.batch // micro,
        # the pairs are laid out in order, so that resuming is skipping pairs
        train_sampling_strategy="sequential",
        beta=config.beta,
        loss_type=[config.loss_type],
        max_length=None,
    )
    trainer = Trainer(
        model=trainee.model,
        args=DPOConfig(**asked_for),
        train_dataset=laid.dataset(),
        processing_class=trainee.tokenizer,
        callbacks=[laid.callback(update)],
    )
    check_kept(trainer, asked_for)
    return ready(trainer)
