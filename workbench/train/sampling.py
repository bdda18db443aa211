"""How a TRL trainer samples its rollouts: by the engine that evaluation uses, told what the trainer's own config says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.generate import Sampling, hf
from workbench.types import WorkbenchError

NEUTRAL = {"top_k": (None, 0), "min_p": (None, 0.0), "repetition_penalty": (None, 1.0), "cache_implementation": (None,)}
KNOWN = {"max_new_tokens", "do_sample", "temperature", "top_p", "eos_token_id", "pad_token_id", "bos_token_id"}


def sample(trainer: Any, prompt_ids: Sequence[Sequence[int]]) -> list[list[int]]:
    """A completion for each prompt, end token included, from the weights as they are; equal prompts are computed once.

    The one number that all randomness comes of is drawn from torch's global state, which a checkpoint keeps.

    Raises:
        WorkbenchError: the trainer's generation settings ask for what the engine does not do.
    """
    import torch
    from trl.models import unwrap_model_for_generation

    settings = trainer.generation_kwargs
    how = sampling(settings, seed=int(torch.randint(2**31, ())), batch_size=len(prompt_ids))
    with unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator, generation_kwargs=settings) as model:
        training = model.training
        model.eval()  # without dropout, and without gradient checkpointing, under which layers leave the cache alone
        try:
            drawn = hf.complete(model, settings["pad_token_id"], [list(ids) for ids in prompt_ids], stop_ids(settings), how)
        finally:
            model.train(training)
    return [ids for ids, _ in drawn]


def sampling(settings: Mapping[str, Any], *, seed: int, batch_size: int) -> Sampling:
    """What TRL's generation settings say.

    Raises:
        WorkbenchError: they say more than `Sampling` can.
    """
    for name, value in settings.items():
        if name not in KNOWN and value not in NEUTRAL.get(name, (None,)):
            raise WorkbenchError(f"rollouts cannot be sampled with {name}={value}: leave it out of the trainer's settings")
    return Sampling(
        max_new_tokens=settings["max_new_tokens"],
        greedy=not settings["do_sample"],
        temperature=settings["temperature"],
        top_p=settings["top_p"],
        seed=seed,
        batch_size=batch_size,
    )


def stop_ids(settings: Mapping[str, Any]) -> list[int]:
    """The ids that end a completion."""
    ids = settings["eos_token_id"]
    return list(ids) if isinstance(ids, list | tuple) else [ids]
