"""What any trainer reports to: grades responses, keeps every one, writes a row of metrics a step, shows progress.

It knows nothing of the library that trains: that is an adapter's part (`workbench.train.trl_adapter`).
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.failures import TooManyFailures, too_many
from workbench.jsonl import append_json
from workbench.metrics import RATES, rates
from workbench.runs.checkpoints import mark_complete, prune, sync
from workbench.store import Store
from workbench.types import Feedback, Grade, Response

LOGGED = ("loss", "kl", "entropy", "grad_norm", "learning_rate")  # what a trainer may tell of a step


class Record:
    """The record of one run in its folder `out`. Use it as a context manager around training.

    `grade` pays `method`; `steps` and `done` count training steps, those wanted and those that an earlier process has done.
    `interrupted` tells whether Ctrl-C was pressed: the trainer then finishes the step under way, saves and stops.
    """

    def __init__(self, out: Path, method: str, grade: Grade, *, steps: int, done: int, max_failed: float) -> None:
        self.out, self.method, self.grade, self.max_failed = out, method, grade, max_failed
        self.interrupted = False
        self.step_feedbacks: list[Feedback] = []
        self.since = time.perf_counter()
        self.progress = _Progress(steps, done)
        self.handlers: dict[int, Any] = {}

    def __enter__(self) -> Record:
        if threading.current_thread() is threading.main_thread():
            for name in (signal.SIGINT, signal.SIGTERM):
                self.handlers[name] = signal.signal(name, self._stop)
        self.store = Store(self.out)
        self.progress.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.progress.stop()
        self.store.close()
        gc.unfreeze()
        for name, handler in self.handlers.items():
            signal.signal(name, handler)

    def begin(self) -> None:
        """All is loaded, and training begins: what there is so far is left out of garbage collection, which would go through
        all of it every few steps for the sake of the rows."""
        gc.freeze()

    def _stop(self, *_: Any) -> None:
        if self.interrupted:  # asked twice
            raise KeyboardInterrupt
        self.interrupted = True
        print("stopping after this step; once more stops at once", file=sys.stderr)

    def pay(self, responses: Sequence[Response], step: int) -> list[float | None]:
        """Grade and store responses of a step; the reward of each, None where it has none.

        Raises:
            TooManyFailures: too large a share of the step's responses so far have no reward.
        """
        feedbacks = self.grade(responses)
        self.store.append(feedbacks)
        self.step_feedbacks += feedbacks
        unscored = [f for f in self.step_feedbacks if reward_of(f, self.method) is None]
        if too_many(len(unscored), len(self.step_feedbacks), self.max_failed):
            raise TooManyFailures(
                f"{len(unscored)} of {len(self.step_feedbacks)} responses of step {step} could not be graded "
                f"({reason(unscored[0], self.method)}): mend that and run the same command again, or raise max_failed"
            )
        return [reward_of(feedback, self.method) for feedback in feedbacks]

    def log(self, step: int, logs: Mapping[str, Any]) -> None:
        """Append the row of a finished step. `seconds` is the one value that differs between equal runs."""
        values = [value for f in self.step_feedbacks if (value := reward_of(f, self.method)) is not None]
        lengths = [len(feedback.response.token_ids) for feedback in self.step_feedbacks]
        cut = [feedback.response.finish == "length" for feedback in self.step_feedbacks]
        now = time.perf_counter()
        row: dict[str, Any] = {
            "step": step,
            "reward": _mean(values),
            **rates(self.step_feedbacks),
            "failed": len(self.step_feedbacks) - len(values),
            "length": _mean(lengths),
            "truncated": _mean(cut),
            **{name: _finite(logs.get(name)) for name in LOGGED},
            "seconds": round(now - self.since, 3),
        }
        self.since, self.step_feedbacks = now, []
        append_json(self.out / "metrics.jsonl", row)
        self.progress.show(row)

    def saved(self, checkpoint: Path) -> None:
        """Declare a checkpoint complete, once what it counts on is on the disk, and remove old ones."""
        self.store.sync()
        sync(self.out / "metrics.jsonl")
        sync(self.out)
        mark_complete(checkpoint)
        prune(checkpoint.parent)


def reward_of(feedback: Feedback, method: str) -> float | None:
    """What the method pays for a response; None where it could not be graded."""
    reward = feedback.rewards.get(method)
    return None if feedback.error or reward is None else reward.value


def reason(feedback: Feedback, method: str) -> str:
    """Why a response has no reward, as "stage: message"; "" where nothing says why."""
    reward = feedback.rewards.get(method)
    error = feedback.error or (reward and reward.error)
    return f"{error.stage}: {error.message}" if error else ""


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _finite(value: Any) -> float | None:
    number = None if value is None else float(value)
    return number if number is not None and abs(number) < float("inf") else None


class _Progress:
    """A bar on a terminal; a plain line for every tenth of the run elsewhere."""

    def __init__(self, steps: int, done: int) -> None:
        self.steps, self.done = steps, done
        self.bar: Any = None

    def start(self) -> None:
        if not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
        self.bar = Progress(*columns, console=Console(stderr=True))
        self.bar.start()
        self.task = self.bar.add_task("", total=self.steps, completed=self.done)

    def show(self, row: Mapping[str, Any]) -> None:
        names = ("reward", *RATES)
        shown = "  ".join(f"{name} {row[name]:.2f}" for name in names if row[name] is not None)
        if self.bar:
            self.bar.update(self.task, completed=row["step"], description=shown)
        elif row["step"] % max(1, self.steps // 10) == 0:
            print(f"step {row['step']}/{self.steps}  {shown}", file=sys.stderr)

    def stop(self) -> None:
        if self.bar:
            self.bar.stop()
