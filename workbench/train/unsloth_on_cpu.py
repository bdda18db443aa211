"""Unsloth's GRPO trainer without a GPU, so that what it makes of our settings and advantages can
be checked anywhere.

Unsloth's own switch asks for it, UNSLOTH_ALLOW_CPU=1. Its `FastLanguageModel` needs CUDA, and
stays out: the policy is PEFT's on transformers' model; the trainer, its loss and its
log-probabilities are Unsloth's. It is slower than the plain path.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any


def asked_for() -> bool:
    return os.environ.get("UNSLOTH_ALLOW_CPU") == "1"


def leave_uncompiled() -> None:
    """Have torch compile nothing, unless UNSLOTH_COMPILE_DISABLE says 0: compiled for a CPU, the
    first loss takes minutes.
    """
    import torch._dynamo

    if os.environ.setdefault("UNSLOTH_COMPILE_DISABLE", "1") == "1":
        torch._dynamo.config.disable = True


def patch_grpo() -> None:
    """What `import unsloth` does to TRL on a GPU, and leaves out under its switch.

    Raises:
        RuntimeError: Unsloth made no trainer, of which it says no more than a line in a log.
    """
    import trl
    from unsloth.models.rl import _patch_trl_rl_trainers

    if not trl.GRPOTrainer.__name__.startswith("Unsloth"):
        _patch_trl_rl_trainers("grpo_trainer")
    if not trl.GRPOTrainer.__name__.startswith("Unsloth"):
        raise RuntimeError("Unsloth made no GRPO trainer of its own")


def fitted(model: Any) -> Any:
    """The model with what `FastLanguageModel` gives its own: the two methods that the trainer
    calls, and the word that it is in float32 by choice, without which the trainer would compute
    in half precision."""
    from unsloth import FastLanguageModel

    model.for_training = partial(FastLanguageModel.for_training, model)
    model.for_inference = partial(FastLanguageModel.for_inference, model)
    model._unsloth_user_float32 = True
    return model
