"""Write the card of a verifier, `card.json`: its settings, data and measurements."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from workbench.types import JsonMapping, JsonObject
from workbench.util.jsonl import write_json
from workbench.util.threads import use_threads
from workbench.verifier.calibrate import calibrate
from workbench.verifier.evaluate import evaluate_verifier
from workbench.verifier.named import NamedVerifier, with_known_labels
from workbench.verifier.rows import Row, read_rows
from workbench.verifier.verifier import Verifier

SPEED_ROWS = 512


def calibrate_named(verifier: NamedVerifier, data: Path, out: Path, threads: int) -> JsonObject:
    """Fit a classifier's temperature and thresholds on `data`, and measure it on the same rows.

    Return the settings and measurements as a dict, which is also written to `out/card.json`. The
    option `--verifier` accepts the folder `out`.

    Args:
        verifier: the classifier, with its uncalibrated settings.
        data: a file of labelled pairs with the fields premise, claim and label.
        out: the folder to write; it is created if needed.
        threads: number of CPU threads.
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
        **measured(fitted, verifier, rows, threads),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "card.json", rounded(card))
    return card


def measured(
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
    """Return the SHA-256 digest of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def rounded(card: JsonMapping) -> JsonObject:
    """Return a copy of a verifier's card, a JSON object, with floats rounded to five decimals."""
    return json.loads(json.dumps(card), parse_float=lambda text: round(float(text), 5))
