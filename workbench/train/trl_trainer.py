"""What our trainings on TRL's trainers share: no network, one way to set a run up, callbacks
that report to a `Journal`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workbench.train.four_bits import keep_exact
from workbench.train.journal import Journal
from workbench.types import WorkbenchError


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


def ready(trainer: Any) -> Any:
    """The trainer without what would print every log to stdout, with an adapter in float32,
    switched off as its reference.

    For a reference TRL copies a ready-made adapter. Ours starts as the identity, so switching it
    off gives the same without a second adapter, which a checkpoint would not bring back exactly.
    """
    from transformers import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    if "ref" in getattr(trainer.model, "peft_config", {}):
        trainer.model.delete_adapter("ref")
    keep_exact(trainer.model)
    return trainer


def reporting(
    journal: Journal,
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
