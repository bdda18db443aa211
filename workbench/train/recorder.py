"""What a trainer reports to: grades responses, keeps every one, writes a row of metrics a step, shows progress."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.generate import as_response
from workbench.jsonl import append_json
from workbench.metrics import RATES, rates
from workbench.runs.checkpoints import mark_complete, prune, sync
from workbench.store import Store
from workbench.types import Feedback, Grade, Question, Response

if TYPE_CHECKING:
    from workbench.train.grpo import GRPO

LOGGED = {"loss": "loss", "kl": "kl", "entropy": "entropy", "grad_norm": "grad_norm", "learning_rate": "learning_rate"}


class Recorder:
    """One run's reward function and callback. Use it as a context manager around training.

    `interrupted` tells whether Ctrl-C ended the run; the step under way is finished and saved first.
    """

    def __init__(
        self,
        config: GRPO,
        questions: Sequence[Question],
        grade: Grade,
        tokenizer: Any,
        out: Path,
        method: str,
        done: int,
    ) -> None:
        self.config, self.questions, self.grade, self.tokenizer = config, questions, grade, tokenizer
        self.out, self.method = out, method
        self.interrupted = False
        self.step_feedbacks: list[Feedback] = []
        self.since = time.perf_counter()
        self.progress = _Progress(config.steps, done)
        self.handlers: dict[int, Any] = {}

    def __enter__(self) -> Recorder:
        import logging

        # TRL repeats a whole prompt in the log for every reward of None; they are counted and shown here.
        logging.getLogger("trl.trainer.grpo_trainer").setLevel(logging.ERROR)
        if threading.current_thread() is threading.main_thread():
            for name in (signal.SIGINT, signal.SIGTERM):
                self.handlers[name] = signal.signal(name, self._stop)
        self.store = Store(self.out)
        self.progress.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.progress.stop()
        self.store.close()
        for name, handler in self.handlers.items():
            signal.signal(name, handler)

    def _stop(self, *_: Any) -> None:
        if self.interrupted:  # asked twice
            raise KeyboardInterrupt
        self.interrupted = True
        print("stopping after this step; once more stops at once", file=sys.stderr)

    def reward(self, completion_ids: list[list[int]], number: list[int], trainer_state: Any, **_: Any) -> list[float | None]:
        """TRL's reward function: completions -> responses -> feedback, all of it stored; a reward or None for each."""
        from workbench.train.grpo import TooManyFailures

        responses = self._responses(completion_ids, number, trainer_state.global_step + 1)
        feedbacks = self.grade(responses)
        self.store.append(feedbacks)
        values = [self._value(feedback) for feedback in feedbacks]
        self.step_feedbacks += feedbacks
        failed = values.count(None)
        if failed > self.config.max_failed * len(values):
            first = next(f for f, value in zip(feedbacks, values, strict=True) if value is None)
            raise TooManyFailures(
                f"{failed} of {len(values)} responses of step {trainer_state.global_step + 1} could not be graded "
                f"({self._reason(first)}): mend that and run the same command again, or raise max_failed"
            )
        return values

    def _responses(self, completion_ids: list[list[int]], number: list[int], step: int) -> list[Response]:
        """Responses by group, as TRL samples them: a question's `group_size` samples in a row.

        `group` is "question/step", or "question/step.2" where a step asks a question a second time.
        """
        size, groups = self.config.group_size, [f.response.question.id for f in self.step_feedbacks[:: self.config.group_size]]
        responses = []
        for position, (ids, index) in enumerate(zip(completion_ids, number, strict=True)):
            question, sample = self.questions[index], position % size
            if sample == 0:
                groups.append(question.id)
            assert groups[-1] == question.id, (groups[-1], question.id)
            times = groups.count(question.id)
            group = f"{question.id}/{step}" + (f".{times}" if times > 1 else "")
            response = as_response(self.tokenizer, question, ids, [self.tokenizer.eos_token_id], sample=sample, step=step)
            responses.append(replace(response, id=f"{group}/{sample}", group=group))
        return responses

    def _value(self, feedback: Feedback) -> float | None:
        reward = feedback.rewards.get(self.method)
        return None if feedback.error or reward is None else reward.value

    def _reason(self, feedback: Feedback) -> str:
        reward = feedback.rewards.get(self.method)
        error = feedback.error or (reward and reward.error)
        return f"{error.stage}: {error.message}" if error else "no reward"

    def log(self, step: int, logs: dict[str, Any]) -> None:
        """Append the row of a finished step. `seconds` is the one value that differs between equal runs."""
        values = [value for value in map(self._value, self.step_feedbacks) if value is not None]
        lengths = [len(feedback.response.token_ids) for feedback in self.step_feedbacks]
        cut = [feedback.response.finish == "length" for feedback in self.step_feedbacks]
        now = time.perf_counter()
        row: dict[str, Any] = {
            "step": step,
            "reward": sum(values) / len(values) if values else None,
            **rates(self.step_feedbacks),
            "failed": len(self.step_feedbacks) - len(values),
            "length": sum(lengths) / len(lengths) if lengths else None,
            "truncated": sum(cut) / len(cut) if cut else None,
            **{name: _finite(logs.get(key)) for key, name in LOGGED.items()},
            "seconds": round(now - self.since, 3),
        }
        self.since, self.step_feedbacks = now, []
        append_json(self.out / "metrics.jsonl", row)
        self.progress.show(row)

    def callback(self) -> Any:
        from transformers import TrainerCallback

        recorder = self

        class Callback(TrainerCallback):
            def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
                if logs and "loss" in logs:  # the log at the end of training has none
                    recorder.log(state.global_step, logs)

            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if recorder.interrupted:
                    control.should_save = control.should_training_stop = True

            def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                checkpoint = Path(args.output_dir) / f"checkpoint-{state.global_step}"
                recorder.store.sync()  # what the checkpoint counts on is on the disk before it is declared complete
                sync(recorder.out / "metrics.jsonl")
                sync(recorder.out)
                mark_complete(checkpoint)
                prune(checkpoint.parent)

        return Callback()


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

    def show(self, row: dict[str, Any]) -> None:
        names = ("reward", *RATES)
        shown = "  ".join(f"{name} {row[name]:.2f}" for name in names if row[name] is not None)
        if self.bar:
            self.bar.update(self.task, completed=row["step"], description=shown)
        elif row["step"] % max(1, self.steps // 10) == 0:
            print(f"step {row['step']}/{self.steps}  {shown}", file=sys.stderr)

    def stop(self) -> None:
        if self.bar:
            self.bar.stop()
