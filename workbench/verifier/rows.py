"""Labelled pairs `{premise, claim, label, source}` to train and measure a verifier on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.data.files import read_records
from workbench.types import JsonMapping, WorkbenchError

LABELS = ("support", "contradict", "neutral")  # the order of every probability triple
FIELDS = ("premise", "claim", "label", "source")

# Weight of a source's rows in the loss; lower for noisy labels.
WEIGHTS = {
    "factcheck_gpt_partial": 0.5,
    "wice_partial": 0.5,
    "fm2_mismatch": 0.5,
    "qa_feedback_derived": 0.0,
}

# sources whose claims are statements about the world
FACTUAL = ("begin", "factcheck_gpt", "fever_symmetric", "fm2", "qa_feedback_derived", "wice")


@dataclass(frozen=True)
class Row:
    """One labelled pair: does `premise` support or contradict `claim`, or neither (neutral)?"""

    premise: str
    claim: str
    label: int  # position in LABELS
    source: str = ""
    weight: float = 1.0


def read_rows(path: Path | str, weights: Mapping[str, float] | None = None) -> list[Row]:
    """Read all rows of a file (see `workbench.data.files`), except rows of sources with weight 0.

    Raises:
        WorkbenchError: there is no such file, it has no rows, or a row is bad (its line is named).
    """
    rows = [_row(record, where, weights or {}) for where, record in read_records(Path(path))]
    if not rows:
        raise WorkbenchError(f"{path}: no rows: expected rows with the fields {', '.join(FIELDS)}")
    return [row for row in rows if row.weight > 0]


def _row(record: JsonMapping, where: str, weights: Mapping[str, float]) -> Row:
    if not all(isinstance(record.get(name), str) for name in FIELDS[:3]):
        raise WorkbenchError(f"{where}: needs the text fields premise, claim and label")
    if record["label"] not in LABELS:
        raise WorkbenchError(
            f"{where}: label '{record['label']}' is not one of {', '.join(LABELS)}"
        )
    if not record["claim"].strip():
        raise WorkbenchError(f"{where}: the claim is empty: remove that row")
    source = str(record.get("source") or "unnamed")
    return Row(
        record["premise"],
        record["claim"],
        LABELS.index(record["label"]),
        source,
        weights.get(source, 1.0),
    )


@dataclass(frozen=True)
class Split:
    """Rows to train on, rows to calibrate and measure on (`dev`), and their files by name."""

    rows: Sequence[Row]
    dev: Sequence[Row]
    files: Mapping[str, Path]


def read_split(data: Path, dev: Path | None, weights: Mapping[str, float]) -> Split:
    """Read both files; without a dev file, split off a tenth of the data.

    Dev rows whose premise also occurs in the training rows are dropped.

    Raises:
        WorkbenchError: a file is bad, or the dev rows lack one of the three labels.
    """
    rows, dev_rows = read_rows(data, weights), read_rows(dev) if dev else []
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
