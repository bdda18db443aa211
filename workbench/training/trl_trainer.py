"""Our trainings on TRL's trainers: no network, one way to set a run up, callbacks that report to
a `MetricsLog`, and GRPO with our sampling, our credit and, where asked for, the ratio of whole
trajectories.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

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
from workbench.training.loading import keep_exact
from workbench.training.recorder import LOGGED, MetricsLog, RolloutRecorder, reward_of
from workbench.training.sampling import grouped, named, sample
from workbench.training.shared_prefix import shared_prefix
from workbench.types import Feedback, Question, Response, WorkbenchError


def quiet(trainer: Any) -> Any:
    """A class of trainers that says nothing to the network, and writes no model card."""

    class Quiet(trainer):
        def _send_telemetry(self) -> None:
            """Nothing leaves the machine."""

        def create_model_card(self, *args: Any, **kwargs: Any) -> None:
            """A run's folder says what it holds."""

    return Quiet


def trainer_arguments(
    config: Any, out: Path, *, steps: int, seed: int, updates: int = 1
) -> dict[str, Any]:
    """Arguments of transformers' trainer for `steps` of so many `updates`, by the settings that
    all configs have.

    `config` has the parts `optim`, `lora` and `saving`.
    """
    import torch

    on_gpu, optim = torch.cuda.is_available(), config.optim
    warm = optim.schedule == "constant" and optim.warmup > 0
    return {
        "output_dir": str(out / "checkpoints"),
        "max_steps": steps * updates,
        "learning_rate": optim.learning_rate,
        "lr_scheduler_type": "constant_with_warmup" if warm else optim.schedule,
        "warmup_steps": round(optim.warmup * steps * updates),
        "optim": "adamw_torch",
        "weight_decay": 0.0,  # as transformers has it; Unsloth has another default
        "seed": seed,
        "use_cpu": not on_gpu,
        "bf16": on_gpu,
        "gradient_checkpointing": config.lora.gradient_checkpointing,
        "dataloader_pin_memory": on_gpu,
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_steps": config.saving.save_every * updates,
        "report_to": config.saving.report_to,
        "disable_tqdm": True,
    }


def check_kept(trainer: Any, asked: Mapping[str, Any]) -> None:
    """Raise a WorkbenchError naming each argument that a trainer was `asked` for and has otherwise.

    Unsloth's trainers put right what their makers think is wrong, with a line on stdout at most.
    """
    # it gets a list
    has = {
        name: getattr(trainer, name, getattr(trainer.args, name))
        for name in asked
        if name != "report_to"
    }
    changed = [
        f"{name} is {value!r}, not {asked[name]!r}"
        for name, value in has.items()
        if value != asked[name]
    ]
    if changed:
        told = f"the trainer changed what it was asked for ({'; '.join(changed)})"
        raise WorkbenchError(f"{told}: ask for that, or train where Unsloth is not installed")


def ready(trainer: Any, asked: Mapping[str, Any]) -> Any:
    """The trainer, checked to have the arguments it was `asked` for, without what would print
    every log to stdout, with an adapter in float32, switched off as its reference.

    For a reference TRL copies a ready-made adapter. Ours starts as the identity, so switching it
    off gives the same without a second adapter, which a checkpoint would not bring back exactly.
    """
    from transformers import PrinterCallback

    check_kept(trainer, asked)
    trainer.remove_callback(PrinterCallback)
    if "ref" in getattr(trainer.model, "peft_config", {}):
        trainer.model.delete_adapter("ref")
    keep_exact(trainer.model)
    return trainer


def reporting(
    journal: MetricsLog,
    update: Callable[[Any, Mapping[str, Any]], None],
    whole: Callable[[Any], bool] = lambda state: True,
) -> Any:
    """The callback by which a trainer reports: it tells `update` of each update's logs, stops
    after a whole step where that was asked for, and has checkpoints declared complete. `whole`
    tells of the trainer's state whether a step ends with it."""
    from transformers import TrainerCallback

    class Callback(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            journal.begin()

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if logs and "loss" in logs:  # not the log at the end of training
                update(state, logs)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if (
                whole(state)
                and state.global_step < args.max_steps
                and any(journal.gather([journal.interrupted]))
            ):
                journal.stopped = control.should_save = control.should_training_stop = True

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            journal.gather([0])  # every process has written its part
            journal.saved(Path(args.output_dir) / f"checkpoint-{state.global_step}")

    return Callback()


class TRLAdapter:
    """The reward function, the credit of tokens and the callback by which a TRL trainer reports
    to a `RolloutRecorder`.

    The trainer's data set has a column `number`, the question's place in `questions`; a question
    is sampled `group_size` times. `estimator` makes advantages of rewards. A step of the record
    is `iterations` updates of the trainer. With `mask_truncated` a response that was cut off has
    no part in a baseline, as it has none in the loss.
    """

    def __init__(
        self,
        record: RolloutRecorder,
        questions: Sequence[Question],
        tokenizer: Any,
        group_size: int,
        estimator: str = "group",
        *,
        iterations: int = 1,
        mask_truncated: bool = False,
    ) -> None:
        self.record, self.questions, self.tokenizer = record, questions, tokenizer
        self.group_size = group_size
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

    def credited(self, batch: dict[str, Any], accelerator: Any) -> dict[str, Any]:
        """What TRL made of the batch that was just rewarded, with advantages by token, (B, T),
        unless each response's is one number; with the tokens of responses without a reward
        masked; and with the rows' places in `trained`."""
        import torch

        size = len(self.batch)
        if self.estimator != "group":  # TRL's own are those
            rows = [
                Rewarded(len(feedback.response.token_ids), None)
                if self._value(feedback) is None
                else rewarded(feedback, self.record.method)
                for feedback in self.batch
            ]
            every = token_advantages(
                self.record.gather(rows), self.group_size, ESTIMATORS[self.estimator]
            )
            advantages_BT = as_tensor(every[self._own(size)], batch["completion_mask"])
            batch = {**batch, "advantages": advantages_BT}
        unscored = [row for row, feedback in enumerate(self.batch) if self._value(feedback) is None]
        places = torch.arange(
            len(self.trained) - size, len(self.trained), device=batch["completion_ids"].device
        )
        return {**without(unscored, batch, accelerator), "row": places}

    def record_loss_inputs(self, batch: Mapping[str, Any], logprobs_BT: Any = None) -> None:
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
                self.trained[place] = with_token_stats(
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
            means = {}
            for name in LOGGED:
                values = [float(one[name]) for one in self.logs if one.get(name) is not None]
                if values:
                    means[name] = fmean(values)
            self.record.log(state.global_step // self.iterations, means, list(self.trained))
            for kept in (self.asked, self.trained, self.logs):
                kept.clear()

    def whole(self, state: Any) -> bool:
        """Whether the last update was the last one with its responses."""
        return state.global_step % self.iterations == 0


def _not_about_none(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("All reward functions returned None")


def trainer_class(adapter: TRLAdapter, *, plain: bool, trajectory: bool) -> Any:
    """A class of trainers that report to `adapter`.

    Args:
        plain: the model is none of Unsloth's, whose forward pass and loss are others.
        trajectory: the ratio in the loss is that of a whole response, for TRL's
        `importance_sampling_level="token"` and one
            advantage a response: every token is given it. With `loss_type="grpo"` the loss is
            then the mean over responses of
            −min(ϱA, clip(ϱ, 1 − ε, 1 + ε)A), as KnowRL (arXiv 2506.19807, surrogate objective)
            has it, where ϱ counts as no
            more than TRL's `delta` *(ours)*; the other types weigh responses by their lengths.

    Raises, in training:
        WorkbenchError: a model that is plain was given another loss than this class's, which
        something has patched away.
    """
    import torch
    from trl import GRPOTrainer

    class Trainer(quiet(GRPOTrainer)):  # type: ignore[misc]
        ours = False  # whether this class has computed a loss
        drawn: Any = None  # torch's random state when a batch was sampled
        # the batch whose loss is being computed, where its ratio is a trajectory's
        learnt: dict[str, Any] | None = None

        def _generate_single_turn(
            self, prompt_ids: list[list[int]], *args: Any, **kwargs: Any
        ) -> Any:
            """Completions, vLLM's with the log-probabilities that they were drawn by; with
            Unsloth's model, whose forward pass is another, as TRL does it."""
            with adapter.record.timed("generation"):
                if not plain:
                    return super()._generate_single_turn(prompt_ids, *args, **kwargs)
                return (
                    colocate.sample(self, prompt_ids)
                    if self.use_vllm
                    else (sample(self, prompt_ids), None)
                )

        def _prepare_inputs(self, generation_batch: Any) -> Any:
            """TRL's, and then the random state that one process would be in, which shuffles the
            whole of what was sampled.
            """
            inputs = super()._prepare_inputs(generation_batch)
            if self.accelerator.num_processes > 1 and self.drawn is not None:
                torch.set_rng_state(self.drawn)
                torch.randperm(self.args.generation_batch_size)
                self.drawn = None
            return inputs

        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            return adapter.credited(
                super()._generate_and_score_completions(inputs), self.accelerator
            )

        def _get_per_token_logps_and_entropies(self, model: Any, *args: Any, **kwargs: Any) -> Any:
            """TRL's loss asks for these first, and then for the old ones, of which it takes the
            difference by token.
            """
            # what wraps it would have to hear of one pass alone
            alone = model is self.accelerator.unwrap_model(model)
            read = shared_prefix(model) if plain and alone and not self.use_liger_kernel else model
            found = super()._get_per_token_logps_and_entropies(read, *args, **kwargs)
            if not plain:  # Unsloth's finds them within its loss, and gives none here
                return found
            self.logprobs_BT = found[0].detach()
            if self.learnt is not None:
                old_BT = self.learnt.get("old_per_token_logps")
                old_BT = self.logprobs_BT if old_BT is None else old_BT
                self.learnt["old_per_token_logps"] = whole_responses(
                    found[0], old_BT, self.learnt["completion_mask"]
                )
            return found

        def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
            given = dict(inputs)  # a step's batches come back in its next iteration
            self.learnt = given if trajectory else None
            loss = super()._compute_loss(model, given)
            self.learnt, self.ours = None, True
            adapter.record_loss_inputs(inputs, self.logprobs_BT)
            return loss

        def training_step(self, *args: Any, **kwargs: Any) -> Any:
            loss = super().training_step(*args, **kwargs)
            if plain and not self.ours:
                raise WorkbenchError(
                    "TRL's trainer was patched in this process, as Unsloth does, and does not"
                    " compute the loss that was asked for: train in a process that imports nothing"
                    " of the kind"
                )
            return loss

        def compute_loss(
            self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any
        ) -> Any:
            """Unsloth's trainer comes by `_compute_loss` not at all, and its log-probabilities
            begin further right.
            """
            if not plain:
                adapter.record_loss_inputs(right_aligned(inputs))
                # Its mask is made of the ids anew; what was masked out since, it learns by the mask
                # of tools alone.
                inputs = {
                    **inputs,
                    "advantages": left_aligned(inputs),
                    "tool_mask": inputs["completion_mask"],
                }
            return super().compute_loss(model, inputs, *args, **kwargs)

    return Trainer
