"""Estimate what a training needs before it starts: GPU memory by phase, judge requests and hours.

The inputs are a method's config and a model's sizes; no weights are loaded. docs/scaling.md derives
the formulas and lists the measurements behind them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

from workbench.experiments.doctor import memory_here
from workbench.methods import trained
from workbench.methods.bench import NAMES, SCALES
from workbench.methods.method import Method
from workbench.policies import weights
from workbench.policies.hf import default_rows
from workbench.policies.load import check_policy_name
from workbench.training import grpo_config, offline, ppo, reward_model
from workbench.types import OF_CLAIMS, WorkbenchError
from workbench.util.config import parts, settings
from workbench.util.hub import from_disk_or_hub

# GPUs with GiB that drivers report, FLOP/s in bf16 and bytes/s; configs of public models
GPUS, MODELS = json.loads(Path(__file__).with_suffix(".json").read_text()).values()
CHECKS: dict[type, Callable[[Any], None]] = {
    grpo_config.GRPO: grpo_config.check,
    ppo.PPO: ppo.check,
    offline.SFT: offline.check,
    offline.DPO: offline.check,
    reward_model.RewardModel: reward_model.check,
}
GIB, MOST, CPU, TYPES = 2**30, 10**12, "cpu", ("llama", "qwen2", "qwen3")
PER_RESPONSE = 24  # tokens of a response per claim
# shares of a GPU's FLOP/s and bandwidth that are reached; seconds a layer and token at least
OF_FLOPS, OF_BANDWIDTH, LAYER_SECONDS = 0.3, 0.5, 1e-3
ASSUMED = (
    "computed, not measured on a GPU: plain transformers and PEFT, rows as long as they may be,"
    f" {OF_FLOPS:.0%} of the GPU's FLOP/s in learning, {OF_BANDWIDTH:.0%} of its bandwidth in"
    f" generation, a claim per {PER_RESPONSE} tokens; hours and requests are those of the last"
    " stage, without evaluations and the judge's own time"
)
LARGER = "a smaller --policy, or a --gpu with more memory"
Items = dict[str, int]  # bytes by item


@dataclass(frozen=True)
class Shape:
    """A dense decoder: its config, its parameters, the weights of its layers' matrices with the
    sum of their inputs and outputs, and the width of all queries and of all keys."""

    config: Any
    parameters: int
    matrices: int
    sides: int
    queries: int
    keys: int


def shape_of(policy: str) -> Shape:
    """Read the config of a model by its public name, or from its folder or the hub, and count the
    parameters of transformers' own model, without memory for them.

    Raises:
        WorkbenchError: no such model, or not a dense decoder of a known type.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with weights.loading(policy, f"name a model's folder, or one of {', '.join(MODELS)}"):
        if known := MODELS.get(re.sub(r"-(Instruct|Base)$", "", policy)):
            config = AutoConfig.for_model(**known)
        else:
            check_policy_name(policy)
            config = from_disk_or_hub(AutoConfig.from_pretrained, policy)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        head = model.model.layers[0].self_attn.head_dim
    strange = ("quantization_config", "use_sliding_window", "num_experts")
    if config.model_type not in TYPES or any(getattr(config, key, None) for key in strange):
        raise WorkbenchError(
            f"'{policy}' (type {config.model_type}) is not a plain dense model of the types"
            f" {', '.join(TYPES)}: plan with such a model of about its size"
        )
    modules = model.model.layers.modules()
    linear = [one.weight.shape for one in modules if isinstance(one, torch.nn.Linear)]
    return Shape(
        config,
        parameters=sum(one.numel() for one in model.parameters()),
        matrices=sum(map(math.prod, linear)),
        sides=sum(map(sum, linear)),
        queries=config.num_attention_heads * head,
        keys=config.num_key_value_heads * head,
    )


@dataclass(frozen=True)
class Training:
    """The trainer settings that the formulas use.

    `micro` rows of `length` tokens, `scored` of them with logits, go through a backward pass;
    `sides` rows make an example. GRPO and PPO sample `at_once` responses to `prompts`.
    """

    part: str
    trainer: str
    rank: int
    checkpointing: bool
    four_bits: bool
    micro: int
    rows: int
    steps: int | None
    length: int
    scored: int
    sides: int = 1
    passes: int = 0  # forward passes beside those that learn
    epochs: int = 1
    at_once: int = 0
    prompts: int = 0


def read_training(path: str, part: Any, prompt: int, shape: Shape) -> Training:
    """Read a trainer's settings; no other function of this module does."""
    lora, kind = part.lora, type(part).__name__
    how = (path, kind, lora.lora_r, lora.gradient_checkpointing, lora.load_in_4bit)
    if not isinstance(part, grpo_config.GRPO | ppo.PPO):
        rows, steps, pairs = part.passes.batch, part.passes.steps, kind == "DPO"
        length = min(part.passes.max_length, shape.config.max_position_embeddings)
        scored = 0 if kind == "RewardModel" else length
        micro = part.passes.micro_batch or rows
        return Training(*how, micro, rows, steps, length, scored, 1 + pairs, int(pairs))
    if isinstance(part, grpo_config.GRPO):
        rows, at_once, micro = grpo_config.batches(part)
        epochs = part.iterations
        passes = bool(part.kl.beta) + (epochs > 1 or at_once < rows)
    else:
        rows, _, micro = ppo.sizes(part)
        at_once, epochs, passes = min(rows, default_rows(shape.parameters)), part.epochs, 2
    new, prompts = part.sampling.max_new_tokens, max(1, at_once // part.group_size)
    sizes = (micro, rows, part.steps, prompt + new, new)
    return Training(*how, *sizes, passes=passes, epochs=epochs, at_once=at_once, prompts=prompts)


def state(shape: Shape, one: Training, models: int, size: int) -> Items:
    """Bytes that are in memory all through a training; `size` are those of a weight."""
    whole, adapter = size * shape.parameters, one.rank * shape.sides
    base = whole
    if one.four_bits:  # NF4: half a byte, with 1 byte per 64 weights and 4 per 64 · 256
        base += int(shape.matrices * (1 / 2 + 1 / 64 + 1 / 4096)) - size * shape.matrices
    return {
        "weights": base,
        "reward_models": models * (whole + 4 * adapter),
        "adapter": adapter * (4 if size == 4 else 6),  # autocast copies it
        "gradients": adapter * 4,
        "optimizer": adapter * 8,
    }


def learning(shape: Shape, one: Training, models: int, size: int) -> Items:
    """Bytes of a backward pass."""
    config, tokens = shape.config, one.micro * one.sides * one.length
    copies = 4 * (4 if one.trainer == "PPO" else 3) + (0 if size == 4 else size)
    logits = one.micro * one.sides * one.scored * config.vocab_size * copies
    layer = tokens * kept(shape, one.rank, one.length, size)
    activations = config.num_hidden_layers * layer
    if one.checkpointing:  # every layer's input, and one layer again when the logits are freed
        again = layer + tokens * config.intermediate_size * size
        inputs = config.num_hidden_layers * tokens * config.hidden_size * size
        activations = inputs + max(0, again - logits)
    return {**state(shape, one, models, size), "activations": activations, "logits": logits}


def kept(shape: Shape, rank: int, length: int, size: int) -> int:
    """Bytes that a layer keeps of a token for the backward pass, with LoRA's inputs in float32."""
    config, mixed = shape.config, size != 4
    hidden, inner, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
    computed = 3 * inner + (4 if mixed else 3) * shape.queries + length
    read = inner + (5 if mixed else 2) * hidden + shape.queries + 7 * rank
    exact = 2 * hidden + heads + 2
    return int(size * computed + 4 * (read + exact))


def sampling(shape: Shape, one: Training, models: int, size: int) -> Items:
    """Bytes while `at_once` responses are sampled."""
    config, prompt = shape.config, one.length - one.scored
    token = 2 * (config.num_hidden_layers + 1) * shape.keys * size  # the cache grows by copying
    widest = 3 * config.intermediate_size + 3 * config.hidden_size + shape.queries + prompt
    reading = one.prompts * prompt * size * widest - token * one.at_once * one.scored
    items = {"kv_cache": token * one.at_once * one.length, "reading_prompts": max(0, reading)}
    return {**state(shape, one, models, size), **items}


def total(items: Items) -> int:
    """All items, what libraries take and what the allocator cannot use (assumed)."""
    return GIB + int(1.05 * sum(items.values()))


def forward_flops(shape: Shape, length: int) -> float:
    """FLOPs of one token in a row of that length: two a weight, and attention's."""
    matrices = shape.matrices + shape.config.vocab_size * shape.config.hidden_size
    attention = shape.config.num_hidden_layers * length * shape.queries
    return float(2 * (matrices + attention))


def step_hours(shape: Shape, one: Training, gpu: Mapping[str, float]) -> float:
    """Hours of one step. The base is frozen: a backward pass costs as much as a forward one."""
    flops = OF_FLOPS * gpu["flops"]
    forward, layers = forward_flops(shape, one.length) / flops, shape.config.num_hidden_layers
    passes = (2 + one.checkpointing) * one.epochs + one.passes
    seconds = one.rows * one.sides * one.length * passes * forward
    if one.at_once:
        read = 2 * shape.parameters + 2 * layers * shape.keys * one.at_once * one.length
        moving = read / (OF_BANDWIDTH * gpu["bandwidth"])
        token = max(layers * LAYER_SECONDS, moving, one.at_once * forward)
        prompt = one.length - one.scored
        prompts = one.prompts * prompt * forward_flops(shape, prompt) / flops
        seconds += math.ceil(one.rows / one.at_once) * (one.scored * token + prompts)
    return float(seconds / 3600)


def judge_requests(checks: Collection[str], claims: int) -> int:
    """Requests to a language model about one response with so many claims."""
    reads_claims = bool((OF_CLAIMS - {"factuality"}) & {*checks})
    about_facts = claims + 1 if "fact" in checks and claims else 0
    about_claims = "claim_checklist" in checks and claims > 0
    once = sum(check in checks for check in ("outcome", "checklist", "reasoning"))
    return reads_claims + about_facts + about_claims + once


def judged_checks(checks: Sequence[str], config: Any) -> list[str]:
    """The checks of a rollout: a run's own reward model replaces the judge's facts."""
    if getattr(config, "rewarded", "judge") == "judge":
        return [*checks]
    own = "truth" if hasattr(config, "truth_model") else "factuality"
    return [own if check == "fact" else check for check in checks]


def remedy(one: Training, sampled: bool) -> str:
    """The settings of a phase that make it smaller."""
    if not one.part:  # an evaluation has none
        return LARGER
    if sampled:
        names = ["prompts_per_step" if one.trainer == "PPO" else "generation_batch"]
    else:
        names = ["micro_batch"] if one.checkpointing else ["gradient_checkpointing", "micro_batch"]
    names.append("max_new_tokens" if one.at_once else "max_length")
    settings = ", ".join(f"{one.part}.{name}" for name in names)
    return f"change {settings} by --set, or take {LARGER}"


def check_part(path: str, part: Any) -> None:
    """Raise a WorkbenchError for settings that cannot work or are not planned."""
    numbers = {name: value for name, value, _ in settings(part) if isinstance(value, int)}
    if large := [name for name, value in numbers.items() if value > MOST]:
        raise WorkbenchError(f"{path}.{large[0]} is above {MOST:,}: set less")
    if getattr(part, "vllm", "none") != "none":
        raise WorkbenchError(f"{path}.vllm: the memory of vLLM is not planned; leave it at none")
    CHECKS[type(part)](part)


def trainings(method: Method, config: Any, prompt: int, shape: Shape) -> list[Training]:
    """The trainings of earlier stages, used or not, and that of the policy."""
    last, earlier = method.training(config).trainer, (offline.SFT, reward_model.RewardModel)
    used = {name: part for name, part in parts(config).items() if isinstance(part, earlier)}
    used.pop(last, None)
    used[last] = reduce(getattr, last.split("."), config)
    for name, part in used.items():
        check_part(f"{method.name}.{name}", part)
    return [
        read_training(f"{method.name}.{name}", part, prompt, shape) for name, part in used.items()
    ]


def gib(size: float) -> str:
    return f"{size / GIB:,.1f} GiB" if size >= GIB / 10 else f"{size / 2**20:,.1f} MiB"


def plan(
    method: str,
    bench: str = "paper",
    *,
    policy: str | None = None,
    gpu: str | None = None,
    overrides: Sequence[str] = (),
    prompt_tokens: int | None = None,
) -> dict[str, Any]:
    """Plan a training of `method` at the scale of `bench`, phase by phase.

    Args:
        policy: a model's folder or public name; by default the bench's own.
        gpu: one of `GPUS`, or "cpu" for this machine; None: the largest of them.
        overrides: settings "method.field=value".
        prompt_tokens: tokens of a prompt; by default the bench's.

    Raises:
        WorkbenchError: no such method, bench, GPU or model, or settings that cannot work.
    """
    chosen, size = trained(method), 4 if gpu == CPU else 2
    if gpu not in (None, CPU, *GPUS):
        raise WorkbenchError(f"no GPU '{gpu}': choose one of {', '.join(GPUS)}, {CPU}")
    sizes = [GIB * one["memory"] for name, one in GPUS.items() if gpu in (None, name)]
    room = max(sizes, default=memory_here() or 0)  # none is named "cpu"
    if bench not in NAMES:
        raise WorkbenchError(f"no bench '{bench}': choose one of {', '.join(NAMES)}")
    config, scale = chosen.configure(bench, overrides), SCALES[bench]
    chosen.reward(config)  # refuses values that cannot work
    shape, prompt = shape_of(policy or scale.policy), prompt_tokens or scale.prompt
    steps = trainings(chosen, config, prompt, shape)
    if gpu == CPU and (packed := [one.part for one in steps if one.four_bits]):
        raise WorkbenchError(f"{packed[0]}.load_in_4bit is true, which needs a GPU: name one")
    last, rows = steps[-1], default_rows(shape.parameters)
    models = chosen.training(config).resident_models
    new = max(scale.longest, last.scored if last.at_once else 0)
    if prompt + new > (positions := shape.config.max_position_embeddings):
        raise WorkbenchError(
            f"{last.part}.max_new_tokens is {new}: after a prompt of {prompt} tokens the policy has"
            f" positions for {max(0, positions - prompt)}; set at most that"
        )
    answers = replace(last, part="", rank=0, four_bits=False, length=prompt + new, scored=new)
    jobs = [("evaluation", replace(answers, at_once=rows, prompts=rows), sampling)]
    jobs += [("rollouts", last, sampling)] if last.at_once else []
    jobs += [(one.trainer, one, learning) for one in steps]
    phases: list[dict[str, Any]] = []
    remedies = []
    for name, one, memory in jobs:
        beside = models if one is last and last.at_once else 0
        items, sampled = memory(shape, one, beside, size), memory is sampling
        rows = one.at_once if sampled else one.micro * one.sides
        phase = {"phase": name, "part": one.part, "rows": rows, "tokens": one.length}
        phases.append({**phase, "bytes": items, "total": total(items)})
        if total(items) > room:
            need = f"{name} needs {gib(total(items))} of {gib(room)}"
            remedies.append(f"{need}: {remedy(one, sampled)}")
    peak = max(phase["total"] for phase in phases)
    fits_on = [name for name, one in GPUS.items() if peak <= GIB * one["memory"]]
    checks = judged_checks(chosen.checks(config), config)
    requests = judge_requests(checks, -(-last.scored // PER_RESPONSE)) if last.at_once else 0
    count, hours = requests * last.rows, None
    if gpu in GPUS and last.steps is not None:
        hours = round(last.steps * step_hours(shape, last, GPUS[gpu]), 2)
    return {
        "method": method,
        "bench": bench,
        "policy": policy or scale.policy,
        "gpu": gpu,
        "parameters": shape.parameters,
        "lora_parameters": last.rank * shape.sides,
        "phases": phases,
        "peak_bytes": peak,
        "fits": None if gpu is None and fits_on else not remedies,
        "fits_on": fits_on,
        "remedies": remedies,
        "steps": last.steps,
        "responses_a_step": last.rows,
        "hours": hours,
        "judge_requests": {"response": requests, "step": count, "run": count * (last.steps or 0)},
        "assumed": ASSUMED,
    }
