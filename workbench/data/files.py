"""Read the rows of local files and of data sets on the Hugging Face hub.

Files may be JSONL, JSON, CSV, TSV, Parquet or text, also compressed with gzip or bzip2. The content
of a file, not its name, decides between JSON and JSONL.
"""

import bz2
import csv
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.types import JsonMapping, JsonObject, WorkbenchError
from workbench.util.failures import error_line
from workbench.util.hub import dataset
from workbench.util.jsonl import check_text, unique_keys

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

Records = list[tuple[str, JsonObject]]
# number of a line, row or record, from 1; its content, or the reason why it cannot be read
Row = tuple[int, JsonObject | str]

WRAPPERS = "data example examples questions records rows instances per_prompt_data".split()
NOT_UTF8 = "not text in UTF-8: save it as UTF-8"
DELIMITERS = {".csv": ",;\t|", ".tsv": "\t,;|"}  # the usual one first
ROWS = (".jsonl", ".json", ".ndjson", *DELIMITERS, ".parquet")
READABLE = (*ROWS, ".txt")


def read_records(path: Path) -> Records:
    """Return the records of a file, or of all readable files of a folder, as `(location, record)`.

    The location is a text for error messages, such as "mine.jsonl:12".

    Raises:
        WorkbenchError: the file cannot be read, or a row is malformed. The message has the row's
            location.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if suffix_of(file) in READABLE)
        return [record for file in files for record in read_records(file)]
    if (suffix := suffix_of(path)) not in READABLE:
        raise WorkbenchError(
            f"{path}: cannot read a '{suffix}' file: give one of {', '.join(READABLE)}, or one"
            " of these with .gz or .bz2"
        )
    unit, rows = open_rows(path)
    records = []
    for number, row in rows:
        location = f"{path}:{number}" if unit == "line" else f"{path}: {unit} {number}"
        if isinstance(row, str):
            raise WorkbenchError(f"{location}: {row}")
        records.append((location, row))
    return records


def suffix_of(path: Path) -> str:
    """Return the lower-case suffix of a file without ".gz" or ".bz2": "a.csv.gz" → ".csv"."""
    inner = Path(path.stem) if path.suffix.lower() in (".gz", ".bz2") else path
    return inner.suffix.lower()


@contextmanager
def open_bytes(path: Path) -> Iterator[BufferedReader]:
    """Context manager that opens a text file as bytes, and decompresses .gz and .bz2 files.

    Raises:
        WorkbenchError: the file cannot be read, the archive is broken, or the first bytes are those
            of UTF-16 text or of another compressed format.
    """
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
    try:
        with openers.get(path.suffix.lower(), open)(path, "rb") as file:
            # peek may return more than 8 bytes, and does not advance
            check_text(path, file.peek(8)[:8], "unpack it, or let its name end in .gz or .bz2")
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise WorkbenchError(
            f"{path}: the archive is broken ({error}): download it again"
        ) from None
    except OSError as error:  # also raised by bz2 for a broken archive
        raise WorkbenchError(f"cannot read '{path}': {error.strerror or error}") from error


def open_rows(path: Path, skip: int = 0, columns: Sequence[str] = ()) -> tuple[str, Iterator[Row]]:
    """Return `(unit, rows)` of a file, where `rows` is an iterator over `(number, row)`.

    The numbers start at 1. The unit says what they count: "line", "record" or "row". A row is a
    JSON object; if it cannot be read, it is an error message (text).

    Args:
        skip: rows with a number up to `skip` are left out.
        columns: columns to read from a Parquet file; () for all columns. Names that the file does
            not have are ignored; if it has none, all columns are read.

    Raises:
        WorkbenchError: the file cannot be read. Iterating over the rows may also raise this error.
    """
    suffix = suffix_of(path)
    if suffix == ".parquet":
        return "row", _parquet(path, skip, columns)
    if suffix in DELIMITERS:
        return "line", _table(path, DELIMITERS[suffix], skip)
    if suffix == ".txt":
        return "line", _lines(path, skip, _text_row)
    records = _whole(path)
    if records is None:
        return "line", _lines(path, skip, _object)
    return "record", iter(list(enumerate(records, start=1))[skip:])


def _whole(path: Path) -> list[JsonObject] | None:
    """Return the records of a file that is one JSON value; None if the file is JSONL.

    The value may be a list of records, an object that contains such a list, one record, or a table
    that pandas or wandb wrote.
    """
    with open_bytes(path) as file:
        first = file.readline()
        if isinstance(_object(first), dict) and file.peek(1):  # an object with more lines: JSONL
            return None
        content = first + file.read()
    try:
        whole = _decoded(content)
    except RecursionError as error:
        raise WorkbenchError(
            f"{path}: its JSON is nested too deeply to be a list of records: check the file"
        ) from error
    except ValueError as error:
        # a JSONL file with a bad first line has objects in its other lines; a broken list does not
        lines = (line for line in content.splitlines() if line.strip())
        first = next((line for line in lines if not line.lstrip().startswith(b"[")), b"")
        if content.lstrip().startswith(b"[") and isinstance(_object(first), str):
            raise WorkbenchError(f"{path}: not JSON: {error}") from error
        return None
    if isinstance(whole, Mapping) and _has_columns(whole):
        values = zip(*(column.values() for column in whole.values()), strict=True)
        return [dict(zip(whole, row, strict=True)) for row in values]
    if isinstance(whole, Mapping) and "question" not in whole:  # not itself a record
        if _is_table(whole):
            return [dict(zip(whole["columns"], row, strict=True)) for row in whole["data"]]
        wrapped = (whole[key] for key in WRAPPERS if _is_records(whole.get(key)) and whole[key])
        whole = next(wrapped, [whole])
    if isinstance(whole, Mapping):
        whole = [whole]
    if not _is_records(whole):
        raise WorkbenchError(f"{path}: expected a list of JSON objects, or one object per line")
    return whole


def _is_records(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _is_table(value: JsonMapping) -> bool:
    """Return whether a JSON object is a table {"columns": …, "data": rows} of wandb or pandas."""
    columns, rows = value.get("columns"), value.get("data")
    if not isinstance(columns, list) or not isinstance(rows, list):
        return False
    return all(isinstance(row, list) and len(row) == len(columns) for row in rows)


def _has_columns(value: JsonMapping) -> bool:
    """Return whether a JSON object is a table {column: {row number: value}}, pandas' default."""
    rows = [column.keys() if isinstance(column, Mapping) else () for column in value.values()]
    # pandas numbers the rows from 0; other objects of objects have no such key
    return bool(rows) and "0" in rows[0] and all(keys == rows[0] for keys in rows)


def _lines(path: Path, skip: int, read: Callable[[bytes], JsonObject | str]) -> Iterator[Row]:
    with open_bytes(path) as file:
        # split only at "\n", because JSON strings may contain U+2028 and other line separators
        for number, line in enumerate(file, start=1):
            if number > skip and line.strip():
                yield number, read(line)


def _text_row(line: bytes) -> JsonObject | str:
    try:
        # "sig": programs on Windows put a byte order mark before the text
        return {"text": line.decode("utf-8-sig").strip()}
    except UnicodeDecodeError:
        return NOT_UTF8


def _decoded(content: bytes) -> Any:
    """Return the value of a JSON text. NaN and Infinity become None.

    A lone surrogate becomes U+FFFD, because tokenizers raise an error for it.
    """

    def load(text: str) -> Any:
        return json.loads(text, parse_constant=lambda _: None, object_pairs_hook=unique_keys)

    value = load(content.decode("utf-8-sig"))
    if b"\\ud" in content.lower():
        text = json.dumps(value, ensure_ascii=False)
        value = load(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return value


def _object(line: bytes) -> JsonObject | str:
    try:
        row = _decoded(line)
    except UnicodeDecodeError:
        return NOT_UTF8
    except (ValueError, RecursionError) as error:
        return f"not a JSON object: {error}"
    return row if isinstance(row, dict) else "not a JSON object"


def _table(path: Path, delimiters: str, skip: int) -> Iterator[Row]:
    """Yield (line number, row) for each row below the header of a CSV or TSV file.

    The number is that of the row's last line. The delimiter is the character of `delimiters` that
    divides the header into most columns. Quotes enclose values, except in some tab-separated files,
    where they are ordinary text (see `_is_quoted`).
    """
    csv.field_size_limit(2**31 - 1)  # the default of 131,072 is too small for some passages
    with open_bytes(path) as file:
        header = next(_decode_lines(file), "")
    delimiter = max(delimiters, key=lambda one: len(next(csv.reader([header], delimiter=one), [])))
    plain = delimiter == "\t" and not _is_quoted(path)
    with open_bytes(path) as file:
        rows = csv.reader(
            _decode_lines(file),
            delimiter=delimiter,
            quoting=csv.QUOTE_NONE if plain else csv.QUOTE_MINIMAL,
        )
        columns: list[str] | None = None
        while True:
            try:
                row = next(rows, None)
            except csv.Error as error:
                yield rows.line_num, f"not a row of a table ({error})"
                continue
            if row is None:
                return
            if columns is None:
                columns = row
            elif row and rows.line_num > skip:  # an empty line has no values
                yield rows.line_num, _record(columns, row)


def _decode_lines(file: BufferedReader) -> Iterator[str]:
    # invalid bytes become surrogates, so only their own row is an error (see `_record`)
    return (line.decode("utf-8-sig", "surrogateescape") for line in file)


def _is_quoted(path: Path) -> bool:
    """Return whether quotes enclose values in a tab-separated file.

    This is so if all rows have the same number of values when quotes are read in this way.
    """
    with open_bytes(path) as file, suppress(csv.Error):
        rows = csv.reader(_decode_lines(file), delimiter="\t", strict=True)
        return len({len(row) for row in rows if row}) == 1
    return False


def _record(columns: Sequence[str], values: Sequence[str]) -> JsonObject | str:
    """Return the row of a table as an object, or the reason as a text if the row is malformed."""
    if len(values) != len(columns):
        return f"the row has {len(values)} values, but the header has {len(columns)} columns"
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        return NOT_UTF8
    return dict(zip(columns, values, strict=True))


def parquet_file(path: Path) -> "ParquetFile":
    """Open a Parquet file; raise a WorkbenchError if the file has another format."""
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise WorkbenchError(
            f"{path}: not a Parquet file ({error_line(error)}): check the file"
        ) from None


def _parquet(path: Path, skip: int, columns: Sequence[str]) -> Iterator[Row]:
    file = parquet_file(path)
    present = [name for name in columns if name in file.schema_arrow.names] or None
    number = 0
    for batch in file.iter_batches(batch_size=1024, columns=present):
        start, number = number, number + len(batch)
        if number > skip:  # otherwise skip the batch without decoding it
            for position, row in enumerate(batch.to_pylist(), start=start + 1):
                if position > skip:
                    yield position, row


def read_hub(
    repository: str, config: str | None, split: str, name: str, file: str | None = None
) -> Records:
    """Return the records of one split of a hub data set, as `(location, record)`.

    The split is downloaded once and cached.

    Args:
        repository: the data set on the hub, such as "owner/name".
        config: configuration of the data set; None for the default.
        name: name of the data set in locations and error messages.
        file: the only file to read; None for all files of the split.

    Raises:
        WorkbenchError: the hub cannot be reached, or does not have the data set or the split.
    """
    try:
        rows = dataset(repository, config, split, **({"data_files": file} if file else {}))
    except OSError as error:
        raise WorkbenchError(
            f"cannot load {name} from the hub ({repository}, split '{split}'): {error}; "
            "without a network, name a local file with the data"
        ) from error
    return [(f"{name}: row {number}", dict(row)) for number, row in enumerate(rows, start=1)]
