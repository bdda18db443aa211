"""Build the tiny policy of a closed world, base and SFT, with a model card of what was measured:
`workbench world build`.

Nothing is lost when a build is killed: each stage goes on from its last checkpoint, and a
finished one is not repeated.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import platform
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.experiments.tiny.card import card_text
from workbench.experiments.tiny.measure import measure
from workbench.experiments.tiny.skills import ABSTAINED, DECLINED
from workbench.experiments.tiny.tokenizer import build_tokenizer
from workbench.experiments.tiny.training import (
    SIZES,
    Batches,
    Encoder,
    PolicyConfig,
    Stage,
    instruction,
    new_model,
    papers,
    pretraining,
    taught,
)
from workbench.policies.load import load_policy
from workbench.types import JsonObject, WorkbenchError
from workbench.util.jsonl import write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.world.world import World, load_world

if TYPE_CHECKING:
    import torch
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast


def build_policy(
    out: Path, seed: int = 0, threads: int = DEFAULT_THREADS, size: str = "full"
) -> JsonObject:
    """Train base and SFT checkpoints into `out/base` and `out/sft` (fp16 safetensors) and write
    `out/README.md`.

    `size="full"` is the shipped policy (about 80 minutes on two cores), `"small"` a quick one
    over a small world. The same arguments give the same weights on the same machine, killed and
    resumed or not. Returns the card's numbers, also written to `out/card.json`.

    Raises:
        WorkbenchError: unknown size, a folder that cannot be written or that holds a build with
        other arguments.
    """
    if size not in SIZES:
        raise WorkbenchError(f"unknown size {size!r}; use one of: {', '.join(SIZES)}")
    config = SIZES[size]
    world = load_world(seed, config.scale)
    arguments = {
        "seed": seed,
        "size": size,
        "threads": threads,
        "config": asdict(config),
        "world_hash": world.hash,
    }
    stored = _finished(out, arguments)
    if stored is not None:
        return stored
    work = _open(out)
    # before torch is imported: it also sets that idle threads do not spin
    with use_threads(threads):
        tokenizer = build_tokenizer(world)
        model, training = train(
            world, tokenizer, config, seed=seed, threads=threads, out=out, work=work
        )
        policy = load_policy(str(out / "sft"))
        splits = {split: measure(policy, world, split) for split in ("validation", "test")}
    import torch

    card: JsonObject = {
        "seed": seed,
        "size": size,
        "threads": threads,
        "world_hash": world.hash,
        "config": asdict(config),
        "strangers": {"abstained": ABSTAINED, "declined": DECLINED},
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "training": training,
        "machine": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "processor": platform.machine(),
        },
        "splits": splits,
    }
    (out / "README.md").write_text(card_text(card, world))
    write_json(out / "card.json", card)
    shutil.rmtree(work)  # what is only for resuming is several times the size of what is shipped
    return card


def train(
    world: World,
    tokenizer: PreTrainedTokenizerFast,
    config: PolicyConfig,
    seed: int,
    threads: int,
    out: Path,
    work: Path,
) -> tuple[LlamaForCausalLM, JsonObject]:
    """Run all stages; the last two write their checkpoint folders when done.

    Returns the model, and the steps, tokens and seconds of the stages.
    """
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    encoder = Encoder(tokenizer, config.emphasis, config.tokens)
    lightly = Encoder(tokenizer, config.sft_emphasis, config.tokens)
    _, steps, tokens = pretraining(world, encoder, config, seed)
    model = new_model(config, tokenizer, seed)
    settings = f"seed {seed}, threads {threads}, {asdict(config)}, corpus {world.corpus_hash}"

    def prepare(
        name: str, steps: int, lr: float, data: Callable[[], Batches], **options: Any
    ) -> Stage:
        identity = f"{settings}, {digest(itertools.islice(data(), 20))}"
        return Stage(name, steps, lr, data(), work / f"{name}.pt", identity, **options)

    stages = [
        prepare(
            f"lesson-{number + 1}",
            lesson.steps,
            config.lesson_lr,
            partial(taught, world, encoder, config, number, seed),
            floor=1.0,
            exam=papers(world, encoder, lesson, seed),
            level=lesson.level,
        )
        for number, lesson in enumerate(config.lessons)
    ]
    stages += [
        prepare("base", steps, config.lr, lambda: pretraining(world, encoder, config, seed)[0]),
        prepare(
            "sft",
            config.sft_steps,
            config.sft_lr,
            partial(instruction, world, lightly, config, seed),
        ),
    ]
    for stage in stages:
        if stage.checkpoint.exists():
            stage.stored()
    lessons = {"steps": 0, "tokens": 0, "seconds": 0}
    spent: JsonObject = {
        "documents": len(world.documents),
        "tokens_per_pass": tokens,
        "lesson_steps": [],
        "lesson_rates": [],
        "lessons": lessons,
    }
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[loss]}"))
    with Progress(*columns, console=Console(file=sys.stderr)) as progress:
        for stage in stages:
            seconds = round(stage.run(model, config, progress))
            took = {
                "steps": stage.steps,
                "tokens": stage.steps * config.rows * config.tokens,
                "seconds": seconds,
            }
            if stage.exam:
                spent["lesson_steps"].append(stage.steps)
                spent["lesson_rates"].append(stage.rates)
                lessons |= {name: lessons[name] + value for name, value in took.items()}
            else:
                spent[stage.name] = took
                ship(model, tokenizer, out / stage.name)
    return model, spent


def digest(batches: Iterable[dict[str, torch.Tensor]]) -> str:
    """A fingerprint of training batches."""
    hashed = hashlib.sha256()
    for batch in batches:
        for name in sorted(batch):
            hashed.update(batch[name].numpy().tobytes())
    return hashed.hexdigest()[:16]


def ship(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write a checkpoint as fp16 safetensors, leaving the model in memory as it is."""
    import copy

    copy.deepcopy(model).half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _finished(out: Path, wanted: JsonObject) -> JsonObject | None:
    """The card of a finished build with the wanted arguments; None if there is no finished build
    in `out`.
    """
    try:
        card = json.loads((out / "card.json").read_text())
    except (OSError, ValueError):
        return None
    different = [key for key in wanted if card.get(key) != json.loads(json.dumps(wanted[key]))]
    if different:
        raise WorkbenchError(
            f"{out} holds a finished build with another {', '.join(different)}; name another folder"
            " with --out"
        )
    print(
        f"{out} holds this build, finished; delete {out / 'card.json'} to measure it anew",
        file=sys.stderr,
    )
    return card


def _open(out: Path) -> Path:
    work = out / "work"
    try:
        work.mkdir(parents=True, exist_ok=True)
        (work / ".gitignore").write_text("*\n")
    except OSError as error:
        raise WorkbenchError(
            f"cannot write to {out}: {error.strerror}; name a writable folder with --out"
        ) from error
    return work
