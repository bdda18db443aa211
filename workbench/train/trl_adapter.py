"""Between TRL's GRPO and a `Record`: sampled ids -> responses by group, rewards and advantages
back, updates -> steps.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from workbench.credit.advantages import ESTIMATORS, Rewarded, rewarded
from workbench.generate import as_response
from workbench.train.credit import as_tensor, noted, ratio_of, token_advantages, without
from workbench.train.record import LOGGED, Record, reward_of
from workbench.train.sampling import grouped, named
from workbench.train.trl_trainer import reporting
from workbench.types import Feedback, Question, Response


class TRLAdapter:
    """The reward function, the credit of tokens and the callback by which a TRL trainer reports
    to a `Record`.

    The trainer's data set has a column `number`, the question's place in `questions`; a question
    is sampled `group_size` times. `estimator` makes advantages of rewards. A step of the record
    is `iterations` updates of the trainer. With `mask_truncated` a response that was cut off has
    no part in a baseline, as it has none in the loss.
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
        self.record, self.questions, self.tokenizer, self.group_size = (
            record,
            questions,
            tokenizer,
            group_size,
        )
        self.estimator, self.iterations, self.mask_truncated = estimator, iterations, mask_truncated
        self.asked: Counter[str] = Counter()  # in the step under way
        self.trained: list[Response] = []  # of the step, in the order in which they were rewarded
        self.batch: list[Feedback] = []  # of them, those that were rewarded last
        self.logs: list[Mapping[str, Any]] = []  # of the step's updates
        # TRL repeats a whole prompt in the log for every reward of None; they are counted and shown
        # here.
        logging.getLogger("trl.trainer.grpo_trainer").addFilter(_not_about_none)

    def reward(
        self, completion_ids: list[list[int]], number: list[int], trainer_state: Any, **_: Any
    ) -> list[float | None]:
        """TRL's reward function: completions -> responses -> feedback; a reward or None for
        each.
        """
        step = trainer_state.global_step // self.iterations + 1
        feedbacks = self.record.pay(self._responses(completion_ids, number, step), step)
        self.trained += [feedback.response for feedback in feedbacks]
        self.batch = feedbacks
        return [self._value(feedback) for feedback in feedbacks]

    def _value(self, feedback: Feedback) -> float | None:
        """What a response is paid, None where it takes no part."""
        left_out = self.mask_truncated and feedback.response.finish == "length"
        return None if left_out else reward_of(feedback, self.record.method)

    def _rewarded(self, feedback: Feedback) -> Rewarded:
        if self._value(feedback) is None:
            return Rewarded(len(feedback.response.token_ids), None)
        return rewarded(feedback, self.record.method)

    def credited(self, batch: dict[str, Any], accelerator: Any) -> dict[str, Any]:
        """What TRL made of the batch that was just rewarded, with advantages by token, (B, T),
        unless each response's is one number; with the tokens of responses without a reward
        masked; and with the rows' places in `trained`."""
        import torch

        size = len(self.batch)
        if self.estimator != "group":  # TRL's own are those
            rows = [self._rewarded(feedback) for feedback in self.batch]
            every = token_advantages(
                self.record.gather(rows), self.group_size, ESTIMATORS[self.estimator]
            )
            batch = {
                **batch,
                "advantages": as_tensor(every[self._own(size)], batch["completion_mask"]),
            }
        unscored = [row for row, feedback in enumerate(self.batch) if self._value(feedback) is None]
        places = torch.arange(
            len(self.trained) - size, len(self.trained), device=batch["completion_ids"].device
        )
        return {**without(unscored, batch, accelerator), "row": places}

    def saw(self, batch: Mapping[str, Any], logprobs_BT: Any = None) -> None:
        """Note what the loss was given for a batch, and the log-probabilities that it found,
        where they are at hand.
        """
        advantages_BT, reference_BT = batch["advantages"], batch.get("ref_per_token_logps")
        if advantages_BT.dim() == 1:
            advantages_BT = advantages_BT[:, None].expand_as(batch["completion_ids"])
        old_BT = batch.get("old_per_token_logps")
        old_BT = logprobs_BT if old_BT is None else old_BT
        ratios_BT = None if logprobs_BT is None else ratio_of(logprobs_BT, old_BT)
        for number, place in enumerate(batch["row"].tolist()):
            if batch["completion_mask"][number].any():  # it is trained on
                self.trained[place] = noted(
                    self.trained[place],
                    number,
                    advantages=advantages_BT,
                    logprobs=old_BT,
                    ref_logprobs=reference_BT,
                    ratios=ratios_BT,
                )

    def _responses(
        self, completion_ids: list[list[int]], number: list[int], step: int
    ) -> list[Response]:
        """Named by their places among the responses of all processes, since a group may lie on
        two.
        """
        every, size = self.record.gather(number), self.group_size
        if not all(len(set(every[at : at + size])) == 1 for at in range(0, len(every), size)):
            raise RuntimeError(
                f"the trainer did not ask each question {size} times in a row: {every}"
            )
        names = list(grouped([self.questions[index] for index in every], step, size, self.asked))
        return [
            named(
                as_response(
                    self.tokenizer, self.questions[index], ids, [self.tokenizer.eos_token_id]
                ),
                group,
                sample,
                step,
            )
            for index, ids, (group, sample) in zip(
                number, completion_ids, names[self._own(len(number))], strict=True
            )
        ]

    def _own(self, count: int) -> slice:
        """The places of this process's `count` rows among those of all."""
        first = self.record.rank * count
        return slice(first, first + count)

    def callback(self) -> Any:
        return reporting(self.record, self._update, self.whole)

    def _update(self, state: Any, logs: Mapping[str, Any]) -> None:
        """Note what the trainer tells of an update, and log the step if that was its last."""
        self.logs.append(logs)
        if self.whole(state):
            means = {name: fmean(numbers) for name in LOGGED if (numbers := self.logged(name))}
            self.record.log(state.global_step // self.iterations, means, list(self.trained))
            for kept in (self.asked, self.trained, self.logs):
                kept.clear()

    def whole(self, state: Any) -> bool:
        """Whether the last update was the last one with its responses."""
        return state.global_step % self.iterations == 0

    def logged(self, name: str) -> list[float]:
        """A number of each of the step's updates."""
        return [float(logs[name]) for logs in self.logs if logs.get(name) is not None]


def _not_about_none(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("All reward functions returned None")
