"""The card of a verifier, `card.json`: its settings, data and figures."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.types import JsonMapping, JsonObject
from workbench.util.jsonl import write_json
from workbench.util.minilm import BASE, BASE_SHA256
from workbench.util.threads import use_threads
from workbench.verifier.calibrate import calibrate
from workbench.verifier.evaluate import evaluate_verifier
from workbench.verifier.model import expand
from workbench.verifier.named import NamedVerifier, with_known_labels
from workbench.verifier.rows import Row, Split, read_rows
from workbench.verifier.verifier import Verifier, read_tensors

if TYPE_CHECKING:
    from torch.nn import ModuleDict

SPEED_ROWS = 512


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
        **_measured(verifier, raw, split.dev, threads),
    }


def calibrate_named(verifier: NamedVerifier, data: Path, out: Path, threads: int) -> JsonObject:
    """Fit the temperature and the thresholds of a classifier on `data` and measure it there.

    Writes `card.json` into the folder `out`, which `--verifier` accepts. Returns the card.
    """
    rows = with_known_labels(read_rows(data), verifier)
    with use_threads(threads):
        settings = calibrate(verifier, rows)
    fitted = NamedVerifier(verifier.model, verifier.tokenizer, verifier.classifier, settings)
    card = {
        "settings": asdict(fitted.settings),
        "named": asdict(verifier.classifier),
        "told": list(verifier.labels),
        "data": {"data": {"file": data.name, "sha256": sha256(data)}},
        "rows": {"dev": len(rows)},
        **_measured(fitted, verifier, rows, threads),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "card.json", rounded(card))
    return card


def _measured(
    verifier: Verifier, uncalibrated: Verifier, rows: Sequence[Row], threads: int
) -> JsonObject:
    with use_threads(threads):
        dev, raw = evaluate_verifier(verifier, rows), evaluate_verifier(uncalibrated, rows)
    with use_threads(1):
        speed = evaluate_verifier(verifier, rows[:SPEED_ROWS])
    return {
        "dev": dev,
        "uncalibrated_ece": raw["calibration"]["ece"],
        "one_thread": {"claims_per_second": speed["claims_per_second"], "rows": speed["n"]},
    }


def sha256(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def rounded(card: JsonMapping) -> JsonObject:
    """Return the card with floats rounded to five digits."""
    return json.loads(json.dumps(card), parse_float=lambda text: round(float(text), 5))
