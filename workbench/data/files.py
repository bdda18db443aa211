"""Records of any local file, each with the place it stands at: JSONL, JSON, CSV, TSV, Parquet,
text; gzip or bzip2 around.

What files are called says little: JSONL is found behind `.json`, a whole list behind `.jsonl`,
and some JSON files wrap their records in an object beside a description. So JSON is told from
JSONL by its content.
"""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from workbench.jsonl import check_text, unique_keys
from workbench.types import WorkbenchError

Records = list[tuple[str, dict[str, Any]]]

WRAPPERS = ("data", "example", "examples", "questions", "records", "rows", "instances")
READABLE = (".jsonl", ".json", ".ndjson", ".csv", ".tsv", ".parquet", ".txt")


def read_records(path: Path) -> Records:
    """The records of a file as `(place, record)`, or of all readable files of a folder in the
    order of their names.

    Raises:
        WorkbenchError: the file cannot be read as what its name says; the line is named where
        there is one.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if _suffix(file) in READABLE)
        return [record for file in files for record in read_records(file)]
    if (suffix := _suffix(path)) not in READABLE:
        raise WorkbenchError(
            f"{path}: cannot read a '{suffix}' file: give one of {', '.join(READABLE)} (or .gz,"
            " .bz2 of it)"
        )
    if suffix == ".parquet":
        return _parquet(path)
    text = _text(path)
    if suffix == ".txt":
        lines = enumerate(text.split("\n"), start=1)
        return [(f"{path}:{n}", {"text": line.strip()}) for n, line in lines if line.strip()]
    if suffix in (".csv", ".tsv"):
        return _table(path, text, "\t" if suffix == ".tsv" else ",")
    return _json(path, text)


def _suffix(path: Path) -> str:
    inner = Path(path.stem) if path.suffix.lower() in (".gz", ".bz2") else path
    return inner.suffix.lower()


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        if path.suffix.lower() == ".gz":
            import gzip

            raw = gzip.decompress(raw)
        elif path.suffix.lower() == ".bz2":
            import bz2

            raw = bz2.decompress(raw)
    except (EOFError, zlib.error) as error:
        raise WorkbenchError(f"{path}: the archive is broken: {error}") from error
    except OSError as error:  # gzip's and bzip2's own complaints are of this kind, too
        raise WorkbenchError(f"cannot read '{path}': {error.strerror or error}") from error
    check_text(path, raw[:8], "unpack it, or let its name end in .gz or .bz2")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise WorkbenchError(
            f"{path}:{line}: not text in UTF-8 ({error.reason}): save it as UTF-8"
        ) from error


def _json(path: Path, text: str) -> Records:
    """A list of objects, an object that wraps one, or an object a line."""
    try:
        whole = json.loads(text, object_pairs_hook=unique_keys)
    except RecursionError as error:
        raise WorkbenchError(f"{path}: nested too deeply to be data") from error
    except ValueError as error:
        if text.lstrip().startswith("["):  # one list, and broken: its lines are no objects
            raise WorkbenchError(f"{path}: not JSON: {error}") from error
        return _lines(path, text)
    if isinstance(whole, Mapping) and "question" not in whole:
        wrapped = (whole[key] for key in WRAPPERS if _is_records(whole.get(key)) and whole[key])
        whole = next(wrapped, [whole])
    whole = [whole] if isinstance(whole, Mapping) else whole
    if not _is_records(whole):
        raise WorkbenchError(f"{path}: expected a list of JSON objects, or one object a line")
    return [(f"{path}: record {number}", record) for number, record in enumerate(whole, start=1)]


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _lines(path: Path, text: str) -> Records:
    records = []
    # at no other end of line: JSON strings may hold U+2028, …
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, object_pairs_hook=unique_keys)
        except ValueError as error:
            raise WorkbenchError(f"{path}:{number}: not a JSON object: {error}") from error
        if not isinstance(record, dict):
            raise WorkbenchError(f"{path}:{number}: not a JSON object")
        records.append((f"{path}:{number}", record))
    return records


def _table(path: Path, text: str, delimiter: str) -> Records:
    """CSV with quotes as Excel writes them; a TSV's quotes are characters like others."""
    csv.field_size_limit(2**31 - 1)
    lines = io.StringIO(text, newline="")
    quoting: Literal[0, 3] = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    rows = csv.DictReader(lines, delimiter=delimiter, quoting=quoting)
    records: Records = []
    try:
        for row in rows:
            if None in row or None in row.values():
                raise WorkbenchError(
                    f"{path}:{rows.line_num}: not as many columns as the header has"
                )
            records.append((f"{path}:{rows.line_num}", dict(row)))
    except csv.Error as error:
        raise WorkbenchError(f"{path}:{rows.line_num}: {error}") from error
    return records


def _parquet(path: Path) -> Records:
    import pyarrow
    import pyarrow.parquet

    try:
        rows = pyarrow.parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise WorkbenchError(
            f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}"
        ) from error
    return [(f"{path}: row {number}", row) for number, row in enumerate(rows, start=1)]
