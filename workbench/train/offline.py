"""Training by TRL on rows that exist before it begins, as SFT and DPO do: the order of the rows,
resuming, and the policy that is left.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.jsonl import write_json
from workbench.runs.checkpoints import rewind
from workbench.train.journal import Journal, finite
from workbench.train.models import Trainee, load_trainee, save_merged, save_policy
from workbench.train.rows import Card, Row, keep_data, within
from workbench.train.settings import Passes
from workbench.train.stage import Job, Stage, Status, order
from workbench.train.trl_trainer import reporting, trainer_arguments
from workbench.types import WorkbenchError


@dataclass(frozen=True)
class TokenizedRows:
    """Rows as token ids: step n, counted from 1, learns from `batch` of them, whose numbers stand
    in `order`.
    """

    rows: Sequence[Mapping[str, Any]]
    order: Sequence[int]
    batch: int
    journal: Journal

    def dataset(self) -> Any:
        """The rows of all steps, in order, for a trainer that takes them as they come."""
        from datasets import Dataset

        return Dataset.from_list(list(self.rows)).select(self.order)

    def arguments(self, config: Any, out: Path, seed: int) -> dict[str, Any]:
        """Arguments of TRL's trainer; the rows are in order, so that resuming is skipping rows."""
        micro = config.passes.micro_batch or self.batch
        steps = len(self.order) // self.batch
        return dict(
            **trainer_arguments(config, out, steps=steps, seed=seed),
            per_device_train_batch_size=micro,
            gradient_accumulation_steps=self.batch // micro,
            train_sampling_strategy="sequential",
            max_length=None,
        )

    def callback(self, logged: Sequence[str], tokens: Callable[[Mapping[str, Any]], int]) -> Any:
        """The callback that writes a row of metrics a step: what TRL logs under the names
        `logged`, and how many `tokens` of its rows the loss is taken on."""

        def update(state: Any, logs: Mapping[str, Any]) -> None:
            step = state.global_step
            used = self.order[(step - 1) * self.batch : step * self.batch]
            row = {
                "step": step,
                **{name: finite(logs.get(name)) for name in logged},
                "tokens": sum(tokens(self.rows[number]) for number in used),
                "seconds": round(self.journal.took(), 3),
            }
            self.journal.write(row)

        return reporting(self.journal, update)


def on_rows(
    name: str,
    train: Callable[..., Status],
    config: Any,
    make: Callable[[Job], tuple[Sequence[Row], Card]],
    merged: bool,
    rests_on: Any = None,
) -> Stage:
    """A stage that trains on the rows that `make` returns; their card goes to `card.json` of its
    folder. `merged` leaves a full checkpoint, which another stage can start from.
    """

    def run(job: Job) -> Status:
        rows, card = make(job)
        write_json(job.out / "card.json", card.to_row())
        return train(config, rows, job.start, job.out, seed=job.seed, merged=merged)

    return Stage(name, run, rests_on=rests_on)


def steps_of(passes: Passes, rows: int) -> int:
    """How many steps a training on so many rows has; the last one is filled up from the next
    pass *(ours)*.
    """
    return passes.steps or math.ceil((passes.epochs or 1.0) * rows / passes.batch)


def fit(
    config: Any,
    rows: Sequence[Row],
    encode: Callable[[Any, Row], dict[str, Any]],
    length: Callable[[Mapping[str, Any]], int],
    make_trainer: Callable[[Any, Trainee, TokenizedRows, Path, int], Any],
    policy: str,
    out: Path,
    *,
    seed: int,
    merged: bool,
) -> Status:
    """Train `policy` on `rows`, as `encode` turns them into ids, by the trainer that
    `make_trainer` returns.

    Raises:
        WorkbenchError: several processes, no such policy, rows that are too long, a folder begun
        with other rows.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise WorkbenchError("SFT and DPO train in one process: leave out the launcher")
    passes: Passes = config.passes
    trainee = load_trainee(
        policy, **vars(config.lora), seed=seed, max_length=passes.max_length, unsloth=False
    )
    every = [encode(trainee.tokenizer, row) for row in rows]
    used = [every[number] for number in within(rows, list(map(length, every)), passes.max_length)]
    steps = steps_of(passes, len(used))
    keep_data(out, len(rows), used, steps)
    checkpoint, done = rewind(out)
    if done:
        print(f"resuming '{out}' after step {done} of {steps}", file=sys.stderr)
    with Journal(out, steps=steps, done=done, shown=("loss",)) as journal:
        numbers = order(len(used), steps * passes.batch, seed)
        tokenized = TokenizedRows(used, numbers, passes.batch, journal)
        trainer = make_trainer(config, trainee, tokenized, out, seed)
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if journal.stopped:
        return "interrupted"
    (save_merged if merged else save_policy)(trainee, out)
    return "done"
