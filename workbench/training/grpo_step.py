"""One GRPO step on TRL's trainer: prompts → rollouts → grades → advantages → loss → record.

`Step` holds what one step collects; `RolloutTrainer` overrides the methods of TRL's trainer that
call it. The methods stand in the order in which a step runs them. TRL sums the loss and takes the
optimizer step. Shapes: B responses, T tokens of the longest response.

Special cases are hooks in other files: vLLM (`colocate`), one pass over a shared prompt
(`shared_prefix`), and the layout of Unsloth's batches (`credit.tensors`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
import trl
from datasets import Dataset
from trl import GRPOTrainer

from workbench.credit.advantages import ESTIMATORS, Rewarded, rewarded
from workbench.credit.tensors import (
    as_tensor,
    left_aligned,
    ratio_of,
    right_aligned,
    token_advantages,
    whole_responses,
    with_token_stats,
    without,
)
from workbench.policies.generate import as_response
from workbench.training import colocate
from workbench.training.grpo import GRPO, LARGEST_RATIO, batches, process, question_order
from workbench.training.loading import Trainee
from workbench.training.recorder import LOGGED, RolloutRecorder, reward_of
from workbench.training.sampling import grouped, named, sample
from workbench.training.shared_prefix import shared_prefix
from workbench.training.trl_base import NoNetwork, ready, reporting, trainer_arguments
from workbench.types import Feedback, Question, Response, WorkbenchError


class Step:
    """Grades, token credit and records of the step under way.

    A row of the trainer's data set has a column `number`, the position of its question in
    `questions`. A step is `iterations` optimizer updates on the same responses.
    """

    def __init__(
        self,
        recorder: RolloutRecorder,
        questions: Sequence[Question],
        tokenizer: Any,
        group_size: int,
        estimator: str = "group",
        *,
        iterations: int = 1,
        mask_truncated: bool = False,
    ) -> None:
        self.recorder, self.questions, self.tokenizer = recorder, questions, tokenizer
        self.group_size, self.estimator = group_size, estimator
        self.iterations, self.mask_truncated = iterations, mask_truncated
        self.group_counts: Counter[str] = Counter()  # groups of each question in this step
        self.responses: list[Response] = []  # of the step, in the order of their grading
        self.batch: list[Feedback] = []  # the rows that were graded last
        self.logs: list[Mapping[str, Any]] = []  # of the step's updates
        # For every reward of None TRL logs the whole prompt. The recorder counts and shows them.
        logging.getLogger("trl.trainer.grpo_trainer").addFilter(_is_not_about_none)

    # rollouts → grades

    def reward(
        self, completion_ids: list[list[int]], number: list[int], trainer_state: Any, **_: Any
    ) -> list[float | None]:
        """TRL's reward function: grade the completions; None for a response without a reward."""
        step = trainer_state.global_step // self.iterations + 1
        self.batch = self.recorder.pay(self._as_responses(completion_ids, number, step), step)
        self.responses += [feedback.response for feedback in self.batch]
        return [self._reward_of(feedback) for feedback in self.batch]

    def _as_responses(
        self, completion_ids: list[list[int]], number: list[int], step: int
    ) -> list[Response]:
        """Responses with group names; a group may lie on two processes, so all are counted."""
        numbers, size = self.recorder.gather(number), self.group_size
        groups = (set(numbers[at : at + size]) for at in range(0, len(numbers), size))
        if any(len(group) > 1 for group in groups):
            raise RuntimeError(f"TRL did not repeat each prompt {size} times in a row: {numbers}")
        questions = [self.questions[index] for index in numbers]
        names = list(grouped(questions, step, size, self.group_counts))
        stop = [self.tokenizer.eos_token_id]
        own = names[self._own_rows(len(number))]
        return [
            named(as_response(self.tokenizer, self.questions[index], ids, stop), *name, step)
            for index, ids, name in zip(number, completion_ids, own, strict=True)
        ]

    def _own_rows(self, count: int) -> slice:
        """The positions of this process's `count` rows among those of all processes."""
        first = self.recorder.rank * count
        return slice(first, first + count)

    def _reward_of(self, feedback: Feedback) -> float | None:
        """The reward, or None for a response that is left out of baseline and loss."""
        if self.mask_truncated and feedback.response.finish == "length":
            return None
        return reward_of(feedback, self.recorder.method)

    # grades → advantages

    def with_advantages(self, batch: dict[str, Any], accelerator: Any) -> dict[str, Any]:
        """Add what TRL's batch lacks: token advantages (B, T) unless the estimator is TRL's own
        `group`, a mask without unscored responses, and each row's position in `responses`."""
        rewards = [self._reward_of(feedback) for feedback in self.batch]
        if self.estimator != "group":
            rows = [
                Rewarded(len(feedback.response.token_ids), None)
                if reward is None
                else rewarded(feedback, self.recorder.method)
                for feedback, reward in zip(self.batch, rewards, strict=True)
            ]
            advantages = token_advantages(
                self.recorder.gather(rows), self.group_size, ESTIMATORS[self.estimator]
            )
            own = advantages[self._own_rows(len(rows))]
            batch = {**batch, "advantages": as_tensor(own, batch["completion_mask"])}
        unscored = [row for row, reward in enumerate(rewards) if reward is None]
        end, device = len(self.responses), batch["completion_ids"].device
        rows_B = torch.arange(end - len(rewards), end, device=device)
        return {**without(unscored, batch, accelerator), "row": rows_B}

    # loss → record

    def record_loss_inputs(self, batch: Mapping[str, Any], logprobs_BT: Any = None) -> None:
        """Store on the responses the advantages, log-probabilities and ratios of the loss."""
        advantages_BT, reference_BT = batch["advantages"], batch.get("ref_per_token_logps")
        if advantages_BT.dim() == 1:
            advantages_BT = advantages_BT[:, None].expand_as(batch["completion_ids"])
        old_BT = batch.get("old_per_token_logps")
        old_BT = logprobs_BT if old_BT is None else old_BT
        ratios_BT = None if logprobs_BT is None else ratio_of(logprobs_BT, old_BT)
        for number, position in enumerate(batch["row"].tolist()):
            if batch["completion_mask"][number].any():  # the row is trained on
                self.responses[position] = with_token_stats(
                    self.responses[position],
                    number,
                    advantages=advantages_BT,
                    logprobs=old_BT,
                    ref_logprobs=reference_BT,
                    ratios=ratios_BT,
                )

    def callback(self) -> Any:
        return reporting(self.recorder, self.update, self.ends)

    def ends(self, state: Any) -> bool:
        """Whether the last update was the last one on its responses."""
        return bool(state.global_step % self.iterations == 0)

    def update(self, state: Any, logs: Mapping[str, Any]) -> None:
        """Collect the logs of an update; at the end of the step write its row of metrics."""
        self.logs.append(logs)
        if self.ends(state):
            means = {}
            for name in LOGGED:
                values = [float(log[name]) for log in self.logs if log.get(name) is not None]
                if values:
                    means[name] = fmean(values)
            step = state.global_step // self.iterations
            self.recorder.log(step, means, list(self.responses))
            for collected in (self.group_counts, self.responses, self.logs):
                collected.clear()


def _is_not_about_none(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("All reward functions returned None")


class RolloutTrainer(NoNetwork, GRPOTrainer):
    """TRL's GRPO trainer with our sampling, token credit, records and trajectory ratio.

    Args:
        step: what the step collects.
        plain: the model is not Unsloth's, which has its own forward pass and loss.
        trajectory: the ratio in the loss is that of a whole response, ϱ = π(o) / π_old(o), given
            to each of its tokens. With `loss_type="grpo"` the loss is then the mean over
            responses of −min(ϱA, clip(ϱ, 1 − ε, 1 + ε)A), the surrogate objective of KnowRL
            (arXiv 2506.19807); ϱ is at most TRL's `delta` *(ours)*.

    Raises, in training:
        WorkbenchError: another package has patched TRL's loss.
    """

    def __init__(self, step: Step, *, plain: bool, trajectory: bool, **arguments: Any) -> None:
        self.step, self.plain, self.trajectory = step, plain, trajectory
        self.computed_loss = False  # whether `_compute_loss` of this class has run
        self.drawn: Any = None  # torch's random state after sampling a batch
        self.loss_inputs: dict[str, Any] | None = None  # of the loss under way, for trajectories
        self.logprobs_BT: Any = None
        super().__init__(reward_funcs=step.reward, callbacks=[step.callback()], **arguments)

    # prompts → rollouts

    def _generate_single_turn(self, prompt_ids: list[list[int]], *args: Any, **kwargs: Any) -> Any:
        """Sample as evaluation does, so that equal prompts are computed once and a resumed run
        draws the same tokens. Unsloth's model keeps TRL's sampling."""
        with self.step.recorder.timed("generation"):
            if not self.plain:
                return super()._generate_single_turn(prompt_ids, *args, **kwargs)
            if self.use_vllm:
                return colocate.sample(self, prompt_ids)
            return sample(self, prompt_ids), None

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        """Restore the random state that one process would have, because TRL shuffles only the
        rows of its own process."""
        inputs = super()._prepare_inputs(generation_batch)
        if self.accelerator.num_processes > 1 and self.drawn is not None:
            torch.set_rng_state(self.drawn)
            torch.randperm(self.args.generation_batch_size)
            self.drawn = None
        return inputs

    # grades → advantages

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Replace TRL's advantage of a response by one of each token."""
        return self.step.with_advantages(
            super()._generate_and_score_completions(inputs), self.accelerator
        )

    # advantages → loss

    def _get_per_token_logps_and_entropies(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        """Read each prompt once, keep the log-probabilities for the record, and give the loss the
        ratio of the whole response. TRL's loss calls this before it reads the old ones."""
        # a wrapper of the model expects a single forward pass
        unwrapped = model is self.accelerator.unwrap_model(model)
        if self.plain and unwrapped and not self.use_liger_kernel:
            model = shared_prefix(model)
        result = super()._get_per_token_logps_and_entropies(model, *args, **kwargs)
        if not self.plain:  # Unsloth computes them inside its loss and returns none here
            return result
        self.logprobs_BT = result[0].detach()
        if self.loss_inputs is not None:
            old_BT = self.loss_inputs.get("old_per_token_logps")
            old_BT = self.logprobs_BT if old_BT is None else old_BT
            self.loss_inputs["old_per_token_logps"] = whole_responses(
                result[0], old_BT, self.loss_inputs["completion_mask"]
            )
        return result

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        """Record the inputs of the loss. TRL gets a copy, as the next iteration reuses them."""
        copied = dict(inputs)
        self.loss_inputs = copied if self.trajectory else None
        loss = super()._compute_loss(model, copied)
        self.loss_inputs, self.computed_loss = None, True
        self.step.record_loss_inputs(inputs, self.logprobs_BT)
        return loss

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Adapt the batch to Unsloth, whose trainer does not call `_compute_loss`: it aligns
        log-probabilities on the left and masks only by `tool_mask`."""
        if not self.plain:
            self.step.record_loss_inputs(right_aligned(inputs))
            masks = {"advantages": left_aligned(inputs), "tool_mask": inputs["completion_mask"]}
            inputs = {**inputs, **masks}
        return super().compute_loss(model, inputs, *args, **kwargs)

    # loss → update

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse to train if another package has replaced the loss of this class."""
        loss = super().training_step(*args, **kwargs)
        if self.plain and not self.computed_loss:
            raise WorkbenchError(
                "TRL's trainer was patched in this process, as Unsloth does, and does not compute"
                " the requested loss: train in a process that does not import such a package"
            )
        return loss


def make_step(
    config: GRPO, recorder: RolloutRecorder, questions: Sequence[Question], trainee: Trainee
) -> Step:
    """Create the `Step` of a config."""
    how: dict[str, Any] = {"mask_truncated": config.mask_truncated, "iterations": config.iterations}
    sizes = (config.group_size, config.advantages)
    return Step(recorder, questions, trainee.tokenizer, *sizes, **how)


def make_trainer(config: GRPO, trainee: Trainee, step: Step, out: Path, seed: int) -> Any:
    """The trainer of a config, with every argument set, so that no default of TRL applies.

    Raises:
        WorkbenchError: TRL or Unsloth replaces an argument; Unsloth was imported after TRL.
    """
    trajectory, plain = config.importance_sampling == "trajectory", trainee.path == "plain"
    if not plain and GRPOTrainer is not trl.GRPOTrainer:
        raise WorkbenchError(
            "Unsloth was imported after a plain training in this process: train in a new process"
        )
    processes = process().num_processes
    responses, generated, micro = batches(config, processes)
    requested = dict(
        **trainer_arguments(config, out, steps=config.steps, updates=config.iterations, seed=seed),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=responses // (micro * processes),
        generation_batch_size=generated,
        num_generations=config.group_size,
        num_iterations=config.iterations,
        epsilon=config.clip,
        epsilon_high=config.clip if config.clip_high is None else config.clip_high,
        delta=LARGEST_RATIO if trajectory else None,
        beta=config.kl.beta,
        temperature=config.sampling.temperature,
        top_p=config.sampling.top_p,
        top_k=0,
        max_completion_length=config.sampling.max_new_tokens,
        loss_type=config.loss_type,
        scale_rewards="group",
        importance_sampling_level="token" if trajectory else config.importance_sampling,
        use_bias_correction_kl=False,  # TRL would multiply the KL by the ratio: no paper here does
        entropy_coef=config.entropy,
        mask_truncated_completions=config.mask_truncated,
        **colocate.arguments(config),
        shuffle_dataset=False,  # the rows are in order, so that resuming skips rows
    )
    arguments = trl.GRPOConfig(**requested)
    arguments.scale_rewards = requested["scale_rewards"]  # Unsloth's config replaces it
    rows = [
        {"prompt": step.questions[number].messages(), "number": number}
        for number in question_order(config, len(step.questions), seed)
    ]
    trainer = RolloutTrainer(
        step,
        plain=plain,
        trajectory=trajectory,
        model=trainee.model,
        args=arguments,
        train_dataset=Dataset.from_list(rows),
        processing_class=trainee.tokenizer,
    )
    return ready(trainer, requested)
