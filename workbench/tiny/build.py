"""Build the tiny policy of a closed world, base and SFT, with a model card of what was measured: `workbench world build`.

Nothing is lost when a build is killed: each stage goes on from its last checkpoint, and a finished one is not repeated.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.jsonl import write_json
from workbench.threads import DEFAULT_THREADS, use_threads
from workbench.tiny.card import card_text
from workbench.tiny.measure import measure
from workbench.tiny.tokenizer import build_tokenizer
from workbench.tiny.training import SIZES, Encoder, PolicyConfig, Stage, batches, instruction, new_model, pretraining
from workbench.types import WorkbenchError
from workbench.world.world import World, load_world

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast


def build_policy(out: Path, seed: int = 0, threads: int = DEFAULT_THREADS, size: str = "full") -> dict[str, Any]:
    """Train base and SFT checkpoints into `out/base` and `out/sft` (fp16 safetensors) and write `out/README.md`.

    `size="full"` is the shipped policy (about half an hour on two cores), `"small"` a quick one over a small world. The same
    arguments give the same weights on the same machine, killed and resumed or not. Returns the card's numbers, also written
    to `out/card.json`.

    Raises:
        WorkbenchError: unknown size, a folder that cannot be written or that holds a build with other arguments.
    """
    if size not in SIZES:
        raise WorkbenchError(f"unknown size {size!r}; use one of: {', '.join(SIZES)}")
    config = SIZES[size]
    world = load_world(seed, config.scale)
    arguments = {"seed": seed, "size": size, "threads": threads, "config": asdict(config), "world_hash": world.hash}
    stored = _finished(out, arguments)
    if stored is not None:
        return stored
    work = _open(out)
    with use_threads(threads):  # before anything imports torch: it also tells idle threads not to spin
        tokenizer = build_tokenizer(world)
        model, training = train(world, tokenizer, config, seed=seed, threads=threads, out=out, work=work)
        splits = {split: measure(str(out / "sft"), world, split) for split in ("validation", "test")}
    import torch

    card: dict[str, Any] = {
        "seed": seed, "size": size, "threads": threads, "world_hash": world.hash, "config": asdict(config),
        "parameters": sum(weight.numel() for weight in model.parameters()), "training": training,
        "machine": {"python": platform.python_version(), "torch": torch.__version__, "processor": platform.machine()},
        "splits": splits,
    }  # fmt: skip
    (out / "README.md").write_text(card_text(card, world))
    write_json(out / "card.json", card)
    shutil.rmtree(work)  # what is only for resuming is several times the size of what is shipped
    return card


def train(
    world: World, tokenizer: PreTrainedTokenizerFast, config: PolicyConfig, seed: int, threads: int, out: Path, work: Path
) -> tuple[LlamaForCausalLM, dict[str, Any]]:
    """Both stages; each writes its checkpoint folder when it is done. Returns the model and what the stages took."""
    encoder = Encoder(tokenizer)
    examples = instruction(world, encoder, config, seed)
    sequences, tokens = pretraining(world, encoder, seed)
    pad = tokenizer.convert_tokens_to_ids(tokenizer.pad_token)
    steps = max(1, tokens * config.passes // (config.rows * config.tokens))
    model = new_model(config, tokenizer, seed)
    settings = asdict(config)
    tuned = {name: settings.pop(name) for name in ("sft_steps", "sft_lr", "sft_replay", "habits")}
    tuned["data"] = hashlib.sha256(
        repr(list(itertools.islice(instruction(world, encoder, config, seed), 1000))).encode()
    ).hexdigest()
    base = f"seed {seed}, threads {threads}, corpus {world.corpus_hash}, {settings}"
    stages = (
        Stage("base", steps, config.lr, batches(sequences, config, pad), work / "base.pt", base),
        Stage("sft", config.sft_steps, config.sft_lr, batches(examples, config, pad), work / "sft.pt", f"{base}, {tuned}"),
    )  # fmt: skip
    spent: dict[str, Any] = {"documents": len(world.documents), "tokens_per_pass": tokens}
    with _progress() as progress:
        for stage in stages:
            seconds = stage.run(model, config, progress)
            ship(model, tokenizer, out / stage.name)
            spent[stage.name] = {
                "steps": stage.steps, "tokens": stage.steps * config.rows * config.tokens, "seconds": round(seconds)
            }  # fmt: skip
    return model, spent


def ship(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write a checkpoint as fp16 safetensors, leaving the model in memory as it is."""
    import copy

    copy.deepcopy(model).half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _finished(out: Path, wanted: dict[str, Any]) -> dict[str, Any] | None:
    """The card of a finished build with the wanted arguments; None if there is no finished build in `out`."""
    try:
        card = json.loads((out / "card.json").read_text())
    except (OSError, ValueError):
        return None
    different = [key for key in wanted if card.get(key) != json.loads(json.dumps(wanted[key]))]
    if different:
        raise WorkbenchError(
            f"{out} holds a finished build with another {', '.join(different)}; name another folder with --out"
        )
    print(f"{out} holds this build, finished; delete {out / 'card.json'} to measure it anew", file=sys.stderr)
    return card


def _open(out: Path) -> Path:
    work = out / "work"
    try:
        work.mkdir(parents=True, exist_ok=True)
        (work / ".gitignore").write_text("*\n")
    except OSError as error:
        raise WorkbenchError(f"cannot write to {out}: {error.strerror}; name a writable folder with --out") from error
    return work


@contextmanager
def _progress() -> Iterator[Any]:
    """A progress bar on stderr, with the loss and the time left."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:>5}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[loss]}"),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(file=sys.stderr)) as progress:
        yield progress
