"""Train a verifier such as the shipped one: fine-tune the packaged MiniLM, compress and calibrate
it.

    python -m benchmarks.verifier.train --data train.jsonl.gz --dev dev.jsonl.gz --out runs/verifier

`data/verifier/README.md` describes the data and the settings. The folder gets
`adapter.safetensors`, a few megabytes, and `card.json`; `--verifier runs/verifier` uses it. A
killed training resumes with the same command.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.verifier.augment import augment
from workbench.types import JsonMapping, JsonObject, WorkbenchError
from workbench.util.jsonl import write_json
from workbench.util.minilm import BASE, BASE_SHA256
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.verifier.calibrate import calibrate
from workbench.verifier.card import measured, rounded, sha256
from workbench.verifier.evaluate import evaluate_verifier
from workbench.verifier.model import Encoder, Pair, base_folder, collate, expand, logits, new_model
from workbench.verifier.rows import LABELS, Row, read_rows
from workbench.verifier.verifier import Verifier, read_tensors

if TYPE_CHECKING:
    import torch
    from torch.nn import ModuleDict


Example = tuple[Pair, Row]  # an encoded pair and its row
FROZEN = "encoder.embeddings.word_embeddings.weight"  # 47 MB would not fit into a small adapter
# Weight of a source's rows in the loss; lower for noisy labels.
WEIGHTS = {
    "factcheck_gpt_partial": 0.5,
    "wice_partial": 0.5,
    "fm2_mismatch": 0.5,
    "qa_feedback_derived": 0.0,
}


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
    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))  # by source

    def weight(self, row: Row) -> float:
        return self.weights.get(row.source, 1.0)


@dataclass(frozen=True)
class Split:
    """Rows to train on, rows to calibrate and measure on (`dev`), and their files by name."""

    rows: Sequence[Row]
    dev: Sequence[Row]
    files: Mapping[str, Path]


def read_split(data: Path, dev: Path | None, config: TrainConfig) -> Split:
    """Read both files, without training rows of weight 0; by default, split off a tenth as dev
    rows.

    Dev rows whose premise also occurs in the training rows are dropped.

    Raises:
        WorkbenchError: a file is bad, or the dev rows lack one of the three labels.
    """
    rows = [row for row in read_rows(data) if config.weight(row) > 0]
    dev_rows = read_rows(dev) if dev else []
    if not dev_rows:
        # a tenth of the premises by their hash, so that the order of rows has no effect
        parts: tuple[list[Row], list[Row]] = [], []
        for row in rows:
            parts[hashlib.sha256(row.premise.encode()).digest()[0] < 26].append(row)
        rows, dev_rows = parts
    premises = {row.premise for row in rows}
    dev_rows = [row for row in dev_rows if row.premise not in premises]
    if not rows or len({row.label for row in dev_rows}) < len(LABELS):
        raise WorkbenchError(
            "the dev rows need all three labels, on premises that do not occur in the training"
            " rows: give another file with --dev"
        )
    return Split(rows, dev_rows, {"data": data, **({"dev": dev} if dev else {})})


def train_verifier(data: Path, dev: Path | None, out: Path, config: TrainConfig) -> JsonObject:
    """Train, compress, calibrate and measure; write `adapter.safetensors` and `card.json`.

    The same call on an unfinished `out` resumes from `training.pt`, which is deleted at the end.
    See `read_split` for the dev rows. Returns the card.
    """
    from safetensors.torch import save_file

    base_folder()  # report a missing package or a bad row before the long work
    split = read_split(data, dev, config)
    config = replace(config, bfloat16=uses_bfloat16(config))
    out.mkdir(parents=True, exist_ok=True)
    model, seconds = fit(split.rows, config, out / "training.pt")
    save_file(compress(model, config.rank, config.keep), out / "adapter.safetensors")
    run = {**asdict(config), "seconds": round(seconds)}
    card = make_card(out, split, model, run, config.threads)
    write_json(out / "card.json", rounded(card))
    (out / "training.pt").unlink()
    return card


def trainable_model(dropout: float) -> ModuleDict:
    """Return the untrained verifier with dropout in the encoder, but none in its attention."""
    import torch

    model = new_model()
    for name, module in model["encoder"].named_modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0 if name.endswith("attention.self.dropout") else dropout
    model.get_parameter(FROZEN).requires_grad_(False)
    return model


def compress(model: ModuleDict, rank: int, keep: float = 1.0) -> dict[str, torch.Tensor]:
    """Return the adapter of a trained model.

    A linear layer NAME is stored as `NAME.down` (rank, in) and `NAME.up` (out, rank), other tensors
    whole. Every change is scaled by `keep`: weights between the packaged and the trained ones
    generalise better than either (WiSE-FT, arXiv 2109.01903).
    """
    import torch

    fresh = new_model().state_dict()
    small: dict[str, torch.Tensor] = {}
    for name, value in model.state_dict().items():
        delta = keep * (value.float() - fresh[name].float())
        if name.startswith("head."):
            small[name] = value
        elif (
            value.dim() == 2
            and min(value.shape) > rank
            and not name.startswith("encoder.embeddings")
        ):
            left_OM, scale_M, right_MI = torch.linalg.svd(delta, full_matrices=False)
            root_R = scale_M[:rank].sqrt()  # each factor gets the root, so that both fit into fp16
            small[f"{name}.up"] = left_OM[:, :rank] * root_R
            small[f"{name}.down"] = root_R[:, None] * right_MI[:rank]
        elif delta.abs().max() > 0:
            small[name] = delta
    return {name: value.half().contiguous() for name, value in small.items()}


def make_card(
    folder: Path, split: Split, model: ModuleDict, run: JsonMapping, threads: int
) -> JsonObject:
    """Calibrate the adapter in `folder` on the dev rows, measure it there and return its card.

    `model` is the model before compression, `run` holds the training settings and `seconds`.
    """
    adapter = folder / "adapter.safetensors"
    with use_threads(threads):
        raw = Verifier(expand(read_tensors(adapter)))
        verifier = Verifier(raw.model, calibrate(raw, split.dev))
        before = evaluate_verifier(Verifier(model), split.dev)["accuracy"]
    return {
        "settings": asdict(verifier.settings),
        "base": {"name": BASE, "sha256": BASE_SHA256},
        "adapter": {
            "bytes": adapter.stat().st_size,
            "sha256": sha256(adapter),
            "rank": run["rank"],
        },
        "data": {
            name: {"file": path.name, "sha256": sha256(path)} for name, path in split.files.items()
        },
        "rows": {
            "train": len(split.rows),
            "dev": len(split.dev),
            "by_source": dict(sorted(Counter(row.source for row in split.rows).items())),
        },
        "runs": [run],
        "before_compression": before,
        **measured(verifier, raw, split.dev, threads),
    }


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
        model = trainable_model(config.dropout)
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

        model = {name: value for name, value in self.model.state_dict().items() if name != FROZEN}
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
        weighted_N = losses_N * torch.tensor([self.config.weight(row) for _, row in batch])
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--dev", type=Path, help="default: a tenth of the data")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=float, default=TrainConfig.epochs)
    parser.add_argument("--lr", type=float, default=TrainConfig.lr)
    parser.add_argument("--dropout", type=float, default=TrainConfig.dropout)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=DEFAULT_THREADS)
    given = vars(parser.parse_args())
    data, dev, out = (given.pop(name) for name in ("data", "dev", "out"))
    card = train_verifier(data, dev, out, TrainConfig(**given))
    print(json.dumps(card["dev"], indent=2))


if __name__ == "__main__":
    main()
