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
from workbench.methods.method import Method, MethodConfig
from workbench.policies.hf import default_rows
from workbench.training import grpo_config, offline, ppo, reward_model
from workbench.training.settings import check_trainer
from workbench.types import OF_CLAIMS, JsonObject, WorkbenchError
from workbench.util.config import get, parts, settings

GIB, MOST, CPU = 2**30, 10**12, "cpu"
RESERVE = 1.2  # measured on an H200: 31.7 GiB in use for items and libraries of 27 GiB
PER_RESPONSE = 24  # response tokens per claim
# utilisation of a GPU's FLOP/s and bandwidth; minimum seconds per layer and token
OF_FLOPS, OF_BANDWIDTH, LAYER_SECONDS = 0.3, 0.5, 2e-3
ASSUMED = (
    "computed, and compared with one 7B model on one H200: plain transformers and PEFT, rows of the"
    f" maximum length,"
    f" {OF_FLOPS:.0%} of the GPU's FLOP/s in training, {OF_BANDWIDTH:.0%} of its bandwidth in"
    f" generation, a claim per {PER_RESPONSE} tokens; hours and requests cover the last stage,"
    " without evaluations and the judge's own time"
)
Items = dict[str, int]  # bytes by item


@dataclass(frozen=True)
class Training:
    """The trainer settings that the memory formulas use.

    Attributes:
        part: full name of the config, such as "truthrl.grpo"; "" for an evaluation.
        rank: rank of the LoRA adapter.
        micro: examples per backward pass.
        rows: examples per step.
        length: tokens per sequence.
        scored: tokens per sequence for which logits are computed.
        sides: sequences per example: 2 for DPO (chosen and rejected), else 1.
        at_once: number of responses that are sampled together; 0 without sampling.
        prompts: number of prompts of these responses.
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
    passes: int = 0  # forward passes without a backward pass
    epochs: int = 1
    at_once: int = 0
    prompts: int = 0


def read_training(path: str, part: Any, prompt: int, shape: Shape) -> Training:
    """Convert a trainer's config to the `Training` that the memory formulas use.

    Args:
        path: full name of the config, such as "truthrl.grpo".
        part: the config of the trainer.
        prompt: number of tokens of a prompt.
        shape: size of the model.
    """
    lora, kind = part.lora, type(part).__name__
    common = (path, kind, lora.lora_r, lora.gradient_checkpointing, lora.load_in_4bit)
    if not isinstance(part, grpo_config.GRPO | ppo.PPO):
        rows, steps, pairs = part.passes.batch, part.passes.steps, kind == "DPO"
        length = min(part.passes.max_length, shape.config.max_position_embeddings)
        scored = 0 if kind == "RewardModel" else length
        micro = part.passes.micro_batch or rows
        return Training(*common, micro, rows, steps, length, scored, 1 + pairs, int(pairs))
    if isinstance(part, grpo_config.GRPO):
        rows, at_once, micro = grpo_config.batches(part)
        epochs = part.iterations
        passes = bool(part.kl.beta) + (epochs > 1 or at_once < rows)
    else:
        rows, _, micro = ppo.sizes(part)
        at_once, epochs, passes = min(rows, default_rows(shape.parameters)), part.epochs, 2
    new, prompts = part.sampling.max_new_tokens, max(1, at_once // part.group_size)
    sizes = (micro, rows, part.steps, prompt + new, new)
    return Training(*common, *sizes, 1, passes, epochs, at_once, prompts)


def state(shape: Shape, training: Training, models: int, size: int) -> Items:
    """Return the memory that is in use throughout a training: weights, optimizer and so on.

    Args:
        models: number of reward models in memory.
        size: bytes of a weight: 4 on a CPU, 2 on a GPU.

    Returns:
        Name of an item, such as "weights" -> its bytes.
    """
    base = whole = size * shape.parameters
    adapter = training.rank * shape.sides
    if training.four_bits:  # NF4: half a byte, with 1 byte per 64 weights and 4 per 64 · 256
        base += int(shape.matrices * (1 / 2 + 1 / 64 + 1 / 4096)) - size * shape.matrices
    return {
        "weights": base,
        "reward_models": models * (whole + 4 * adapter),
        "adapter": adapter * (4 if size == 4 else 6),  # float32, and on a GPU autocast's copy
        "gradients": adapter * 4,
        "optimizer": adapter * 8,
    }


def learning(shape: Shape, training: Training, models: int, size: int) -> Items:
    """Return the memory in use during a backward pass, including that of `state`.

    Args:
        models: number of reward models in memory.
        size: bytes of a weight: 4 on a CPU, 2 on a GPU.

    Returns:
        Name of an item, such as "activations" -> its bytes.
    """
    config, sequences = shape.config, training.micro * training.sides
    tokens, layers = sequences * training.length, config.num_hidden_layers
    copies = 4 * (4 if training.trainer == "PPO" else 3) + (0 if size == 4 else size)
    logits = sequences * training.scored * config.vocab_size * copies
    layer = tokens * saved_bytes(shape, training.rank, training.length, size)
    activations = layers * layer
    # Checkpointing keeps the inputs of all layers. It recomputes one layer at a time, in the memory
    # that the logits had.
    if training.checkpointing:
        recomputed = layer + tokens * config.intermediate_size * size
        inputs = layers * tokens * config.hidden_size * size
        activations = inputs + max(0, recomputed - logits)
    return {**state(shape, training, models, size), "activations": activations, "logits": logits}


def saved_bytes(shape: Shape, rank: int, length: int, size: int) -> int:
    """Return the bytes per token that a layer saves for the backward pass.

    Args:
        rank: rank of the LoRA adapter.
        length: number of tokens of a sequence.
        size: bytes of a weight: 4 on a CPU, 2 on a GPU.
    """
    config, mixed = shape.config, size != 4
    hidden, inner, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
    computed = 3 * inner + (4 if mixed else 3) * shape.queries + length
    read = inner + (5 if mixed else 2) * hidden + shape.queries + 7 * rank
    exact = 2 * hidden + heads + 2
    return int(size * computed + 4 * (read + exact))


def sampling(shape: Shape, training: Training, models: int, size: int) -> Items:
    """Return the memory in use while responses are sampled, including that of `state`.

    Args:
        models: number of reward models in memory.
        size: bytes of a weight: 4 on a CPU, 2 on a GPU.

    Returns:
        Name of an item, such as "kv_cache" -> its bytes.
    """
    config, prompt = shape.config, training.length - training.scored
    # keys and values of all layers; one layer more, because the cache is copied to grow
    token = 2 * (config.num_hidden_layers + 1) * shape.keys * size
    widest = 3 * config.intermediate_size + 3 * config.hidden_size + shape.queries + prompt
    reading = training.prompts * prompt * size * widest
    return {
        **state(shape, training, models, size),
        "kv_cache": token * training.at_once * training.length,
        "reading_prompts": max(0, reading - token * training.at_once * training.scored),
    }


def total(items: Items) -> int:
    """Return the bytes of all items, plus a fifth for the allocator and 1 GiB for libraries."""
    return GIB + int(RESERVE * sum(items.values()))


def forward_flops(shape: Shape, length: int) -> float:
    """Return the FLOPs of a forward pass per token of a sequence with `length` tokens.

    These are two per weight, plus attention.
    """
    matrices = shape.matrices + shape.config.vocab_size * shape.config.hidden_size
    attention = shape.config.num_hidden_layers * length * shape.queries
    return float(2 * (matrices + attention))


def step_hours(shape: Shape, training: Training, gpu: Mapping[str, float]) -> float:
    """Return the estimated hours of one training step on a GPU.

    The base model is frozen, so a backward pass is assumed to cost as much as a forward pass.

    Args:
        gpu: specification of the GPU, a value of `GPUS`.
    """
    flops = OF_FLOPS * gpu["flops"]
    forward, layers = forward_flops(shape, training.length) / flops, shape.config.num_hidden_layers
    passes = (2 + training.checkpointing) * training.epochs + training.passes
    seconds = training.rows * training.sides * training.length * passes * forward
    if training.at_once:
        cache = layers * shape.keys * training.at_once * training.length
        moving = 2 * (shape.parameters + cache) / (OF_BANDWIDTH * gpu["bandwidth"])
        token = max(layers * LAYER_SECONDS, moving, training.at_once * forward)
        prompt = training.length - training.scored
        prompts = training.prompts * prompt * forward_flops(shape, prompt) / flops
        seconds += math.ceil(training.rows / training.at_once) * (training.scored * token + prompts)
    return float(seconds / 3600)


def judge_requests(checks: Collection[str], claims: int) -> int:
    """Return the number of requests to the judge for one response.

    Args:
        checks: names of the checks that grade the response.
        claims: number of claims in the response.
    """
    extraction = bool((OF_CLAIMS - {"factuality"}) & {*checks})
    facts = claims + 1 if "fact" in checks and claims else 0
    checklist = "claim_checklist" in checks and claims > 0
    once = sum(check in checks for check in ("outcome", "checklist", "reasoning"))
    return extraction + facts + checklist + once


def judged_checks(checks: Sequence[str], config: MethodConfig) -> list[str]:
    """Return the names of the checks that grade a rollout in training.

    These are the method's checks. If a trained model gives the rewards instead of the judge, the
    check by this model replaces "fact".

    Args:
        checks: names of the method's checks.
        config: config of the method.
    """
    if getattr(config, "rewarded", "judge") == "judge":
        return [*checks]
    own = "truth" if hasattr(config, "truth_model") else "factuality"
    return [own if check == "fact" else check for check in checks]


def remedy(training: Training, sampled: bool) -> str:
    """Return a sentence that names the settings to change if a phase needs too much memory.

    `sampled` is True for a phase that samples responses, False for a phase with a backward pass.
    """
    larger = "a smaller --policy, or a --gpu with more memory"
    if not training.part:  # the evaluation has no settings
        return larger
    batch = "prompts_per_step" if training.trainer == "PPO" else "generation_batch"
    recompute = ["gradient_checkpointing"] * (not training.checkpointing)
    names = [batch] if sampled else [*recompute, "micro_batch"]
    names.append("max_new_tokens" if training.at_once else "max_length")
    fields = ", ".join(f"{training.part}.{name}" for name in names)
    return f"change {fields} by --set, or take {larger}"


def read_trainings(
    method: Method, config: MethodConfig, prompt: int, shape: Shape
) -> list[Training]:
    """Check the trainer configs of a method's stages, and return a `Training` for each.

    Args:
        prompt: number of tokens of a prompt.

    Raises:
        WorkbenchError: a setting is invalid, or its memory cannot be estimated.
    """
    last, earlier = method.training(config).trainer, (offline.SFT, reward_model.RewardModel)
    used = {name: part for name, part in parts(config).items() if isinstance(part, earlier)}
    # the last stage is appended below, so that it is planned last
    used.pop(last, None)
    trainings = []
    for name, part in {**used, last: get(config, last)}.items():
        path = f"{method.name}.{name}"
        for field, value, _ in settings(part):
            if isinstance(value, int) and value > MOST:
                raise WorkbenchError(f"{path}.{field} is {value:,}: set at most {MOST:,}")
        if getattr(part, "vllm", "none") != "none":
            raise WorkbenchError(
                f"{path}.vllm is {part.vllm}: the plan does not cover vLLM; set it to none"
            )
        if isinstance(part, grpo_config.GRPO):
            grpo_config.check(part)
        elif isinstance(part, ppo.PPO):
            ppo.check(part)
        else:
            check_trainer(part, trl=not isinstance(part, reward_model.RewardModel))
        trainings.append(read_training(path, part, prompt, shape))
    return trainings


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
        bench: bench that sets the defaults: "tiny", "small" or "paper".
        policy: a model's folder or public name; by default the bench's policy.
        gpu: one of `GPUS`, or "cpu" for this machine; None to compare with all `GPUS`.
        overrides: changed settings, each as "method.field=value".
        prompt_tokens: tokens of a prompt; by default the bench's.

    Returns:
        An object with these keys, and others:

        * `phases`: the memory in bytes of each phase, such as the rollouts.
        * `fits`: whether the memory of `gpu` is enough. Without `gpu`, it is False if all `GPUS`
          are too small, else None.
        * `fits_on`: the `GPUS` with enough memory.
        * `hours`: the hours on `gpu`; None if `gpu` is not one of `GPUS`, or if the number of steps
          is not known.

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
    steps = read_trainings(chosen, config, prompt, shape)
    if gpu == CPU and (packed := [step.part for step in steps if step.four_bits]):
        raise WorkbenchError(
            f"{packed[0]}.load_in_4bit is true, which needs a GPU: name one with --gpu, or set it"
            " to false"
        )
    last, rows = steps[-1], default_rows(shape.parameters)
    new = max(scale.longest, last.scored if last.at_once else 0)
    if prompt + new > (positions := shape.config.max_position_embeddings):
        raise WorkbenchError(
            f"{last.part}.max_new_tokens is {new}: after a prompt of {prompt} tokens the policy has"
            f" positions for {max(0, positions - prompt)} more; set max_new_tokens to at most that"
        )
    evaluation = replace(last, part="", rank=0, four_bits=False, length=prompt + new, scored=new)
    jobs = [("evaluation", replace(evaluation, at_once=rows, prompts=rows), sampling)]
    jobs += [("rollouts", last, sampling)] if last.at_once else []
    jobs += [(step.trainer, step, learning) for step in steps]
    phases, remedies = list[JsonObject](), []
    for name, step, memory in jobs:
        online, sampled = step is last and last.at_once, memory is sampling
        models = chosen.training(config).resident_models if online else 0
        items = memory(shape, step, models, size)
        rows, needed = step.at_once if sampled else step.micro * step.sides, total(items)
        phase = {"phase": name, "part": step.part, "rows": rows, "tokens": step.length}
        phases.append({**phase, "bytes": items, "total": needed})
        if needed > room:
            size_note = f"{name} needs {gib(needed)} of {gib(room)}"
            remedies.append(f"{size_note}: {remedy(step, sampled)}")
    peak = max(phase["total"] for phase in phases)
    fits_on = [name for name, card in GPUS.items() if peak <= GIB * card["memory"]]
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
