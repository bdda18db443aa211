"""The parts that the configs of all trainers are made of."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from typing import Any, Literal

from workbench.policies.generate import Sampling as Decoding
from workbench.types import WorkbenchError
from workbench.util.config import check_values, setting


@dataclass(frozen=True)
class LoRA:
    """The adapter that is trained, and how its base is held in memory."""

    lora_r: int = setting(16, "rank of the adapter", least=1)
    lora_alpha: int = setting(32, "the adapter's scale, as a multiple of 1 / rank", least=1)
    gradient_checkpointing: bool = setting(
        True,
        "compute activations again in the backward pass: a fraction of the memory, one more forward"
        " pass",
    )
    load_in_4bit: bool = setting(
        False,
        "hold the frozen base in 4 bits (NF4) while the adapter is trained: on a GPU, with"
        " bitsandbytes",
    )


@dataclass(frozen=True)
class Optim:
    """The learning rate of AdamW."""

    learning_rate: float = setting(1e-6, "of AdamW, for the adapter", above=0)
    schedule: Literal["constant", "linear", "cosine"] = setting(
        "cosine",
        "the learning rate after the warm-up; the cosine of PPO and reward models ends at a tenth",
    )
    warmup: float = setting(
        0.03, "share of the steps in which the learning rate rises", least=0, most=1
    )


@dataclass(frozen=True)
class Sampling:
    """How responses are sampled, and how many may stay ungraded."""

    temperature: float = setting(1.0, "of the sampling", above=0)
    top_p: float = setting(1.0, "nucleus that tokens are sampled from", above=0, most=1)
    max_new_tokens: int = setting(1024, "tokens at which a response is cut off", least=1)
    max_failed: float = setting(
        0.2,
        "share of ungraded responses in a step or chunk above which the run stops",
        least=0,
        most=1,
    )

    def decoding(self, seed: int, samples: int = 1) -> Decoding:
        """The same, as `workbench.policies.generate` takes it."""
        return Decoding(
            self.max_new_tokens,
            samples=samples,
            temperature=self.temperature,
            top_p=self.top_p,
            seed=seed,
        )


@dataclass(frozen=True)
class KL:
    """The penalty that keeps the policy near the initial one."""

    beta: float = setting(0.0, "weight of the KL penalty to the initial policy", least=0)
    kl: Literal["k1", "k3"] = setting(
        "k3",
        "estimator of a token's KL *(code)*: k3 is never negative; the log-ratio k1 has the"
        " gradient of the KL; GRPO has k3 only",
    )


@dataclass(frozen=True)
class Saving:
    """What a training writes as it goes on."""

    save_every: int = setting(10, "steps between checkpoints", least=1)
    report_to: Literal["none", "trackio", "wandb", "tensorboard"] = setting(
        "none", "tracker that TRL logs to as well; PPO and reward models have none"
    )


@dataclass(frozen=True)
class Passes:
    """How a training goes through rows that exist before it begins."""

    steps: int | None = setting(
        None, "batches to learn from; none: as many as `epochs` take", least=1
    )
    epochs: float | None = setting(
        None, "passes over the rows; none: 1, unless `steps` are given", above=0
    )
    batch: int = setting(32, "rows a step", least=1)
    micro_batch: int | None = setting(
        None, "rows per backward pass; none: the whole batch at once", least=1
    )
    max_length: int = setting(
        2048, "tokens of prompt and answer above which a row is left out", least=1
    )


@dataclass(frozen=True)
class Samples:
    """Responses that are sampled and graded before a training, to make its rows."""

    questions: int | None = setting(None, "training questions that are sampled; none: all", least=1)
    samples: int = setting(8, "sampled responses a question", least=1)
    sampling: Sampling = Sampling()


def check_passes(config: Any) -> None:
    """Raise a WorkbenchError naming the field for settings of SFT, DPO or a reward model that
    cannot work."""
    check_values(config)
    passes: Passes = config.passes
    if passes.steps is not None and passes.epochs is not None:
        raise WorkbenchError(
            f"steps is {passes.steps} and epochs is {passes.epochs}: give one of them, and none for"
            " the other"
        )
    if passes.micro_batch is not None and passes.batch % passes.micro_batch:
        raise WorkbenchError(
            f"micro_batch is {passes.micro_batch}: it must divide batch, {passes.batch}"
        )


def check_one_process(trainer: str) -> None:
    """Raise a WorkbenchError where a launcher has begun several processes."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise WorkbenchError(f"{trainer} trains in one process: leave out the launcher")


def check_report_to(saving: Saving, trl: bool = True) -> None:
    """Raise a WorkbenchError for a tracker that is not installed, or that the trainer lacks."""
    tracker = saving.report_to
    if tracker != "none" and not trl:
        raise WorkbenchError(f"report_to is {tracker}: this trainer has no tracker; leave it out")
    if tracker != "none" and importlib.util.find_spec(tracker) is None:
        raise WorkbenchError(
            f"report_to is {tracker}, which is not installed: `pip install {tracker}`"
        )
