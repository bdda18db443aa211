"""Sample with vLLM in the process and on the GPU of a GRPO training (TRL's "colocate" mode).

TRL creates vLLM's engine. TRL's own sampling is not used; this module copies the weights to vLLM
and samples from it, for two reasons:

- TRL merges the adapter into the frozen weights and removes it again, which leaves a rounding error
  in these weights at every step.
- TRL's samples do not depend on the random state in checkpoints, so a resumed run would end with
  other weights.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from workbench.policies import vllm
from workbench.policies.generate import Sampling
from workbench.training.grpo_config import GRPO

if TYPE_CHECKING:
    import torch
    import trl
    from peft import PeftModel
    from vllm import LLM as VLLM  # LLM may only occur where a model is loaded

# (ours) Upper bound of a token's importance weight: its probability under the trained model / its
# probability under vLLM.
MAX_IMPORTANCE_WEIGHT = 2.0
# TRL sets these, as a launcher would
LAUNCHER_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@contextmanager
def engine(config: GRPO) -> Iterator[None]:
    """Context manager for a training that samples with vLLM in its own process.

    On entry, a vLLM model that this process loaded earlier is shut down. On exit, the training's
    vLLM model is shut down, and environment variables that TRL sets, such as WORLD_SIZE, are
    restored. If `config` does not use vLLM, nothing is done.
    """
    if config.vllm == "none":
        yield
        return
    before = {name: os.environ.get(name) for name in LAUNCHER_VARIABLES}
    vllm.release()
    vllm.prepare()
    try:
        yield
    finally:
        vllm.release()
        # a later training in this process would read the variables
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def register_engine(config: GRPO, trainer: trl.GRPOTrainer) -> None:
    """Register the vLLM engine that TRL has created, so that `engine` can shut it down.

    If `config` does not use vLLM, nothing is done.
    """
    if config.vllm != "none":
        vllm.register(trainer.vllm_generation.llm)


def engine_arguments(config: GRPO) -> dict[str, object]:
    """Return the arguments of TRL's `GRPOConfig` that concern vLLM.

    If `config` does not use vLLM, this is only `use_vllm=False`.
    """
    if config.vllm == "none":
        return {"use_vllm": False}
    return {
        "use_vllm": True,
        "vllm_mode": "colocate",
        "vllm_model_impl": "vllm",
        "vllm_tensor_parallel_size": 1,
        "vllm_max_model_length": -1,  # limited by the model or by the memory
        "vllm_gpu_memory_utilization": config.vllm_memory,
        "vllm_enable_sleep_mode": config.vllm_sleep,
        # vLLM and transformers round differently; importance weights correct the difference
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": "token_truncate",
        "vllm_importance_sampling_clip_max": MAX_IMPORTANCE_WEIGHT,
        "vllm_importance_sampling_clip_min": None,
    }


def sample(
    trainer: trl.GRPOTrainer, prompt_ids: Sequence[Sequence[int]]
) -> tuple[list[list[int]], list[list[float]]]:
    """Sample a completion for each prompt from vLLM with the current weights.

    Returns:
        The token ids of each completion, and the log-probability of each of these tokens at the
        sampling temperature.
    """
    import torch

    generation, step = trainer.vllm_generation, trainer.state.global_step
    vllm.check_registered(generation.llm)
    vllm.check_room(generation.llm, max(map(len, prompt_ids)), trainer.max_completion_length)
    asleep = generation.enable_sleep_mode
    if asleep or step != trainer._last_loaded_step:
        _load_weights(trainer, generation.llm, asleep)
        trainer._last_loaded_step = step
    how = Sampling(
        trainer.max_completion_length,
        temperature=trainer.temperature,
        top_p=trainer.top_p,
        logprobs=True,
        seed=int(torch.randint(2**31, ())),
    )
    requests = list(zip(map(list, prompt_ids), vllm.seeds(how, len(prompt_ids)), strict=True))
    stop_ids = [trainer.processing_class.eos_token_id]
    completions = list(vllm.sample(generation.llm, None, requests, stop_ids, how))
    if asleep:
        generation.llm.sleep(level=2)  # frees the weights too: the next call copies them again
    return [ids for ids, _ in completions], [list(logprobs) for _, logprobs in completions]


def _load_weights(trainer: trl.GRPOTrainer, llm: VLLM, asleep: bool) -> None:
    """Copy the current weights to vLLM, and clear the prefix cache of the old weights.

    Args:
        asleep: whether vLLM has freed its memory and must be woken first.
    """
    import torch

    if asleep:
        # vLLM allocates outside PyTorch's cache, so cached blocks would be missing there
        torch.cuda.empty_cache()
        llm.wake_up(tags=["weights"])
    model = llm.llm_engine.model_executor.driver_worker.model_runner.model
    with torch.no_grad():
        for weight in merged_weights(trainer.accelerator.unwrap_model(trainer.model)):
            # one weight at a time: copies of all merged weights need the memory of a second model
            model.load_weights([weight])
    if asleep:
        llm.wake_up(tags=["kv_cache"])
    llm.reset_prefix_cache()


def merged_weights(model: PeftModel) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield (name, weight) for each weight of the base model, with the adapter added to it.

    Names are those of the base model. `model` is not changed: weights with an adapter are copies.
    """
    base = model.get_base_model()
    modules = dict(base.named_modules())
    for path, weight in base.named_parameters():
        if model.prefix in path:
            continue
        owner, layer, name = path.rpartition(".base_layer.")
        if not layer:
            yield path, weight.data
        elif name == "weight":
            yield (
                f"{owner}.weight",
                weight.data + modules[owner].get_delta_weight("default").to(weight.dtype),
            )
        else:
            yield f"{owner}.{name}", weight.data
