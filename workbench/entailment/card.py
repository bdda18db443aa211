"""The card of a verifier: `card.json`, and its readable form `README.md`."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.entailment.calibrate import calibrate, fit_temperature, reliability
from workbench.entailment.evaluate import CLAIM_LABELS, evaluate_verifier
from workbench.entailment.model import expand
from workbench.entailment.named import NamedVerifier, calibrated, with_known_labels
from workbench.entailment.rows import LABELS, WEIGHTS, Row, Split, read_rows
from workbench.entailment.verifier import OBJECTED, Verifier, read_tensors
from workbench.jsonl import write_json
from workbench.minilm import BASE, BASE_SHA256
from workbench.threads import use_threads

TEXT = Path(__file__).parent / "card.md"
MANY = 500  # dev rows; figures of fewer are rough
SPEED_ROWS = 512
TRAINED = """\
---
license: other
base_model: {base}
library_name: transformers
---
# A local verifier

The packaged MiniLM with a three-way head: does a passage support or contradict a claim, or
neither? This folder holds the difference from the packaged weights, {megabytes:.1f} MB. It reads
English. Made in {minutes:.0f} minutes on {rows:,} rows with

    workbench verifier train {command} --out FOLDER

{sources}

What the weights may be used for depends on the licences of this data: say it here. The code and
the packaged weights are Apache-2.0.

"""
NAMED = """\
# {model}, as a verifier

A sequence classifier with the classes {classes}{revision}, calibrated here. This folder holds its
temperature and thresholds, not its weights; `--verifier` takes this folder.{two_way} Made with

    workbench verifier calibrate {model} --data {data} --out FOLDER --classes {names}

Some dev rows may be among the rows that its authors trained on.

"""
TWO_WAY = (
    " It tells supported from the rest alone: contradicted rows count as neutral here, and it never"
    " contradicts."
)
OPTIONS = ("epochs", "lr", "dropout", "seed", "threads")  # of `workbench verifier train`


def make_card(
    folder: Path, split: Split, model: Any, run: Mapping[str, Any], threads: int
) -> dict[str, Any]:
    """Calibrate the adapter in `folder` on the dev rows and measure it there. `model` is the model
    before compression; `run` has the settings of its training and its `seconds`."""
    adapter = folder / "adapter.safetensors"
    with use_threads(threads):
        plain = Verifier(expand(read_tensors(adapter)))
        verifier = Verifier(plain.model, calibrate(plain, split.held))
        before = evaluate_verifier(Verifier(model), split.held)["accuracy"]
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
            "dev": len(split.held),
            "by_source": dict(sorted(Counter(row.source for row in split.rows).items())),
        },
        "runs": [run],
        "before_compression": before,
        **_measured(verifier, plain, split.held, threads),
    }


def calibrate_named(verifier: NamedVerifier, data: Path, out: Path, threads: int) -> dict[str, Any]:
    """Fit temperature and thresholds of a named model on the rows of `data` and measure it there.

    Writes `card.json` and `README.md` into `out`, whose path is then the name of the verifier.
    Returns the card.
    """
    rows = with_known_labels(read_rows(data), verifier)
    with use_threads(threads):
        fitted = calibrated(verifier, rows)
    card = {
        "settings": asdict(fitted.settings),
        "named": asdict(verifier.named),
        "told": list(verifier.labels),
        "data": {"data": {"file": data.name, "sha256": sha256(data)}},
        "rows": {"dev": len(rows)},
        **_measured(fitted, verifier, rows, threads),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_card(out, card)
    return card


def _measured(
    verifier: Verifier, uncalibrated: Verifier, rows: Sequence[Row], threads: int
) -> dict[str, Any]:
    with use_threads(threads):
        figures = {
            "dev": evaluate_verifier(verifier, rows),
            "cross_fitted_ece": _cross_fitted_ece(uncalibrated, rows),
            "uncalibrated_ece": evaluate_verifier(uncalibrated, rows)["calibration"]["ece"],
        }
    with use_threads(1):
        speed = evaluate_verifier(verifier, rows[:SPEED_ROWS])["claims_per_second"]
    return {
        **figures,
        "one_thread": {"claims_per_second": speed, "rows": min(SPEED_ROWS, len(rows))},
    }


def _cross_fitted_ece(verifier: Verifier, rows: Sequence[Row]) -> float:
    """The calibration error of each half of `rows` with the temperature of the other half."""
    import torch

    scores_NK = verifier.scores([(row.premise, row.claim) for row in rows]).double()
    gold_N = torch.tensor([row.label for row in rows])
    halves = [torch.arange(start, len(rows), 2) for start in (0, 1)]
    confidence: list[float] = []
    right: list[bool] = []
    for fitted, measured in (halves, halves[::-1]):
        temperature = fit_temperature(scores_NK[fitted], gold_N[fitted])
        top = (scores_NK[measured] / temperature).softmax(-1).max(-1)
        confidence += top.values.tolist()
        right += (top.indices == gold_N[measured]).tolist()
    return float(reliability(confidence, right)["ece"])


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Write `card.json`, and `README.md` from it."""
    write_json(folder / "card.json", rounded(card))
    about = _about_named(card) if "named" in card else _about_trained(card)
    (folder / "README.md").write_text(about + measured_text(rounded(card)), encoding="utf-8")


def _about_trained(card: Mapping[str, Any]) -> str:
    run, sources = card["runs"][0], card["rows"]["by_source"]
    options = [f"--{name} {file['file']}" for name, file in card["data"].items()]
    options += [f"--{name} {run[name]}" for name in OPTIONS]
    options += [
        f"--weight {source}={weight}"
        for source, weight in run["weights"].items()
        if WEIGHTS.get(source) != weight
    ]
    rows = [(source, n, run["weights"].get(source, 1)) for source, n in sources.items()]
    return TRAINED.format(
        base=BASE,
        megabytes=card["adapter"]["bytes"] / 1e6,
        minutes=run["seconds"] / 60,
        rows=card["rows"]["train"],
        command=" ".join(options),
        sources=_table(("source", "training rows", "weight in the loss"), rows),
    )


def _about_named(card: Mapping[str, Any]) -> str:
    named = card["named"]
    return NAMED.format(
        model=named["model"],
        classes=", ".join(named["classes"]),
        names=",".join(named["classes"]),
        revision=f", revision {named['revision'][:12]}" if named["revision"] else "",
        data=card["data"]["data"]["file"],
        two_way=TWO_WAY if list(card["told"]) != list(LABELS) else "",
    )


def measured_text(card: Mapping[str, Any]) -> str:
    """The figures of a card as Markdown."""
    dev, n_dev = card["dev"], card["rows"]["dev"]
    support, calibration = dev["support"], dev["calibration"]
    by_source = [
        (
            source,
            cell["n"],
            cell["accuracy"],
            cell["balanced_accuracy"],
            cell["support"]["balanced_accuracy"],
            cell["support"]["auroc"],
        )
        for source, cell in dev["by_source"].items()
    ]
    by_class = [
        (name, cell["n"], cell["recall"], cell["precision"])
        for name, cell in dev["by_class"].items()
    ]
    bins = [
        (f"{one['low']:.1f}–{one['high']:.1f}", one["n"], one["confidence"], one["accuracy"])
        for one in calibration["bins"]
    ]
    return TEXT.read_text(encoding="utf-8").format(
        settings=card["settings"],
        objected=OBJECTED,
        n_dev=n_dev,
        few=" **Too few for the figures below to mean much.**" if n_dev < MANY else "",
        accuracy=dev["accuracy"],
        balanced=dev["balanced_accuracy"],
        support=support["balanced_accuracy"] or math.nan,
        auroc=support["auroc"] or math.nan,
        ece=calibration["ece"],
        ece_cross=card["cross_fitted_ece"],
        ece_raw=card["uncalibrated_ece"],
        claims=card["one_thread"]["claims_per_second"],
        speed_rows=card["one_thread"]["rows"],
        by_source=_table(
            ("source", "n", "accuracy", "balanced", "support vs rest", "AUROC of p(support)"),
            by_source,
        ),
        by_class=_table(("class", "n", "recall", "precision"), by_class),
        confusion=_counts("gold \\ verdict", LABELS, dev["confusion"]),
        labels=_counts("gold \\ label", CLAIM_LABELS, dev["labels"]),
        bins=_table(("confidence", "n", "mean confidence", "share right"), bins),
    )


def _counts(title: str, names: Sequence[str], table: Mapping[str, Mapping[str, int]]) -> str:
    return _table((title, *names), [(gold, *counts.values()) for gold, counts in table.items()])


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *[[_cell(value) for value in row] for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def rounded(card: Mapping[str, Any]) -> Any:
    """The card with its floats rounded to five digits."""
    return json.loads(json.dumps(card), parse_float=lambda text: round(float(text), 5))
