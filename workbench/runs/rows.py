"""Read `rollouts.jsonl` as a table, with the columns that the inspector needs.

The table of a large file is stored in the same folder, as `rollouts.index.parquet` (the index).
Later calls read the index, which is much faster.
"""

import contextlib
import hashlib
import json
import math
import os
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import orjson

from workbench.runs.growing import Growing, Progress, line_at
from workbench.types import OUTCOMES, JsonObject
from workbench.util.jsonl import finite

if TYPE_CHECKING:
    from pandas import DataFrame, Series

FORMAT = 2  # version of a stored index; other versions are computed again
STORED_FROM = 8_000_000  # least number of bytes of new rows for which an index is stored
PATIENCE = 1.0  # seconds to wait for a large file before only its last rows are shown
TAIL = 8_000_000  # bytes of the last rows that are shown meanwhile
NO_STEP = -1  # the column of steps holds integers, which cannot be None

# The response in a row that `Feedback.to_row` wrote: searching it is faster than parsing the row.
_RESPONSE = re.compile(rb'\{"schema": [^\[{]*?"response": ("[^"\\]*(?:\\.[^"\\]*)*")')


COLUMNS = {  # column of the table -> type
    "offset": "int64",  # position of the row's first byte
    "id": "object",
    "question": "object",  # its id
    "group": "object",
    "step": "int64",  # or NO_STEP
    "claims": "int64",  # number of claims
    "unplaced": "int64",  # claims not found in the response; the maximum over methods
    "outcome": "object",  # label of the outcome; "" if there is none or its check failed
    "length": "int64",  # tokens
    "cut": "bool",  # whether the response reached the maximum length
}


@cache
def column(method: str, part: str = "") -> str:
    """Return the name of the table's column for a reward, or for one of the reward's parts.

    Example: '["truthrl", "outcome"]' is the column of the part "outcome" of TruthRL's reward.

    Args:
        method: name of the reward: a method, or a name from a trainer's log such as "trl:reward".
        part: a key of `Reward.parts`; "" for the value of the reward.
    """
    return json.dumps([method, part])


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a file `rollouts.jsonl` as a table.

    Attributes:
        table: one row for each response, labelled by its row number in the file. It has the columns
            `COLUMNS`, such as "step" and "outcome". Then it has a column of numbers for the value
            of each reward and for each entry of `Reward.parts`; `column` returns their names.
        missing: number of rows at the beginning of the file that are not in the table yet.
        memory: cached results for single rows; kept when rows are appended to the file.
        derived: cached results computed from all rows; discarded when rows are appended.
    """

    table: "DataFrame"
    missing: int = 0
    memory: dict[str, dict[Any, Any]] = field(default_factory=dict, repr=False)
    derived: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def total(self) -> int:
        """Return the number of rows in the file, including rows that are not in the table yet."""
        return self.missing + len(self.table)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Return response id -> row number. If an id occurs several times, the last row counts."""
        return dict(zip(self.table["id"], self.table.index, strict=True))

    @cached_property
    def rewards(self) -> list[tuple[str, str]]:
        """Return (method, part) of every reward column, such as ("truthrl", "outcome").

        The part "" stands for the value of the reward, other parts for entries of `Reward.parts`.
        """
        names = self.table.columns[len(COLUMNS) :]
        return [(method, part) for method, part in map(json.loads, names)]

    @property
    def methods(self) -> list[str]:
        """Return the names of the rewards, such as "truthrl" or, from TRL's log, "trl:reward"."""
        return list(dict.fromkeys(method for method, _ in self.rewards))

    @cached_property
    def steps(self) -> list[int]:
        """Return the training steps of the rows, each once, in ascending order."""
        return sorted(int(step) for step in self.table["step"].unique() if step != NO_STEP)

    def reward(self, method: str, part: str = "") -> "Series":
        """Return the reward of a method for every row, or the entry `part` of its `Reward.parts`.

        The value is NaN for a row that was not scored. All values are NaN if the file does not have
        this reward or entry.
        """
        from pandas import Series

        missing = Series(math.nan, self.table.index, "float64")
        return self.table.get(column(method, part), missing)


def read_rows(path: Path) -> Rows:
    """Return all rows that a file has now, without an unfinished last line."""
    return _rows.read(path)


def is_quick(path: Path) -> bool:
    """Return whether reading a file's rows is fast: they are in memory, or the file is small."""
    return _rows.is_cached(path) or path.stat().st_size < STORED_FROM


def index_path(path: Path) -> Path:
    """Return the path of the index, the file in which the table of a file of rows is stored."""
    return path.with_name(f"{path.stem}.index.parquet")


_readers: dict[Path, tuple[Thread, float]] = {}  # the thread that reads a file, and its start


def opened_rows(path: Path) -> Rows:
    """Return all rows of a file, or only its last rows if reading the file takes over a second.

    In the second case, a thread continues to read the file for later calls.
    """
    if not is_quick(path):
        now = time.monotonic()
        if not index_path(path).is_file() and not _is_being_read(path):
            # before the reader starts: while it runs, this would be several times slower
            tail_rows(path)
        reader, start = _reader(path, now)
        reader.join(max(0.0, start + PATIENCE - time.monotonic()))
        if reader.is_alive() and len(tail := tail_rows(path)):
            return tail
        reader.join()
    return read_rows(path)


def at_hand(path: Path) -> bool:
    """Return `is_quick(path)`. If it is False, start to load the file's stored index in a thread.

    A later call may then return True. No thread is started if the file has no stored index, or if
    another thread is reading a file.
    """
    reading = any(thread.is_alive() for thread, _ in list(_readers.values()))
    if not is_quick(path) and not reading and index_path(path).is_file():
        _reader(path, time.monotonic())
    return is_quick(path)


def _is_being_read(path: Path) -> bool:
    return path in _readers and _readers[path][0].is_alive()


def _reader(path: Path, now: float) -> tuple[Thread, float]:
    """Return the thread that reads a file, started at `now` if needed, and its start time."""

    def read() -> None:
        with contextlib.suppress(Exception):  # raised again when the rows are read
            read_rows(path)

    if not _is_being_read(path):
        _readers[path] = Thread(target=read, daemon=True), now
        _readers[path][0].start()
    return _readers[path]


def tail_rows(path: Path) -> Rows:
    """Return the rows in the last 8 MB of a file. Earlier rows are counted as `missing`."""
    stat = path.stat()
    return _tail(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=4)
def _tail(path: Path, size: int, modified: int) -> Rows:
    offset = missing = 0
    with path.open("rb") as file:
        while offset < size - TAIL and (line := file.readline()):
            offset += len(line)
            missing += not line.isspace()
        lines = [line for line in file if line.endswith(b"\n")]
    return _add(Rows(_table([]), missing), offset, lines)


def _add(rows: Rows, offset: int, lines: Sequence[bytes]) -> Rows:
    from pandas import concat

    new: list[JsonObject] = []
    for line in lines:
        if line.strip():
            new.append(_columns(rows.total + len(new), offset, line))
        offset += len(line)
    tables = [table for table in (rows.table, _table(new, rows.total)) if len(table)]
    return Rows(concat(tables) if tables else rows.table, rows.missing, rows.memory)


def _table(rows: Sequence[JsonObject], first: int = 0) -> "DataFrame":
    from pandas import DataFrame, RangeIndex, Series

    index = RangeIndex(first, first + len(rows))
    names = dict.fromkeys([*COLUMNS, *(name for row in rows for name in row)])
    columns = {
        name: Series([row.get(name) for row in rows], index, COLUMNS.get(name, "float64"))
        for name in names
    }
    return DataFrame(columns)


def text_of(line: bytes) -> str:
    """Return the text of the response in a stored line; "" if the line has no text."""
    found = _RESPONSE.match(line)
    text = json.loads(found[1]) if found else parse_object(line).get("response")
    return text if isinstance(text, str) else ""


def parse_object(line: bytes) -> JsonObject:
    """Parse a line as a JSON object; {} if it is not one."""
    for load in (orjson.loads, json.loads):  # the second accepts NaN and half surrogate pairs
        with contextlib.suppress(ValueError, RecursionError):
            return _object(load(line))
    return {}


def _columns(number: int, offset: int, line: bytes) -> JsonObject:
    """Return the table row of a stored response; values of a wrong type count as missing."""
    row = parse_object(line)
    rewards = {name: _object(reward) for name, reward in _object(row.get("rewards")).items()}
    verdicts = map(_object, _list(row.get("verdicts")))
    outcome = next((verdict for verdict in verdicts if verdict.get("target") == "outcome"), {})
    failed, step = row.get("error") or outcome.get("error"), row.get("step")
    columns: JsonObject = {
        "offset": offset,
        "id": str(row["id"]) if "id" in row else f"damaged row {number + 1}",
        "question": str(row.get("question_id")),
        "group": str(row.get("group") or ""),
        "step": step if type(step) is int and 0 <= step < 10**15 else NO_STEP,
        "claims": len(_list(row.get("claims"))),
        "unplaced": max((len(_list(one.get("unplaced"))) for one in rewards.values()), default=0),
        "outcome": str(outcome["label"]) if outcome.get("label") in OUTCOMES and not failed else "",
        "length": len(_list(_object(row.get("tokens")).get("offsets"))),
        "cut": row.get("finish") == "length",
    }
    for name, reward in rewards.items():
        columns[column(name)] = finite(reward.get("value"))
        for part, value in _object(reward.get("parts")).items():
            columns[column(name, part)] = finite(value)
    return columns


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _load(path: Path) -> Progress[Rows] | None:
    """Return the stored index of a file; None if it is missing, a link, outdated or damaged."""
    from pandas import read_parquet

    stored = index_path(path)
    if stored.is_symlink() or not stored.is_file():
        return None
    try:
        table = read_parquet(stored)
        source = table.attrs["record"]  # the file when the index was made
        rows = Rows(table.astype({name: COLUMNS.get(name, "float64") for name in table}))
        begin, offsets = source["begin"], rows.table["offset"]
        last = line_at(path, begin)
        if not (
            source["format"] == FORMAT
            and source["last"] == hashlib.sha256(last).hexdigest()
            and list(table)[: len(COLUMNS)] == list(COLUMNS)
            and rows.rewards is not None  # parses the names of the reward columns
            and offsets.is_monotonic_increasing
            and 0 <= offsets.min() <= offsets.max() == begin
        ):
            return None
        stamp = (path.stat().st_ino, int(source["modified"]), int(source["size"]))
        return Progress(rows, stamp, begin + len(last), last, begin + len(last))
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError):
        return None


def _store(path: Path, progress: Progress[Rows]) -> None:
    """Write a file's index to the disk if enough bytes were read since it was last stored.

    At least `STORED_FROM` bytes, and a quarter of the bytes in the stored index, are enough. Errors
    while the table is written, such as a read-only folder, are ignored.
    """
    if progress.scanned - progress.stored < max(STORED_FROM, progress.stored // 4):
        return
    progress.stored = progress.scanned
    table = progress.state.table.copy(deep=False)
    _, modified, size = progress.stamp
    table.attrs["record"] = {
        "format": FORMAT,
        "modified": modified,
        "size": size,
        "begin": progress.scanned - len(progress.last),
        "last": hashlib.sha256(progress.last).hexdigest(),
    }
    with (
        contextlib.suppress(OSError, ValueError),  # ValueError: text that UTF-8 cannot hold
        tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder,
    ):
        table.to_parquet(f"{folder}/index")
        # in one move: an existing link is replaced, not followed
        os.replace(f"{folder}/index", index_path(path))


_rows: Growing[Rows] = Growing(lambda: Rows(_table([])), _add, _load, _store)
