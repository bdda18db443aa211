"""The rows of a record by id, group and step, with what lists and curves need of each: read
once, line by line.

Beside a large record its index is kept (`rollouts.index.json`), so that it opens at once: plain
JSON by columns. It stands for a file of the same size and time, or for the beginning of one that
has grown; any other is read anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from types import NoneType
from typing import Any, NamedTuple

from workbench.runs.growing import Growing, Known, line_at
from workbench.types import OUTCOMES

FORMAT = 1  # of a kept index; another is read anew
WORTH = 8_000_000  # bytes of new rows that an index is written for
PIECE = 1 << 24  # bytes that are counted at once
# (method, part or "" for the whole reward) -> its place among a row's numbers
Shape = Mapping[tuple[str, str], int]

# A row as `Feedback.to_row` writes it: enough for an index, without decoding the rest. No text of a
# row can look like these, since its quotation marks are escaped.
_STRING = rb'("[^"\\]*(?:\\.[^"\\]*)*")'
_NUMBER = rb"(null|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_HEAD = re.compile(
    rb'\{"schema": \d+, "id": %s, "question_id": %s, "group": %s, "sample": \d+, "step":'
    rb' (\d+|null), "response": %s, '
    rb'"finish": ("[a-z]*"|null),' % ((_STRING,) * 4)
)
# after its name
_REWARD = re.compile(
    rb'": \{"value": %s, "parts": (\{(?:%s: %s(?:, )?)*\}), ' % (_NUMBER, _STRING, _NUMBER)
)
_OUTCOME = re.compile(rb'\{"target": "outcome", "aspect": "[^"\\]*", "label": (?:"(\w+)"|null),')
_UNPLACED = re.compile(rb'"unplaced": \[([^\]]*)\]')


class Entry(NamedTuple):
    """One stored row: its number and place in the file, and what lists and curves need of it."""

    number: int
    offset: int
    id: str
    question: str
    group: str
    step: int | None
    claims: int
    unplaced: int  # by the method that could place least
    outcome: str | None  # None: no outcome, or its check failed
    length: int  # tokens
    cut: bool  # it ended because it was too long
    shape: Shape
    numbers: tuple[float | None, ...]

    def value(self, method: str, part: str = "") -> float | None:
        """What the method paid, or one part of it; None where that is not stored or was not
        scored.
        """
        place = self.shape.get((method, part))
        return None if place is None else self.numbers[place]


@dataclass
class Index:
    """The rows of a record by id, by group and by step. It grows with the record, also while it
    is read.
    """

    entries: list[Entry] = field(default_factory=list)
    by_id: dict[str, Entry] = field(default_factory=dict, repr=False)
    by_group: dict[str, list[Entry]] = field(default_factory=dict, repr=False)
    by_step: dict[int | None, list[Entry]] = field(default_factory=dict, repr=False)
    # what was worked out of these rows
    memory: dict[Any, Any] = field(default_factory=dict, repr=False)
    # those of the rows, each once
    shapes: dict[int, Shape] = field(default_factory=dict, repr=False)
    missing: int = 0  # rows before these, of a record that is still being read
    # of what is worked out of new rows: each counts once
    lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @property
    def rows(self) -> int:
        """How many the record has, those before these included."""
        return self.missing + len(self.entries)

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.shapes[id(entry.shape)] = entry.shape
        self.by_id[entry.id] = entry
        self.by_group.setdefault(entry.group, []).append(entry)
        self.by_step.setdefault(entry.step, []).append(entry)

    def answers(self, question: str) -> list[Entry]:
        """The rows that answer a question; which they are is sorted out once, when it is first
        asked for.
        """
        with self.lock:
            known = self.memory.setdefault("answers", [0, {}])
            new = self.entries[known[0] :]
            known[0] += len(new)
            for entry in new:
                known[1].setdefault(entry.question, []).append(entry)
            return list(known[1].get(question, ()))

    def methods(self) -> list[str]:
        """Whose rewards the rows hold, a trainer's logged numbers among them."""
        return list(
            dict.fromkeys(method for shape in list(self.shapes.values()) for method, _ in shape)
        )


def read_index(path: Path) -> Index:
    """The index of a file of rows, as the file is now."""
    return _rows.read(path)


def is_quick(path: Path) -> bool:
    """Whether the index of a file is at hand, or made at once: none is kept of so few rows."""
    return _rows.known(path) or path.stat().st_size < WORTH


def tail_index(path: Path, most: int) -> Index:
    """The rows in the last `most` bytes of a file, and how many are before them."""
    with path.open("rb") as file:
        begin = max(0, file.seek(0, os.SEEK_END) - most)
        file.seek(begin)
        begin += len(file.readline()) if begin else 0  # the line that this falls into
        file.seek(begin)
        lines = file.read(most).split(b"\n")[:-1]  # the last one is still being written
    index = Index(missing=_count(path, begin))
    for line in lines:
        if line.strip():
            index.add(_entry(index.rows, begin, line))
        begin += len(line) + 1
    return index


def _count(path: Path, end: int) -> int:
    """How many rows stand before a line: the lines that are not empty."""
    count = 0
    with path.open("rb") as file:
        while file.tell() < end and (piece := file.read(min(PIECE, end - file.tell()))):
            lines = io.BytesIO(piece + (b"" if piece.endswith(b"\n") else file.readline()))
            count += sum(not line.isspace() for line in lines)
    return count


def index_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.index.json")


def text_of(line: bytes) -> str:
    """The response of a stored line."""
    head = _HEAD.match(line)
    text = json.loads(head.group(5)) if head else _object(line).get("response")
    return text if isinstance(text, str) else ""


def _add_entry(index: Index, offset: int, line: bytes) -> None:
    index.add(_entry(len(index.entries), offset, line))


def _entry(number: int, offset: int, line: bytes) -> Entry:
    return _written_by_us(number, offset, line) or _written_by_others(number, offset, line)


_shapes: dict[tuple[tuple[str, str], ...], Shape] = {}  # each shape once, however many rows have it


def _shaped(numbers: Mapping[tuple[str, str], Any]) -> tuple[Shape, tuple[float | None, ...]]:
    names = tuple(numbers)
    if (shape := _shapes.get(names)) is None:
        shape = _shapes[names] = {
            (sys.intern(method), sys.intern(part)): place
            for place, (method, part) in enumerate(names)
        }
    return shape, tuple(map(finite, numbers.values()))


def finite(value: Any) -> float | None:
    """The number that a curve can draw: none for what is no number, a diverged one, or an
    integer beyond all floats.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _written_by_us(number: int, offset: int, line: bytes) -> Entry | None:
    """The entry of a row as we write it; None for any other."""
    head, rewards = _HEAD.match(line), line.rfind(b'"rewards": {')
    if head is None or rewards < 0:
        return None
    try:
        identity, question, group = map(_read, head.groups()[:3])
        step = None if head.group(4) == b"null" else int(head.group(4))
        numbers: dict[tuple[str, str], Any] = {}
        for match in _REWARD.finditer(line, rewards):
            method = _name_before(line, match.start())
            numbers[method, ""] = None if match.group(1) == b"null" else float(match.group(1))
            numbers.update(((method, part), paid) for part, paid in _parts(match.group(2)).items())
    except ValueError:  # not UTF-8
        return None
    failed = line.rfind(b'"error": null, "cost": ') < rewards
    label = None if failed else _OUTCOME.search(line, head.end(), rewards)
    unplaced = (
        len(found.group(1).split(b",")) if found.group(1).strip() else 0
        for found in _UNPLACED.finditer(line, rewards)
    )
    begin = line.find(b'"offsets": [', head.end())
    return Entry(
        number,
        offset,
        identity,
        sys.intern(question),
        group,
        step,
        line.count(b'"coverage":', head.end()),
        max(unplaced, default=0),
        _outcome((label.group(1) or b"").decode()) if label else None,
        line.count(b"[", begin + 12, line.find(b'"logprobs"', begin)) if begin > 0 else 0,
        head.group(6) == b'"length"',
        *_shaped(numbers),
    )


def _name_before(line: bytes, end: int) -> str:
    """The string whose closing quotation mark is there: all those inside it have a backslash
    before them.
    """
    start = line.rfind(b'"', 0, end)
    while line[start - 1 : start] == b"\\":
        start = line.rfind(b'"', 0, start)
    return _read(line[start : end + 1])


@lru_cache(maxsize=4096)
def _parts(text: bytes) -> Mapping[str, Any]:
    """The parts of a reward: few differ from row to row."""
    return dict(json.loads(text))


def _read(string: bytes) -> str:
    """A string of JSON: most hold nothing that would have to be decoded."""
    return str(json.loads(string)) if b"\\" in string else string[1:-1].decode()


def _outcome(label: Any) -> str | None:
    return next((known for known in OUTCOMES if known == label), None)


def _written_by_others(number: int, offset: int, line: bytes) -> Entry:
    """The entry of a row with its keys in another order, or of one that is damaged, which is
    told when that row is opened.
    """
    row = _object(line)
    identity, step = str(row["id"]) if "id" in row else f"damaged row {number + 1}", row.get("step")
    rewards = {
        str(name): reward for name, reward in _pairs(row.get("rewards")) if isinstance(reward, dict)
    }
    numbers: dict[tuple[str, str], Any] = {}
    for name, reward in rewards.items():
        numbers |= {
            (name, ""): reward.get("value"),
            **{(name, str(part)): paid for part, paid in _pairs(reward.get("parts"))},
        }
    verdicts = row["verdicts"] if isinstance(row.get("verdicts"), list) else ()
    outcome = next(
        (one for one in verdicts if isinstance(one, dict) and one.get("target") == "outcome"), {}
    )
    tokens = dict(_pairs(row.get("tokens"))).get("offsets")
    claims, unplaced = row.get("claims"), (reward.get("unplaced") for reward in rewards.values())
    return Entry(
        number,
        offset,
        identity,
        str(row.get("question_id")),
        str(row.get("group") or ""),
        step if type(step) is int else None,
        len(claims) if isinstance(claims, list) else 0,
        max((len(one) for one in unplaced if isinstance(one, list)), default=0),
        _outcome(outcome.get("label")) if not (row.get("error") or outcome.get("error")) else None,
        len(tokens) if isinstance(tokens, list) else 0,
        row.get("finish") == "length",
        *_shaped(numbers),
    )


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, dict) else ()


def _object(line: bytes) -> dict[str, Any]:
    """A line's object; nothing for a line that is none."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def _load(path: Path) -> Known[Index] | None:
    """What the index beside a file knows; None where there is none, or where it is a link,
    damaged or of another format.
    """
    kept = index_path(path)
    if kept.is_symlink() or not kept.is_file():
        return None
    try:
        stored = json.loads(kept.read_bytes())
        if stored["format"] != FORMAT:
            return None
        looks, index = path.stat(), Index()
        for entry in _stored_entries(stored, looks.st_size):
            index.add(entry)
        last = line_at(path, stored["begin"])
        same = (stored["modified"], stored["size"]) == (looks.st_mtime_ns, looks.st_size)
        inode, known = looks.st_ino if same else int(stored["inode"]), int(stored["scanned"])
        whole = (
            index.entries
            and index.entries[-1].offset == stored["begin"]
            and known == stored["begin"] + len(last)
        )
        changed = stored["size"] == looks.st_size and not same
        if not whole or changed or stored["last"] != _digest(last):
            return None
        return Known(
            index,
            inode,
            int(stored["modified"]),
            int(stored["size"]),
            known,
            int(stored["begin"]),
            last,
            known,
        )
    except (OSError, ArithmeticError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


_COLUMNS = (
    "offset",
    "id",
    "question",
    "group",
    "step",
    "claims",
    "unplaced",
    "outcome",
    "length",
    "cut",
)


_TEXTS, _COUNTS = ("id", "question", "group"), ("offset", "claims", "unplaced", "length")


def _stored_entries(stored: Mapping[str, Any], size: int) -> Iterator[Entry]:
    """The entries of a kept index of a file of that size; each column is checked as a whole.

    Raises:
        ValueError: a value that no entry has.
    """
    texts, counts = (
        [value for name in names for value in stored[name]] for names in (_TEXTS, _COUNTS)
    )
    if not (
        _kinds(texts) <= {str}
        and _kinds(counts) <= {int}
        and 0 <= min(counts) <= max(counts) < size
    ):
        raise ValueError("no entry")
    if not (_kinds(stored["step"]) <= {int, NoneType} and _kinds(stored["cut"]) <= {bool}):
        raise ValueError("no entry")
    shapes = [
        _shaped({(str(method), str(part)): None for method, part in names})[0]
        for names in stored["shapes"]
    ]
    rows = [shapes[place] for place in stored["shape"]]
    paid = stored["numbers"]
    numbers = list(map(tuple, paid if _are_finite(paid) else [map(finite, one) for one in paid]))
    if list(map(len, numbers)) != list(map(len, rows)):
        raise ValueError("no entry")
    columns = {
        **stored,
        "outcome": [label if label in OUTCOMES else None for label in stored["outcome"]],
    }
    return map(
        Entry._make,
        zip(range(len(rows)), *(columns[name] for name in _COLUMNS), rows, numbers, strict=True),
    )


def _are_finite(rows: Iterable[Iterable[Any]]) -> bool:
    """Whether all numbers are floats that a curve can draw, as nearly always: they are told
    without a look at each.
    """
    flat = [number for row in rows for number in row]
    return _kinds(flat) <= {float, NoneType} and all(map(math.isfinite, filter(None, flat)))


def _kinds(values: Iterable[Any]) -> set[type]:
    return set(map(type, values))


def _keep(path: Path, known: Known[Index]) -> None:
    """Write the index beside a file that has grown by much; where that cannot be done, the file
    is read anew the next time.
    """
    if known.scanned - known.kept < max(WORTH, known.kept // 4):
        return
    known.kept = known.scanned
    entries = known.state.entries
    shapes = {id(entry.shape): entry.shape for entry in entries}
    places = {key: place for place, key in enumerate(shapes)}
    stored: dict[str, Any] = {
        "format": FORMAT,
        "inode": known.inode,
        "modified": known.modified,
        "size": known.size,
    }
    stored |= {"scanned": known.scanned, "begin": known.begin, "last": _digest(known.last)}
    stored |= {"shapes": [list(shape) for shape in shapes.values()]}
    stored |= {name: [getattr(entry, name) for entry in entries] for name in _COLUMNS}
    stored |= {
        "shape": [places[id(entry.shape)] for entry in entries],
        "numbers": [entry.numbers for entry in entries],
    }
    with contextlib.suppress(OSError):
        _put(index_path(path), json.dumps(stored, separators=(",", ":")).encode())


def _put(path: Path, content: bytes) -> None:
    """Write a file in one move: a link that stands there is replaced and not followed."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise


_rows: Growing[Index] = Growing(Index, _add_entry, _load, _keep)
