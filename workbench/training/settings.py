"""Groups of settings that several trainers share, such as `LoRA` and `Optim`, and their checks."""

import importlib.util
import os
from dataclasses import dataclass
from typing import Any, Literal

from workbench.policies.generate import Sampling as Decoding
from workbench.types import WorkbenchError
from workbench.util.config import check_values, setting


@dataclass(frozen=True)
class LoRA:
    """Settings of the LoRA adapter, and of memory use: gradient checkpointing and 4-bit weights."""

    lora_r: int = setting(16, "rank of the adapter", least=1)
    lora_alpha: int = setting(32, "α: the adapter's update is scaled by α / rank", least=1)
    gradient_checkpointing: bool = setting(
        True, "recompute activations in the backward pass: less memory, one more forward pass"
    )
    load_in_4bit: bool = setting(
        False,
        "hold the frozen base in 4 bits (NF4) during the training; needs a GPU and bitsandbytes",
    )


@dataclass(frozen=True)
class Optim:
    """Settings of the learning rate: its peak, warm-up and schedule."""

    learning_rate: float = setting(1e-6, "peak learning rate of the adapter, by AdamW", above=0)
    schedule: Literal["constant", "linear", "cosine"] = setting(
        "cosine", "schedule after the warm-up; the cosine of PPO and reward models ends at a tenth"
    )
    warmup: float = setting(
        0.03, "share of the steps in which the learning rate rises", least=0, most=1
    )


@dataclass(frozen=True)
class Sampling:
    """Settings for sampling responses, and the accepted share of ungraded responses."""

    temperature: float = setting(1.0, "sampling temperature", above=0)
    top_p: float = setting(1.0, "probability mass of nucleus sampling", above=0, most=1)
    max_new_tokens: int = setting(1024, "largest number of tokens of a response", least=1)
    max_failed: float = setting(
        0.2,
        "largest share of ungraded responses in a step or chunk; above it the run stops",
        least=0,
        most=1,
    )

    def decoding(self, seed: int, samples: int = 1) -> Decoding:
        """Return these settings as a `workbench.policies.generate.Sampling`.

        `samples` is the number of responses per question.
        """
        return Decoding(
            self.max_new_tokens,
            samples=samples,
            temperature=self.temperature,
            top_p=self.top_p,
            seed=seed,
        )


@dataclass(frozen=True)
class KL:
    """Settings of the KL penalty to the initial policy."""

    beta: float = setting(0.0, "weight of the KL penalty to the initial policy", least=0)
    kl: Literal["k1", "k3"] = setting(
        "k3",
        "estimator of a token's KL *(code)*: k3 is never negative; k1, the log-ratio, has the"
        " gradient of the KL; GRPO only has k3",
    )


@dataclass(frozen=True)
class Saving:
    """Settings of checkpoints, and of the tracker (such as wandb) to which TRL sends its logs."""

    save_every: int = setting(10, "steps between checkpoints", least=1)
    report_to: Literal["none", "trackio", "wandb", "tensorboard"] = setting(
        "none", "tracker for TRL's logs; PPO and reward models support only none"
    )


@dataclass(frozen=True)
class Passes:
    """Settings of SFT, DPO and reward models: steps, batch sizes, and maximum tokens of a row."""

    steps: int | None = setting(
        None, "training steps, one batch each; none: as many as `epochs` need", least=1
    )
    epochs: float | None = setting(
        None, "passes over the rows; none: 1, unless `steps` are given", above=0
    )
    batch: int = setting(32, "rows per step", least=1)
    micro_batch: int | None = setting(
        None, "rows per backward pass; none: the whole batch", least=1
    )
    max_length: int = setting(
        2048, "largest number of tokens of prompt and answer; longer rows are left out", least=1
    )


@dataclass(frozen=True)
class Samples:
    """Settings for sampling responses from which the rows of a training are made."""

    questions: int | None = setting(None, "number of training questions; none: all", least=1)
    samples: int = setting(8, "responses sampled for each question", least=1)
    sampling: Sampling = Sampling()


def check_trainer(config: Any, trl: bool = True) -> None:
    """Raise a WorkbenchError if a trainer's setting is invalid. The message names the setting.

    Args:
        config: settings of a trainer, such as `PPO`.
        trl: whether `config` is for a trainer of TRL. Our own trainers (PPO, reward models) support
            no tracker.
    """
    check_values(config)
    passes, tracker = getattr(config, "passes", None), config.saving.report_to
    if passes and None not in (passes.steps, passes.epochs):
        raise WorkbenchError(
            f"steps is {passes.steps} and epochs is {passes.epochs}: set one of them to none"
        )
    # a step accumulates whole micro-batches
    if passes and passes.micro_batch is not None and passes.batch % passes.micro_batch:
        raise WorkbenchError(
            f"micro_batch is {passes.micro_batch}: it must divide batch, {passes.batch}"
        )
    if tracker != "none" and not trl:
        raise WorkbenchError(
            f"report_to is {tracker}, but PPO and reward models support no tracker: set it to none"
        )
    if tracker != "none" and importlib.util.find_spec(tracker) is None:
        raise WorkbenchError(
            f"report_to is {tracker}, which is not installed: `pip install {tracker}`"
        )


def check_one_process(what: str) -> None:
    """Raise a WorkbenchError if a launcher, such as torchrun, has started several processes.

    `what` is what trains in one process, such as "PPO", for the message.
    """
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:  # torchrun and accelerate set it
        raise WorkbenchError(
            f"{what} trains in one process, but WORLD_SIZE is {os.environ['WORLD_SIZE']}: start"
            " it without torchrun or accelerate launch (several processes: docs/scaling.md)"
        )
