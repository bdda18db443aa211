"""Record a training: graded responses, metrics per step, checkpoints and progress lines.

No training library is imported here. `trl_common.report_callback` connects TRL's trainers.
"""

import gc
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, Self

from workbench.metrics import RATES, rates
from workbench.metrics.rows import mean, share
from workbench.runs.checkpoints import mark_complete, prune, sync
from workbench.runs.store import Store
from workbench.types import (
    REFUTED,
    SUPPORTED,
    Failure,
    Feedback,
    Grade,
    JsonMapping,
    JsonObject,
    Response,
)
from workbench.util.failures import check_failed
from workbench.util.jsonl import append_json, finite
from workbench.util.signals import handled_signals

# what a trainer can report about a step
LOGGED = ("loss", "value_loss", "kl", "entropy", "grad_norm", "learning_rate")


class MetricsLog:
    """Log of a training: metrics in the folder `out`, progress lines, and complete checkpoints.

    Use it as a context manager around the training. After the first Ctrl-C, `interrupted` is True.
    The trainer then finishes the current step, saves a checkpoint, sets `stopped` to True and
    stops. The second Ctrl-C stops at once.

    Args:
        steps: total number of training steps.
        done: number of steps that an earlier process has completed.
        progress: names of the metrics in the progress lines.
        gather: function from a list to the concatenated lists of all processes, in order of rank.
        rank: rank of this process. Only rank 0 writes.
    """

    def __init__(
        self,
        out: Path,
        *,
        steps: int,
        done: int,
        progress: Sequence[str],
        gather: Callable[[list[Any]], list[Any]] = list,
        rank: int = 0,
    ) -> None:
        self.out, self.gather, self.rank, self.main = out, gather, rank, rank == 0
        self.interrupted = self.stopped = False
        self.lap_start = time.perf_counter()
        self.steps, self.done, self.progress = steps, done, progress
        self.handling = handled_signals(self._stop, signal.SIGINT, signal.SIGTERM)

    def __enter__(self) -> Self:
        self.handling.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        gc.unfreeze()
        self.handling.__exit__(None, None, None)

    def begin(self) -> None:
        """Exclude all objects loaded so far from garbage collection, to save time."""
        # a step's rows trigger many collections, and each would scan the objects of the model
        gc.freeze()

    def _stop(self, *_: object) -> None:
        if self.interrupted:  # the second Ctrl-C
            raise KeyboardInterrupt
        self.interrupted = True
        print("stopping after this step; a second interrupt stops at once", file=sys.stderr)

    def lap_seconds(self) -> float:
        """Return the seconds since the last call of this method, or since the log was created."""
        now = time.perf_counter()
        seconds, self.lap_start = now - self.lap_start, now
        return seconds

    def write(self, row: JsonMapping) -> None:
        """Append a step's metrics to metrics.jsonl, and print progress about ten times in total.

        A line of progress begins with the name of the folder: several runs may train side by side.

        `row` must contain "step" and the metrics named in `progress`.
        """
        if not self.main:
            return
        append_json(self.out / "metrics.jsonl", row)
        # a metric is None if a step has no graded response
        values = "  ".join(
            f"{name} {row[name]:.2f}" for name in self.progress if row[name] is not None
        )
        # about ten lines for any number of steps, so that a log stays readable
        if row["step"] % max(1, self.steps // 10) == 0:
            print(
                f"{self.out.resolve().name}: step {row['step']}/{self.steps}  {values}",
                file=sys.stderr,
            )

    def write_step(self, step: int, row: JsonMapping) -> None:
        """Add "step" and "seconds" to a step's metrics, then append them to metrics.jsonl.

        "seconds" is the time since the previous step. Progress is printed as in `write`.
        """
        self.write({"step": step, **row, "seconds": round(self.lap_seconds(), 3)})

    def complete_checkpoint(self, checkpoint: Path) -> None:
        """Mark a checkpoint as complete, and keep only the two newest complete checkpoints."""
        if not self.main:
            return
        # a resumed run does not repeat these steps, so their rows must be on the disk first
        sync(self.out / "metrics.jsonl")
        sync(self.out)
        mark_complete(checkpoint)
        prune(checkpoint.parent)


class RolloutRecorder(MetricsLog):
    """A `MetricsLog` that also grades the responses of a run and stores them.

    If several processes train together, each grades its own responses, and rank 0 stores the
    responses of all.

    Args:
        method: name of the reward that `grade` computes.
        grade: function from responses to their graded `Feedback`.
        max_failed: largest accepted share of a step's responses without a reward.
        options: further arguments of `MetricsLog`.
    """

    def __init__(
        self, out: Path, method: str, grade: Grade, *, max_failed: float, **options: Any
    ) -> None:
        super().__init__(out, progress=("reward", *RATES), **options)
        self.method, self.grade, self.max_failed = method, grade, max_failed
        self.step_feedbacks: list[Feedback] = []
        # seconds of the current step by part
        self.part_seconds: defaultdict[str, float] = defaultdict(float)

    def __enter__(self) -> Self:
        if self.main:
            self.store = Store(self.out)
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        """Close the store of graded responses.

        If an exception interrupted a step, the responses of this step are stored for inspection. A
        resumed run removes them and repeats the step.
        """
        if self.main:
            # on a normal exit every step has been logged
            if any(error):
                self.store.append(self.step_feedbacks)
            self.store.close()
        super().__exit__(*error)

    def grade_responses(
        self, responses: Sequence[Response], step: int, graded: Sequence[Feedback | None] = ()
    ) -> list[Feedback]:
        """Grade some responses of a step, and return their feedback. `log` later stores it.

        Args:
            graded: for each response, its feedback, or None if it is not graded yet. Empty: no
                response is graded yet.

        Raises:
            TooManyFailures: more than `max_failed` of the step's responses that have been graded so
                far have no reward.
        """
        with self.timed("grading"):
            rows = list(zip(responses, graded or [None] * len(responses), strict=True))
            new = [response for response, feedback in rows if feedback is None]
            grades = iter(self.grade(new) if new else ())
            feedbacks = [
                next(grades) if feedback is None else replace(feedback, response=response)
                for response, feedback in rows
            ]
        self.step_feedbacks += feedbacks
        method = self.method
        # all processes must raise: a process that continues would wait for the others forever
        every = self.gather(
            [
                (reward_of(f, method), f"{f.response.id}: {reason(f, method)}")
                for f in self.step_feedbacks
            ]
        )
        unscored = [why for value, why in every if value is None]
        what = f"responses of step {step} could not be graded"
        check_failed(unscored, len(every), self.max_failed, what)
        return feedbacks

    def log(self, step: int, logs: JsonMapping, responses: Sequence[Response]) -> None:
        """Store a finished step's graded responses, and append its metrics to metrics.jsonl.

        The metric `ratio_change` is the mean of |ratio − 1| over all tokens. A token's ratio is its
        probability at its last update, divided by its probability at sampling. With one update per
        step, all ratios are 1, and clipping has no effect.

        Args:
            logs: the trainer's means over the step: "loss", "value_loss", "kl", "entropy",
                "grad_norm" and "learning_rate". A missing mean is stored as None.
            responses: the responses given to `grade_responses`, in the same order, now with token
                statistics such as log-probabilities.
        """
        feedbacks = self.gather(
            [replace(f, response=r) for f, r in zip(self.step_feedbacks, responses, strict=True)]
        )
        if self.main:
            self.store.append(feedbacks)
        total, parts = self.lap_seconds(), self.part_seconds
        row = {
            "step": step,
            **reward_metrics(feedbacks, self.method),
            # `rates` also counts answers without an outcome, which some rewards do not need
            **{name: rate for name, rate in rates(feedbacks).items() if name in RATES},
            **claim_counts(feedbacks),
            "length": mean([len(feedback.response.token_ids) for feedback in feedbacks]),
            "truncated": mean([feedback.response.finish == "length" for feedback in feedbacks]),
            **{name: finite(logs.get(name)) for name in LOGGED},
            "ratio_change": mean(
                [abs(ratio - 1) for feedback in feedbacks for ratio in feedback.response.ratios]
            ),
            # in two runs with the same inputs, only the following fields differ
            "seconds": round(total, 3),
            "seconds_generation": round(parts["generation"], 3),
            "seconds_grading": round(parts["grading"], 3),
            "seconds_update": round(total - sum(parts.values()), 3),
        }
        self.step_feedbacks = []
        parts.clear()
        self.write(row)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Context manager that adds its duration to the seconds of `part` in the current step.

        `part` is "generation" or "grading". The remaining time of a step counts as its update.
        """
        start = time.perf_counter()
        try:
            yield
        finally:
            self.part_seconds[part] += time.perf_counter() - start

    def own_rows(self, count: int) -> slice:
        """Return the slice with this process's rows in the concatenated rows of all processes.

        Each process has `count` rows.
        """
        return slice(self.rank * count, (self.rank + 1) * count)

    def complete_checkpoint(self, checkpoint: Path) -> None:
        if self.main:
            self.store.sync()
        super().complete_checkpoint(checkpoint)


def step_means(logs: Sequence[JsonMapping]) -> dict[str, float]:
    """Return the means of a trainer's logs over the optimizer steps of a training step.

    Args:
        logs: the trainer's log of each optimizer step, such as {"loss": 0.1, "kl": 0.02}. The
            result has the metrics named in `LOGGED`, without those that have no value in any log.
    """
    values = {
        name: [float(log[name]) for log in logs if log.get(name) is not None] for name in LOGGED
    }
    return {name: fmean(numbers) for name, numbers in values.items() if numbers}


def reward_of(feedback: Feedback, method: str) -> float | None:
    """Return the reward of `method` for a response; None if the response has no such reward."""
    reward = feedback.rewards.get(method)
    return None if feedback.error or reward is None else reward.value


def error_of(feedback: Feedback, method: str) -> Failure | None:
    """Return the `Failure` of the claim extraction or, without one, of the reward of `method`.

    The result is None if no failure is stored. A response with a `Failure` may have the reward.
    """
    reward = feedback.rewards.get(method)
    return feedback.error or (reward.error if reward else None)


def reason(feedback: Feedback, method: str) -> str:
    """Return why a response has no reward, such as "verify: MESSAGE"; "" if not stored."""
    error = error_of(feedback, method)
    return f"{error.stage}: {error.message}" if error else ""


def reward_metrics(feedbacks: Sequence[Feedback], method: str) -> JsonObject:
    """Return the metrics of a step that concern rewards.

    Returns:
        * `reward`: mean reward
        * `reward/PART`: mean of each entry of `Reward.parts`, such as a term of the reward's sum,
          over the responses that have this entry
        * `failed`: number of responses without a reward
        * `unplaced`: mean number of claims per response that were not found in the response's text
        * `no_signal`: share of groups (the responses to one question) whose advantages are all 0
    """
    rewards = [f.rewards[method] for f in feedbacks if reward_of(f, method) is not None]
    parts: dict[str, list[float]] = {}
    for reward in rewards:
        for part, value in reward.parts.items():
            parts.setdefault(part, []).append(value)
    groups = {feedback.response.group for feedback in feedbacks}
    signal = {f.response.group for f in feedbacks if any(f.response.advantages)}
    return {
        "reward": mean([reward.value for reward in rewards if reward.value is not None]),
        **{f"reward/{part}": mean(values) for part, values in parts.items()},
        "failed": len(feedbacks) - len(rewards),
        "unplaced": mean([len(reward.unplaced) for reward in rewards]),
        "no_signal": share(len(groups - signal), len(groups)),
    }


def claim_counts(feedbacks: Sequence[Feedback]) -> dict[str, float | None]:
    """Return mean numbers of judged claims per response, by label.

    The keys are "claims" (all), "claims_correct", "claims_wrong" and "claims_vague" (neither
    correct nor wrong). The means are over the responses whose claims could be extracted. All values
    are None if no claim has a verdict.
    """
    extracted = [feedback for feedback in feedbacks if feedback.error is None]
    labels = Counter(
        verdict.label
        for feedback in extracted
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
    return {name: count / len(extracted) if labels else None for name, count in counts.items()}
