"""Training reward models of segments (FoRAG, arXiv 2406.13779, section 5.2): a scalar head on
the policy's own model with LoRA.

A killed training goes on from its last complete checkpoint and ends with the weights of an
uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.runs.checkpoints import rewind
from workbench.training.actor import Actor, State
from workbench.training.loading import load_trainee
from workbench.training.offline import steps_of
from workbench.training.recorder import MetricsLog, finite
from workbench.training.rows import keep_data, within
from workbench.training.scorer import Judged, Read, Scorer, save_reward_model
from workbench.training.settings import LoRA, Optim, Passes, Saving, check_passes, check_report_to
from workbench.training.stage import Status, order
from workbench.types import WorkbenchError
from workbench.util.config import setting

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class RewardModel:
    """Settings of a reward model and its training; the papers state none of them *(ours)* but
    `level` and `loss`.
    """

    level: Literal["sequence", "token"] = setting(
        "sequence",
        "a segment's value: that of its last token, or the mean over its tokens, then through a"
        " sigmoid",
    )
    loss: Literal["log", "mse"] | None = setting(
        None,
        "log loss, for labels of 0 and 1; squared error, for shares between them; none: a method's"
        " own, or else log",
    )
    critic_learning_rate: float = setting(1e-3, "of AdamW, for the head", above=0)
    passes: Passes = Passes()
    optim: Optim = Optim(learning_rate=1e-4)
    lora: LoRA = LoRA()
    saving: Saving = Saving(save_every=50)


def check(config: RewardModel) -> None:
    """Raise a WorkbenchError naming the field for settings that cannot work."""
    check_passes(config)
    check_report_to(config.saving, trl=False)


def check_rows(config: RewardModel, rows: Sequence[Judged]) -> None:
    """Raise a WorkbenchError for no rows, and for one that cannot be learnt from with these
    settings.
    """
    if not rows:
        raise WorkbenchError("no rows to train a reward model on: give some")
    for row in rows:
        where = f"the row of question '{row.question.id}'"
        if not row.segments or any(not 0 <= s.start < s.end <= len(row.text) for s in row.segments):
            raise WorkbenchError(f"{where} has a segment outside its text, or none: leave it out")
        if any(not 0 <= s.target <= 1 for s in row.segments):
            raise WorkbenchError(f"{where} has a target that is not between 0 and 1: mend it")
        if config.loss != "mse" and any(s.target not in (0, 1) for s in row.segments):
            raise WorkbenchError(
                f"{where} has a target between 0 and 1: log loss takes labels, use loss=mse"
            )


def train_reward_model(
    config: RewardModel, rows: Sequence[Judged], policy: str, out: Path, *, seed: int
) -> Status:
    """Train a reward model from `policy` in the folder `out`, continuing what is there; it goes
    to `out/model`.

    Returns:
        "done", or "interrupted" after Ctrl-C: then a checkpoint of the last finished step was
        written.

    Raises:
        WorkbenchError: settings or rows that cannot work, no such policy, a folder begun with
        other rows.
    """
    check(config)
    config = replace(config, loss=config.loss or "log")
    check_rows(config, rows)
    trainee = load_trainee(policy, **vars(config.lora), seed=seed, unsloth=False)
    scorer = Scorer(actor := Actor(trainee), config.level)
    every = [scorer.read(row) for row in rows]
    most = config.passes.max_length
    reads = [every[number] for number in within(rows, [len(read.ids) for read in every], most)]
    steps, batch = steps_of(config.passes, len(reads)), config.passes.batch
    keep_data(out, len(rows), [read._asdict() for read in reads], steps)
    state = State(actor, config, steps, seed)
    checkpoint, done = rewind(out)
    if checkpoint:
        state.load(checkpoint)
    asked = order(len(reads), steps * batch, seed)
    with MetricsLog(out, steps=steps, done=done, shown=("loss",)) as journal:
        for step in state.steps_left(journal):
            rate = state.set_rates(step)
            used = [reads[number] for number in asked[(step - 1) * batch : step * batch]]
            logs = update(state, scorer, used, config)
            journal.write(
                {
                    "step": step,
                    **logs,
                    "learning_rate": rate,
                    "seconds": round(journal.lap_seconds(), 3),
                }
            )
    if journal.stopped:
        return "interrupted"
    card = {
        "level": config.level,
        "loss": config.loss,
        "lora_r": config.lora.lora_r,
        "lora_alpha": config.lora.lora_alpha,
        "max_length": most,
    }
    save_reward_model(scorer, trainee, card, policy, out)
    return "done"


def update(
    state: State, scorer: Scorer, rows: Sequence[Read], config: RewardModel
) -> dict[str, float | None]:
    """One step of the optimizer: the mean loss over the segments, and the share of them on the
    right side of .5.
    """
    segments, size = sum(len(row.targets) for row in rows), config.passes.micro_batch or len(rows)
    total, right = 0.0, 0
    with state.actor.learning():
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            loss, hits = losses(
                scorer.logits(part),
                [target for row in part for target in row.targets],
                config.loss or "log",
            )
            (loss / segments).backward()
            total, right = total + loss.item(), right + hits
    return {
        "loss": finite(total / segments),
        "accuracy": right / segments,
        "grad_norm": finite(state.update()),
    }


def losses(logits_S: torch.Tensor, targets: Sequence[float], loss: str) -> tuple[torch.Tensor, int]:
    """The segments' losses summed, and how many values lie on the same side of .5 as their
    targets.
    """
    import torch

    targets_S = torch.tensor(targets, dtype=torch.float32, device=logits_S.device)
    hits = int(((logits_S > 0) == (targets_S > 0.5)).sum())
    if loss == "log":
        log_loss = torch.nn.functional.binary_cross_entropy_with_logits
        return log_loss(logits_S, targets_S, reduction="sum"), hits
    return ((logits_S.sigmoid() - targets_S) ** 2).sum(), hits
