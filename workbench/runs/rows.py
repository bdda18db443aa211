"""The rows of `rollouts.jsonl` as a table: what lists and curves need of each, read once.

The table of a large file is stored beside it (`rollouts.index.parquet`), so that the file opens at
once the next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.runs.growing import Growing, Progress, line_at
from workbench.types import OUTCOMES, JsonObject

if TYPE_CHECKING:
    from pandas import DataFrame, Series

FORMAT = 2  # of a stored index; another is read again
STORED_FROM = 8_000_000  # bytes of new rows that an index is stored for
PATIENCE = 1.0  # seconds that the whole of a large file is waited for before its end is shown
TAIL = 8_000_000  # bytes of the last rows that are shown meanwhile
NO_STEP = -1

# A row as `Feedback.to_row` writes it: enough for the table without decoding the rest, in a third
# of the time. No text of a row can look like these, since its quotation marks are escaped.
_STRING = rb'("[^"\\]*(?:\\.[^"\\]*)*")'
_NUMBER = rb"(null|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_HEAD = re.compile(
    rb'\{"schema": \d+, "id": %s, "question_id": %s, "group": %s, "sample": \d+, "step":'
    rb' (\d{1,15}|null), "response": %s, '
    rb'"finish": ("[a-z]*"|null),' % ((_STRING,) * 4)
)
_REWARD = re.compile(
    rb'": \{"value": %s, "parts": (\{(?:%s: %s(?:, )?)*\}), ' % (_NUMBER, _STRING, _NUMBER)
)  # after the method's name
_OUTCOME = re.compile(rb'\{"target": "outcome", "aspect": "[^"\\]*", "label": (?:"(\w+)"|null),')
_UNPLACED = re.compile(rb'"unplaced": \[([^\]]*)\]')


class Entry(NamedTuple):
    """What lists and curves need of one row."""

    offset: int  # byte at which the row begins
    id: str
    question: str
    group: str
    step: int  # or NO_STEP
    claims: int
    unplaced: int  # by the method that could place fewest claims
    outcome: str  # "": no outcome, or its check failed
    length: int  # tokens
    cut: bool  # it ended because it was too long
    # (method, part) -> number, None where it was not scored; part "" is the whole reward
    rewards: Mapping[tuple[str, str], float | None]


KINDS = {"offset": "int64", "id": "object", "question": "object", "group": "object"}
KINDS |= {"step": "int64", "claims": "int64", "unplaced": "int64", "outcome": "object"}
KINDS |= {"length": "int64", "cut": "bool"}


def column(method: str, part: str = "") -> str:
    """The name of a reward's column; part "" is the whole reward."""
    return json.dumps([method, part])


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a file. `table` has the columns of `KINDS` and a `column` for each reward and
    part (NaN: not scored); its index is the row's number in the file.
    """

    table: DataFrame
    missing: int = 0  # rows before these, of a file that is still being read
    # results for single rows, which stay valid while the file only grows
    memory: dict[str, dict[Any, Any]] = field(default_factory=dict, repr=False)
    # results for all rows
    derived: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def total(self) -> int:
        """How many rows the file has, including those before these."""
        return self.missing + len(self.table)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Row id -> number, of equal ids the last."""
        return dict(zip(self.table["id"], self.table.index, strict=True))

    @cached_property
    def rewards(self) -> list[tuple[str, str]]:
        """(method, part) of every reward column."""
        names = self.table.columns[len(KINDS) :]
        return [(method, part) for method, part in map(json.loads, names)]

    @property
    def methods(self) -> list[str]:
        """The methods that have rewards here, a trainer's logged numbers among them."""
        return list(dict.fromkeys(method for method, _ in self.rewards))

    @cached_property
    def steps(self) -> list[int]:
        found = self.table["step"].unique()
        return sorted(int(step) for step in found if step != NO_STEP)

    def row(self, number: int) -> Series:
        """The columns of one row; its `name` is the number."""
        return self.table.loc[number]

    def reward(self, method: str, part: str = "") -> Series:
        """A reward of every row, NaN where it is not stored or was not scored."""
        from pandas import Series

        name = column(method, part)
        if name in self.table.columns:
            return self.table[name]
        return Series(math.nan, index=self.table.index, dtype="float64")


def empty_rows() -> Rows:
    return Rows(_table([]))


def read_rows(path: Path) -> Rows:
    """The rows of a file, as the file is now."""
    return _rows.read(path)


def is_quick(path: Path) -> bool:
    """Whether the rows were read before, or are few: no index is stored of so few."""
    return _rows.is_cached(path) or path.stat().st_size < STORED_FROM


def index_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.index.parquet")


_readers: dict[Path, tuple[Thread, float]] = {}  # the thread that reads a file, since when
_tails: dict[Path, tuple[tuple[int, int], Rows]] = {}  # what a file looked like, its last rows


def opened_rows(path: Path) -> Rows:
    """The rows of a file; if reading them takes longer than `PATIENCE`, only its last rows."""
    if not is_quick(path):
        now = time.monotonic()
        if not index_path(path).is_file() and not _is_being_read(path):
            tail_rows(path)  # first: beside the other thread it would take several times as long
        reader, since = _reader(path, now)
        reader.join(max(0.0, since + PATIENCE - time.monotonic()))
        if reader.is_alive() and len(tail := tail_rows(path)):
            return tail
        reader.join()
    _tails.pop(path, None)
    return read_rows(path)


def at_hand(path: Path) -> bool:
    """Whether the rows take no time; a stored index is loaded for the next time."""
    reading = any(thread.is_alive() for thread, _ in list(_readers.values()))
    if not is_quick(path) and not reading and index_path(path).is_file():
        _reader(path, time.monotonic())
    return is_quick(path)


def _is_being_read(path: Path) -> bool:
    return path in _readers and _readers[path][0].is_alive()


def _reader(path: Path, now: float) -> tuple[Thread, float]:
    """The thread that reads a file, and since when; a new one counts from `now`."""

    def read() -> None:
        with contextlib.suppress(Exception):  # raised again when the rows are read
            read_rows(path)

    if not _is_being_read(path):
        _readers[path] = Thread(target=read, daemon=True), now
        _readers[path][0].start()
    return _readers[path]


def tail_rows(path: Path) -> Rows:
    """The rows in the last `TAIL` bytes of a file, and how many are before them."""
    stat = path.stat()
    look, known = (stat.st_size, stat.st_mtime_ns), _tails.get(path)
    if known and known[0] == look:
        return known[1]
    with path.open("rb") as file:
        file.seek(begin := max(0, stat.st_size - TAIL))
        begin += len(file.readline()) if begin else 0  # of the line that this falls into
        file.seek(begin)
        lines = [line for line in file.readlines() if line.endswith(b"\n")]
    rows = _add(Rows(_table([]), missing=_count_rows(path, begin)), begin, lines)
    _tails[path] = look, rows
    return rows


def _count_rows(path: Path, end: int) -> int:
    count = position = 0
    with path.open("rb") as file:
        for line in file:
            if position >= end:
                break
            count += not line.isspace()
            position += len(line)
    return count


def _add(rows: Rows, offset: int, lines: Sequence[bytes]) -> Rows:
    from pandas import concat

    entries: list[Entry] = []
    for line in lines:
        if line.strip():
            number = rows.total + len(entries)
            entries.append(_written_by_us(offset, line) or _written_by_others(number, offset, line))
        offset += len(line)
    new = _table(entries, rows.total)
    table = concat([rows.table, new]) if len(rows) and entries else new if entries else rows.table
    return Rows(table, rows.missing, rows.memory)


def _table(entries: Sequence[Entry], first: int = 0) -> DataFrame:
    from pandas import DataFrame, RangeIndex, Series

    index = RangeIndex(first, first + len(entries))
    values = list(zip(*entries, strict=True)) or [()] * len(Entry._fields)
    columns = {
        name: Series(values[place], index=index, dtype=kind)
        for place, (name, kind) in enumerate(KINDS.items())
    }
    rewards = values[-1]
    for key in dict.fromkeys(key for row in rewards for key in row):
        numbers = [row.get(key) for row in rewards]
        columns[column(*key)] = Series(numbers, index=index, dtype="float64")
    return DataFrame(columns)


def text_of(line: bytes) -> str:
    """The response of a stored line."""
    head = _HEAD.match(line)
    text = json.loads(head.group(5)) if head else parse_object(line).get("response")
    return text if isinstance(text, str) else ""


def finite(value: Any) -> float | None:
    """A number that can be drawn; None for anything else, NaN, and numbers beyond all floats."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def parse_object(line: bytes) -> JsonObject:
    """Parse a line as a JSON object; {} if it is not one."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def _written_by_us(offset: int, line: bytes) -> Entry | None:
    """The entry of a row as we write it; None for any other."""
    head, rewards = _HEAD.match(line), line.rfind(b'"rewards": {')
    if head is None or rewards < 0:
        return None
    numbers: dict[tuple[str, str], float | None] = {}
    try:
        identity, question, group = map(_decoded, head.groups()[:3])
        for match in _REWARD.finditer(line, rewards):
            method = _name_before(line, match.start())
            numbers[method, ""] = _number(match.group(1))
            for part, value in _parts(match.group(2)).items():
                numbers[method, part] = value
    except ValueError:  # not UTF-8
        return None
    failed = line.rfind(b'"error": null, "cost": ') < rewards
    outcome = None if failed else _OUTCOME.search(line, head.end(), rewards)
    unplaced = (
        len(found.group(1).split(b",")) if found.group(1).strip() else 0
        for found in _UNPLACED.finditer(line, rewards)
    )
    tokens = line.find(b'"offsets": [', head.end())
    return Entry(
        offset,
        identity,
        question,
        group,
        NO_STEP if head.group(4) == b"null" else int(head.group(4)),
        line.count(b'"coverage":', head.end()),
        max(unplaced, default=0),
        _outcome((outcome.group(1) or b"").decode()) if outcome else "",
        line.count(b"[", tokens + 12, line.find(b'"logprobs"', tokens)) if tokens > 0 else 0,
        head.group(6) == b'"length"',
        numbers,
    )


def _number(text: bytes) -> float | None:
    return None if text == b"null" else finite(float(text))


@lru_cache(maxsize=4096)  # few differ from row to row
def _parts(text: bytes) -> Mapping[str, float | None]:
    return {part: finite(value) for part, value in json.loads(text).items()}


def _name_before(line: bytes, end: int) -> str:
    """The string whose closing quotation mark is at `end`: those inside it follow a backslash."""
    start = line.rfind(b'"', 0, end)
    while line[start - 1 : start] == b"\\":
        start = line.rfind(b'"', 0, start)
    return _decoded(line[start : end + 1])


def _decoded(string: bytes) -> str:
    """A JSON string; most have nothing to decode."""
    return str(json.loads(string)) if b"\\" in string else string[1:-1].decode()


def _outcome(label: Any) -> str:
    return label if isinstance(label, str) and label in OUTCOMES else ""


def _written_by_others(number: int, offset: int, line: bytes) -> Entry:
    """The entry of a row with its keys in another order, or of a damaged one."""
    row = parse_object(line)
    rewards = {
        str(name): reward
        for name, reward in _object(row.get("rewards")).items()
        if isinstance(reward, dict)
    }
    numbers: dict[tuple[str, str], float | None] = {}
    for name, reward in rewards.items():
        numbers[name, ""] = finite(reward.get("value"))
        for part, value in _object(reward.get("parts")).items():
            numbers[name, str(part)] = finite(value)
    verdicts = (verdict for verdict in _list(row.get("verdicts")) if isinstance(verdict, dict))
    outcome = next((one for one in verdicts if one.get("target") == "outcome"), {})
    step = row.get("step")
    return Entry(
        offset,
        str(row["id"]) if "id" in row else f"damaged row {number + 1}",
        str(row.get("question_id")),
        str(row.get("group") or ""),
        step if type(step) is int and 0 <= step < 10**15 else NO_STEP,
        len(_list(row.get("claims"))),
        max((len(_list(reward.get("unplaced"))) for reward in rewards.values()), default=0),
        "" if row.get("error") or outcome.get("error") else _outcome(outcome.get("label")),
        len(_list(_object(row.get("tokens")).get("offsets"))),
        row.get("finish") == "length",
        numbers,
    )


def _object(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _load(path: Path) -> Progress[Rows] | None:
    """The stored index of a file; None if there is none, or it is a link, stale or damaged."""
    from pandas import read_parquet

    stored = index_path(path)
    if stored.is_symlink() or not stored.is_file():
        return None
    try:
        stat, table = path.stat(), read_parquet(stored)
        about = table.attrs["record"]
        last = line_at(path, about["begin"])
        scanned = about["begin"] + len(last)
        same = (about["size"], about["modified"]) == (stat.st_size, stat.st_mtime_ns)
        grown = about["size"] < stat.st_size
        columns = {name: KINDS.get(name, "float64") for name in table.columns}
        table = table.astype(columns)
        rows, offsets = Rows(table), table["offset"]
        if not (
            about["format"] == FORMAT
            and (same or grown)
            and about["last"] == hashlib.sha256(last).hexdigest()
            and list(columns)[: len(KINDS)] == list(KINDS)
            and rows.rewards is not None
            and offsets.is_monotonic_increasing
            and 0 <= offsets.min() <= offsets.max() == about["begin"]
        ):
            return None
        look = (stat.st_ino, about["modified"], about["size"])
        return Progress(rows, look, scanned, last, scanned)
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError):
        return None


def _store(path: Path, progress: Progress[Rows]) -> None:
    """Store the index of a file that has grown much, if its folder can be written."""
    if progress.scanned - progress.stored < max(STORED_FROM, progress.stored // 4):
        return
    progress.stored = progress.scanned
    table = progress.state.table.copy(deep=False)
    _, modified, size = progress.look
    table.attrs["record"] = {
        "format": FORMAT,
        "modified": modified,
        "size": size,
        "begin": progress.scanned - len(progress.last),
        "last": hashlib.sha256(progress.last).hexdigest(),
    }
    # in one move: a link that stands there is replaced and not followed
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        table.to_parquet(name)
        os.replace(name, index_path(path))
    except (OSError, ValueError):  # ValueError: text that UTF-8 cannot hold
        os.unlink(name)


_rows: Growing[Rows] = Growing(empty_rows, _add, _load, _store)
