"""Train a verifier: fine-tune the packaged MiniLM on labelled pairs, compress it, calibrate it."""

from __future__ import annotations

import hashlib
import json
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.types import JsonObject, WorkbenchError
from workbench.util.jsonl import write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.verifier.augment import augment
from workbench.verifier.card import make_card, rounded
from workbench.verifier.model import (
    Encoder,
    Pair,
    base_folder,
    collate,
    compress,
    logits,
    new_model,
)
from workbench.verifier.rows import WEIGHTS, Row, read_split

if TYPE_CHECKING:
    import torch
    from torch.nn import ModuleDict


Example = tuple[Pair, Row]  # an encoded pair and its row


@dataclass(frozen=True)
class TrainConfig:
    """Everything that the weights depend on, except the data.

    A batch has at most `rows` pairs and, with padding, at most `tokens` tokens.
    """

    epochs: float = 3.5
    lr: float = 2e-4
    warmup: int = 150  # steps
    decay: float = 0.25  # last share of the steps, in which the rate falls to 0
    rows: int = 32
    tokens: int = 2560
    max_length: int = 160  # word pieces, in training
    dropout: float = 0.1  # in the encoder; adds a fifth to the training time
    made: float = 0.2  # augmented pairs per row, new ones in each epoch
    head_lr: float = 10.0  # factor on `lr` for the new head
    weight_decay: float = 0.01
    rank: int = 56  # of the stored change of each matrix
    keep: float = 0.8  # factor on the change (see `compress`)
    # matrix products in bfloat16; None: only if the processor supports them
    bfloat16: bool | None = None
    seed: int = 0
    threads: int = DEFAULT_THREADS
    save_every: int = 200
    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))


def train_verifier(data: Path, dev: Path | None, out: Path, config: TrainConfig) -> JsonObject:
    """Train, compress, calibrate and measure; write `adapter.safetensors` and `card.json`.

    The same call on an unfinished `out` resumes from `training.pt`, which is deleted at the end.
    See `read_split` for the dev rows. Returns the card.
    """
    from safetensors.torch import save_file

    base_folder()  # report a missing package or a bad row before the long work
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
    """Whether to use bfloat16: without processor support it is five times slower."""
    import torch

    able = torch.cpu.get_capabilities()
    detected = bool(able.get("avx512_bf16") or able.get("amx_bf16"))
    return detected if config.bfloat16 is None else config.bfloat16


def fit(rows: Sequence[Row], config: TrainConfig, checkpoint: Path) -> tuple[ModuleDict, float]:
    """Train from scratch or from `checkpoint`; return the model and the seconds of all sessions.

    AdamW with gradients clipped at norm 1. The rate follows warm-up, stable, decay (MiniCPM, arXiv
    2404.06395), so a checkpoint of the stable part can be continued to any number of epochs. An
    epoch has every row and new augmented pairs, in batches of similar length. Every pair has the
    same weight, also in batches with fewer pairs.
    """
    import torch

    with use_threads(config.threads):
        torch.manual_seed(config.seed)
        model = new_model(config.dropout)
        encoder = Encoder(config.max_length)
        batches = epoch_batches(rows, encoder, config, 0)
        total = round(config.epochs * len(batches))
        training = _Training(model, config, total, _fingerprint(rows, config), checkpoint)
        epoch = 0
        while training.step < training.total:
            training.epoch(epoch, batches)
            epoch += 1
            batches = epoch_batches(rows, encoder, config, epoch)
        return training.model.eval(), training.seconds


def epoch_batches(
    rows: Sequence[Row], encoder: Encoder, config: TrainConfig, epoch: int
) -> list[list[Example]]:
    """Return the batches of one epoch: (encoded pair, row), sorted by length in pools of 50."""
    rng = random.Random(f"epoch-{config.seed}-{epoch}")
    examples = [*rows, *augment(rows, config.seed + 1000 * epoch, config.made)]
    pairs = list(
        zip(encoder.pairs([(row.premise, row.claim) for row in examples]), examples, strict=True)
    )
    rng.shuffle(pairs)
    batches: list[list[Example]] = []
    size = 50 * config.rows
    for start in range(0, len(pairs), size):
        pool = sorted(pairs[start : start + size], key=lambda pair: len(pair[0][0]), reverse=True)
        while pool:
            # the first pair of the pool is the longest, so it sets the padded length
            count = max(1, min(config.rows, config.tokens // len(pool[0][0][0])))
            batches.append(pool[:count])
            pool = pool[count:]
    rng.shuffle(batches)
    return batches


class _Training:
    """The training state in a checkpoint: model, optimizer, steps, seconds, random generator."""

    def __init__(
        self, model: ModuleDict, config: TrainConfig, total: int, fingerprint: str, checkpoint: Path
    ) -> None:
        import torch

        self.model, self.config, self.total = model, config, total
        self.fingerprint, self.checkpoint = fingerprint, checkpoint
        encoder: list[torch.Tensor] = []
        head: list[torch.Tensor] = []
        for name, weight in model.named_parameters():
            if weight.requires_grad:
                (head if name.startswith("head.") else encoder).append(weight)
        # the head starts from random weights and needs a higher rate
        self.optimizer = torch.optim.AdamW(
            [
                {"params": encoder, "base": config.lr},
                {"params": head, "base": config.lr * config.head_lr},
            ],
            lr=config.lr,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self.step, self.seconds, self.loss = 0, 0.0, 0.0
        self.epoch_start = 0  # steps in earlier epochs
        if checkpoint.exists():
            self.load()

    def load(self) -> None:
        """Restore the state from the checkpoint.

        Raises:
            WorkbenchError: the checkpoint belongs to other data or settings.
        """
        import torch

        state = torch.load(self.checkpoint, weights_only=True)
        # with another number of epochs, only a checkpoint before the decay can be continued
        stable = (1 - self.config.decay) * min(self.total, state["total"])
        if state["identity"] != self.fingerprint or (
            state["total"] != self.total and state["step"] > stable
        ):
            raise WorkbenchError(
                f"{self.checkpoint} belongs to other data or settings: delete it or choose another"
                " --out"
            )
        self.model.load_state_dict(state["model"], strict=False)
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds, self.loss = state["step"], state["seconds"], state["loss"]
        torch.set_rng_state(state["random"])

    def save(self) -> None:
        """Write the checkpoint atomically: a run killed meanwhile keeps the previous one."""
        import torch

        frozen = "encoder.embeddings.word_embeddings.weight"
        model = {name: value for name, value in self.model.state_dict().items() if name != frozen}
        state = {
            "model": model,
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "loss": self.loss,
            "step": self.step,
            "total": self.total,
            "seconds": self.seconds,
            "identity": self.fingerprint,
        }
        temporary = self.checkpoint.with_suffix(".tmp")
        torch.save(state, temporary)
        temporary.replace(self.checkpoint)

    def epoch(self, number: int, batches: Sequence[Sequence[Example]]) -> None:
        """Run the remaining steps of one epoch, up to the total number of steps."""
        self.model.train()
        start = time.monotonic()
        for position, batch in enumerate(
            batches[: self.total - self.epoch_start], start=self.epoch_start
        ):
            if position < self.step:  # done before the checkpoint
                continue
            loss = self.update(batch)
            self.loss = 0.98 * self.loss + 0.02 * loss if position else loss
            last = self.step in (self.total, self.epoch_start + len(batches))
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
        self.epoch_start += len(batches)

    def update(self, batch: Sequence[Example]) -> float:
        """Run one step and return the mean loss of its pairs."""
        import torch

        remaining = (self.total - self.step) / max(1.0, self.config.decay * self.total)
        for group in self.optimizer.param_groups:
            group["lr"] = group["base"] * min(
                1.0, remaining, (self.step + 1) / max(1, self.config.warmup)
            )
        with torch.autocast("cpu", torch.bfloat16, enabled=self.config.bfloat16):
            scores_NK = logits(self.model, collate([pair for pair, _ in batch]))
        gold_N = torch.tensor([row.label for _, row in batch])
        losses_N = torch.nn.functional.cross_entropy(scores_NK.float(), gold_N, reduction="none")
        weighted_N = losses_N * torch.tensor([row.weight for _, row in batch])
        # not divided by the batch size: a small batch would give its pairs more weight
        weighted_N.sum().div(self.config.rows).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        return float(losses_N.detach().mean())


def _fingerprint(rows: Sequence[Row], config: TrainConfig) -> str:
    """Return a hash of everything that the weights of the stable part depend on."""
    settings = {
        name: value
        for name, value in asdict(config).items()
        if name not in ("epochs", "rank", "keep", "save_every")
    }
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for row in rows:
        digest.update(repr(row).encode())
    return digest.hexdigest()[:16]
