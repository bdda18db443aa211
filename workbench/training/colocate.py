"""vLLM beside a GRPO training, in its process and on its GPU (TRL's "colocate"): what TRL is
told of it, and how it samples.

TRL makes the engine. The weights are handed to it, and it is asked, in ways of our own: TRL
merges the adapter into the frozen weights and takes it out again, which leaves those a rounding
error off at every step, and its samples do not come of the state that a checkpoint keeps, so
that a resumed run would end elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from workbench.policies import vllm
from workbench.policies.generate import Sampling
from workbench.types import WorkbenchError

# (ours) of the correction for what both engines' probabilities of a token differ by, since they
# round otherwise: how much a token counts at most.
MOST = 2.0
# which TRL sets, as a launcher would
LAUNCHED = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def check_colocate(config: Any) -> None:
    """Raise a WorkbenchError for a GRPO config whose sampling by vLLM cannot work."""
    if config.vllm == "none":
        return
    if not 0 < config.vllm_memory < 1:
        raise WorkbenchError(
            f"vllm_memory is {config.vllm_memory}: it is a share of the GPU's memory, between 0"
            " and 1"
        )
    if config.lora.load_in_4bit:
        raise WorkbenchError(
            "load_in_4bit is true: vLLM beside the training is handed the weights as they are in"
            " memory, and takes none in 4 bits: leave it false, or use vllm=none"
        )
    if config.sampling.top_p < 1:
        raise WorkbenchError(
            f"top_p is {config.sampling.top_p}: with vllm=colocate what it cuts off would be taken"
            " for a difference of the engines: use top_p=1, or vllm=none"
        )
    import torch

    if config.vllm_sleep and not torch.cuda.is_available():
        raise WorkbenchError("vllm_sleep empties a GPU's memory, and there is none: leave it false")
    vllm.check_installed("leave vllm at none")


def check_alone(config: Any, processes: int) -> None:
    """Raise a WorkbenchError where several processes train together and vLLM is to sample."""
    if config.vllm != "none" and processes > 1:
        raise WorkbenchError(
            f"vllm=colocate is for one process, and {processes} train together: leave vllm at none"
        )


@contextmanager
def beside(config: Any) -> Iterator[None]:
    """A training with vLLM in its process: what this held before is ended, and so is the
    training's own, however that ends.

    TRL says in the environment that this is the one process of several; whoever trains next
    would take it for that.
    """
    if config.vllm == "none":
        yield
        return
    before = {name: os.environ.get(name) for name in LAUNCHED}
    vllm.release()
    vllm.prepare()
    try:
        yield
    finally:
        vllm.release()
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def hold(config: Any, trainer: Any) -> None:
    """Note the engine that TRL has made, so that it can be ended."""
    if config.vllm != "none":
        vllm.hold(trainer.vllm_generation.llm)


def arguments(config: Any) -> dict[str, Any]:
    """What TRL's config is told, all that it could decide by itself included."""
    if config.vllm == "none":
        return {"use_vllm": False}
    return {
        "use_vllm": True,
        "vllm_mode": "colocate",
        "vllm_model_impl": "vllm",
        "vllm_tensor_parallel_size": 1,
        "vllm_max_model_length": -1,  # what the model has, or the memory has room for
        "vllm_gpu_memory_utilization": config.vllm_memory,
        "vllm_enable_sleep_mode": config.vllm_sleep,
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": "token_truncate",
        "vllm_importance_sampling_clip_max": MOST,
        "vllm_importance_sampling_clip_min": None,
    }


def sample(
    trainer: Any, prompt_ids: Sequence[Sequence[int]]
) -> tuple[list[list[int]], list[list[float]]]:
    """As `workbench.training.sampling.sample`, by vLLM from the weights as they are; and what each
    token was drawn by, as the logarithm of its probability at the temperature of the training."""
    import torch

    generation, step = trainer.vllm_generation, trainer.state.global_step
    vllm.check_held(generation.llm)
    vllm.check_room(generation.llm, max(map(len, prompt_ids)), trainer.max_completion_length)
    asleep = generation.enable_sleep_mode
    if asleep or step != trainer._last_loaded_step:
        _hand_over(trainer, generation.llm, asleep)
        trainer._last_loaded_step = step
    how = Sampling(
        trainer.max_completion_length,
        temperature=trainer.temperature,
        top_p=trainer.top_p,
        logprobs=True,
        seed=int(torch.randint(2**31, ())),
    )
    asked = list(zip(map(list, prompt_ids), vllm.seeds(how, len(prompt_ids)), strict=True))
    drawn = list(
        vllm.sampled(generation.llm, None, asked, [trainer.processing_class.eos_token_id], how)
    )
    if asleep:
        generation.llm.sleep(level=2)
    return [ids for ids, _ in drawn], [list(scores) for _, scores in drawn]


def _hand_over(trainer: Any, llm: Any, asleep: bool) -> None:
    """Give vLLM the weights as they are, and have it forget what it has computed with others."""
    import torch

    if asleep:
        torch.cuda.empty_cache()
        llm.wake_up(tags=["weights"])
    held = llm.llm_engine.model_executor.driver_worker.model_runner.model
    with torch.no_grad():
        for weight in merged(trainer.accelerator.unwrap_model(trainer.model)):
            held.load_weights([weight])
    if asleep:
        llm.wake_up(tags=["kv_cache"])
    llm.reset_prefix_cache()


def merged(model: Any) -> Iterator[tuple[str, Any]]:
    """The weights of a PEFT model's base by their names there, each with its adapter in it; the
    model stays as it is.
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
