"""Labelled pairs: rows `{premise, claim, label, source}`, and how much each source counts in
training.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.types import WorkbenchError

LABELS = ("support", "contradict", "neutral")  # the order of every probability triple
FIELDS = ("premise", "claim", "label", "source")

# How noisy a source's labels are, as its authors or its conversion describe them: the weight of its
# rows in the loss.
WEIGHTS = {
    "factcheck_gpt_partial": 0.5,
    "wice_partial": 0.5,
    "fm2_mismatch": 0.5,
    "qa_feedback_derived": 0.0,
}

# statements about the world
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
    """All rows of a `.jsonl` or `.jsonl.gz` file; rows of a source whose weight is 0 are left out.

    Raises:
        WorkbenchError: no such file, no rows, or a bad row, which is named with its line.
    """
    weights = weights or {}
    rows = [_row(line, where) for where, line in _lines(Path(path))]
    if not rows:
        raise WorkbenchError(
            f"{path}: no rows: expected JSON lines with the fields {', '.join(FIELDS)}"
        )
    weighed = (
        Row(row.premise, row.claim, row.label, row.source, weights.get(row.source, 1.0))
        for row in rows
    )
    return [row for row in weighed if row.weight > 0]


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield f"{path}:{number}", line
    except FileNotFoundError:
        raise WorkbenchError(
            f"{path}: no such file: give a JSONL file of {', '.join(FIELDS)}"
        ) from None
    except (gzip.BadGzipFile, EOFError, UnicodeDecodeError, IsADirectoryError) as error:
        raise WorkbenchError(
            f"{path}: cannot be read as UTF-8 JSON lines ({error}): give .jsonl or .jsonl.gz"
        ) from None


def _row(line: str, where: str) -> Row:
    try:
        row = json.loads(line)
    except ValueError:
        raise WorkbenchError(f"{where}: not JSON: mend or remove that line") from None
    if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in FIELDS[:3]):
        raise WorkbenchError(f"{where}: needs the text fields premise, claim and label")
    if row["label"] not in LABELS:
        raise WorkbenchError(f"{where}: label '{row['label']}' is not one of {', '.join(LABELS)}")
    if not row["claim"].strip():
        raise WorkbenchError(f"{where}: the claim is empty: remove that line")
    return Row(
        row["premise"],
        row["claim"],
        LABELS.index(row["label"]),
        str(row.get("source") or "unnamed"),
    )


@dataclass(frozen=True)
class Split:
    """The rows to train on, those to calibrate and measure on (`held`), and the files that they
    are from, by "data", "dev".
    """

    rows: Sequence[Row]
    held: Sequence[Row]
    files: Mapping[str, Path]


def read_split(data: Path, dev: Path | None, weights: Mapping[str, float]) -> Split:
    """Both files; without a dev file, a tenth of the data. Dev rows whose premise is trained on
    are left out.

    Raises:
        WorkbenchError: a bad file, or dev rows without all three labels.
    """
    rows, dev_rows = read_rows(data, weights), read_rows(dev) if dev else []
    if not dev_rows:
        rows, dev_rows = _hold_out(rows)
    trained = {row.premise for row in rows}
    dev_rows = [row for row in dev_rows if row.premise not in trained]
    if not rows or len({row.label for row in dev_rows}) < len(LABELS):
        raise WorkbenchError(
            "the dev rows need all three labels, on premises that are not trained on: give others"
            " with --dev"
        )
    return Split(rows, dev_rows, {"data": data, **({"dev": dev} if dev else {})})


def _hold_out(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """A tenth of the premises, by their hash: the same whatever the order of the rows."""
    tenth = [hashlib.sha256(row.premise.encode()).digest()[0] < 26 for row in rows]
    kept = [row for row, out in zip(rows, tenth, strict=True) if not out]
    return kept, [row for row, out in zip(rows, tenth, strict=True) if out]
