"""Reward models of segments (FoRAG, arXiv 2406.13779, section 5.2): a scalar head on the policy's own model with LoRA.

All segments of a response are read in one forward pass; the paper's way, a pass for each, makes its subclaim version two thirds
slower. A killed training goes on from its last complete checkpoint and ends with the weights of an uninterrupted one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from workbench.config import setting
from workbench.credit.tokens import offsets_from_ids
from workbench.jsonl import write_json
from workbench.runs.checkpoints import rewind
from workbench.runs.folder import read_json
from workbench.train.actor import Actor, State
from workbench.train.journal import Journal, finite
from workbench.train.models import load_trainee, save_policy
from workbench.train.offline import check_offline, steps_of
from workbench.train.rows import keep_data, laid_out, within
from workbench.train.stage import Status, order
from workbench.types import Question, WorkbenchError
from workbench.weights import loading

if TYPE_CHECKING:
    import torch

HEAD, CARD = "head.safetensors", "reward_model.json"  # in the model's folder


@dataclass(frozen=True)
class RewardModel:
    """Settings of a reward model and its training; the papers state none of them *(ours)* but `level` and `loss`."""

    level: Literal["sequence", "token"] = setting(
        "sequence", "a segment's value: that of its last token, or the mean over its tokens, then through a sigmoid"
    )
    loss: Literal["log", "mse"] = setting("log", "log loss, for labels of 0 and 1; or squared error, for shares between them")
    steps: int | None = setting(None, "batches to learn from; none: as many as `epochs` take")
    epochs: float | None = setting(None, "passes over the rows; none: 1, unless `steps` are given")
    batch: int = setting(32, "responses a step")
    micro_batch: int | None = setting(None, "responses per backward pass; none: the whole batch at once")
    learning_rate: float = setting(1e-4, "of AdamW, for the adapter")
    critic_learning_rate: float = setting(1e-3, "of AdamW, for the head")
    warmup: float = setting(0.03, "share of the steps in which the learning rates rise")
    floor: float = setting(0.1, "share of the learning rates that their cosine ends at")
    max_length: int = setting(2048, "tokens of prompt and response above which a row is left out")
    lora_r: int = setting(16, "rank of the adapter")
    lora_alpha: int = setting(32, "the adapter's scale, as a multiple of 1 / rank")
    save_every: int = setting(50, "steps between checkpoints")


class Segment(NamedTuple):
    """Characters of a response from `start` to before `end`, and the factuality that they are to get, from 0 to 1."""

    start: int
    end: int
    target: float = 0.0


@dataclass(frozen=True)
class Judged:
    """A response to a question with the segments that are scored: its sentences, or all of it."""

    question: Question
    text: str
    segments: tuple[Segment, ...]


class Read(NamedTuple):
    """A row as ids: those of prompt and response, and of each segment its tokens' places among them, and its target."""

    ids: list[int]
    places: list[list[int]]
    targets: list[float]


def check(config: RewardModel) -> None:
    """Raise a WorkbenchError naming the field for settings that cannot work."""
    check_offline(config, positive=("critic_learning_rate",), shares=("floor",))


def check_rows(config: RewardModel, rows: Sequence[Judged]) -> None:
    """Raise a WorkbenchError for no rows, and for one that cannot be learnt from with these settings."""
    if not rows:
        raise WorkbenchError("no rows to train a reward model on: give some")
    for row in rows:
        where = f"the row of question '{row.question.id}'"
        if not row.segments or any(not 0 <= s.start < s.end <= len(row.text) for s in row.segments):
            raise WorkbenchError(f"{where} has a segment outside its text, or none: leave it out")
        if any(not 0 <= s.target <= 1 for s in row.segments):
            raise WorkbenchError(f"{where} has a target that is not between 0 and 1: mend it")
        if config.loss == "log" and any(s.target not in (0, 1) for s in row.segments):
            raise WorkbenchError(f"{where} has a target between 0 and 1: log loss takes labels, use loss=mse")


class Scorer:
    """A model with a scalar head: responses with segments -> a factuality for each segment."""

    def __init__(self, actor: Actor, level: str) -> None:
        self.model, self.tokenizer, self.head, self.level = actor.model, actor.tokenizer, actor.head, level

    def read(self, row: Judged) -> Read:
        """The row as ids. A token belongs to the segment that its last character stands in."""
        prompt, said = laid_out(self.tokenizer, row.question, row.text)
        text, offsets = offsets_from_ids(self.tokenizer, said)
        skipped = len(text) - len(text.lstrip()) if text != row.text and text.lstrip() == row.text else 0
        ends = [end - skipped for _, end in offsets[:-1]]  # not the end token
        places = [[len(prompt) + t for t, end in enumerate(ends) if s.start < end <= s.end] for s in row.segments]
        if not all(places):
            raise WorkbenchError(f"a segment of the row of question '{row.question.id}' is shorter than a token: leave it out")
        return Read([*prompt, *said], places, [segment.target for segment in row.segments])

    def logits(self, rows: Sequence[Read]) -> torch.Tensor:
        """The segments' logits, one after another (S,), from one forward pass."""
        import torch

        length, pad = max(len(row.ids) for row in rows), self.tokenizer.pad_token_id
        ids_BL = torch.tensor([[*row.ids, *[pad] * (length - len(row.ids))] for row in rows], device=self.model.device)
        mask_BL = torch.tensor([[1] * len(row.ids) + [0] * (length - len(row.ids)) for row in rows], device=self.model.device)
        decoder = self.model.get_base_model().model
        hidden_BLD = decoder(input_ids=ids_BL, attention_mask=mask_BL, use_cache=False).last_hidden_state
        values_BL = self.head(hidden_BLD.float()).squeeze(-1)
        pick = slice(-1, None) if self.level == "sequence" else slice(None)
        return torch.stack([values_BL[number, places[pick]].mean() for number, row in enumerate(rows) for places in row.places])

    def score(self, rows: Sequence[Judged], batch: int = 32) -> list[tuple[float, ...]]:
        """The factuality of each row's segments, between 0 and 1."""
        import torch

        scores: list[tuple[float, ...]] = []
        for start in range(0, len(rows), batch):
            reads = [self.read(row) for row in rows[start : start + batch]]
            with torch.no_grad():
                found = iter(self.logits(reads).sigmoid().tolist())
            scores += [tuple(next(found) for _ in read.places) for read in reads]
        return scores


def train_reward_model(config: RewardModel, rows: Sequence[Judged], policy: str, out: Path, *, seed: int) -> Status:
    """Train a reward model from `policy` in the folder `out`, continuing what is there; it goes to `out/policy`.

    Returns:
        "done", or "interrupted" after Ctrl-C: then a checkpoint of the last finished step was written.

    Raises:
        WorkbenchError: settings or rows that cannot work, no such policy, a folder begun with other rows.
    """
    check(config)
    check_rows(config, rows)
    trainee = load_trainee(policy, lora_r=config.lora_r, lora_alpha=config.lora_alpha, seed=seed, unsloth=False)
    scorer = Scorer(actor := Actor(trainee), config.level)
    every = [scorer.read(row) for row in rows]
    reads = [every[number] for number in within(rows, [len(read.ids) for read in every], config.max_length)]
    steps = steps_of(config, len(reads))
    keep_data(out, len(rows), [read._asdict() for read in reads], steps)
    state = State(actor, replace(config, steps=steps), seed)
    checkpoint, done = rewind(out)
    if checkpoint:
        print(f"resuming '{out}' after step {done} of {steps}", file=sys.stderr)
        state.load(checkpoint)
    asked = order(len(reads), steps * config.batch, seed)
    with Journal(out, steps=steps, done=done, shown=("loss",)) as journal:
        for step in range(done + 1, steps + 1):
            rate = state.set_rates(step)
            batch = [reads[number] for number in asked[(step - 1) * config.batch : step * config.batch]]
            logs = update(state, scorer, batch, config)
            journal.write({"step": step, **logs, "learning_rate": rate, "seconds": round(journal.took(), 3)})
            if step % config.save_every == 0 or step == steps or journal.interrupted:
                journal.saved(state.save(out / "checkpoints" / f"checkpoint-{step}"))
            if journal.interrupted and step < steps:
                return "interrupted"
    _save(scorer, trainee, config, out)
    return "done"


def update(state: State, scorer: Scorer, rows: Sequence[Read], config: RewardModel) -> dict[str, float | None]:
    """One step of the optimizer: the mean loss over the segments, and the share of them on the right side of .5."""
    segments, size = sum(len(row.targets) for row in rows), config.micro_batch or len(rows)
    total, right = 0.0, 0
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        loss, hits = losses(scorer.logits(part), [target for row in part for target in row.targets], config.loss)
        (loss / segments).backward()
        total, right = total + loss.item(), right + hits
    return {"loss": finite(total / segments), "accuracy": right / segments, "grad_norm": finite(state.update())}


def losses(logits_S: torch.Tensor, targets: Sequence[float], loss: str) -> tuple[torch.Tensor, int]:
    """The segments' losses summed, and how many values lie on the same side of .5 as their targets."""
    import torch

    targets_S = torch.tensor(targets, dtype=torch.float32, device=logits_S.device)
    hits = int(((logits_S > 0) == (targets_S > 0.5)).sum())
    if loss == "log":
        return torch.nn.functional.binary_cross_entropy_with_logits(logits_S, targets_S, reduction="sum"), hits
    return ((logits_S.sigmoid() - targets_S) ** 2).sum(), hits


def _save(scorer: Scorer, trainee: Any, config: RewardModel, out: Path) -> None:
    from safetensors.torch import save_file

    save_policy(trainee, out)
    save_file(scorer.head.state_dict(), out / "policy" / HEAD)
    write_json(out / "policy" / CARD, {"level": config.level, "loss": config.loss, "lora_r": config.lora_r,
                                       "lora_alpha": config.lora_alpha})  # fmt: skip


def load_reward_model(folder: Path, policy: str) -> Scorer:
    """The reward model that `train_reward_model` left in `folder` (its `out/policy`), on the policy that it was trained from.

    Raises:
        WorkbenchError: it is not one, or was trained from another policy's shape.
    """
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    card = read_json(folder / CARD)
    if card is None or not (folder / HEAD).is_file():
        raise WorkbenchError(f"'{folder}' is no reward model: name the folder 'policy' of its training")
    trainee = load_trainee(policy, lora_r=card["lora_r"], lora_alpha=card["lora_alpha"], seed=0, unsloth=False)
    actor = Actor(trainee)
    with loading(str(folder), "name a reward model and the policy that it was trained from"):
        set_peft_model_state_dict(trainee.model, load_file(folder / "adapter_model.safetensors"))
        actor.head.load_state_dict(load_file(folder / HEAD))
    trainee.model.eval()
    return Scorer(actor, card["level"])
