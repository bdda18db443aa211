"""Train a policy by PPO (arXiv 1707.06347) with rewards per token and a critic.

Policy and critic share a LoRA model. The loop is written here because TRL's PPO takes one reward
per response. One step: sample → grade → log-probabilities and values of every token → generalised
advantages → clipped updates.

A killed run continues from its last complete checkpoint. It ends with the weights of an
uninterrupted run.

Shapes: B responses of a step, b responses of one backward pass, T tokens of the longest response, L
tokens of the longest prompt plus T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.credit.advantages import gae, rewarded
from workbench.credit.tensors import (
    as_tensor,
    kl_of,
    masked,
    masked_mean,
    minus_kl,
    ratio_of,
    token_advantages,
    whitened,
    with_token_stats,
)
from workbench.runs.checkpoints import check_rollouts, rewind
from workbench.training.actor import Actor, State
from workbench.training.loading import load_trainee, save_policy
from workbench.training.recorder import RolloutRecorder
from workbench.training.sampling import rollouts
from workbench.training.settings import (
    KL,
    LoRA,
    Optim,
    Sampling,
    Saving,
    check_one_process,
    check_trainer,
)
from workbench.training.stage import Inputs, Stage, Status, order, training
from workbench.types import Feedback, Grade, Question, WorkbenchError
from workbench.util.config import setting

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class PPO:
    """Settings of a PPO run.

    The defaults are from RLFH's released code *(code)*. The defaults of the adapter and of settings
    that this code lacks are ours.
    """

    steps: int = setting(100, "training steps; each samples a new batch of responses", least=1)
    prompts_per_step: int = setting(128, "questions per step", least=1)
    group_size: int = setting(1, "responses sampled for each question", least=1)
    critic_learning_rate: float = setting(
        9e-6, "learning rate of the value head, by AdamW", above=0
    )
    epochs: int = setting(1, "passes over the responses of each step", least=1)
    minibatch: int | None = setting(
        None, "responses per optimizer step; none or too large: all of the training step"
    )
    micro_batch: int | None = setting(
        8, "responses per backward pass; none or too large: all of the optimizer step"
    )
    clip: float = setting(0.2, "ε: largest change of a probability ratio from 1", above=0)
    value_clip: float = setting(0.2, "largest change of a critic's value since sampling", above=0)
    gamma: float = setting(1.0, "γ: discount of later rewards", least=0, most=1)
    lam: float = setting(0.95, "λ of generalised advantage estimation", least=0, most=1)
    whiten: bool = setting(True, "normalise advantages over the tokens of a step")
    optim: Optim = Optim(learning_rate=5e-7)
    sampling: Sampling = Sampling()
    kl: KL = KL(beta=0.01)  # subtracted from the rewards
    lora: LoRA = LoRA()
    saving: Saving = Saving()


def check(config: PPO) -> None:
    """Raise a WorkbenchError if a setting is invalid. The message names the setting."""
    check_trainer(config, trl=False)
    responses, update, micro = sizes(config)
    if micro < 1 or update < 1 or responses % update or update % micro:
        raise WorkbenchError(
            f"{responses} responses per step do not split into minibatch {update} and micro_batch"
            f" {micro}: minibatch must divide {responses}, and micro_batch must divide minibatch"
        )


def sizes(config: PPO) -> tuple[int, int, int]:
    """Return the number of responses per training step, optimizer step and backward pass."""
    responses = config.prompts_per_step * config.group_size
    update = responses if config.minibatch is None else min(config.minibatch, responses)
    micro = update if config.micro_batch is None else min(config.micro_batch, update)
    return responses, update, micro


def ppo_stage(config: PPO, inputs: Inputs, method: str) -> Stage:
    """Return a `Stage` with the name "ppo" that runs `train_ppo`.

    Args:
        inputs: function that returns (training questions, grading function). Its argument is the
            `Job`: the stage's folder, seed and initial policy.
        method: name of the reward to train on.

    Raises:
        WorkbenchError: invalid settings.
    """
    check(config)
    return training("ppo", train_ppo, config, inputs, method)


def train_ppo(
    config: PPO,
    questions: Sequence[Question],
    grade: Grade,
    policy: str,
    out: Path,
    *,
    method: str,
    seed: int,
) -> Status:
    """Train `policy` on `questions`, and save the adapter to `out/policy`.

    If the run folder `out` has checkpoints, the training resumes from the last one. Only
    checkpoints contain the value head. In rollouts.jsonl, `tokens.values` has the critic's value of
    each token.

    Args:
        grade: function that grades responses. The `Feedback` that it returns has one reward per
            token in `rewards[method].tokens`. A response without a reward is left out of the loss.
        method: name of the reward to train on.
        policy: folder or hub name of the initial checkpoint.

    Returns:
        "done", or "interrupted" after Ctrl-C. After "interrupted", the last finished step has a
        checkpoint.

    Raises:
        WorkbenchError: invalid settings, no questions, unknown policy, or a launcher has started
            several processes.
        TooManyFailures: in one step, the share of responses without a reward is above the setting
            `sampling.max_failed`.
    """
    check(config)
    if not questions:
        raise WorkbenchError("no questions to train on: choose another bench, split or kinds")
    check_one_process("PPO")
    # before the policy is loaded, so that an error in the stored rollouts is raised at once
    checkpoint, done = rewind(out, sizes(config)[0])
    trainee = load_trainee(policy, **vars(config.lora), seed=seed, unsloth=False)
    state = State(Actor(trainee), config, config.steps, seed)
    if checkpoint:
        state.load(checkpoint)
    numbers = order(len(questions), config.steps * config.prompts_per_step, seed)
    with RolloutRecorder(
        out, method, grade, steps=config.steps, done=done, max_failed=config.sampling.max_failed
    ) as recorder:
        recorder.begin()
        for step in state.steps_left(recorder):
            # depends only on the step, so that a resumed run continues with the same questions
            first = (step - 1) * config.prompts_per_step
            of_step = numbers[first : first + config.prompts_per_step]
            ppo_step(state, recorder, [questions[number] for number in of_step], step)
    if recorder.stopped:
        return "interrupted"
    # a run with missing rollouts must not look finished
    check_rollouts(out / "rollouts.jsonl", config.steps, sizes(config)[0])
    save_policy(trainee, out)
    return "done"


def ppo_step(
    state: State, recorder: RolloutRecorder, questions: Sequence[Question], step: int
) -> None:
    """Do one training step: sample and grade responses, update the policy, record the step."""
    import torch

    config: PPO = state.config
    # the checkpoint stores the generator, so a resumed run samples the same tokens
    how = config.sampling.decoding(state.draw())
    with recorder.timed("generation"):
        responses = rollouts(
            state.actor.model, state.actor.tokenizer, questions, config.group_size, how, step
        )
    feedbacks = recorder.grade_responses(responses, step)
    batch = prepare(state.actor, feedbacks, recorder.method, config)
    rate = state.set_rates(step)
    # the ratio stays 1 in the rows of a minibatch that is skipped below
    ratios_BT = torch.ones_like(batch.mask_BT)
    updates: list[dict[str, float]] = []
    for _ in range(config.epochs):
        shuffled_B = torch.randperm(len(feedbacks), generator=state.generator)
        for rows_b in shuffled_B.split(sizes(config)[1]):
            if batch.mask_BT[rows_b].any():  # the mean over no tokens would be NaN
                updates.append(update(state, batch, rows_b, ratios_BT))
    logs = {
        name: sum(values[name] for values in updates) / len(updates)
        for name in (updates[0] if updates else ())
    }
    logs |= {"kl": masked_mean(batch.kl_BT, batch.mask_BT).item(), "learning_rate": rate}
    trained = [
        with_token_stats(
            response,
            row,
            logprobs=batch.logprobs_BT,
            ref_logprobs=batch.ref_logprobs_BT,
            values=batch.values_BT,
            advantages=batch.advantages_BT,
            ratios=ratios_BT,
        )
        if batch.mask_BT[row].any()  # otherwise it was not trained on
        else response
        for row, response in enumerate(responses)
    ]
    recorder.log(step, logs, trained)


def update(state: State, batch: Batch, rows_b: Tensor, ratios_BT: Tensor) -> dict[str, float]:
    """Do one optimizer step on some responses of a batch, and return its metrics.

    Args:
        rows_b: indices of these responses in the batch.
        ratios_BT: output; the rows `rows_b` are set to the probability ratios of the tokens.

    Returns:
        "loss" and "value_loss", the means over the tokens of these responses, and "grad_norm", the
        norm of the adapter's gradient before clipping.
    """
    config: PPO = state.config
    # counted before the rows are split, so that every token has the same weight
    tokens = batch.mask_BT[rows_b].sum()
    logs = {"loss": 0.0, "value_loss": 0.0}
    with state.actor.learning():
        for part_b in rows_b.split(sizes(config)[2]):
            policy, value, ratios_BT[part_b] = losses(state.actor, batch, part_b, config)
            ((policy + value) / tokens).backward()
            logs["loss"] += (policy.detach() / tokens).item()
            logs["value_loss"] += (value.detach() / tokens).item()
    return {**logs, "grad_norm": state.update()}


@dataclass(frozen=True)
class Batch:
    """The B responses of a training step as tensors.

    The longest response has T tokens; L is T plus the length of the longest prompt. Prompts are
    padded on the left, responses on the right. `mask_BT` is 1 for the tokens in the loss.
    `logprobs_BT` and `values_BT` (the critic's values) were computed before the first update of the
    step. `returns_BT` has the targets of the critic.
    """

    ids_BL: Tensor
    attention_BL: Tensor
    mask_BT: Tensor
    logprobs_BT: Tensor
    ref_logprobs_BT: Tensor
    kl_BT: Tensor
    values_BT: Tensor
    advantages_BT: Tensor
    returns_BT: Tensor


def prepare(actor: Actor, feedbacks: Sequence[Feedback], method: str, config: PPO) -> Batch:
    """Return graded responses as a `Batch`, with advantages from the token rewards of `method`.

    The KL penalty to the reference policy is subtracted from the rewards first.
    """
    import torch

    ids_BL, attention_BL, mask_BT = actor.collate([feedback.response for feedback in feedbacks])
    rows = [rewarded(feedback, method) for feedback in feedbacks]
    # tokens of responses without a reward are left out of the loss
    mask_BT = (
        mask_BT
        * torch.tensor([row.rewards is not None for row in rows], device=mask_BT.device)[:, None]
    )

    def forward() -> tuple[Tensor, ...]:
        parts = zip(*(part.split(sizes(config)[2]) for part in (ids_BL, attention_BL)), strict=True)
        outputs = [
            actor.logprobs_and_values(ids, attention, mask_BT.shape[1], config.sampling.temperature)
            for ids, attention in parts
        ]
        return tuple(torch.cat(pieces) for pieces in zip(*outputs, strict=True))

    with torch.no_grad():
        logprobs_BT, values_BT = forward()
        with actor.model.disable_adapter():  # the reference policy
            ref_logprobs_BT, _ = forward()
    kl_BT = kl_of(logprobs_BT, ref_logprobs_BT, config.kl.kl)
    penalised = [
        minus_kl(row, *parts)
        for row, *parts in zip(
            rows, (config.kl.beta * kl_BT).tolist(), values_BT.tolist(), strict=True
        )
    ]
    # GAE uses each response alone, so every group has one response
    estimator = gae(config.gamma, config.lam)
    advantages_BT = as_tensor(token_advantages(penalised, 1, estimator), mask_BT)
    returns_BT = advantages_BT + values_BT  # before whitening: the critic learns the returns
    if config.whiten:
        advantages_BT = whitened(advantages_BT, mask_BT)
    return Batch(
        ids_BL,
        attention_BL,
        mask_BT,
        logprobs_BT,
        ref_logprobs_BT,
        kl_BT,
        values_BT,
        advantages_BT,
        returns_BT,
    )


def losses(
    actor: Actor, batch: Batch, rows_b: Tensor, config: PPO
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the policy's clipped loss, the critic's clipped loss and the probability ratios.

    They are computed for b responses of the batch, the ones with the indices `rows_b`. Each loss is
    a scalar, the sum over the tokens of these responses. The ratios have the shape (b, T), with T
    tokens in the longest response of the batch.
    """
    import torch

    mask_bT, old_bT = batch.mask_BT[rows_b], batch.values_BT[rows_b]
    advantages_bT, returns_bT = batch.advantages_BT[rows_b], batch.returns_BT[rows_b]
    logprobs_bT, values_bT = actor.logprobs_and_values(
        batch.ids_BL[rows_b],
        batch.attention_BL[rows_b],
        mask_bT.shape[1],
        config.sampling.temperature,
    )
    ratios_bT = ratio_of(logprobs_bT, batch.logprobs_BT[rows_b])
    clipped_bT = ratios_bT.clamp(1 - config.clip, 1 + config.clip)
    # the smaller gain of the two, as in PPO: a step beyond the clip gains nothing
    policy_bT = -torch.min(ratios_bT * advantages_bT, clipped_bT * advantages_bT)
    # the larger of two errors: a value gains nothing by moving further than the clip
    near_bT = old_bT + (values_bT - old_bT).clamp(-config.value_clip, config.value_clip)
    value_bT = 0.5 * torch.max((values_bT - returns_bT) ** 2, (near_bT - returns_bT) ** 2)
    return masked(policy_bT, mask_bT).sum(), masked(value_bT, mask_bT).sum(), ratios_bT.detach()
