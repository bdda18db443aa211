"""Parts that all trainings with TRL's trainers share: arguments, an offline mixin, a callback."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.training.recorder import MetricsLog
from workbench.training.settings import LoRA, Optim, Saving
from workbench.types import JsonMapping, JsonObject, WorkbenchError

if TYPE_CHECKING:
    from accelerate import PartialState
    from transformers import (
        Trainer,
        TrainerCallback,
        TrainerControl,
        TrainerState,
        TrainingArguments,
    )


# TRL logs the whole prompt of every response without a reward. The recorder counts them instead.
logging.getLogger("trl.trainer.grpo_trainer").addFilter(
    lambda record: not record.getMessage().startswith("All reward functions returned None")
)


class Offline:
    """Mixin that keeps a TRL trainer from sending telemetry and from writing a model card."""

    def _send_telemetry(self) -> None:
        """Overridden to do nothing, because a run sends no data."""

    def create_model_card(self, *_: object, **__: object) -> None:
        """Do nothing, because config.json and summary.json describe a run."""


def process_state() -> PartialState:
    """Return accelerate's `PartialState`: this process's rank, and the number of processes.

    Without a launcher there is one process.
    """
    import torch
    from accelerate import PartialState

    return PartialState(cpu=not torch.cuda.is_available())


def trainer_arguments(
    optim: Optim, lora: LoRA, saving: Saving, out: Path, *, steps: int, seed: int, updates: int = 1
) -> JsonObject:
    """Return the arguments that TRL's trainers for GRPO, SFT and DPO have in common.

    All settings of the optimizer are among them.

    Args:
        steps: number of training steps, each on a new batch.
        updates: number of optimizer steps on each batch.
    """
    import torch

    on_gpu = torch.cuda.is_available()
    # transformers' "constant" ignores the warm-up
    warm = optim.schedule == "constant" and optim.warmup > 0
    return {
        "output_dir": str(out / "checkpoints"),
        "max_steps": steps * updates,
        "learning_rate": optim.learning_rate,
        "lr_scheduler_type": "constant_with_warmup" if warm else optim.schedule,
        "warmup_steps": round(optim.warmup * steps * updates),
        "optim": "adamw_torch",
        # transformers' defaults, which may change, or differ in Unsloth
        "weight_decay": 0.0,
        "adam_beta1": 0.9,
        "adam_beta2": 0.999,
        "adam_epsilon": 1e-8,
        "max_grad_norm": 1.0,
        "seed": seed,
        "use_cpu": not on_gpu,
        "bf16": on_gpu,
        "gradient_checkpointing": lora.gradient_checkpointing,
        "dataloader_pin_memory": on_gpu,
        # a row of metrics for every step
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_steps": saving.save_every * updates,
        "report_to": saving.report_to,
        # `MetricsLog` prints the progress, also in logs where a bar is unreadable
        "disable_tqdm": True,
    }


def finish_trainer(trainer: Trainer, arguments: Mapping[str, object]) -> None:
    """Check that a new TRL trainer has not changed its `arguments`, and adapt it to our runs.

    After this call, the trainer

    * does not print its logs,
    * trains the adapter of a 4-bit base model in float32,
    * uses the model without its adapter as the reference model.

    Raises:
        WorkbenchError: the trainer changed an argument.
    """
    from transformers import PrinterCallback

    # Unsloth's trainers replace values that their authors consider wrong.
    values = {
        name: getattr(trainer, name, getattr(trainer.args, name))
        for name in arguments
        if name != "report_to"  # transformers stores it as a list
    }
    changed = [
        f"{name} is {value!r}, not {arguments[name]!r}"
        for name, value in values.items()
        if value != arguments[name]
    ]
    if changed:
        raise WorkbenchError(
            f"the trainer of TRL or Unsloth changed its arguments ({'; '.join(changed)}): set the"
            " changed values yourself, or train where Unsloth is not installed"
        )
    trainer.remove_callback(PrinterCallback)
    # TRL copies the new adapter to a second adapter, "ref", as the reference model. A new adapter
    # does not change the outputs, so the model with its adapter disabled is the same reference. A
    # checkpoint would not restore the second adapter exactly.
    if "ref" in getattr(trainer.model, "peft_config", {}):
        trainer.model.delete_adapter("ref")
    # On a base in 4 bits TRL makes the adapter bfloat16, in which a step of 1e-6 is rounded away.
    if getattr(trainer.model, "is_loaded_in_4bit", False):
        for weight in trainer.model.parameters():
            if weight.requires_grad:
                weight.data = weight.data.float()


def report_callback(
    metrics: MetricsLog,
    log: Callable[[TrainerState, JsonMapping], None],
    step_ends: Callable[[TrainerState], bool] = lambda state: True,
) -> TrainerCallback:
    """Return a callback that connects a TRL trainer with a `MetricsLog`.

    The callback calls `log(state, logs)` after each optimizer step, and marks saved checkpoints as
    complete. After Ctrl-C it stops the training at the end of the training step, with a checkpoint.

    Args:
        step_ends: function of the trainer's state. It returns whether the latest optimizer step was
            the last one on its batch. By default, each batch has one optimizer step.
    """
    from transformers import TrainerCallback

    class Report(TrainerCallback):
        def on_train_begin(self, *_: object, **__: object) -> None:
            metrics.begin()

        def on_log(
            self,
            _: object,
            state: TrainerState,
            control: object,
            logs: JsonMapping,
            **__: object,
        ) -> None:
            if "loss" in logs:  # the log at the end of training has no loss
                log(state, logs)

        def on_step_end(
            self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
        ) -> None:
            if (
                step_ends(state)
                and state.global_step < args.max_steps
                and any(metrics.gather([metrics.interrupted]))
            ):
                metrics.stopped = control.should_save = control.should_training_stop = True

        def on_save(
            self, args: TrainingArguments, state: TrainerState, control: object, **_: object
        ) -> None:
            metrics.gather([0])  # wait until every process has written its part
            metrics.complete_checkpoint(Path(args.output_dir) / f"checkpoint-{state.global_step}")

    return Report()
