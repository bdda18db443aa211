"""Build the tiny policy of a closed world with its model card: `workbench world build`.

A killed build resumes: each stage continues from its last checkpoint, and finished stages are not
repeated.
"""

import copy
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
from typing import TYPE_CHECKING

from workbench.experiments.tiny.card import card_text
from workbench.experiments.tiny.config import SIZES, PolicyConfig
from workbench.experiments.tiny.measure import measure
from workbench.experiments.tiny.skills import ABSTAINED, DECLINED
from workbench.experiments.tiny.tokenizer import build_tokenizer
from workbench.experiments.tiny.training import (
    Batches,
    Encoder,
    Stage,
    exam_items,
    lesson_batches,
    new_model,
    pretraining_batches,
    sft_batches,
)
from workbench.policies.load import load_policy
from workbench.types import JsonObject, WorkbenchError
from workbench.util.jsonl import write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.world.documents import count_exposures
from workbench.world.fingerprint import of_documents
from workbench.world.world import World, load_world

if TYPE_CHECKING:
    import torch
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast


def build_policy(
    out: Path, seed: int = 0, threads: int = DEFAULT_THREADS, size: str = "full"
) -> JsonObject:
    """Train the tiny policy (base and SFT checkpoints), measure it and write its model card.

    `out` gets `base/`, `sft/` (fp16 safetensors), `card.json` and `README.md`. The same arguments
    give the same weights on the same machine, also if the build was killed and resumed.

    Args:
        out: the output folder.
        seed: seed of the world and of the training.
        threads: number of CPU threads.
        size: "full" is the default policy (about 55 minutes on two cores). "small" is a smaller
            model of a small world, which trains quickly.

    Returns:
        The content of `card.json`: the arguments, the cost of the training and the measured rates.

    Raises:
        WorkbenchError: the size is unknown, or the folder cannot be written or has a build with
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
        "documents_hash": of_documents(world.documents),
    }
    finished = _finished(out, arguments)
    if finished is not None:
        return finished
    work = _open(out)
    # before torch is imported, since it also stops idle threads from spinning
    with use_threads(threads):
        tokenizer = build_tokenizer(world)
        model, training = train(
            world, tokenizer, config, seed=seed, threads=threads, out=out, work=work
        )
        policy = load_policy(str(out / "sft"))
        exposures = count_exposures(world.documents)
        splits = {
            split: measure(policy, world, split, exposures) for split in ("validation", "test")
        }
    import torch

    card: JsonObject = {
        **arguments,
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
    write_json(out / "card.json", card)
    (out / "README.md").write_text(card_text(card, world))
    shutil.rmtree(work)  # the checkpoints are several times larger than the policy
    return card


def train(
    world: World,
    tokenizer: "PreTrainedTokenizerFast",
    config: PolicyConfig,
    seed: int,
    threads: int,
    out: Path,
    work: Path,
) -> "tuple[LlamaForCausalLM, JsonObject]":
    """Train a tiny policy: lessons, then pre-training ("base"), then fine-tuning ("sft").

    A lesson is a short training on synthetic sequences that practise copying and other skills.
    The model is saved as `out/base` after the pre-training and as `out/sft` at the end.

    Args:
        config: sizes of the model and of the stages.
        seed: seed of the weights and of the data.
        threads: number of CPU threads. A build is resumed only with the same number.
        out: folder for `base/` and `sft/`.
        work: folder for the checkpoints from which a killed build resumes.

    Returns:
        The model, and the object `training` of card.json: the steps, tokens and seconds of
        `lessons`, `base` and `sft`, and the accuracy at the end of each lesson.

    Raises:
        WorkbenchError: `work` has a checkpoint of another build.
    """
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    encoder = Encoder(tokenizer, config.emphasis, config.tokens)
    sft_encoder = Encoder(tokenizer, config.sft_emphasis, config.tokens)
    documents = partial(pretraining_batches, world, encoder, config, seed)
    _, steps, tokens = documents()
    model = new_model(config, tokenizer, seed)
    corpus = of_documents(world.documents)
    settings = f"seed {seed}, threads {threads}, {asdict(config)}, corpus {corpus}"

    def prepare(name: str, steps: int, lr: float, data: Callable[[], Batches]) -> Stage:
        identity = f"{settings}, {digest(itertools.islice(data(), 20))}"
        return Stage(name, steps, lr, data(), work / f"{name}.pt", identity)

    stages: list[Stage] = []
    for number, lesson in enumerate(config.lessons):
        data = partial(lesson_batches, world, encoder, config, number, seed)
        stage = prepare(f"lesson-{number + 1}", lesson.steps, config.lesson_lr, data)
        stage.floor, stage.level = 1.0, lesson.level
        stage.exam = exam_items(world, encoder, lesson, seed)
        stages.append(stage)
    sft_data = partial(sft_batches, world, sft_encoder, config, seed)
    stages.append(prepare("base", steps, config.lr, lambda: documents()[0]))
    stages.append(prepare("sft", config.sft_steps, config.sft_lr, sft_data))
    for stage in stages:
        if stage.checkpoint.exists():
            stage.stored()  # refuses the checkpoint of another build before any training
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
            cost = {
                "steps": stage.steps,
                "tokens": stage.steps * config.rows * config.tokens,
                "seconds": seconds,
            }
            if stage.exam:
                spent["lesson_steps"].append(stage.steps)
                spent["lesson_rates"].append(stage.rates)
                lessons |= {name: lessons[name] + value for name, value in cost.items()}
            else:
                spent[stage.name] = cost
                # fp16 safetensors; the model in memory stays as it is
                saved = copy.deepcopy(model)
                saved.model.norm.weight.data *= config.logit_scale  # scales the logits
                saved.half().save_pretrained(out / stage.name)
                tokenizer.save_pretrained(out / stage.name)
    return model, spent


def digest(batches: "Iterable[dict[str, torch.Tensor]]") -> str:
    """Return a hash of training batches: 16 hexadecimal digits."""
    hashed = hashlib.sha256()
    for batch in batches:
        for name in sorted(batch):
            hashed.update(batch[name].numpy().tobytes())
    return hashed.hexdigest()[:16]


def _finished(out: Path, arguments: JsonObject) -> JsonObject | None:
    """Return the card of a finished build; None if `out` has no finished build.

    Raises:
        WorkbenchError: the build has other arguments.
    """
    try:
        card = json.loads((out / "card.json").read_text())
    except (OSError, ValueError):
        return None
    stored = json.loads(json.dumps(arguments))  # tuples become lists, as in the card
    different = [key for key in stored if card.get(key) != stored[key]]
    if different:
        raise WorkbenchError(
            f"{out} contains a finished build with another {', '.join(different)}; name another"
            " folder with --out"
        )
    print(
        f"{out} contains this build already; delete {out / 'card.json'} to measure it again",
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
