"""Train by GRPO (arXiv 2402.03300) on TRL's trainer.

TRL's trainer runs the loop, the optimizer and the checkpoints. It calls the methods of
`RolloutTrainer` in the order of this file: prompts → rollouts → grades → advantages → loss → update
→ log.

Import this module inside functions, after `load_trainee`. It imports TRL, and Unsloth can patch TRL
only if Unsloth is imported first.

Shapes: B responses, T tokens.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import trl
from datasets import Dataset
from torch import Tensor

from workbench.credit.advantages import ESTIMATORS, Rewarded, rewarded
from workbench.credit.tensors import (
    as_tensor,
    loss_stats,
    token_advantages,
    whole_responses,
    with_token_stats,
    without,
)
from workbench.policies.hf import has_linear_head
from workbench.training import colocate, unsloth_hooks
from workbench.training.grpo_config import (
    GRPO,
    TRL_SCALES,
    estimator,
    question_order,
    trl_arguments,
)
from workbench.training.loading import Trainee
from workbench.training.recorder import RolloutRecorder, reward_of, step_means
from workbench.training.sampling import grouped, named_responses, redrawn, sample
from workbench.training.shared_prefix import chunked_logprobs
from workbench.training.trl_common import Offline, finish_trainer, report_callback
from workbench.types import Feedback, JsonMapping, JsonObject, Question, Response, WorkbenchError
from workbench.util.grouping import split_batches

if TYPE_CHECKING:
    from transformers import PreTrainedModel, TrainerState

Tensors = dict[str, Tensor]  # TRL's batch by name; a few values are numbers or None


class RolloutTrainer(Offline, trl.GRPOTrainer):
    """TRL's GRPO trainer with our sampling, grading and token advantages, and stored rollouts.

    With `importance_sampling=trajectory` and `loss_type=grpo`, the loss is KnowRL's (arXiv
    2506.19807): the mean over responses of −min(ϱA, clip(ϱ, 1 − ε, 1 + ε)A). A is the advantage of
    the response, and ε the setting `clip`. ϱ is the probability ratio of the whole response, at
    most `MAX_TRAJECTORY_RATIO`.

    Args:
        trainee: the policy. If its `path` is "unsloth", Unsloth computes the forward pass and the
            loss.
        recorder: grades the rollouts and stores them.
    """

    loss_called = False  # whether `_compute_loss` of this class has run
    sampling_state: Tensor | None = None  # torch's random state after the last sampling
    # the batch of the current loss if importance_sampling=trajectory, else None
    trajectory_batch: Tensors | None = None

    def __init__(
        self,
        config: GRPO,
        trainee: Trainee,
        recorder: RolloutRecorder,
        questions: Sequence[Question],
        out: Path,
        seed: int,
    ) -> None:
        self.config, self.recorder, self.questions = config, recorder, questions
        self.plain = trainee.path == "plain"
        if not self.plain:
            unsloth_hooks.check_patched(self)
        # Of the current step:
        self.group_counts: Counter[str] = Counter()  # groups by question
        self.responses: list[Response] = []  # in the order of their grading
        self.feedbacks: list[Feedback] = []  # the latest graded batch
        self.update_logs: list[JsonMapping] = []
        self.numbers: list[int] = []  # indices of the questions that are being sampled
        self.graded: list[Feedback | None] = []  # grades of sampled completions, by `redrawn`
        requested = {**trl_arguments(config, out, seed), **colocate.engine_arguments(config)}
        arguments = trl.GRPOConfig(**requested)
        # Unsloth's config sets "none" for dr_grpo.
        arguments.scale_rewards = requested["scale_rewards"]
        rows = [
            # `number` identifies the question, whose gold answers are not in TRL's row
            {"prompt": questions[number].messages(), "number": number}
            for number in question_order(config, len(questions), seed)
        ]
        super().__init__(
            model=trainee.model,
            reward_funcs=self.reward,
            args=arguments,
            train_dataset=Dataset.from_list(rows),
            processing_class=trainee.tokenizer,
            callbacks=[report_callback(recorder, self.log_update, self.step_ends)],
        )
        finish_trainer(self, requested)
        self.chunked = self.plain and has_linear_head(trainee.model)

    # --- prompts → rollouts

    def _generate_single_turn(
        self, prompt_ids: list[list[int]], *args: object, **kwargs: object
    ) -> tuple[list[list[int]], list[list[float]] | None]:
        """Overridden to sample with `workbench.training.sampling` or with vLLM.

        Only an Unsloth model is sampled by TRL itself, because it has another forward pass.

        Returns:
            The ids of the completions, and their log-probabilities if vLLM sampled them.
        """
        with self.recorder.timed("generation"):
            if not self.plain:
                return super()._generate_single_turn(prompt_ids, *args, **kwargs)
            if self.use_vllm:
                return colocate.sample(self, prompt_ids)
            completions = sample(self, prompt_ids)
        return redrawn(self, prompt_ids, completions), None

    # --- rollouts → grades

    def reward(
        self, completion_ids: list[list[int]], number: list[int], **_: object
    ) -> list[float | None]:
        """Grade completions and return their rewards; TRL calls this as its reward function.

        A response that is left out of the training has the reward None.

        Args:
            number: the index of each completion's question.
        """
        step = self.state.global_step // self.config.iterations + 1
        responses = self.as_responses(completion_ids, number, step)
        self.feedbacks = self.recorder.grade_responses(responses, step, self.graded)
        self.graded = []
        self.responses += [feedback.response for feedback in self.feedbacks]
        return [self.reward_value(feedback) for feedback in self.feedbacks]

    def as_responses(
        self, completion_ids: list[list[int]], number: list[int], step: int
    ) -> list[Response]:
        """Return completions as `Response` values, with their groups and sample numbers.

        Args:
            number: the index of each completion's question.
            step: training step, from 1.
        """
        numbers, size = self.recorder.gather(number), self.config.group_size
        # advantages are computed over successive rows, which must answer one question
        if not all(len(set(group)) == 1 for group in split_batches(numbers, size)):
            raise RuntimeError(
                f"TRL did not repeat each question {size} times in a row ({numbers}): install the"
                " version of trl in pyproject.toml"
            )
        questions = [self.questions[index] for index in numbers]
        # for all processes together, because a group may be split between two processes
        names = list(grouped(questions, step, size, self.group_counts))
        own = self.recorder.own_rows(len(number))
        return named_responses(
            self.processing_class, questions[own], completion_ids, names[own], step
        )

    def reward_value(self, feedback: Feedback) -> float | None:
        """Return the reward of a response; None if the response is left out of the training.

        A response is left out if it has no reward, or if it is truncated and `mask_truncated` is
        set.
        """
        if self.config.mask_truncated and feedback.response.finish == "length":
            return None
        return reward_of(feedback, self.recorder.method)

    # --- grades → advantages

    def _generate_and_score_completions(self, inputs: list[JsonObject]) -> Tensors:
        """Overridden to replace the advantages that TRL computed from the rewards."""
        self.numbers = [row["number"] for row in inputs]
        return self.with_advantages(super()._generate_and_score_completions(inputs))

    def with_advantages(self, batch: Tensors) -> Tensors:
        """Return TRL's batch with our token advantages, (B, T), and a new tensor `row`, (B).

        With the estimators "group" and "centred", the batch keeps the advantages that TRL computed,
        (B). `row` has the index of each response in `self.responses`, the responses of this step.
        The tokens of responses without a reward are masked.
        """
        size, values = len(self.feedbacks), [self.reward_value(f) for f in self.feedbacks]
        name = estimator(self.config)
        if name not in TRL_SCALES:  # else TRL has computed the advantages itself, (B,)
            rows = [
                Rewarded(len(feedback.response.token_ids), None)
                if value is None
                else rewarded(feedback, self.recorder.method)
                for feedback, value in zip(self.feedbacks, values, strict=True)
            ]
            gathered = self.recorder.gather(rows)
            advantages = token_advantages(gathered, self.config.group_size, ESTIMATORS[name])
            advantages_BT = as_tensor(
                advantages[self.recorder.own_rows(size)], batch["completion_mask"]
            )
            batch = {**batch, "advantages": advantages_BT}
        unscored = [row for row, value in enumerate(values) if value is None]
        # TRL shuffles and splits the batch; `row` identifies the response of each of its rows
        end, device = len(self.responses), batch["completion_ids"].device
        places_B = torch.arange(end - size, end, device=device)
        return {**without(unscored, batch, self.accelerator), "row": places_B}

    def _prepare_inputs(self, generation_batch: list[JsonObject]) -> Tensors:
        """Overridden so that the random state does not depend on the number of processes.

        The base method shuffles the rows of this process only. With several processes, the random
        state from before the shuffle is then restored, and advanced as by a shuffle of all rows.
        """
        inputs = super()._prepare_inputs(generation_batch)
        if self.accelerator.num_processes > 1 and self.sampling_state is not None:
            torch.set_rng_state(self.sampling_state)
            torch.randperm(self.args.generation_batch_size)
            self.sampling_state = None
        return inputs

    # --- advantages → loss

    def compute_loss(
        self, model: "PreTrainedModel", inputs: Tensors, *args: object, **kwargs: object
    ) -> Tensor:
        """Return the loss of a batch, computed by TRL or Unsloth, and record its inputs.

        The inputs, such as the advantages, are stored in `self.responses`. For Unsloth, this method
        stores them, and then converts the batch to Unsloth's form. For TRL, `_compute_loss` stores
        them.
        """
        if not self.plain:
            self.record_loss_inputs(unsloth_hooks.right_aligned(inputs))
            inputs = unsloth_hooks.loss_inputs(inputs)
        return super().compute_loss(model, inputs, *args, **kwargs)

    def _compute_loss(self, model: "PreTrainedModel", inputs: Tensors) -> Tensor:
        """Overridden to record the inputs of the loss.

        With importance_sampling=trajectory, the batch is also stored for
        `_get_per_token_logps_and_entropies`.
        """
        batch = dict(inputs)  # a copy: the next iteration reads the batch again
        if self.config.importance_sampling == "trajectory":
            self.trajectory_batch = batch
        loss = super()._compute_loss(model, batch)
        self.trajectory_batch, self.loss_called = None, True
        self.record_loss_inputs(inputs, self.logprobs_BT)
        return loss

    def _get_per_token_logps_and_entropies(
        self,
        model: "PreTrainedModel",
        input_ids: Tensor,
        attention_mask: Tensor,
        logits_to_keep: int,
        **kwargs: object,
    ) -> Any:
        """Overridden for four reasons:

        - The logits of all tokens are never held at once. TRL computes log-probabilities in chunks
          of the vocabulary only if Liger's kernels are installed, although it does not call them.
        - A prompt that several responses share is computed once.
        - The log-probabilities are recorded.
        - With importance_sampling=trajectory, every token must get the ratio of its whole response.
          The old log-probabilities in the batch are replaced for this; TRL's loss reads them after
          this call.
        """
        # a wrapper such as DDP's expects a single forward pass
        unwrapped = model is self.accelerator.unwrap_model(model)
        if self.chunked and unwrapped and not kwargs.get("compute_aux_loss"):
            inputs = (input_ids, attention_mask, logits_to_keep)
            outputs = chunked_logprobs(self._chunked_logps, model, *inputs, kwargs)
        else:
            outputs = super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, **kwargs
            )
        if not self.plain:  # Unsloth returns None here
            return outputs
        self.logprobs_BT = outputs[0].detach()
        if (batch := self.trajectory_batch) is not None:
            old_BT = batch.get("old_per_token_logps")
            batch["old_per_token_logps"] = whole_responses(
                outputs[0], self.logprobs_BT if old_BT is None else old_BT, batch["completion_mask"]
            )
        return outputs

    def record_loss_inputs(self, batch: Tensors, logprobs_BT: Tensor | None = None) -> None:
        """Store the tokens' advantages, log-probabilities and ratios in `self.responses`.

        Args:
            batch: the inputs of the loss.
            logprobs_BT: log-probabilities under the current policy. Without them no ratios are
                stored.
        """
        stats_BT = loss_stats(batch, logprobs_BT)
        for row, place in enumerate(batch["row"].tolist()):
            if batch["completion_mask"][row].any():  # otherwise it is not trained on
                self.responses[place] = with_token_stats(self.responses[place], row, **stats_BT)

    # --- loss → update → log

    def training_step(self, *args: object, **kwargs: object) -> Tensor:
        """Run TRL's training step; check that it used this class's loss.

        Raises:
            WorkbenchError: another library has patched TRL, so that this class's loss was not
                called.
        """
        loss = super().training_step(*args, **kwargs)
        if self.plain and not self.loss_called:
            raise WorkbenchError(
                "TRL's trainer computes another loss, because a library such as Unsloth patched TRL"
                " in this process: train in a process that does not import this library"
            )
        return loss

    def log_update(self, state: "TrainerState", logs: JsonMapping) -> None:
        """Keep the logs of an optimizer step; at the end of a training step, record their means."""
        self.update_logs.append(logs)
        if self.step_ends(state):
            step = state.global_step // self.config.iterations
            self.recorder.log(step, step_means(self.update_logs), self.responses)
            for of_step in (self.group_counts, self.responses, self.update_logs):
                of_step.clear()

    def step_ends(self, state: "TrainerState") -> bool:
        """Return whether the latest optimizer step was the last one of its training step."""
        return bool(state.global_step % self.config.iterations == 0)
