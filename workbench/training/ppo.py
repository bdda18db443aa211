"""PPO (arXiv 1707.06347) with a reward on any token and a critic on the same LoRA model, from
the first line to the last.

A step: sample → grade → log-probabilities and values of every token → generalised advantages →
clipped updates. No kept library takes rewards by token any more, so the loop is here, to be
read. Shapes: B responses, T tokens of the longest, L of the longest prompt and that. A killed
run goes on from its last complete checkpoint and ends with the weights of an uninterrupted one.
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
from workbench.runs.checkpoints import rewind
from workbench.runs.rollouts import check_rollouts
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
    check_report_to,
)
from workbench.training.stage import Given, Stage, Status, order, training
from workbench.types import Feedback, Grade, Question, WorkbenchError
from workbench.util.config import check_values, setting

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class PPO:
    """Settings of a PPO run. Defaults are those of RLFH's released code *(code)* where it states
    them; those of the adapter are ours."""

    steps: int = setting(100, "batches of responses to learn from", least=1)
    prompts_per_step: int = setting(128, "questions a step", least=1)
    group_size: int = setting(1, "responses sampled to each question", least=1)
    critic_learning_rate: float = setting(9e-6, "of AdamW, for the value head", above=0)
    epochs: int = setting(1, "passes over each step's responses", least=1)
    minibatch: int | None = setting(
        None, "responses of an update; none, or more than a step has: the whole step at once"
    )
    micro_batch: int | None = setting(
        8, "responses per backward pass; none, or more than an update has: the whole update"
    )
    clip: float = setting(
        0.2, "ε: how far the ratio of a token's probabilities may go from 1", above=0
    )
    value_clip: float = setting(
        0.2, "how far a value may go from what it was when the response was sampled", above=0
    )
    gamma: float = setting(1.0, "γ: discount of later rewards", least=0, most=1)
    lam: float = setting(0.95, "λ of generalised advantage estimation", least=0, most=1)
    whiten: bool = setting(True, "normalise advantages over the tokens of a step")
    optim: Optim = Optim(learning_rate=5e-7)
    sampling: Sampling = Sampling()
    kl: KL = KL(beta=0.01)  # inside the reward
    lora: LoRA = LoRA()
    saving: Saving = Saving()


def check(config: PPO) -> None:
    """Raise a WorkbenchError naming the field for settings that cannot work."""
    check_values(config)
    check_report_to(config.saving, trl=False)
    responses, update, micro = sizes(config)
    if micro < 1 or update < 1 or responses % update or update % micro:
        raise WorkbenchError(
            f"{responses} responses a step do not split into minibatch {update} and micro_batch"
            f" {micro}: each must divide the one before"
        )


def sizes(config: PPO) -> tuple[int, int, int]:
    """How many responses make a step, make an update, and go through one backward pass."""
    responses = config.prompts_per_step * config.group_size
    update = responses if config.minibatch is None else min(config.minibatch, responses)
    return (
        responses,
        update,
        update if config.micro_batch is None else min(config.micro_batch, update),
    )


def ppo_stage(config: PPO, given: Given, method: str) -> Stage:
    """`train_ppo` from the policy that the run starts from, as a stage called "ppo".

    Raises:
        WorkbenchError: settings that cannot work.
    """
    check(config)
    return training("ppo", train_ppo, config, given, method)


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
    """Train `policy` on `questions` in the run folder `out`, continuing what is there; the
    adapter goes to `out/policy`.

    The value head, which only training needs, stays in the checkpoints. Rows are those of
    `train_grpo`, with `values`.

    Args:
        grade: grades responses; `feedback.rewards[method].tokens` are the rewards. A response
        without a reward is not used.
        policy: folder or hub name of the starting checkpoint.

    Returns:
        "done", or "interrupted" after Ctrl-C: then a checkpoint of the last finished step was
        written.

    Raises:
        WorkbenchError: settings that cannot work, no questions, no such policy.
        TooManyFailures: more than `max_failed` of a step's responses have no
        reward.
    """
    check(config)
    if not questions:
        raise WorkbenchError("no questions to train on: choose another bench, split or kinds")
    check_one_process("PPO")
    checkpoint, done = rewind(out, sizes(config)[0])
    trainee = load_trainee(policy, **vars(config.lora), seed=seed, unsloth=False)
    state = State(Actor(trainee), config, config.steps, seed)
    if checkpoint:
        state.load(checkpoint)
    asked = order(len(questions), config.steps * config.prompts_per_step, seed)
    with RolloutRecorder(
        out, method, grade, steps=config.steps, done=done, max_failed=config.sampling.max_failed
    ) as record:
        record.begin()
        for step in state.steps_left(record):
            first = (step - 1) * config.prompts_per_step
            ppo_step(
                state,
                record,
                [questions[number] for number in asked[first : first + config.prompts_per_step]],
                step,
            )
    if record.stopped:
        return "interrupted"
    check_rollouts(out / "rollouts.jsonl", config.steps, sizes(config)[0])
    save_policy(trainee, out)
    return "done"


def ppo_step(
    state: State, record: RolloutRecorder, questions: Sequence[Question], step: int
) -> None:
    """Sample, grade, update, record."""
    import torch

    config: PPO = state.config
    how = config.sampling.decoding(state.draw())
    with record.timed("generation"):
        responses = rollouts(
            state.actor.model, state.actor.tokenizer, questions, config.group_size, how, step
        )
    feedbacks = record.grade_responses(responses, step)
    batch = prepare(state.actor, feedbacks, record.method, config)
    rate = state.set_rates(step)
    ratios_BT = torch.ones_like(batch.mask_BT)
    updates: list[dict[str, float]] = []
    for _ in range(config.epochs):
        for rows_b in torch.randperm(len(feedbacks), generator=state.generator).split(
            sizes(config)[1]
        ):
            if batch.mask_BT[rows_b].any():
                updates.append(update(state, batch, rows_b, ratios_BT))
    logs = {
        name: sum(one[name] for one in updates) / len(updates)
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
        if batch.mask_BT[row].any()  # it was learnt from
        else response
        for row, response in enumerate(responses)
    ]
    record.log(step, logs, trained)


def update(
    state: State, batch: Batch, rows_b: torch.Tensor, ratios_BT: torch.Tensor
) -> dict[str, float]:
    """One step of the optimizer on some rows, whose ratios are put into `ratios_BT`; losses are
    means over their tokens.
    """
    config: PPO = state.config
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
    """A step's responses as tensors, prompts padded on the left, responses on the right;
    `mask_BT` marks what is learnt from.

    What the updates of a step share comes from the weights before them.
    """

    ids_BL: torch.Tensor
    attention_BL: torch.Tensor
    mask_BT: torch.Tensor
    logprobs_BT: torch.Tensor
    ref_logprobs_BT: torch.Tensor
    kl_BT: torch.Tensor
    values_BT: torch.Tensor
    advantages_BT: torch.Tensor
    returns_BT: torch.Tensor


def prepare(actor: Actor, feedbacks: Sequence[Feedback], method: str, config: PPO) -> Batch:
    """Tensors of graded responses, with advantages of the rewards less the KL penalty."""
    import torch

    ids_BL, attention_BL, mask_BT = actor.collate([feedback.response for feedback in feedbacks])
    rows = [rewarded(feedback, method) for feedback in feedbacks]
    mask_BT = (
        mask_BT
        * torch.tensor([row.rewards is not None for row in rows], device=mask_BT.device)[:, None]
    )

    def read() -> tuple[torch.Tensor, ...]:
        parts = zip(*(part.split(sizes(config)[2]) for part in (ids_BL, attention_BL)), strict=True)
        found = [
            actor.logprobs_and_values(ids, attention, mask_BT.shape[1], config.sampling.temperature)
            for ids, attention in parts
        ]
        return tuple(torch.cat(pieces) for pieces in zip(*found, strict=True))

    with torch.no_grad():
        logprobs_BT, values_BT = read()
        with actor.model.disable_adapter():
            ref_logprobs_BT, _ = read()
    kl_BT = kl_of(logprobs_BT, ref_logprobs_BT, config.kl.kl)
    paid = [
        minus_kl(row, *parts)
        for row, *parts in zip(
            rows, (config.kl.beta * kl_BT).tolist(), values_BT.tolist(), strict=True
        )
    ]
    advantages_BT = as_tensor(token_advantages(paid, 1, gae(config.gamma, config.lam)), mask_BT)
    returns_BT = advantages_BT + values_BT
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
    actor: Actor, batch: Batch, rows_b: torch.Tensor, config: PPO
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The clipped losses of policy and critic, summed over the rows' tokens, and the ratios (b,
    T).
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
    policy_bT = -torch.min(ratios_bT * advantages_bT, clipped_bT * advantages_bT)
    near_bT = old_bT + (values_bT - old_bT).clamp(-config.value_clip, config.value_clip)
    value_bT = 0.5 * torch.max((values_bT - returns_bT) ** 2, (near_bT - returns_bT) ** 2)
    return masked(policy_bT, mask_bT).sum(), masked(value_bT, mask_bT).sum(), ratios_bT.detach()
