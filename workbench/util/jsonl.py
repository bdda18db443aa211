"""JSONL files that survive being killed at any byte, JSON files that are never half written,
folders that a refusal takes back.

A line that was being written when the process died is cut off, with a warning, when the file is
next opened for writing; a reader only passes over it. A bad line anywhere else is an error that
names the line.
"""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from workbench.types import WorkbenchError


@contextlib.contextmanager
def taken_back(folder: Path) -> Iterator[None]:
    """Where an error is raised inside, what was made of `folder`, and of the folders above it,
    goes again if it is empty.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    except BaseException:
        for path in made:
            with contextlib.suppress(OSError):  # it is not empty, or was never made
                path.rmdir()
        raise


def append_json(path: Path | str, row: Mapping[str, Any]) -> None:
    """Append one row, first cutting off what a killed process left half written."""
    with open_append(path) as file:
        file.write(encode(row))


def write_json(path: Path | str, value: Any) -> None:
    """Write a JSON file so that it holds either the old value or the new one, never a part."""
    _replace(Path(path), [json.dumps(value, indent=2, allow_nan=False).encode() + b"\n"])


def iter_rows(path: Path | str) -> Iterator[dict[str, Any]]:
    """The rows of a JSONL file, one at a time; an unfinished last line is passed over with a
    warning.

    Raises:
        WorkbenchError: there is no such file, or a line before the last is not a JSON object.
    """
    for _, row in _iter_lines(Path(path)):
        yield row


def truncate_after_step(path: Path | str, step: int) -> int:
    """Drop the rows with a greater `step` (rows without one stay), so that a run resumes exactly
    from a checkpoint.

    The file is replaced in one move; it must not be open for appending. Returns how many rows
    were dropped.
    """
    dropped = 0

    def kept() -> Iterator[bytes]:
        nonlocal dropped
        for line, row in _iter_lines(Path(path)):
            late = row.get("step") is not None and row["step"] > step
            dropped += late
            if not late:
                yield line.rstrip(b"\n") + b"\n"

    _replace(Path(path), kept())
    return dropped


def replace_rows(path: Path | str, lines: Iterable[bytes]) -> None:
    """Put lines, as `encode` makes them, in the place of a file in one move; it must not be open
    for appending.
    """
    _replace(Path(path), lines)


def repair(path: Path | str) -> int:
    """Cut a last line that is not a complete JSON object off a file, with a warning; returns the
    bytes cut.
    """
    path = Path(path)
    if not path.exists() or not (size := path.stat().st_size):
        return 0
    with path.open("r+b") as file:
        start = _last_line(file, size)
        file.seek(start)
        line = file.read()
        if _is_object(line):
            if not line.endswith(b"\n"):  # complete but for its end
                file.write(b"\n")
            return 0
        file.truncate(start)
    warnings.warn(f"{path}: cut off an unfinished last line of {size - start} bytes", stacklevel=2)
    return size - start


def open_append(path: Path | str) -> BinaryIO:
    """Open a repaired file for appending whole lines, as `encode` makes them."""
    repair(path)
    return Path(path).open("ab")


def encode(row: Mapping[str, Any]) -> bytes:
    # ASCII: text with a lone surrogate, as a cut byte sequence decodes to, can still be stored. NaN
    # is not JSON.
    return json.dumps(row, allow_nan=False).encode() + b"\n"


def unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads(…, object_pairs_hook=)`: an object; a ValueError where a key stands twice
    and a value would be lost.
    """
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(
            f"the key '{next(key for key in keys if keys.count(key) > 1)}' stands twice in one"
            " object"
        )
    return row


def check_text(path: Path | str, head: bytes, unpacked: str = "unpack it first") -> None:
    """Refuse a file that begins as no text in UTF-8 does: one in UTF-16, as some editors save
    it, or a compressed one.
    """
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or (
        len(head) > 1 and (head[0] == 0) != (head[1] == 0)
    ):
        raise WorkbenchError(f"{path}: this is UTF-16: save it as UTF-8")
    if unpacked and head.startswith(
        (b"\x1f\x8b", b"BZh", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ")
    ):
        raise WorkbenchError(f"{path}: this is compressed: {unpacked}")


def _last_line(file: BinaryIO, size: int, block: int = 65536) -> int:
    """Where the last line that is not empty begins, read from the end."""
    begin, tail = size, b""
    while begin:
        start = max(0, begin - block)
        file.seek(start)
        begin, tail = start, file.read(begin - start) + tail
        newline = tail.rstrip(b"\n").rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
    return 0


def _iter_lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise WorkbenchError(
            f"{path}: no such file: check the path, or that the run has begun to write"
        ) from None
    # held back: a bad line is forgiven only where no other follows
    last: tuple[int, bytes] | None = None
    with file:
        check_text(path, file.read(8))
        file.seek(0)
        for number, line in enumerate(file, start=1):
            if line.strip():
                if last:
                    yield last[1], _decode(last[1], path, last[0])
                last = number, line
    if last and _is_object(last[1]):
        yield last[1], _decode(last[1], path, last[0])
    elif last:
        warnings.warn(f"{path}:{last[0]}: passed over an unfinished last line", stacklevel=3)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line.decode()), dict)
    except ValueError:
        return False


def _decode(line: bytes, path: Path, number: int) -> dict[str, Any]:
    if not _is_object(line):
        raise WorkbenchError(f"{path}:{number}: not a JSON object: remove or mend that line")
    try:
        row: dict[str, Any] = json.loads(line, object_pairs_hook=unique_keys)
    except ValueError as error:
        raise WorkbenchError(f"{path}:{number}: {error}: mend that line") from None
    return row


def _replace(path: Path, content: Iterable[bytes]) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        file.writelines(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
