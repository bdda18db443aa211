"""Files of rows, JSONL or Parquet, read one row at a time; a row that cannot be read is reported
and does not stop the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workbench.jsonl import check_text, unique_keys
from workbench.types import WorkbenchError


class Malformed(ValueError):
    """A row that cannot be scored; the message says what is missing or wrong in it."""


class Line(NamedTuple):
    """One row of a file by its number, counted from 1; `row` is None where `problem` says what
    is wrong.
    """

    number: int
    row: Mapping[str, Any] | None
    problem: str = ""


def read(path: Path) -> Iterator[Line]:
    """The rows of a JSONL or Parquet file (known by its first bytes).

    Raises:
        WorkbenchError: the file cannot be read at all.
    """
    try:
        with path.open("rb") as file:
            head = file.read(8)
        parquet = head.startswith(b"PAR1")
        check_text(path, head)
        yield from _parquet(path) if parquet else _jsonl(path)
    except OSError as error:
        raise WorkbenchError(
            f"cannot read '{path}': {error.strerror or error}; check the path"
        ) from error


def _jsonl(path: Path) -> Iterator[Line]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                yield _parse(number, line)


def _parse(number: int, line: bytes) -> Line:
    try:
        # NaN says that there is nothing.
        row = json.loads(
            line.decode(), parse_constant=lambda name: None, object_pairs_hook=unique_keys
        )
    except UnicodeDecodeError:
        return Line(number, None, "not UTF-8: save the file as UTF-8")
    except (ValueError, RecursionError) as error:
        reason = (
            f"{error.msg} at column {error.colno}"
            if isinstance(error, json.JSONDecodeError)
            else str(error)
        )
        return Line(number, None, f"not JSON: {reason}")
    return Line(number, row) if isinstance(row, dict) else Line(number, None, "not a JSON object")


def _parquet(path: Path) -> Iterator[Line]:
    import pyarrow
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    # NaN
                    yield Line(
                        number,
                        {name: None if value != value else value for name, value in row.items()},
                    )
    except pyarrow.ArrowException as error:
        raise WorkbenchError(
            f"cannot read '{path}' as Parquet: {error}; write the file anew"
        ) from error
