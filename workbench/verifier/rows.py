"""Read labelled pairs `{premise, claim, label, source}`, which calibrate and measure a verifier."""

from dataclasses import dataclass
from pathlib import Path

from workbench.data.files import read_records
from workbench.types import JsonMapping, WorkbenchError

LABELS = ("support", "contradict", "neutral")  # the order of every probability triple
FIELDS = ("premise", "claim", "label", "source")


@dataclass(frozen=True)
class Row:
    """A labelled pair of premise and claim, to calibrate or measure a verifier.

    The label is 0 if the premise supports the claim, 1 if it contradicts the claim, and 2 if
    neither. `source` names the data set of the pair.
    """

    premise: str
    claim: str
    label: int  # position in LABELS
    source: str = ""


def read_rows(path: Path | str) -> list[Row]:
    """Read all labelled pairs of a file; `workbench.data.files` lists the formats.

    Raises:
        WorkbenchError: there is no such file, it has no rows, or a row is invalid. The message
            names the line.
    """
    rows = [_row(record, where) for where, record in read_records(Path(path))]
    if not rows:
        raise WorkbenchError(f"{path}: no rows: expected rows with the fields {', '.join(FIELDS)}")
    return rows


def _row(record: JsonMapping, where: str) -> Row:
    if not all(isinstance(record.get(name), str) for name in FIELDS[:3]):
        raise WorkbenchError(f"{where}: needs the text fields premise, claim and label")
    if record["label"] not in LABELS:
        raise WorkbenchError(
            f"{where}: label '{record['label']}' is not one of {', '.join(LABELS)}"
        )
    if not record["claim"].strip():
        raise WorkbenchError(f"{where}: the claim is empty: remove that row")
    source = str(record.get("source") or "unnamed")
    return Row(record["premise"], record["claim"], LABELS.index(record["label"]), source)
