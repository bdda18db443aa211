"""Training on rows that are there before it begins, as SFT and DPO do: their order, what is
resumed, what is left behind.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.config import check_numbers, check_values
from workbench.jsonl import write_json
from workbench.runs.checkpoints import rewind
from workbench.train.journal import Journal
from workbench.train.models import Trainee, load_trainee, save_merged, save_policy
from workbench.train.rows import Card, Row, keep_data, within
from workbench.train.stage import Job, Stage, Status, order
from workbench.train.trl_trainer import reporting
from workbench.types import WorkbenchError


@dataclass(frozen=True)
class Laid:
    """Rows as token ids, laid out for a training: step n learns from `batch` of them, whose
    numbers stand in `order`.
    """

    rows: Sequence[Mapping[str, Any]]
    order: Sequence[int]
    batch: int
    journal: Journal

    @property
    def steps(self) -> int:
        return len(self.order) // self.batch

    def rows_of(self, step: int) -> list[Mapping[str, Any]]:
        """The rows of a step, which count from 1."""
        return [
            self.rows[number] for number in self.order[(step - 1) * self.batch : step * self.batch]
        ]

    def dataset(self) -> Any:
        """All steps' rows, one step after the other, for a trainer that takes them as they come."""
        from datasets import Dataset

        return Dataset.from_list(list(self.rows)).select(self.order)

    def callback(self, update: Callable[[Any, Mapping[str, Any]], None]) -> Any:
        return reporting(self.journal, update)


def check_offline(config: Any, positive: Sequence[str] = (), shares: Sequence[str] = ()) -> None:
    """Raise a WorkbenchError naming the field for settings that cannot work: of those that all
    of these trainings have, and of further ones that must be above 0, or between 0 and 1."""
    check_values(config)
    counts = ("steps", "batch", "micro_batch", "max_length", "lora_r", "lora_alpha", "save_every")
    above = ("learning_rate", "epochs", *positive)
    check_numbers(config, dict.fromkeys(counts, 1), positive=above, shares=("warmup", *shares))
    if config.steps is not None and config.epochs is not None:
        raise WorkbenchError(
            f"steps is {config.steps} and epochs is {config.epochs}: give one of them, and none for"
            " the other"
        )
    if config.micro_batch is not None and config.batch % config.micro_batch:
        raise WorkbenchError(
            f"micro_batch is {config.micro_batch}: it must divide batch, {config.batch}"
        )


def on_rows(
    name: str,
    train: Callable[..., Status],
    config: Any,
    make: Callable[[Job], tuple[Sequence[Row], Card]],
    merged: bool,
    rests_on: Any = None,
) -> Stage:
    """A stage that trains on the rows that `make` gives, whose card goes to `card.json` of its
    folder.
    """

    def run(job: Job) -> Status:
        rows, card = make(job)
        write_json(job.out / "card.json", card.to_row())
        return train(config, rows, job.start, job.out, seed=job.seed, merged=merged)

    return Stage(name, run, rests_on=rests_on)


def steps_of(config: Any, rows: int) -> int:
    """How many steps a training on so many rows has; the last one is filled up from the next
    pass *(ours)*.
    """
    return config.steps or math.ceil((config.epochs or 1.0) * rows / config.batch)


def fit(
    config: Any,
    rows: Sequence[Row],
    encode: Callable[[Any], list[dict[str, Any]]],
    length: Callable[[Mapping[str, Any]], int],
    make_trainer: Callable[[Any, Trainee, Laid, Path, int], Any],
    policy: str,
    out: Path,
    *,
    seed: int,
    merged: bool,
) -> Status:
    """Train `policy` on `rows`, as `encode` lays them out with its tokenizer, by the trainer
    that `make_trainer` makes.

    Raises:
        WorkbenchError: several processes, no such policy, rows that are too long, a folder begun
        with other rows.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise WorkbenchError("SFT and DPO train in one process: leave out the launcher")
    trainee = load_trainee(
        policy,
        lora_r=config.lora_r,
        lora_alpha=config.lora_alpha,
        seed=seed,
        max_length=config.max_length,
        gradient_checkpointing=config.gradient_checkpointing,
        load_in_4bit=config.load_in_4bit,
        unsloth=False,
    )
    every = encode(trainee.tokenizer)
    used = [every[number] for number in within(rows, list(map(length, every)), config.max_length)]
    steps = steps_of(config, len(used))
    keep_data(out, len(rows), used, steps)
    checkpoint, done = rewind(out)
    if done:
        print(f"resuming '{out}' after step {done} of {steps}", file=sys.stderr)
    with Journal(out, steps=steps, done=done, shown=("loss",)) as journal:
        laid = Laid(used, order(len(used), steps * config.batch, seed), config.batch, journal)
        trainer = make_trainer(config, trainee, laid, out, seed)
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if journal.stopped:
        return "interrupted"
    (save_merged if merged else save_policy)(trainee, out)
    return "done"
