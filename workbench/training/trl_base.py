"""What the trainings on TRL's trainers (GRPO, SFT, DPO) share: no network, common arguments, a
check that TRL uses them, and a callback that reports to a `MetricsLog`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workbench.training.loading import keep_exact
from workbench.training.recorder import MetricsLog
from workbench.types import WorkbenchError


class NoNetwork:
    """A mixin for TRL's trainers: no telemetry and no model card."""

    def _send_telemetry(self) -> None:
        """Send nothing."""

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """Write nothing: the run's folder describes itself."""


def trainer_arguments(
    config: Any, out: Path, *, steps: int, seed: int, updates: int = 1
) -> dict[str, Any]:
    """Arguments of transformers' trainer for `steps` steps of `updates` optimizer updates each.

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
        "weight_decay": 0.0,  # the default of transformers; Unsloth's default differs
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


def ready(trainer: Any, requested: Mapping[str, Any]) -> Any:
    """Check the trainer's arguments and prepare its model: float32 adapter, no reference copy.

    TRL copies the adapter as a reference. Ours starts as the identity, so switching it off gives
    the same reference, without a second adapter that a checkpoint would not restore exactly.

    Raises:
        WorkbenchError: the trainer uses another value than `requested`. Unsloth's trainers
            replace some values and print at most one line.
    """
    from transformers import PrinterCallback

    # report_to is left out: the trainer turns it into a list
    used = {
        name: getattr(trainer, name, getattr(trainer.args, name))
        for name in requested
        if name != "report_to"
    }
    changed = [
        f"{name} is {value!r}, not {requested[name]!r}"
        for name, value in used.items()
        if value != requested[name]
    ]
    if changed:
        raise WorkbenchError(
            f"the trainer replaced its arguments ({'; '.join(changed)}): set these values, or train"
            " where Unsloth is not installed"
        )
    trainer.remove_callback(PrinterCallback)  # it prints every log to stdout
    if "ref" in getattr(trainer.model, "peft_config", {}):
        trainer.model.delete_adapter("ref")
    keep_exact(trainer.model)
    return trainer


def reporting(
    log: MetricsLog,
    update: Callable[[Any, Mapping[str, Any]], None],
    ends_step: Callable[[Any], bool] = lambda state: True,
) -> Any:
    """A callback that passes the logs of each optimizer update to `update`, stops after a whole
    step if requested, and marks checkpoints as complete.

    Args:
        ends_step: whether an update, given the trainer's state, is the last one of its step.
    """
    from transformers import TrainerCallback

    class Callback(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            log.begin()

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if logs and "loss" in logs:  # the log at the end of training has none
                update(state, logs)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if (
                ends_step(state)
                and state.global_step < args.max_steps
                and any(log.gather([log.interrupted]))
            ):
                log.stopped = control.should_save = control.should_training_stop = True

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            log.gather([0])  # wait until every process has written its part
            log.saved(Path(args.output_dir) / f"checkpoint-{state.global_step}")

    return Callback()
