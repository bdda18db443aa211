"""A base held in 4 bits under its adapter (QLoRA, arXiv 2305.14314): what that needs, and how
transformers is told.

What is trained is an adapter on rounded weights. Whatever reads the run afterwards, an
evaluation or an export, puts it on the base as that is stored, and may answer a close question
otherwise than the policy that was sampled from in training.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection
from typing import Any

from workbench.config import leaves, settings
from workbench.types import WorkbenchError


def check_four_bits(config: Any, idle: Collection[str] = ()) -> None:
    """Raise a WorkbenchError where a part of a config that is not idle wants a base in 4 bits,
    and this machine cannot.
    """
    unused = {leaf for name in idle for leaf in leaves(config, name)}
    for path, wanted, _ in settings(config):
        if path.endswith(".load_in_4bit") and wanted and path not in unused:
            check_machine(path)


def check_machine(name: str = "load_in_4bit") -> None:
    """Raise a WorkbenchError where no base can be held in 4 bits."""
    import torch

    if not torch.cuda.is_available():
        raise WorkbenchError(
            f"{name} is true, which needs a GPU, and there is none here: leave it false"
        )
    if importlib.util.find_spec("bitsandbytes") is None:
        raise WorkbenchError(
            f"{name} is true, which needs bitsandbytes: `pip install -e '.[gpu]'` in a clone, or"
            " leave it false"
        )


def quantisation() -> Any:
    """4-bit normal floats, their constants quantised as well, computed with in bfloat16, as
    QLoRA's authors do.

    What PEFT's `prepare_model_for_kbit_training` does besides is left out: the base is frozen by
    the adapter, checkpointing that is not re-entrant needs no gradients of its input, and norms,
    embeddings and head stay in bfloat16, as they are in 16 bits: in float32 a large vocabulary
    would take back what was saved.
    """
    import torch
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )


def keep_exact(model: Any) -> None:
    """The adapter in float32 again where TRL has made it bfloat16, as it does on a base in 4
    bits: there a step of 1e-6 is rounded away."""
    if getattr(model, "is_loaded_in_4bit", False):
        for weight in model.parameters():
            if weight.requires_grad:
                weight.data = weight.data.float()
