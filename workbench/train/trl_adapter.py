"""Between TRL and the workbench: sampled ids -> responses by group, and TRL's callbacks -> a `Record`."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.credit.advantages import Rewarded, rewarded
from workbench.generate import as_response
from workbench.train.credit import Trained, as_tensor, token_advantages, without
from workbench.train.record import Record, reward_of
from workbench.types import Feedback, Question, Response


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
    """The reward function, the credit of tokens and the callback by which a TRL trainer reports to a `Record`.

    The trainer's data set has a column `number`, the question's place in `questions`; a question is sampled `group_size` times.
    `estimator` makes advantages of rewards. A step of the record is `iterations` updates of the trainer. With `mask_truncated`
    a response that was cut off has no part in a baseline, as it has none in the loss.
    """

    def __init__(
        self,
        record: Record,
        questions: Sequence[Question],
        tokenizer: Any,
        group_size: int,
        estimator: str = "group",
        *,
        iterations: int = 1,
        mask_truncated: bool = False,
    ) -> None:
        self.record, self.questions, self.tokenizer, self.group_size = record, questions, tokenizer, group_size
        self.estimator, self.iterations, self.mask_truncated = estimator, iterations, mask_truncated
        self.asked: Counter[str] = Counter()  # in the step under way
        self.trained: list[Trained] = []  # the step's responses, in the order in which they were rewarded
        self.batch: list[Rewarded] = []  # of them, those that were rewarded last
        # TRL repeats a whole prompt in the log for every reward of None; they are counted and shown here.
        logging.getLogger("trl.trainer.grpo_trainer").setLevel(logging.ERROR)

    def reward(self, completion_ids: list[list[int]], number: list[int], trainer_state: Any, **_: Any) -> list[float | None]:
        """TRL's reward function: completions -> responses -> feedback, all of it stored; a reward or None for each."""
        step = trainer_state.global_step // self.iterations + 1
        feedbacks = self.record.pay(self._responses(completion_ids, number, step), step)
        self.trained += [Trained(feedback.response) for feedback in feedbacks]
        self.batch = [self._rewarded(feedback) for feedback in feedbacks]
        values = (reward_of(feedback, self.record.method) for feedback in feedbacks)
        return [None if row.rewards is None else value for value, row in zip(values, self.batch, strict=True)]

    def _rewarded(self, feedback: Feedback) -> Rewarded:
        if reward_of(feedback, self.record.method) is None or (self.mask_truncated and feedback.response.finish == "length"):
            return Rewarded(len(feedback.response.token_ids), None)
        return rewarded(feedback, self.record.method)

    def credited(self, batch: dict[str, Any], accelerator: Any) -> dict[str, Any]:
        """What TRL made of the batch that was just rewarded, with advantages by token, (B, T), unless each response's is one
        number; with the tokens of responses without a reward masked; and with the rows' places in `trained`."""
        import torch

        size = len(self.batch)
        if self.estimator != "group":  # TRL's own are those
            every = token_advantages(self.record.gather(self.batch), self.group_size, self.estimator)
            batch = {**batch, "advantages": as_tensor(every[self._own(size)], batch["completion_mask"])}
        unscored = (row for row, rewards in enumerate(self.batch) if rewards.rewards is None)
        places = torch.arange(len(self.trained) - size, len(self.trained), device=batch["completion_ids"].device)
        return {**without(unscored, batch, accelerator), "row": places}

    def saw(self, batch: Mapping[str, Any], logprobs_BT: Any = None) -> None:
        """Note what the loss was given for a batch, and the log-probabilities that it found, where they are at hand."""
        advantages_BT, reference_BT = batch["advantages"], batch.get("ref_per_token_logps")
        if advantages_BT.dim() == 1:
            advantages_BT = advantages_BT[:, None].expand_as(batch["completion_ids"])
        found = {"advantages": advantages_BT, "ref_logprobs": reference_BT}
        if logprobs_BT is not None:
            old_BT = batch.get("old_per_token_logps")
            old_BT = logprobs_BT if old_BT is None else old_BT
            found |= {"logprobs": old_BT, "ratios": (logprobs_BT - old_BT).exp()}
        for number, place in enumerate(batch["row"].tolist()):
            if not batch["completion_mask"][number].any():  # not trained on
                continue
            row = self.trained[place]
            for name, values_BT in found.items():
                if values_BT is not None:
                    setattr(row, name, numbers(values_BT[number, : len(row.response.token_ids)]))

    def _responses(self, completion_ids: list[list[int]], number: list[int], step: int) -> list[Response]:
        """Named by their places among the responses of all processes, since a group may lie on two."""
        every, size = self.record.gather(number), self.group_size
        assert all(len(set(every[at : at + size])) == 1 for at in range(0, len(every), size)), every
        names = list(grouped([self.questions[index] for index in every], step, size, self.asked))
        return [
            named(as_response(self.tokenizer, self.questions[index], ids, [self.tokenizer.eos_token_id]), group, sample, step)
            for index, ids, (group, sample) in zip(number, completion_ids, names[self._own(len(number))], strict=True)
        ]

    def _own(self, count: int) -> slice:
        """The places of this process's `count` rows among those of all."""
        first = self.record.rank * count
        return slice(first, first + count)

    def callback(self) -> Any:
        from transformers import TrainerCallback

        adapter, record = self, self.record

        class Callback(TrainerCallback):
            def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                record.begin()

            def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
                if logs and "loss" in logs and adapter.whole(state):  # the log at the end of training has none
                    record.log(state.global_step // adapter.iterations, logs, [row.recorded() for row in adapter.trained])
                    adapter.asked.clear()
                    adapter.trained.clear()

            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if record.interrupted and adapter.whole(state):
                    control.should_save = control.should_training_stop = True

            def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                record.saved(Path(args.output_dir) / f"checkpoint-{state.global_step}")

        return Callback()

    def whole(self, state: Any) -> bool:
        """Whether the last update was the last one with its responses."""
        return state.global_step % self.iterations == 0


def numbers(values_T: Any) -> tuple[float, ...]:
    """Float32 numbers with the digits that tell them apart, and no more."""
    return tuple(float(f"{value:.9g}") for value in values_T.tolist())
