"""Between TRL and the workbench: sampled ids -> responses by group, and TRL's callbacks -> a `Record`."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.generate import as_response
from workbench.train.record import Record
from workbench.types import Question, Response


def grouped(
    questions: Iterable[Question], step: int | None, size: int | None = None, asked: Counter[str] | None = None
) -> Iterator[tuple[str, int]]:
    """(group, sample) of each response to these questions, in order.

    A group is "question/step", or the question where no step is told. TRL samples a question `size` times in a row, and a
    step that asks it a second time makes another group of it, "question/step.2"; `asked` remembers the step's earlier calls.
    Where the size is not known, all responses to a question are one group.
    """
    asked = Counter() if asked is None else asked
    for position, question in enumerate(questions):
        sample = asked[question.id] if size is None else position % size
        if size is None or sample == 0:
            asked[question.id] += 1
        again = f".{asked[question.id]}" if size is not None and asked[question.id] > 1 else ""
        yield (question.id if step is None else f"{question.id}/{step}{again}"), sample


def named(response: Response, group: str, sample: int, step: int | None) -> Response:
    """The response under the id that its group and its number there make."""
    return replace(response, id=f"{group}/{sample}", group=group, sample=sample, step=step)


class TRLAdapter:
    """The reward function and the callback by which a TRL trainer reports to a `Record`.

    The trainer's data set has a column `number`, the question's place in `questions`; a question is sampled `group_size` times.
    """

    def __init__(self, record: Record, questions: Sequence[Question], tokenizer: Any, group_size: int) -> None:
        self.record, self.questions, self.tokenizer, self.group_size = record, questions, tokenizer, group_size
        self.asked: Counter[str] = Counter()  # in the step under way
        # TRL repeats a whole prompt in the log for every reward of None; they are counted and shown here.
        logging.getLogger("trl.trainer.grpo_trainer").setLevel(logging.ERROR)

    def reward(self, completion_ids: list[list[int]], number: list[int], trainer_state: Any, **_: Any) -> list[float | None]:
        """TRL's reward function: completions -> responses -> feedback, all of it stored; a reward or None for each."""
        step = trainer_state.global_step + 1
        return self.record.pay(self._responses(completion_ids, number, step), step)

    def _responses(self, completion_ids: list[list[int]], number: list[int], step: int) -> list[Response]:
        questions = [self.questions[index] for index in number]
        size = self.group_size
        assert all(len(set(number[at : at + size])) == 1 for at in range(0, len(number), size)), number
        return [
            named(as_response(self.tokenizer, question, ids, [self.tokenizer.eos_token_id]), group, sample, step)
            for question, ids, (group, sample) in zip(
                questions, completion_ids, grouped(questions, step, size, self.asked), strict=True
            )
        ]

    def callback(self) -> Any:
        from transformers import TrainerCallback

        adapter, record = self, self.record

        class Callback(TrainerCallback):
            def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                record.begin()

            def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
                if logs and "loss" in logs:  # the log at the end of training has none
                    record.log(state.global_step, logs)
                    adapter.asked.clear()

            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if record.interrupted:
                    control.should_save = control.should_training_stop = True

            def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                record.saved(Path(args.output_dir) / f"checkpoint-{state.global_step}")

        return Callback()
