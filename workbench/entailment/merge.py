"""`merge_verifiers`: one verifier from the weights of several."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.entailment.card import make_card, sha256, write_card
from workbench.entailment.model import compress, new_model
from workbench.entailment.rows import read_split
from workbench.entailment.verifier import load_verifier
from workbench.threads import DEFAULT_THREADS
from workbench.types import WorkbenchError


def merge_verifiers(
    folders: Sequence[Path],
    data: Path,
    dev: Path | None,
    out: Path,
    shares: Sequence[float] | None = None,
    threads: int = DEFAULT_THREADS,
) -> dict[str, Any]:
    """The weighted mean of the weights of trained verifiers ("model soup", Wortsman et al.,
    arXiv 2203.05482), compressed, calibrated and measured as `train_verifier` does, from the
    same files. Returns the card.

    Runs from the same base weights, with other seeds or settings, err differently, and their
    mean often errs less than each. Without `shares` they count alike.

    Raises:
        WorkbenchError: fewer than two folders, one that is no verifier or was made from other
        files, with other weights of
            their sources, of another rank or with another part kept, or shares that do not fit.
    """
    from safetensors.torch import save_file

    weights = _shares(folders, shares)
    models = [load_verifier(folder).model for folder in folders]
    cards = [json.loads((folder / "card.json").read_text(encoding="utf-8")) for folder in folders]
    if old := [
        str(folder) for folder, card in zip(folders, cards, strict=True) if not card.get("runs")
    ]:
        raise WorkbenchError(f"{old[0]}: its card is of an earlier version: train it again")
    first = cards[0]["runs"][0]
    split = read_split(data, dev, first["weights"])
    hashes = {name: sha256(file) for name, file in split.files.items()}
    for folder, card in zip(folders, cards, strict=True):
        if {name: file["sha256"] for name, file in card["data"].items()} != hashes:
            raise WorkbenchError(
                f"{folder} was made from other files than --data and --dev name: give the ones of"
                " its card"
            )
        for name in ("weights", "rank", "keep"):
            if any(run[name] != first[name] for run in card["runs"]):
                raise WorkbenchError(
                    f"{folder} was trained with other {name} than {folders[0]}: merge verifiers of"
                    f" the same {name}"
                )
    out.mkdir(parents=True, exist_ok=True)
    mean = _mean(models, weights)
    # Each adapter holds a part of its run's change; a mean of several is shrunk by the averaging as
    # it is.
    save_file(compress(mean, first["rank"], 1 / first["keep"]), out / "adapter.safetensors")
    runs = [
        {**run, "share": share * run["share"]}
        for card, share in zip(cards, weights, strict=True)
        for run in card["runs"]
    ]
    card = make_card(out, split, mean, runs=runs, threads=threads)
    write_card(out, card)
    return card


def _shares(folders: Sequence[Path], shares: Sequence[float] | None) -> list[float]:
    """The shares, adding up to 1."""
    if len(folders) < 2:
        raise WorkbenchError("name at least two verifiers to merge")
    weights = list(shares or [1.0] * len(folders))
    if len(weights) != len(folders) or not min(weights) >= 0 or not 0 < sum(weights) < math.inf:
        listed = ", ".join(f"{share:g}" for share in weights)
        raise WorkbenchError(
            f"{len(folders)} verifiers need as many shares, none below 0 and one above it: got"
            f" {listed}"
        )
    return [share / sum(weights) for share in weights]


def _mean(models: Sequence[Any], shares: Sequence[float]) -> Any:
    states: list[Mapping[str, Any]] = [model.state_dict() for model in models]
    merged = new_model()
    fresh = merged.state_dict()
    # by their changes, so that what none of them changed stays the packaged weights, exactly
    for name, start in fresh.items():
        start += sum(
            share * (state[name] - start) for share, state in zip(shares, states, strict=True)
        )
    return merged.eval()
