"""Train reward models that score segments of a response (FoRAG, arXiv 2406.13779, section 5.2).

A reward model is the policy's own model with LoRA and a scalar head. A killed training continues
from its last complete checkpoint. It ends with the weights of an uninterrupted training.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.runs.checkpoints import rewind
from workbench.training.actor import Actor, State
from workbench.training.loading import load_trainee
from workbench.training.offline import steps_of
from workbench.training.recorder import MetricsLog
from workbench.training.rows import keep_data, within
from workbench.training.scorer import EncodedRow, Judged, Scorer, save_reward_model
from workbench.training.settings import (
    LoRA,
    Optim,
    Passes,
    Saving,
    check_one_process,
    check_trainer,
)
from workbench.training.stage import Status, order
from workbench.types import WorkbenchError
from workbench.util.config import setting
from workbench.util.grouping import split_batches
from workbench.util.jsonl import finite

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class RewardModel:
    """Settings of a reward model and its training.

    The choices for `level` and `loss` are from FoRAG (arXiv 2406.13779) and KLCF (arXiv
    2509.23765). The defaults of other settings are ours.
    """

    level: Literal["sequence", "token"] = setting(
        "sequence",
        "logit of a segment: sequence: the head's output at its last token; token: the mean over"
        " its tokens",
    )
    loss: Literal["log", "mse"] | None = setting(
        None,
        "log: log loss, for targets 0 and 1; mse: squared error, for targets between them; none:"
        " the method's loss, or log",
    )
    critic_learning_rate: float = setting(1e-3, "learning rate of the head, by AdamW", above=0)
    passes: Passes = Passes()
    optim: Optim = Optim(learning_rate=1e-4)
    lora: LoRA = LoRA()
    saving: Saving = Saving(save_every=50)


def check_rows(config: RewardModel, rows: Sequence[Judged]) -> None:
    """Check the training rows of a reward model.

    Raises:
        WorkbenchError: there are no rows, a row has no segments, a segment is empty or outside the
            text, a target is not between 0 and 1, or log loss has a target other than 0 or 1.
    """
    if not rows:
        raise WorkbenchError(
            "no rows to train a reward model on: give more questions or samples; card.json says"
            " why samples were dropped"
        )
    for row in rows:
        where = f"the row of question '{row.question.id}'"
        if not row.segments:
            raise WorkbenchError(f"{where} has no segments: remove the row")
        if any(not 0 <= s.start < s.end <= len(row.text) for s in row.segments):
            raise WorkbenchError(f"{where} has a segment outside the response: remove the row")
        if any(not 0 <= s.target <= 1 for s in row.segments):
            raise WorkbenchError(
                f"{where} has a target that is not between 0 and 1: correct the target"
            )
        if config.loss != "mse" and any(s.target not in (0, 1) for s in row.segments):
            raise WorkbenchError(
                f"{where} has a target between 0 and 1: log loss needs 0 or 1; use loss=mse"
            )


def train_reward_model(
    config: RewardModel, rows: Sequence[Judged], policy: str, out: Path, *, seed: int
) -> Status:
    """Train a reward model from `policy` on `rows`, and save it to `out/model`.

    If the folder `out` has checkpoints, the training resumes from the last one.

    Args:
        rows: responses, divided into segments. The target of each segment is its factuality, from 0
            to 1.
        policy: folder or hub name of the model to start from.

    Returns:
        "done", or "interrupted" after Ctrl-C. After "interrupted", the last finished step has a
        checkpoint.

    Raises:
        WorkbenchError: invalid settings or rows, unknown policy, a launcher has started several
            processes, or `out` holds an earlier training with different rows or a different number
            of steps.
    """
    check_trainer(config, trl=False)
    config = replace(config, loss=config.loss or "log")
    check_rows(config, rows)
    check_one_process("RewardModel")
    trainee = load_trainee(policy, **vars(config.lora), seed=seed, unsloth=False)
    scorer = Scorer(actor := Actor(trainee), config.level)  # its head is the actor's value head
    encoded = [scorer.encode(row) for row in rows]
    max_length = config.passes.max_length
    used = [encoded[n] for n in within(rows, [len(row.ids) for row in encoded], max_length)]
    steps, batch = steps_of(config.passes, len(used)), config.passes.batch
    keep_data(out, len(rows), [row._asdict() for row in used], steps)
    state = State(actor, config, steps, seed)
    checkpoint, done = rewind(out)
    if checkpoint:
        state.load(checkpoint)
    numbers = order(len(used), steps * batch, seed)
    with MetricsLog(out, steps=steps, done=done, progress=("loss",)) as metrics:
        for step in state.steps_left(metrics):
            rate = state.set_rates(step)
            step_rows = [used[number] for number in numbers[(step - 1) * batch : step * batch]]
            row = update(state, scorer, step_rows, config)
            metrics.write_step(step, {**row, "learning_rate": rate})
    if metrics.stopped:
        return "interrupted"
    card = {
        "level": config.level,
        "loss": config.loss,
        "lora_r": config.lora.lora_r,
        "lora_alpha": config.lora.lora_alpha,
        "max_length": max_length,
    }
    save_reward_model(scorer, trainee, card, policy, out)
    return "done"


def update(
    state: State, scorer: Scorer, rows: Sequence[EncodedRow], config: RewardModel
) -> dict[str, float | None]:
    """Do one optimizer step on all `rows`, and return its metrics.

    Returns:
        "loss", the mean over the segments; "accuracy", the share of correctly predicted segments
        (see `losses`); and "grad_norm", the norm of the adapter's gradient.
    """
    segments, size = sum(len(row.targets) for row in rows), config.passes.micro_batch or len(rows)
    total, right = 0.0, 0
    with state.actor.learning():
        for part in split_batches(rows, size):
            loss, hits = losses(
                scorer.logits(part),
                [target for row in part for target in row.targets],
                config.loss or "log",
            )
            (loss / segments).backward()  # every segment of the step has the same weight
            total, right = total + loss.item(), right + hits
    return {
        "loss": finite(total / segments),
        "accuracy": right / segments,
        "grad_norm": finite(state.update()),
    }


def losses(logits_S: "Tensor", targets: Sequence[float], loss: str) -> "tuple[Tensor, int]":
    """Return the summed loss of S segments, and the number of correctly predicted segments.

    A prediction is correct if the predicted probability and the target are on the same side of 0.5.
    `loss` is "log" (log loss) or "mse" (squared error).
    """
    import torch

    targets_S = torch.tensor(targets, dtype=torch.float32, device=logits_S.device)
    # a logit above 0 is a probability above 0.5
    hits = int(((logits_S > 0) == (targets_S > 0.5)).sum())
    if loss == "log":
        log_loss = torch.nn.functional.binary_cross_entropy_with_logits
        return log_loss(logits_S, targets_S, reduction="sum"), hits
    return ((logits_S.sigmoid() - targets_S) ** 2).sum(), hits
