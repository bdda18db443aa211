"""Estimate a training before it starts: GPU memory by phase, judge requests and hours.

The inputs are a method's config and a model's shape. docs/scaling.md derives the formulas.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.experiments.doctor import memory_here
from workbench.experiments.shape import GPUS, Shape, shape_of
from workbench.methods import trained
from workbench.methods.bench import NAMES, SCALES
from workbench.methods.method import MethodConfig
from workbench.policies.hf import default_rows
from workbench.training import grpo_config, offline, ppo, reward_model
from workbench.training.settings import LoRA, check_trainer
from workbench.types import OF_CLAIMS, JsonObject, WorkbenchError
from workbench.util.config import get, parts

GIB, CPU = 2**30, "cpu"
RESERVE = 1.2  # measured on an H200: 31.7 GiB in use for items and libraries of 27 GiB
PER_RESPONSE = 24  # response tokens per claim
# utilisation of a GPU's FLOP/s and bandwidth; minimum seconds per layer and token
OF_FLOPS, OF_BANDWIDTH, LAYER_SECONDS = 0.3, 0.5, 2e-3
ASSUMED = (
    "computed, and compared with one 7B model on one H200: plain transformers and PEFT, rows of the"
    f" maximum length, {OF_FLOPS:.0%} of the GPU's FLOP/s in training, {OF_BANDWIDTH:.0%} of its"
    f" bandwidth in generation, a claim per {PER_RESPONSE} tokens; hours and requests cover the"
    " last stage, without evaluations and the judge's own time"
)
Items = dict[str, int]  # an item of memory, such as "weights" -> its bytes


@dataclass(frozen=True)
class Training:
    """The numbers of a model and a trainer that determine a training's memory and hours."""

    part: str  # full name of the trainer's config, such as "truthrl.grpo"; "" for an evaluation
    trainer: str  # class of this config, such as "GRPO"
    shape: Shape
    size: int  # bytes of a weight: 4 on a CPU, 2 on a GPU
    lora: LoRA
    steps: int | None
    rows: int  # examples per step
    micro: int  # examples per backward pass
    length: int  # tokens per sequence
    scored: int  # tokens per sequence for which logits are computed
    passes: int  # forward passes over a sequence; a backward pass counts as one
    at_once: int = 0  # number of responses that are sampled together; 0 without sampling
    prompts: int = 0  # number of prompts of these responses
    sides: int = 1  # sequences per example: 2 for DPO (chosen and rejected)
    models: int = 0  # number of reward models in memory


def read_training(path: str, part: Any, prompt: int, shape: Shape, size: int) -> Training:
    """Check a trainer's config; return the numbers that determine its memory and hours.

    Args:
        path: full name of the config, such as "truthrl.grpo".
        part: the config, such as a `GRPO`.
        prompt: tokens per prompt.
        shape: size of the policy.
        size: bytes per weight: 4 on a CPU, 2 on a GPU.

    Raises:
        WorkbenchError: a setting is invalid, or its memory cannot be estimated.
    """
    if getattr(part, "vllm", "none") != "none":
        raise WorkbenchError(
            f"{path}.vllm is {part.vllm}: the plan does not cover vLLM; set it to none"
        )
    if part.lora.load_in_4bit and size == 4:
        raise WorkbenchError(
            f"{path}.load_in_4bit needs a GPU: name one by --gpu, or set it to false"
        )
    kind, update = type(part).__name__, 2 + part.lora.gradient_checkpointing  # passes per update
    common = (path, kind, shape, size, part.lora)
    if isinstance(part, grpo_config.GRPO):
        grpo_config.check(part)
        rows, at_once, micro = grpo_config.batches(part)
        old_policy = part.iterations > 1 or at_once < rows
        passes = update * part.iterations + bool(part.kl.beta) + old_policy
    elif isinstance(part, ppo.PPO):
        ppo.check(part)
        rows, _, micro = ppo.sizes(part)
        at_once, passes = min(rows, default_rows(shape.parameters)), update * part.epochs + 2
    else:
        check_trainer(part, trl=kind != "RewardModel")
        given, pairs = part.passes, kind == "DPO"
        length = min(given.max_length, shape.config.max_position_embeddings)
        sizes = (given.batch, given.micro_batch or given.batch, length)
        scored = 0 if kind == "RewardModel" else length
        return Training(*common, given.steps, *sizes, scored, update + pairs, sides=1 + pairs)
    new, prompts = part.sampling.max_new_tokens, max(1, at_once // part.group_size)
    sizes = (rows, micro, prompt + new)
    return Training(*common, part.steps, *sizes, new, passes, at_once, prompts)


def state(training: Training) -> Items:
    """Return the memory in use throughout a training, as name of an item -> bytes.

    The items are the weights, the reward models, and the LoRA adapter with its gradients and
    optimizer state.
    """
    shape, size = training.shape, training.size
    adapter = training.lora.lora_r * shape.sides
    base = whole = size * shape.parameters
    if training.lora.load_in_4bit:  # NF4: half a byte, with 1 byte per 64 weights, 4 per 64 · 256
        base += int(shape.matrices * (1 / 2 + 1 / 64 + 1 / 4096)) - size * shape.matrices
    return {
        "weights": base,
        "reward_models": training.models * (whole + 4 * adapter),
        "adapter": adapter * (4 if size == 4 else 6),  # float32, and on a GPU autocast's copy
        "gradients": adapter * 4,
        "optimizer": adapter * 8,
    }


def learning(training: Training) -> Items:
    """Return the memory in use during a backward pass, as name of an item -> bytes.

    The items are those of `state`, the activations and the logits.
    """
    config, size = training.shape.config, training.size
    sequences, layers = training.micro * training.sides, config.num_hidden_layers
    tokens = sequences * training.length
    scored, vocabulary = sequences * training.scored, config.vocab_size
    copies = 4 * (4 if training.trainer == "PPO" else 3) + (0 if size == 4 else size)
    if training.trainer == "GRPO":  # the sizes of TRL's chunks
        scored, vocabulary, copies = min(scored, 2048), min(vocabulary, 8192), 4 * 4 + size
    logits = scored * vocabulary * copies
    layer = tokens * saved_bytes(training)
    activations = layers * layer
    # Checkpointing keeps the inputs of all layers. It recomputes one layer at a time, in the memory
    # that the logits had.
    if training.lora.gradient_checkpointing:
        recomputed = layer + tokens * config.intermediate_size * size
        inputs = layers * tokens * config.hidden_size * size
        activations = inputs + max(0, recomputed - logits)
    return {**state(training), "activations": activations, "logits": logits}


def saved_bytes(training: Training) -> int:
    """Return the bytes per token that a layer saves for the backward pass."""
    shape, config, mixed = training.shape, training.shape.config, training.size != 4
    hidden, inner, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
    computed = 3 * inner + (4 if mixed else 3) * shape.queries + training.length
    read = inner + (5 if mixed else 2) * hidden + shape.queries + 7 * training.lora.lora_r
    exact = 2 * hidden + heads + 2
    return training.size * computed + 4 * (read + exact)


def sampling(training: Training) -> Items:
    """Return the memory in use while responses are sampled, as name of an item -> bytes.

    The items are those of `state`, the KV cache, and the extra memory of the prefill.
    """
    shape, config, size = training.shape, training.shape.config, training.size
    prompt = training.length - training.scored
    # keys and values of all layers; one layer more, because the cache is copied to grow
    token = 2 * (config.num_hidden_layers + 1) * shape.keys * size
    widest = 3 * config.intermediate_size + 3 * config.hidden_size + shape.queries + prompt
    reading = training.prompts * prompt * size * widest
    return {
        **state(training),
        "kv_cache": token * training.at_once * training.length,
        "reading_prompts": max(0, reading - token * training.at_once * training.scored),
    }


def total(items: Items) -> int:
    """Return the sum of the items' bytes, plus 20 % for the allocator and 1 GiB for libraries."""
    return GIB + int(RESERVE * sum(items.values()))


def forward_flops(shape: Shape, length: int) -> float:
    """Return the FLOPs per token of a forward pass over a sequence with `length` tokens."""
    matrices = shape.matrices + shape.config.vocab_size * shape.config.hidden_size
    attention = shape.config.num_hidden_layers * length * shape.queries
    return float(2 * (matrices + attention))  # a multiplication and an addition each


def step_hours(training: Training, gpu: Mapping[str, float]) -> float:
    """Return the estimated hours of one training step on a GPU.

    The base model is frozen, so a backward pass is assumed to cost as much as a forward pass.

    Args:
        gpu: the GPU's FLOP/s ("flops") and bytes/s ("bandwidth"), such as `GPUS["h100-80"]`.
    """
    shape, flops = training.shape, OF_FLOPS * gpu["flops"]
    forward, layers = forward_flops(shape, training.length) / flops, shape.config.num_hidden_layers
    seconds = training.rows * training.sides * training.length * training.passes * forward
    if training.at_once:
        cache = layers * shape.keys * training.at_once * training.length
        moving = 2 * (shape.parameters + cache) / (OF_BANDWIDTH * gpu["bandwidth"])
        token = max(layers * LAYER_SECONDS, moving, training.at_once * forward)
        prompt = training.length - training.scored
        prompts = training.prompts * prompt * forward_flops(shape, prompt) / flops
        seconds += math.ceil(training.rows / training.at_once) * (training.scored * token + prompts)
    return float(seconds / 3600)


def judge_requests(checks: Collection[str], claims: int) -> int:
    """Return the number of requests to an LLM judge for one response.

    Args:
        checks: names of the checks that grade the response, such as "fact" and "outcome".
        claims: number of claims of the response.
    """
    extraction = bool((OF_CLAIMS - {"factuality"}) & {*checks})
    facts = claims + 1 if "fact" in checks and claims else 0
    checklist = "claim_checklist" in checks and claims > 0
    once = sum(check in checks for check in ("outcome", "checklist", "reasoning"))
    return extraction + facts + checklist + once


def judged_checks(checks: Sequence[str], config: MethodConfig) -> list[str]:
    """Return the names of the checks that grade a rollout in training.

    These are the method's `checks`. With the setting `rewarded="model"` of KLCF and FoRAG, a reward
    model replaces the judge: its check ("truth" or "factuality") replaces the check "fact".
    """
    if getattr(config, "rewarded", "judge") == "judge":
        return [*checks]
    own = "truth" if hasattr(config, "truth_model") else "factuality"
    return [own if check == "fact" else check for check in checks]


def remedy(training: Training, sampled: bool) -> str:
    """Return advice for a phase that needs too much memory: which settings to change.

    Args:
        sampled: True if the phase samples responses, False if it has backward passes.
    """
    larger = "a smaller --policy, or a --gpu with more memory"
    if not training.part:  # the evaluation has no settings
        return larger
    batch = "prompts_per_step" if training.trainer == "PPO" else "generation_batch"
    recompute = ["gradient_checkpointing"] * (not training.lora.gradient_checkpointing)
    names = [batch] if sampled else [*recompute, "micro_batch"]
    names.append("max_new_tokens" if training.at_once else "max_length")
    fields = ", ".join(f"{training.part}.{name}" for name in names)
    return f"change {fields} by --set, or take {larger}"


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
) -> JsonObject:
    """Return an estimate of a training's memory, judge requests and hours.

    Args:
        method: name of the method.
        bench: "tiny", "small" or "paper". It sets the default policy and settings.
        policy: a model's folder or hub name; by default the bench's policy.
        gpu: one of `GPUS`, or "cpu" for this machine; None to compare with all `GPUS`.
        overrides: changed settings, each as "method.field=value".
        prompt_tokens: tokens per prompt; by default the bench's.

    Returns:
        An object whose main keys are (docs/formats.md lists all keys):

        * `phases`: a list with an object for each phase, such as the rollouts. It has the memory
          in bytes (`total`), also by item (`bytes`).
        * `fits`: whether `gpu` has enough memory. If `gpu` is None: False if all `GPUS` are too
          small; otherwise None, and `fits_on` lists the GPUs with enough memory.
        * `hours`: the hours on `gpu`; None if `gpu` is None or "cpu", or if the number of steps is
          not known.

    Raises:
        WorkbenchError: the method, bench, GPU or model is unknown, or a setting is invalid.
    """
    chosen, size = trained(method), 4 if gpu == CPU else 2
    for kind, name, known in (("bench", bench, NAMES), ("GPU", gpu, (None, *GPUS, CPU))):
        if name not in known:
            choices = ", ".join(filter(None, known))
            raise WorkbenchError(f"no {kind} '{name}': choose one of {choices}")
    sizes = [GIB * card["memory"] for name, card in GPUS.items() if gpu in (None, name)]
    room = max(sizes, default=memory_here())  # `sizes` is empty for "cpu"
    config, scale = chosen.configure(bench, overrides), SCALES[bench]
    chosen.reward(config)  # raises for values that cannot work
    shape, prompt = shape_of(policy or scale.policy), prompt_tokens or scale.prompt
    final, earlier = chosen.training(config), offline.SFT | reward_model.RewardModel
    used = {name: part for name, part in parts(config).items() if isinstance(part, earlier)}
    used[final.trainer] = used.pop(final.trainer, get(config, final.trainer))  # planned last
    *before, last = (
        read_training(f"{method}.{name}", part, prompt, shape, size) for name, part in used.items()
    )
    models = final.resident_models if last.at_once else 0  # they score sampled responses only
    last, rows = replace(last, models=models), default_rows(shape.parameters)
    new = max(scale.longest, last.scored if last.at_once else 0)
    if prompt + new > (positions := shape.config.max_position_embeddings):
        raise WorkbenchError(
            f"{last.part}.max_new_tokens is {new}, but after a prompt of {prompt} tokens the policy"
            f" has only {max(0, positions - prompt)} positions left: lower max_new_tokens to that"
        )
    evaluation = replace(last, part="", lora=LoRA(lora_r=0), models=0, length=prompt + new)
    evaluation = replace(evaluation, scored=new, at_once=rows, prompts=rows)
    jobs = [("evaluation", evaluation, sampling)]
    jobs += [("rollouts", last, sampling)] if last.at_once else []
    jobs += [(step.trainer, step, learning) for step in (*before, last)]
    phases, remedies = list[JsonObject](), []
    for name, step, memory in jobs:
        items, sampled = memory(step), memory is sampling
        rows, needed = step.at_once if sampled else step.micro * step.sides, total(items)
        phase = {"phase": name, "part": step.part, "rows": rows, "tokens": step.length}
        phases.append({**phase, "bytes": items, "total": needed})
        if needed > room:
            remedies.append(f"{name} needs {gib(needed)} of {gib(room)}: {remedy(step, sampled)}")
    peak = max(phase["total"] for phase in phases)
    fits_on = [name for name, card in GPUS.items() if peak <= GIB * card["memory"]]
    checks = judged_checks(chosen.checks(config), config)
    requests = judge_requests(checks, -(-last.scored // PER_RESPONSE)) if last.at_once else 0
    count, hours = requests * last.rows, None
    if gpu in GPUS and last.steps is not None:
        hours = round(last.steps * step_hours(last, GPUS[gpu]), 2)
    return {
        "method": method,
        "bench": bench,
        "policy": policy or scale.policy,
        "gpu": gpu,
        "parameters": shape.parameters,
        "lora_parameters": last.lora.lora_r * shape.sides,
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
