"""Read and write JSONL and JSON files that stay readable if the writing process is killed.

JSON files are replaced atomically. In a JSONL file, a killed process may leave an unfinished last
line: readers skip it with a warning, and the next writer cuts it off. Any other line that is not a
JSON object is an error, whose message has the line's number.
"""

import contextlib
import hashlib
import json
import math
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from workbench.types import JsonMapping, JsonObject, WorkbenchError

_SURROGATE = re.compile("[\ud800-\udfff]")
_ENCODER = json.JSONEncoder(allow_nan=False)  # `json.dumps` would make one for each row


@contextlib.contextmanager
def remove_new_folders_on_error(folder: Path) -> Iterator[None]:
    """Context manager: if its block raises an exception, remove the folders that the block made.

    Only `folder` and its parents are removed, and only if they are empty.
    """
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    except BaseException:
        for path in new:
            with contextlib.suppress(OSError):  # not empty, or never made
                path.rmdir()
        raise


def append_json(path: Path | str, row: JsonMapping) -> None:
    """Append one row to a JSONL file, after cutting off an unfinished last line."""
    with open_append(path) as file:
        file.write(encode(row))


def write_json(path: Path | str, value: object) -> None:
    """Write a JSON file atomically: it contains the old value or the new value, never a part."""
    replace_rows(path, [json.dumps(value, indent=2, allow_nan=False).encode() + b"\n"])


def iter_rows(path: Path | str) -> Iterator[JsonObject]:
    """Yield the rows of a JSONL file; an unfinished last line is skipped with a warning.

    Raises:
        WorkbenchError: the file does not exist, or a line before the last is not a JSON object.
    """
    for _, row in _iter_lines(Path(path)):
        yield row


def truncate_after_step(path: Path | str, step: int) -> int:
    """Remove the rows of steps after `step` from a JSONL file; return the number of removed rows.

    A run that resumes from a checkpoint calls this function. Rows without a step stay. The file is
    replaced atomically and must not be open for appending.
    """
    dropped = 0

    def remaining() -> Iterator[bytes]:
        nonlocal dropped
        for line, row in _iter_lines(Path(path)):
            late = row.get("step") is not None and row["step"] > step
            dropped += late
            if not late:
                yield line.rstrip(b"\n") + b"\n"

    replace_rows(path, remaining())
    return dropped


def replace_rows(path: Path | str, lines: Iterable[bytes]) -> None:
    """Replace the content of a file by `lines`, atomically. Each line includes its line end.

    The file must not be open for appending.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())  # before the move: a crash must not leave an empty file
    os.replace(temporary, path)


def repair(path: Path | str) -> int:
    """Cut off an incomplete last line of a JSONL file, and warn; return the number of bytes cut.

    The line is incomplete if it is not a JSON object.
    """
    path = Path(path)
    if not path.exists() or not (size := path.stat().st_size):
        return 0
    with path.open("r+b") as file:
        start = _last_line(file, size)
        file.seek(start)
        line = file.read()
        if _is_object(line):
            if not line.endswith(b"\n"):  # only the line end is missing
                file.write(b"\n")
            return 0
        file.truncate(start)
    warnings.warn(f"{path}: cut off an unfinished last line of {size - start} bytes", stacklevel=2)
    return size - start


def open_append(path: Path | str) -> BinaryIO:
    """Repair the last line of a JSONL file (see `repair`); open the file for appending bytes."""
    repair(path)
    return Path(path).open("ab")


def encodable(text: str) -> str:
    """Replace each lone surrogate in `text` by U+FFFD; character positions do not change.

    UTF-8 cannot encode lone surrogates, and tokenizers refuse them.
    """
    return _SURROGATE.sub("\ufffd", text)


def encode(row: JsonMapping) -> bytes:
    """Encode a row as one line of JSON in ASCII, with a line end.

    Raises:
        ValueError: a number is NaN or infinite, which JSON does not have.
    """
    # ASCII, because text may contain a lone surrogate from a cut byte sequence
    return _ENCODER.encode(row).encode() + b"\n"


def json_digest(value: object, digits: int = 12) -> str:
    """Return the first `digits` hexadecimal digits of the SHA-256 of a value as JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:digits]


def unique_keys(pairs: Sequence[tuple[str, object]]) -> JsonObject:
    """Return the dict of (key, value) pairs, and refuse repeated keys.

    For use as `json.loads(…, object_pairs_hook=unique_keys)`.

    Raises:
        ValueError: a key occurs twice.
    """
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key '{repeated}' occurs twice in one object")
    return row


def check_text(path: Path | str, head: bytes, unpacked: str = "unpack it first") -> None:
    """Check that a file is neither UTF-16 text nor compressed, by its first bytes.

    Args:
        path: the file, for the error message.
        head: its first 8 bytes.
        unpacked: what to do with a compressed file, for the error message.

    Raises:
        WorkbenchError: the file is encoded as UTF-16, or compressed.
    """
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or (
        len(head) > 1 and (head[0] == 0) != (head[1] == 0)  # ASCII in UTF-16 without a mark
    ):
        raise WorkbenchError(f"{path}: the file is encoded as UTF-16: save it as UTF-8")
    # gzip, bzip2, zip, Zstandard, xz
    if head.startswith((b"\x1f\x8b", b"BZh", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ")):
        raise WorkbenchError(f"{path}: the file is compressed: {unpacked}")


def _last_line(file: BinaryIO, size: int) -> int:
    """Return the byte position of the last line that is not empty."""
    begin, tail = size, b""
    while begin:
        start = max(0, begin - 65536)
        file.seek(start)
        begin, tail = start, file.read(begin - start) + tail
        newline = tail.rstrip(b"\n").rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
    return 0


def _iter_lines(path: Path) -> Iterator[tuple[bytes, JsonObject]]:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise WorkbenchError(
            f"{path}: no such file: check the path; a new run may not have written it yet"
        ) from None
    # a line is yielded after the next one is read, because only the last line may be unfinished
    previous: tuple[int, bytes] | None = None
    with file:
        check_text(path, file.read(8))
        file.seek(0)
        for number, line in enumerate(file, start=1):
            if line.strip():
                if previous:
                    yield previous[1], _decode(path, *previous)
                previous = number, line
    if previous and _is_object(previous[1]):
        yield previous[1], _decode(path, *previous)
    elif previous:
        warnings.warn(f"{path}:{previous[0]}: skipped an unfinished last line", stacklevel=3)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line.decode()), dict)
    except ValueError:
        return False


def _decode(path: Path, number: int, line: bytes) -> JsonObject:
    if not _is_object(line):
        raise WorkbenchError(f"{path}:{number}: not a JSON object: remove or fix that line")
    try:
        row: JsonObject = json.loads(line, object_pairs_hook=unique_keys)
    except ValueError as error:
        raise WorkbenchError(f"{path}:{number}: {error}: fix that line") from None
    return row


def finite(value: object) -> float | None:
    """Convert a number to a float; return None for NaN, infinity, huge integers and non-numbers."""
    if isinstance(value, bool | str):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
