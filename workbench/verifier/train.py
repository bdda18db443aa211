"""`train_verifier`: fine-tune the packaged MiniLM on labelled pairs, compress what changed,
calibrate on the dev file.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.types import WorkbenchError
from workbench.util.jsonl import write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.verifier.augment import augment
from workbench.verifier.card import make_card, rounded
from workbench.verifier.model import Encoder, base_folder, collate, compress, logits, new_model
from workbench.verifier.rows import WEIGHTS, Row, read_split


@dataclass(frozen=True)
class TrainConfig:
    """All that the weights depend on, besides the data. `rows` and `tokens` bound a batch; a
    batch is one step.
    """

    epochs: float = 3.5
    lr: float = 2e-4
    warmup: int = 150  # steps
    decay: float = 0.25  # the last part of all steps, in which the rate falls to 0
    rows: int = 32
    tokens: int = 2560
    max_length: int = 160  # word pieces, in training
    smoothing: float = 0.0  # label smoothing
    dropout: float = 0.1  # in the encoder; costs a sixth of the time
    made: float = 0.2  # pairs made by rules, per row of the data, anew each epoch
    head_lr: float = 10.0  # times `lr`, for the fresh head
    weight_decay: float = 0.01
    rank: int = 56  # of what is kept of each changed matrix
    keep: float = 0.8  # of the change
    # matrix products in bfloat16; None: where the processor has them, elsewhere they are slow
    bfloat16: bool | None = None
    seed: int = 0
    threads: int = DEFAULT_THREADS
    save_every: int = 200
    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))


def train_verifier(data: Path, dev: Path | None, out: Path, config: TrainConfig) -> dict[str, Any]:
    """Train, compress, calibrate and measure; writes `adapter.safetensors` and `card.json`
    into `out`.

    The same command on an unfinished `out` resumes it (`training.pt`, deleted at the end).
    Without a dev file, a tenth of the rows, chosen by their premises, is kept out of training
    for it; dev rows whose premise is also trained on are left out. Returns the card.
    """
    from safetensors.torch import save_file

    base_folder()  # what is missing is said before the long work, and so is a bad row
    split = read_split(data, dev, config.weights)
    config = replace(config, bfloat16=uses_bfloat16(config))
    out.mkdir(parents=True, exist_ok=True)
    model, seconds = fit(split.rows, config, out / "training.pt")
    save_file(compress(model, config.rank, config.keep), out / "adapter.safetensors")
    run = {**asdict(config), "seconds": round(seconds)}
    card = make_card(out, split, model, run, config.threads)
    write_json(out / "card.json", rounded(card))
    (out / "training.pt").unlink()
    return card


def uses_bfloat16(config: TrainConfig) -> bool:
    """Whether matrix products are in bfloat16: without processor support they take five times as
    long."""
    import torch

    able = torch.cpu.get_capabilities()
    detected = bool(able.get("avx512_bf16") or able.get("amx_bf16"))
    return detected if config.bfloat16 is None else config.bfloat16


def fit(rows: Sequence[Row], config: TrainConfig, checkpoint: Path) -> tuple[Any, float]:
    """Train, or take up the training that `checkpoint` holds; returns the model and its seconds
    over all resumptions.

    AdamW, gradients clipped at norm 1; the rate warms up, stays, and falls linearly to 0 at the
    end ("warm-up, stable, decay", as in MiniCPM, arXiv 2404.06395), so that a checkpoint of the
    stable part serves any number of epochs. Each epoch sees every row and freshly made pairs, in
    batches of similar length; a long batch has fewer pairs, and each pair the same weight all
    the same.
    """
    import torch

    with use_threads(config.threads):
        torch.manual_seed(config.seed)
        model = new_model(config.dropout)
        encoder = Encoder(config.max_length)
        batches = epoch_batches(rows, encoder, config, 0)
        training = _Training(
            model, config, round(config.epochs * len(batches)), _identity(rows, config), checkpoint
        )
        epoch = 0
        while training.step < training.total:
            training.epoch(epoch, batches)
            epoch += 1
            batches = epoch_batches(rows, encoder, config, epoch)
        return training.model.eval(), training.seconds


def epoch_batches(
    rows: Sequence[Row], encoder: Encoder, config: TrainConfig, epoch: int
) -> list[list[tuple[Any, Row]]]:
    """The batches of one epoch, in order: (encoded pair, row) of similar length, by pools of 50
    batches.
    """
    rng = random.Random(f"epoch-{config.seed}-{epoch}")
    every = [*rows, *augment(rows, config.seed + 1000 * epoch, config.made)]
    pairs = list(
        zip(encoder.pairs([(row.premise, row.claim) for row in every]), every, strict=True)
    )
    rng.shuffle(pairs)
    batches: list[list[tuple[Any, Row]]] = []
    for start in range(0, len(pairs), 50 * config.rows):
        pool = sorted(
            pairs[start : start + 50 * config.rows], key=lambda pair: len(pair[0][0]), reverse=True
        )
        while pool:
            count = max(1, min(config.rows, config.tokens // len(pool[0][0][0])))
            batches.append(pool[:count])
            pool = pool[count:]
    rng.shuffle(batches)
    return batches


class _Training:
    """The state that is checkpointed: model, optimizer, steps, seconds and torch's generator."""

    def __init__(
        self, model: Any, config: TrainConfig, total: int, identity: str, checkpoint: Path
    ) -> None:
        import torch

        self.model, self.config, self.total, self.identity, self.checkpoint = (
            model,
            config,
            total,
            identity,
            checkpoint,
        )
        named = [
            (name, weight) for name, weight in model.named_parameters() if weight.requires_grad
        ]
        groups = [
            [weight for name, weight in named if name.startswith("head.") is head]
            for head in (False, True)
        ]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": groups[0], "base": config.lr},
                {"params": groups[1], "base": config.lr * config.head_lr},
            ],
            lr=config.lr,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self.step, self.seconds, self.loss = 0, 0.0, 0.0
        self.begun = 0  # steps of the epochs before this one
        if checkpoint.exists():
            self.load()

    def load(self) -> None:
        import torch

        state = torch.load(self.checkpoint, weights_only=True)
        stable = (1 - self.config.decay) * min(self.total, state["total"])
        if state["identity"] != self.identity or (
            state["total"] != self.total and state["step"] > stable
        ):
            raise WorkbenchError(
                f"{self.checkpoint} is of other data or settings: delete it or choose another --out"
            )
        self.model.load_state_dict(state["model"], strict=False)
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds, self.loss = state["step"], state["seconds"], state["loss"]
        torch.set_rng_state(state["random"])

    def save(self) -> None:
        """Whole or not at all: a run killed while writing still has its previous checkpoint."""
        import torch

        frozen = "encoder.embeddings.word_embeddings.weight"
        model = {name: value for name, value in self.model.state_dict().items() if name != frozen}
        state = {
            "model": model,
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "loss": self.loss,
        }
        place = {
            "step": self.step,
            "total": self.total,
            "seconds": self.seconds,
            "identity": self.identity,
        }
        temporary = self.checkpoint.with_suffix(".tmp")
        torch.save({**state, **place}, temporary)
        temporary.replace(self.checkpoint)

    def epoch(self, number: int, batches: Sequence[Sequence[tuple[Any, Row]]]) -> None:
        """The steps of one epoch that are not done yet, up to the last of all."""
        self.model.train()
        start = time.monotonic()
        for position, batch in enumerate(batches[: self.total - self.begun], start=self.begun):
            if position < self.step:
                continue
            loss = self.update(batch)
            self.loss = 0.98 * self.loss + 0.02 * loss if position else loss
            last = self.step in (self.total, self.begun + len(batches))
            if last or self.step % self.config.save_every == 0:
                now = time.monotonic()
                self.seconds, start = self.seconds + now - start, now
                self.save()
            if last or self.step % 50 == 0:
                elapsed = f"{self.seconds + time.monotonic() - start:.0f} s"
                print(
                    f"epoch {number + 1} step {self.step}/{self.total} loss {self.loss:.4f}"
                    f" {elapsed}",
                    file=sys.stderr,
                    flush=True,
                )
        self.begun += len(batches)

    def update(self, batch: Sequence[tuple[Any, Row]]) -> float:
        """One step; returns the mean loss of its pairs."""
        import torch

        remaining = (self.total - self.step) / max(1.0, self.config.decay * self.total)
        for group in self.optimizer.param_groups:
            group["lr"] = group["base"] * min(
                1.0, remaining, (self.step + 1) / max(1, self.config.warmup)
            )
        with torch.autocast("cpu", torch.bfloat16, enabled=self.config.bfloat16):
            scores_NK = logits(self.model, collate([pair for pair, _ in batch]))
        gold_N = torch.tensor([row.label for _, row in batch])
        losses_N = torch.nn.functional.cross_entropy(
            scores_NK.float(), gold_N, reduction="none", label_smoothing=self.config.smoothing
        )
        (losses_N * torch.tensor([row.weight for _, row in batch])).sum().div(
            self.config.rows
        ).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        return float(losses_N.detach().mean())


def _identity(rows: Sequence[Row], config: TrainConfig) -> str:
    """A hash of all that the weights of the stable part depend on."""
    settings = {
        name: value
        for name, value in asdict(config).items()
        if name not in ("epochs", "rank", "keep", "save_every")
    }
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for row in rows:
        digest.update(repr(row).encode())
    return digest.hexdigest()[:16]
