"""Settings of a GRPO run, and their checks. No training library is imported here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workbench.policies import vllm
from workbench.training.settings import KL, LoRA, Optim, Sampling, Saving, check_trainer
from workbench.training.stage import order
from workbench.types import JsonObject, WorkbenchError
from workbench.util.config import setting

# (ours) Upper bound of the probability ratio of a whole response, from the dual clip of arXiv
# 1912.09729. For a negative advantage the loss takes the unclipped ratio, which is a product over
# hundreds of tokens and has no bound.
MAX_TRAJECTORY_RATIO = 3.0
# estimators that TRL computes itself -> the value of TRL's setting `scale_rewards`
TRL_SCALES = {"group": "group", "centred": "none"}


@dataclass(frozen=True)
class GRPO:
    """Settings of a GRPO run.

    Each training step samples `prompts_per_step` × `group_size` responses and makes `iterations`
    optimizer steps on them.
    """

    steps: int = setting(100, "training steps; each samples a new batch of responses", least=1)
    prompts_per_step: int = setting(32, "questions per step", least=1)
    group_size: int = setting(8, "responses sampled for each question", least=2)
    advantages: Literal["group", "centred", "batch", "process", "rtg", "whiten"] = setting(
        "group",
        "estimator of token advantages; with loss_type=dr_grpo, group is the same as centred",
    )
    clip: float = setting(0.2, "ε: largest change of a probability ratio from 1", above=0)
    clip_high: float | None = setting(
        None, "largest increase of a probability ratio above 1; none: the value of clip"
    )
    loss_type: Literal["grpo", "bnpo", "dr_grpo", "dapo"] = setting(
        "grpo", "how the loss is averaged, by TRL's name"
    )
    importance_sampling: Literal["token", "sequence", "trajectory"] = setting(
        "token",
        "probability ratio of each token (token), or of the whole response, with normalisation by"
        " its length (sequence) or without (trajectory)",
    )
    entropy: float = setting(
        0.0, "weight of the bonus for the mean entropy of the tokens' distributions", least=0
    )
    self_certainty: bool = setting(
        False,
        "maximise the policy's self-certainty, not the method's reward (Intuitor, arXiv"
        " 2505.19590)",
    )
    iterations: int = setting(1, "optimizer steps on the responses of each step", least=1)
    redraws: int = setting(
        0,
        "most times that a group with all rewards equal is sampled again; like DAPO's dynamic"
        " sampling, but with the same question",
        least=0,
    )
    mask_truncated: bool = setting(
        False, "leave truncated responses out of the loss and of their group's baseline"
    )
    micro_batch: int | None = setting(
        None, "responses per backward pass; none: those of one generation_batch"
    )
    generation_batch: int | None = setting(
        None, "responses sampled together; none: all responses of a step"
    )
    vllm: Literal["none", "colocate"] = setting(
        "none",
        "sampling engine; none: the trained model itself; colocate: vLLM in the same process and"
        " on the same GPU",
    )
    vllm_memory: float = setting(0.3, "share of the GPU's memory for vLLM", above=0, below=1)
    vllm_sleep: bool = setting(False, "free vLLM's memory during the updates")
    optim: Optim = Optim(schedule="linear", warmup=0.0)
    sampling: Sampling = Sampling(max_new_tokens=256)
    kl: KL = KL()
    lora: LoRA = LoRA()
    saving: Saving = Saving()


def check(config: GRPO) -> None:
    """Raise a WorkbenchError if a setting is invalid. The message names the setting."""
    check_trainer(config)
    high = config.clip_high or config.clip
    if config.kl.kl != "k3":
        raise WorkbenchError(
            f"kl is {config.kl.kl}: TRL's GRPO only has the estimator k3; set kl=k3"
        )
    if config.clip_high is not None and config.clip_high < config.clip:
        raise WorkbenchError(
            f"clip_high is {config.clip_high}: it must be at least clip, {config.clip}, or none"
        )
    by_response = ("group", "centred", "batch")
    if config.importance_sampling != "token" and config.advantages not in by_response:
        raise WorkbenchError(
            f"advantages is {config.advantages}: with"
            f" importance_sampling={config.importance_sampling}, all tokens of a response must have"
            " the same advantage; use advantages=group, centred or batch, or"
            " importance_sampling=token"
        )
    if config.importance_sampling == "trajectory" and 1 + high >= MAX_TRAJECTORY_RATIO:
        raise WorkbenchError(
            f"{'clip_high' if config.clip_high else 'clip'} is {high}: with"
            " importance_sampling=trajectory it must be below"
            f" {MAX_TRAJECTORY_RATIO - 1:g}, because ratios are bounded by"
            f" {MAX_TRAJECTORY_RATIO:g}"
        )
    if config.redraws and config.vllm != "none":
        raise WorkbenchError(
            f"redraws is {config.redraws}, but vllm is {config.vllm}: only the trained model itself"
            " can sample a group again; set vllm=none or redraws=0"
        )
    check_colocate(config)
    responses, generated, micro = batches(config)
    if (
        min(micro, generated) < 1
        or responses % generated
        or generated % micro
        or generated % config.group_size
    ):
        raise WorkbenchError(
            f"{responses} responses per step do not split into generation_batch {generated} and"
            f" micro_batch {micro}: generation_batch must divide {responses}, micro_batch must"
            f" divide generation_batch, and generation_batch must be a multiple of group_size"
            f" {config.group_size}"
        )
    # TRL repeats the updates of each sampling call, not those of the whole step
    if config.iterations > 1 and generated != responses:
        raise WorkbenchError(
            f"iterations is {config.iterations}: this needs all responses of a step at once, so"
            " leave out generation_batch"
        )


def check_colocate(config: GRPO) -> None:
    """Raise a WorkbenchError if `config` uses vLLM and has a setting that vLLM does not support."""
    if config.vllm == "none":
        return
    if config.lora.load_in_4bit:
        raise WorkbenchError(
            "load_in_4bit is true, but vllm=colocate cannot read weights in 4 bits: set"
            " load_in_4bit=false or vllm=none"
        )
    # importance weights compare vLLM's probabilities with those of the trained model
    if config.sampling.top_p < 1:
        raise WorkbenchError(
            f"top_p is {config.sampling.top_p}, but with vllm=colocate it must be 1, because vLLM's"
            " probabilities are compared with those of the trained model: set top_p=1 or vllm=none"
        )
    import torch

    if config.vllm_sleep and not torch.cuda.is_available():
        raise WorkbenchError("vllm_sleep is true: it needs a GPU, and there is none; set it false")
    vllm.check_installed("leave vllm at none")


def batches(config: GRPO, processes: int = 1) -> tuple[int, int, int]:
    """Return three numbers of responses: per training step, sampling call and backward pass.

    The first two numbers count the responses of all processes, the third those of one process.
    """
    responses = config.prompts_per_step * config.group_size
    # limited, because a setting for the default step may be larger than a smaller step
    generated = min(config.generation_batch or responses, responses)
    own = generated // processes
    micro = own if config.micro_batch is None else min(config.micro_batch, own)
    return responses, generated, micro


def estimator(config: GRPO) -> str:
    """Return the name of the advantage estimator, a key of `credit.advantages.ESTIMATORS`.

    This is `config.advantages`, with one exception. With `loss_type=dr_grpo`, "group" is replaced
    by "centred", because Dr. GRPO does not divide by the group's standard deviation (arXiv
    2503.20783).
    """
    drop_std = config.loss_type == "dr_grpo" and config.advantages == "group"
    return "centred" if drop_std else config.advantages


def check_split(config: GRPO, processes: int) -> None:
    """Raise a WorkbenchError if the settings do not work with this number of processes.

    Each process must get the same number of responses. Only one process is supported with vLLM, and
    with `redraws` (groups whose rewards are all equal are sampled again).
    """
    if config.vllm != "none" and processes > 1:
        raise WorkbenchError(
            f"vllm=colocate works in one process, not in {processes}: leave vllm at none"
        )
    if config.redraws and processes > 1:
        raise WorkbenchError(
            f"redraws is {config.redraws}: this needs one process, not {processes}; leave it at 0"
        )
    _, generated, micro = batches(config, processes)
    if micro < 1 or generated % (micro * processes):
        raise WorkbenchError(
            f"{generated} responses do not split among {processes} processes with micro_batch"
            f" {micro}: change prompts_per_step, group_size or micro_batch"
        )


def question_order(config: GRPO, count: int, seed: int) -> list[int]:
    """Return the index of the question for each prompt of a run, in training order.

    `count` is the number of questions. If the run has more prompts, questions are repeated.
    """
    return order(count, config.steps * config.prompts_per_step, seed)


def trl_arguments(config: GRPO, out: Path, seed: int) -> JsonObject:
    """Return the arguments of TRL's `GRPOConfig` for `config`.

    All arguments of the optimizer, the sampling and the loss that our settings use are set, because
    TRL's defaults may change.
    """
    from workbench.training.trl_common import process_state, trainer_arguments

    processes = process_state().num_processes
    trajectory = config.importance_sampling == "trajectory"
    responses, generated, micro = batches(config, processes)
    parts = config.optim, config.lora, config.saving
    return dict(
        **trainer_arguments(*parts, out, steps=config.steps, updates=config.iterations, seed=seed),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=responses // (micro * processes),
        generation_batch_size=generated,
        num_generations=config.group_size,
        num_iterations=config.iterations,
        epsilon=config.clip,
        epsilon_high=config.clip if config.clip_high is None else config.clip_high,
        # without `delta` the clipped loss has no bound for a negative advantage
        delta=MAX_TRAJECTORY_RATIO if trajectory else None,
        beta=config.kl.beta,
        temperature=config.sampling.temperature,
        top_p=config.sampling.top_p,
        # TRL's own default may differ, and a top-k would change the sampled distribution
        top_k=0,
        max_completion_length=config.sampling.max_new_tokens,
        loss_type=config.loss_type,
        scale_rewards=TRL_SCALES.get(estimator(config), "group"),
        # every token gets the ratio of its response, see `RolloutTrainer`
        importance_sampling_level="token" if trajectory else config.importance_sampling,
        # TRL would multiply the KL by the ratio; the papers do not
        use_bias_correction_kl=False,
        entropy_coef=config.entropy,
        mask_truncated_completions=config.mask_truncated,
        shuffle_dataset=False,  # the rows are in training order, so resuming skips rows
    )
