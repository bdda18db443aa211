"""Train a policy by GRPO (arXiv 2402.03300), on one or several processes, and save it.

`grpo_step.py` has the training step. A killed run continues from its last complete checkpoint and
ends with the metrics and weights of an uninterrupted run.
"""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from workbench.runs.checkpoints import check_rollouts, rewind
from workbench.training import colocate
from workbench.training.grpo_config import GRPO, batches, check, check_split
from workbench.training.loading import load_trainee, save_policy
from workbench.training.recorder import RolloutRecorder
from workbench.training.self_certainty import SELF_CERTAINTY, with_self_certainty
from workbench.training.stage import Inputs, Stage, Status, training
from workbench.training.trl_common import process_state
from workbench.training.unsloth_hooks import choose_unsloth
from workbench.types import Grade, Question, WorkbenchError


def grpo_stage(config: GRPO, inputs: Inputs, method: str, *, plain: bool = False) -> Stage:
    """Return the `Stage` "grpo", the training of a run that calls `train_grpo`.

    Args:
        inputs: function of a `Job` (the stage's initial policy, folder and seed). It returns the
            training questions and the grading function.
        method: name of the reward to train on.
        plain: train without Unsloth; needed if grading runs a language model in this process.

    Raises:
        WorkbenchError: invalid settings.
    """
    check(config)
    plain = plain or choose_unsloth(config, None) is False
    train = partial(train_grpo, unsloth=False if plain else None)
    return training("grpo", train, config, inputs, method, plain)


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
    """Train `policy` on `questions`, and save the adapter to `out/policy`.

    If the run folder `out` has checkpoints, the training resumes from the last one.

    Args:
        grade: function that grades responses. The reward of a response is
            `feedback.rewards[method].value`. The estimators "batch", "process", "rtg" and "whiten"
            read the token rewards, `.tokens`, instead. A response whose reward is None is left out
            of the loss and of its group's baseline.
        method: name of the reward to train on.
        policy: folder or hub name of the initial checkpoint.
        unsloth: None uses Unsloth if it runs here and supports all settings; True requires Unsloth,
            False excludes it.

    Returns:
        "done", or "interrupted" after Ctrl-C. After "interrupted", the last finished step has a
        checkpoint.

    Raises:
        WorkbenchError: invalid settings, no questions, unknown policy, a sharded model, or another
            number of processes than the run was started with.
        TooManyFailures: more than `max_failed` of a step's responses have no reward.
    """
    check(config)
    unsloth = choose_unsloth(config, unsloth)
    if not questions:
        raise WorkbenchError("no questions to train on: choose another bench, split or kinds")
    from accelerate.utils import broadcast_object_list, gather_object

    state = process_state()
    check_split(config, state.num_processes)
    check_unsharded()
    # only the first process changes the folder; the others get its result
    checkpoint, done = (
        rewind(out, batches(config)[0], config.iterations) if state.is_main_process else (None, 0)
    )
    if state.num_processes > 1:
        checkpoint, done = broadcast_object_list([checkpoint, done])
    # checked before the policy is loaded, which may take minutes
    check_processes(checkpoint, state.num_processes)
    max_length = max(4096, 2 * config.sampling.max_new_tokens)  # prompt and response
    trainee = load_trainee(
        policy, **vars(config.lora), seed=seed, max_length=max_length, unsloth=unsloth
    )
    if config.self_certainty:
        grade = with_self_certainty(grade, trainee, config.sampling.temperature)
        method = SELF_CERTAINTY
    from workbench.training.grpo_step import RolloutTrainer  # after Unsloth, which patches TRL

    with (
        colocate.engine(config),
        RolloutRecorder(
            out,
            method,
            grade,
            steps=config.steps,
            done=done,
            max_failed=config.sampling.max_failed,
            gather=gather_object if state.num_processes > 1 else list,
            rank=state.process_index,
        ) as recorder,
    ):
        trainer = RolloutTrainer(config, trainee, recorder, questions, out, seed)
        colocate.register_engine(config, trainer)
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if recorder.stopped:
        return "interrupted"
    if state.is_main_process:
        # a run with missing rollouts must not look finished
        check_rollouts(out / "rollouts.jsonl", config.steps, batches(config)[0])
        save_policy(trainee, out)
    # no process may go on to an evaluation before the adapter is on the disk
    state.wait_for_everyone()
    return "done"


def check_unsharded() -> None:
    """Raise a WorkbenchError if the launcher shards the model (FSDP or DeepSpeed)."""
    # Each process samples its own prompts. With a sharded model, a process that still samples would
    # wait forever for the weights of a process that has finished.
    variables = {"ACCELERATE_USE_FSDP": "FSDP", "ACCELERATE_USE_DEEPSPEED": "DeepSpeed"}
    for variable, name in variables.items():
        if os.environ.get(variable, "").lower() in ("true", "1"):
            raise WorkbenchError(
                f"the launcher uses {name}, which shards the model; this trainer needs the whole"
                " model in every process: save the ddp.yaml of docs/scaling.md and launch with"
                " --config_file ddp.yaml, or use `workbench.trl_reward` in your own script"
            )


def check_processes(checkpoint: Path | None, count: int) -> None:
    """Raise a WorkbenchError if a resumed run was not started with `count` processes.

    `checkpoint` is the run's last checkpoint; None for a new run, which is not checked.
    """
    if checkpoint is None:
        return
    # a checkpoint has one random state per process
    saved = len(list(checkpoint.glob("rng_state_*.pth"))) or 1  # one process writes rng_state.pth
    if saved != count:
        raise WorkbenchError(
            f"this run was started with {saved} processes, not {count}: launch it with {saved}"
            " processes, or choose another folder"
        )
