"""What every training keeps: a row of metrics a step, checkpoints that are declared complete, a
stop that was asked for.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from workbench.jsonl import append_json
from workbench.runs.checkpoints import mark_complete, prune, sync


class Journal:
    """The journal of one training in its folder `out`. Use it as a context manager around the
    training.

    `steps` and `done` count training steps, those wanted and those that an earlier process has
    done; `shown` are the columns that progress tells. `interrupted` tells whether Ctrl-C was
    pressed: the trainer then finishes the step under way, saves and stops, and `stopped` tells
    that it has.

    Of several processes that train together, `gather` joins a list of each in the order of their
    ranks, and the first writes for all.
    """

    def __init__(
        self,
        out: Path,
        *,
        steps: int,
        done: int,
        shown: Sequence[str],
        gather: Callable[[list[Any]], list[Any]] = list,
        rank: int = 0,
    ) -> None:
        self.out, self.gather, self.rank, self.main = out, gather, rank, rank == 0
        self.interrupted = self.stopped = False
        self.since = time.perf_counter()
        self.progress = _Progress(steps, done, shown)
        self.handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if self.main:
            self.progress.start()
        if threading.current_thread() is threading.main_thread():
            for name in (signal.SIGINT, signal.SIGTERM):
                self.handlers[name] = signal.signal(name, self._stop)
        return self

    def __exit__(self, *_: Any) -> None:
        self.progress.stop()
        gc.unfreeze()
        for name, handler in self.handlers.items():
            signal.signal(name, handler)

    def begin(self) -> None:
        """All is loaded, and training begins: what there is so far is left out of garbage
        collection, which would go through all of it every few steps for the sake of the rows."""
        gc.freeze()

    def _stop(self, *_: Any) -> None:
        if self.interrupted:  # asked twice
            raise KeyboardInterrupt
        self.interrupted = True
        print("stopping after this step; once more stops at once", file=sys.stderr)

    def took(self) -> float:
        """Seconds since the training began, or since this was asked last."""
        now = time.perf_counter()
        seconds, self.since = now - self.since, now
        return seconds

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a step's row, and show it."""
        if self.main:
            append_json(self.out / "metrics.jsonl", row)
            self.progress.show(row)

    def saved(self, checkpoint: Path) -> None:
        """Declare a checkpoint complete, once what it counts on is on the disk, and remove old
        ones.
        """
        if not self.main:
            return
        sync(self.out / "metrics.jsonl")
        sync(self.out)
        mark_complete(checkpoint)
        prune(checkpoint.parent)


def finite(value: Any) -> float | None:
    """A number for a row: none for what is missing, not a number or infinite."""
    number = None if value is None else float(value)
    return number if number is not None and abs(number) < float("inf") else None


class _Progress:
    """A bar on a terminal; a plain line for every tenth of the run elsewhere."""

    def __init__(self, steps: int, done: int, shown: Sequence[str]) -> None:
        self.steps, self.done, self.shown = steps, done, shown
        self.bar: Any = None

    def start(self) -> None:
        if not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
        )
        self.bar = Progress(*columns, console=Console(stderr=True))
        self.bar.start()
        self.task = self.bar.add_task("", total=self.steps, completed=self.done)

    def show(self, row: Mapping[str, Any]) -> None:
        shown = "  ".join(f"{name} {row[name]:.2f}" for name in self.shown if row[name] is not None)
        if self.bar:
            self.bar.update(self.task, completed=row["step"], description=shown)
        elif row["step"] % max(1, self.steps // 10) == 0:
            print(f"step {row['step']}/{self.steps}  {shown}", file=sys.stderr)

    def stop(self) -> None:
        if self.bar:
            self.bar.stop()
