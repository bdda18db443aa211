"""GRPO (arXiv 2402.03300) on TRL's trainer with a LoRA adapter; rewards come from a `Grade`, and
every rollout is kept.

A killed run continues from its last complete checkpoint and ends with the same metrics and
weights as an uninterrupted one: the order of the questions is laid out in advance, the trainer's
checkpoints carry weights, optimizer, scheduler and random states, and what was recorded after
the checkpoint is cut off.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workbench.runs.checkpoints import rewind
from workbench.runs.rollouts import check_rollouts
from workbench.training import colocate
from workbench.training.loading import Trainee, load_trainee, save_policy
from workbench.training.recorder import RolloutRecorder
from workbench.training.settings import KL, LoRA, Optim, Sampling, Saving, check_report_to
from workbench.training.stage import Given, Stage, Status, order, training
from workbench.training.trl_trainer import TRLAdapter, ready, trainer_arguments, trainer_class
from workbench.types import Grade, Question, WorkbenchError
from workbench.util.config import check_values, setting

if TYPE_CHECKING:
    from accelerate import PartialState


# (ours) for this objective, from the dual clip of arXiv 1912.09729: how large a whole response's
# ratio counts at most. Where an advantage is negative the smaller of ϱA and clip(ϱ)A is the
# unclipped one, and a product over hundreds of tokens has no bound.
FARTHEST = 3.0


@dataclass(frozen=True)
class GRPO:
    """Settings of a GRPO run. A step samples `prompts_per_step` × `group_size` responses and
    learns from them at once.
    """

    steps: int = setting(100, "batches of responses to learn from", least=1)
    prompts_per_step: int = setting(32, "questions a step", least=1)
    group_size: int = setting(8, "responses sampled to each question", least=2)
    advantages: Literal["group", "batch", "process", "rtg", "whiten"] = setting(
        "group", "how rewards become advantages of tokens"
    )
    clip: float = setting(
        0.2, "ε: how far the ratio of a token's probabilities may go from 1", above=0
    )
    clip_high: float | None = setting(None, "how far it may go above 1; none: as far as below")
    loss_type: Literal["grpo", "bnpo", "dr_grpo", "dapo"] = setting(
        "grpo", "how the loss is averaged, as TRL names it"
    )
    importance_sampling: Literal["token", "sequence", "trajectory"] = setting(
        "token",
        "whose probability the ratio is of: a token's, a response's by its length, a response's",
    )
    entropy: float = setting(
        0.0, "weight of the bonus for the mean entropy of the tokens' distributions", least=0
    )
    iterations: int = setting(1, "optimizer steps that each step's responses are used for", least=1)
    mask_truncated: bool = setting(
        False, "leave responses that were cut off out of the loss and its baselines"
    )
    micro_batch: int | None = setting(
        None, "responses per backward pass; none: all that were sampled at once"
    )
    generation_batch: int | None = setting(
        None, "responses sampled at once; none: the whole step at once"
    )
    vllm: Literal["none", "colocate"] = setting(
        "none",
        "what samples: none: the trained model itself; colocate: vLLM beside it, in one process and"
        " on one GPU",
    )
    vllm_memory: float = setting(
        0.3, "share of the GPU's memory that vLLM beside the training takes"
    )
    vllm_sleep: bool = setting(False, "whether vLLM gives that memory back while the policy learns")
    optim: Optim = Optim(schedule="linear", warmup=0.0)
    sampling: Sampling = Sampling(max_new_tokens=256)
    kl: KL = KL()
    lora: LoRA = LoRA()
    saving: Saving = Saving()


def check(config: GRPO) -> None:
    """Raise a WorkbenchError naming the field for settings that cannot work."""
    check_values(config)
    if config.kl.kl != "k3":
        raise WorkbenchError(f"kl is {config.kl.kl}: TRL's GRPO estimates the KL by k3 only")
    if config.clip_high is not None and config.clip_high < config.clip:
        raise WorkbenchError(
            f"clip_high is {config.clip_high}: it must be at least clip, {config.clip}, or none"
        )
    if config.importance_sampling != "token" and config.advantages not in ("group", "batch"):
        raise WorkbenchError(
            f"advantages is {config.advantages}, by token: over a whole response they would cancel"
            f" with importance_sampling={config.importance_sampling}; use"
            " importance_sampling=token, or advantages=group or batch"
        )
    if (
        config.importance_sampling == "trajectory"
        and 1 + (config.clip_high or config.clip) >= FARTHEST
    ):
        raise WorkbenchError(
            f"clip or clip_high is {config.clip_high or config.clip}: with"
            f" importance_sampling=trajectory it must be below {FARTHEST - 1:g}, as a ratio goes no"
            f" farther than {FARTHEST:g}"
        )
    check_report_to(config.saving)
    colocate.check_colocate(config)
    responses, generated, micro = batches(config)
    if (
        micro < 1
        or generated < 1
        or responses % generated
        or generated % micro
        or generated % config.group_size
    ):
        raise WorkbenchError(
            f"{responses} responses a step do not split into generation_batch {generated} and"
            f" micro_batch {micro}: each must divide the one before, and generation_batch be a"
            f" multiple of group_size {config.group_size}"
        )
    if config.iterations > 1 and generated != responses:
        raise WorkbenchError(
            f"iterations is {config.iterations}: a step is then sampled at once, so leave out"
            " generation_batch"
        )


def batches(config: GRPO, processes: int = 1) -> tuple[int, int, int]:
    """How many responses make a step, are sampled at once by all processes, and go through one
    backward pass of one process.
    """
    responses = config.prompts_per_step * config.group_size
    generated = responses if config.generation_batch is None else config.generation_batch
    return (
        responses,
        generated,
        generated // processes if config.micro_batch is None else config.micro_batch,
    )


def check_split(config: GRPO, processes: int) -> None:
    """Raise a WorkbenchError for a batch that so many processes cannot share."""
    _, generated, micro = batches(config, processes)
    if micro < 1 or generated % (micro * processes):
        raise WorkbenchError(
            f"{generated} responses do not split among {processes} processes with micro_batch"
            f" {micro}: choose prompts_per_step, group_size and micro_batch that do"
        )


def asked(config: GRPO, count: int, seed: int) -> list[int]:
    """Which of `count` questions a run asks, by their numbers, in its order."""
    return order(count, config.steps * config.prompts_per_step, seed)


def grpo_stage(config: GRPO, given: Given, method: str, *, plain: bool = False) -> Stage:
    """`train_grpo` from the policy that the run starts from, as a stage called "grpo".

    `plain` leaves Unsloth out where the grading holds a language model: it would change that one's
    forward pass as the policy's.

    Raises:
        WorkbenchError: settings that cannot work, in this process or at all.
    """
    check(config)
    plain = plain or may_be_unsloths(config, None) is False
    train = partial(train_grpo, unsloth=False if plain else None)
    return training("grpo", train, config, given, method, plain)


def train_grpo(
    config: GRPO,
    questions: Sequence[Question],
    grade: Grade,
    policy: str,
    out: Path,
    *,
    method: str,
    seed: int,
    unsloth: bool | None = None,
) -> Status:
    """Train `policy` on `questions` in the run folder `out`, continuing what is there; the
    adapter goes to `out/policy`.

    Args:
        grade: grades responses; `feedback.rewards[method].value` is the reward, and its `tokens`
        are what the other estimators
            than `group` read. A reward of None is no reward of 0: the response leaves its
            group's baseline and is not used.
        policy: folder or hub name of the starting checkpoint.
        unsloth: see `load_trainee`.

    Returns:
        "done", or "interrupted" after Ctrl-C: then a checkpoint of the last finished step was
        written.

    Raises:
        WorkbenchError: settings that cannot work, no questions, no such policy; processes that
        each hold a part of the model,
            or another number of them than the run was begun with.
        TooManyFailures: more than `max_failed` of a step's responses have no
        reward.
    """
    check(config)
    unsloth = may_be_unsloths(config, unsloth)
    if not questions:
        raise WorkbenchError("no questions to train on: choose another bench, split or kinds")
    from accelerate.utils import broadcast_object_list, gather_object

    state = process()
    colocate.check_alone(config, state.num_processes)
    check_split(config, state.num_processes)
    check_whole()
    place: list[Any] = (
        [*rewind(out, batches(config)[0], config.iterations)]
        if state.is_main_process
        else [None, 0]
    )
    checkpoint, done = place if state.num_processes == 1 else broadcast_object_list(place)
    check_processes(checkpoint, state.num_processes)
    longest = max(4096, 2 * config.sampling.max_new_tokens)  # prompt and response
    trainee = load_trainee(
        policy, **vars(config.lora), seed=seed, max_length=longest, unsloth=unsloth
    )
    with (
        colocate.beside(config),
        RolloutRecorder(
            out,
            method,
            grade,
            steps=config.steps,
            done=done,
            max_failed=config.sampling.max_failed,
            gather=gather_object if state.num_processes > 1 else list,
            rank=state.process_index,
        ) as record,
    ):
        adapter = make_adapter(config, record, questions, trainee)
        trainer = make_trainer(config, trainee, adapter, out=out, seed=seed)
        colocate.hold(config, trainer)
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if record.stopped:
        return "interrupted"
    if state.is_main_process:
        check_rollouts(out / "rollouts.jsonl", config.steps, batches(config)[0])
        save_policy(trainee, out)
    state.wait_for_everyone()
    return "done"


def may_be_unsloths(config: GRPO, unsloth: bool | None) -> bool | None:
    """`load_trainee`'s `unsloth`: False for what Unsloth's trainer, whose loss and sampling are
    its own, does not have.

    Raises:
        WorkbenchError: Unsloth is insisted on for such an objective, or has changed this
        process's trainers already.
    """
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if (
        config.importance_sampling != "trajectory"
        and not config.entropy
        and config.vllm == "none"
        and not several
    ):
        return unsloth
    lacks = (
        "knows no ratio of trajectories, no entropy bonus, no vLLM of ours and no sampling by"
        " several processes"
    )
    settings = "use importance_sampling=token, entropy=0, vllm=none and one process"
    if unsloth:
        raise WorkbenchError(f"Unsloth's trainer {lacks}: leave unsloth out, or {settings}")
    if "unsloth" in sys.modules:
        raise WorkbenchError(
            f"Unsloth was imported in this process, and its trainer {lacks}: train in a process of"
            f" its own, or {settings}"
        )
    return False


def process() -> PartialState:
    """This process among those that train together, whichever launcher began them; mostly it is
    alone.
    """
    import torch
    from accelerate import PartialState

    return PartialState(cpu=not torch.cuda.is_available())


def check_whole() -> None:
    """Raise a WorkbenchError where a launcher asks for processes that each hold a part of the
    model: every process samples its own prompts, and would wait for ever for the parts of one
    that has ended earlier."""
    parts = {"ACCELERATE_USE_FSDP": "FSDP", "ACCELERATE_USE_DEEPSPEED": "DeepSpeed"}
    for variable, name in parts.items():
        if os.environ.get(variable, "").lower() in ("true", "1"):
            raise WorkbenchError(
                f"the launcher asks for {name}, and this trainer samples from the whole model in"
                " every process: launch it with docs/scaling.md's ddp.yaml, or train by a script"
                " of your own with `workbench.trl_reward`"
            )


def check_processes(checkpoint: Path | None, count: int) -> None:
    """Raise a WorkbenchError where a run was begun with another number of processes: its random
    states are theirs.
    """
    if (
        checkpoint is not None
        and (begun := len(list(Path(checkpoint).glob("rng_state_*.pth"))) or 1) != count
    ):
        raise WorkbenchError(
            f"this run was begun with {begun} processes, and {count} go on: launch as many, or name"
            " another folder"
        )


def make_adapter(
    config: GRPO, record: RolloutRecorder, questions: Sequence[Question], trainee: Trainee
) -> TRLAdapter:
    return TRLAdapter(
        record,
        questions,
        trainee.tokenizer,
        config.group_size,
        config.advantages,
        iterations=config.iterations,
        mask_truncated=config.mask_truncated,
    )


def make_trainer(config: GRPO, trainee: Trainee, adapter: TRLAdapter, out: Path, seed: int) -> Any:
    """TRL's trainer, told nothing that `config` does not say and kept off the network."""
    from datasets import Dataset
    from trl import GRPOConfig

    whole = config.importance_sampling == "trajectory"
    count = process().num_processes
    responses, generated, micro = batches(config, count)
    asked_for = dict(
        **trainer_arguments(config, out, steps=config.steps, updates=config.iterations, seed=seed),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=responses // (micro * count),
        generation_batch_size=generated,
        num_generations=config.group_size,
        num_iterations=config.iterations,
        epsilon=config.clip,
        epsilon_high=config.clip if config.clip_high is None else config.clip_high,
        delta=FARTHEST if whole else None,
        beta=config.kl.beta,
        temperature=config.sampling.temperature,
        top_p=config.sampling.top_p,
        top_k=0,
        max_completion_length=config.sampling.max_new_tokens,
        loss_type=config.loss_type,
        scale_rewards="group",
        importance_sampling_level="token" if whole else config.importance_sampling,
        # TRL multiplies the KL by the ratio by itself: no paper here does
        use_bias_correction_kl=False,
        entropy_coef=config.entropy,
        mask_truncated_completions=config.mask_truncated,
        **colocate.arguments(config),
        shuffle_dataset=False,  # the rows are laid out in order, so that resuming is skipping rows
    )
    arguments = GRPOConfig(**asked_for)
    # Unsloth's config says "none" for dr_grpo, whatever it is told
    arguments.scale_rewards = asked_for["scale_rewards"]
    rows = [
        {"prompt": adapter.questions[number].messages(), "number": number}
        for number in asked(config, len(adapter.questions), seed)
    ]
    trainer = trainer_class(adapter, plain=trainee.path == "plain", trajectory=whole)(
        model=trainee.model,
        reward_funcs=adapter.reward,
        args=arguments,
        train_dataset=Dataset.from_list(rows),
        processing_class=trainee.tokenizer,
        callbacks=[adapter.callback()],
    )
    return ready(trainer, asked_for)
