"""What every training records: graded responses, a row of metrics a step, complete checkpoints,
progress, and a stop that was asked for. It depends on no training library: see
`workbench.training.trl_common`.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from workbench.metrics import RATES, rates
from workbench.metrics.rows import mean
from workbench.runs.checkpoints import mark_complete, prune, sync
from workbench.runs.store import Store
from workbench.types import REFUTED, SUPPORTED, Feedback, Grade, Response
from workbench.util.failures import check_failed
from workbench.util.jsonl import append_json

# what a trainer may tell of a step
LOGGED = ("loss", "value_loss", "kl", "entropy", "grad_norm", "learning_rate")


class MetricsLog:
    """Metrics, checkpoints and progress of one training in its folder `out`. Use it as a context
    manager around the training.

    Args:
        steps, done: training steps that are wanted, and that an earlier process has done.
        shown: the metrics that progress shows.
        gather: joins a list of each process, in the order of their ranks, where several train
            together; the first one writes for all.

    `interrupted` is true once Ctrl-C was pressed: the trainer then finishes the step under way,
    saves and stops, and sets `stopped`.
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
        self.steps, self.done, self.shown = steps, done, shown
        self.handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for name in (signal.SIGINT, signal.SIGTERM):
                self.handlers[name] = signal.signal(name, self._stop)
        return self

    def __exit__(self, *_: Any) -> None:
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

    def lap_seconds(self) -> float:
        """Seconds since the training began, or since this was asked last."""
        now = time.perf_counter()
        seconds, self.since = now - self.since, now
        return seconds

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a step's row, and print a line for every tenth of the run."""
        if not self.main:
            return
        append_json(self.out / "metrics.jsonl", row)
        shown = "  ".join(f"{name} {row[name]:.2f}" for name in self.shown if row[name] is not None)
        if row["step"] % max(1, self.steps // 10) == 0:
            print(f"step {row['step']}/{self.steps}  {shown}", file=sys.stderr)

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


class RolloutRecorder(MetricsLog):
    """The journal of one run that also grades its responses and keeps them. Use it as a context
    manager around training.

    `grade` pays `method`, and `journal` are further arguments of `MetricsLog`. Of several processes
    that train together, each grades its own responses.
    """

    def __init__(
        self, out: Path, method: str, grade: Grade, *, max_failed: float, **journal: Any
    ) -> None:
        super().__init__(out, shown=("reward", *RATES), **journal)
        self.method, self.grade, self.max_failed = method, grade, max_failed
        self.step_feedbacks: list[Feedback] = []
        self.spent: defaultdict[str, float] = defaultdict(
            float
        )  # seconds of the step under way, by part

    def __enter__(self) -> Self:
        if self.main:
            self.store = Store(self.out)
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, *others: Any) -> None:
        """What this process has graded of a step that something broke off is kept, until the run
        goes on and grades it anew.
        """
        if self.main:
            if kind is not None:
                self.store.append(self.step_feedbacks)
            self.store.close()
        super().__exit__(kind, *others)

    def grade_responses(self, responses: Sequence[Response], step: int) -> list[Feedback]:
        """Grade responses of a step. They are stored when the step is logged, or when something
        breaks it off.

        Raises:
            TooManyFailures: too large a share of the step's responses so far have no reward.
        """
        with self.timed("grading"):
            feedbacks = self.grade(responses)
        self.step_feedbacks += feedbacks
        every = self.gather(
            [(reward_of(f, self.method), reason(f, self.method)) for f in self.step_feedbacks]
        )
        unscored = [why for value, why in every if value is None]
        what = f"responses of step {step} could not be graded"
        check_failed(unscored, len(every), self.max_failed, what)
        return feedbacks

    def log(self, step: int, logs: Mapping[str, Any], responses: Sequence[Response]) -> None:
        """Store the responses of a finished step, as training left them, with what was found out
        about them, and append the step's row. What begins with `seconds` is all that differs
        between equal runs."""
        feedbacks = self.gather(
            [replace(f, response=r) for f, r in zip(self.step_feedbacks, responses, strict=True)]
        )
        if self.main:
            self.store.append(feedbacks)
        took, spent = self.lap_seconds(), self.spent
        seconds = {
            "generation": spent["generation"],
            "grading": spent["grading"],
            "update": took - sum(spent.values()),
        }
        row: dict[str, Any] = {
            "step": step,
            **paid(feedbacks, self.method),
            **rates(feedbacks),
            **claimed(feedbacks),
            "length": mean([len(feedback.response.token_ids) for feedback in feedbacks]),
            "truncated": mean([feedback.response.finish == "length" for feedback in feedbacks]),
            **{name: finite(logs.get(name)) for name in LOGGED},
            "seconds": round(took, 3),
            **{f"seconds_{name}": round(value, 3) for name, value in seconds.items()},
        }
        self.step_feedbacks, self.spent = [], defaultdict(float)
        self.write(row)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Count the seconds inside as the step's `part`."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.spent[part] += time.perf_counter() - began

    def saved(self, checkpoint: Path) -> None:
        """Declare a checkpoint complete, once the rows are on the disk, too."""
        if self.main:
            self.store.sync()
        super().saved(checkpoint)


def reward_of(feedback: Feedback, method: str) -> float | None:
    """What the method pays for a response; None where it could not be graded."""
    reward = feedback.rewards.get(method)
    return None if feedback.error or reward is None else reward.value


def reason(feedback: Feedback, method: str) -> str:
    """Why a response has no reward, as "stage: message"; "" where nothing says why."""
    reward = feedback.rewards.get(method)
    error = feedback.error or (reward and reward.error)
    return f"{error.stage}: {error.message}" if error else ""


def paid(feedbacks: Sequence[Feedback], method: str) -> dict[str, Any]:
    """Mean reward and the mean of each of its parts, over the responses that have it; how many
    have no reward; the events of a response that found no token; and the share of groups in
    which every advantage is 0."""
    rewards = [f.rewards[method] for f in feedbacks if reward_of(f, method) is not None]
    parts = dict.fromkeys(part for reward in rewards for part in reward.parts)
    groups: dict[str, bool] = {}
    for feedback in feedbacks:
        name = feedback.response.group
        groups[name] = groups.get(name, False) or any(feedback.response.advantages)
    return {
        "reward": mean([reward.value for reward in rewards if reward.value is not None]),
        **{
            f"reward/{part}": mean(
                [reward.parts[part] for reward in rewards if part in reward.parts]
            )
            for part in parts
        },
        "failed": len(feedbacks) - len(rewards),
        "unplaced": mean([len(reward.unplaced) for reward in rewards]),
        "no_signal": mean([not has_signal for has_signal in groups.values()]),
    }


def claimed(feedbacks: Sequence[Feedback]) -> dict[str, float | None]:
    """Claims of a response with a verdict on them, in all and by what it says, over the
    responses that were read for claims; None where no claim was looked at."""
    read = [feedback for feedback in feedbacks if feedback.error is None]
    labels = Counter(
        verdict.label
        for feedback in read
        for verdict in feedback.verdicts
        if verdict.aspect == "fact"
        and verdict.target.startswith("claim:")
        and verdict.label is not None
    )
    counts = {
        "claims": labels.total(),
        "claims_correct": sum(labels[label] for label in SUPPORTED),
        "claims_wrong": sum(labels[label] for label in REFUTED),
        "claims_vague": labels["vague"],
    }
    return {name: count / len(read) if labels else None for name, count in counts.items()}
