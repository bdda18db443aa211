"""Stored runs as the inspector reads them: only under one folder, only what is asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from workbench.jsonl import iter_rows, read_page
from workbench.score.record import settings_path
from workbench.store import PASSAGES, QUESTIONS, ROLLOUTS, read_passages, read_questions
from workbench.types import Feedback, Passage, Question, WorkbenchError

DEPTH = 3  # how deep below the runs folder a run may lie
INSIDE = {"checkpoints", "policy"}  # folders of a run: no runs are looked for in them

# The head of a row as `Feedback.to_row` writes it: enough for an index, without decoding what follows.
_STRING = rb'("(?:[^"\\]|\\.)*")'
_HEAD = re.compile(
    rb'\{"schema": \d+, "id": %s, "question_id": %s, "group": %s, "sample": \d+, "step": (\d+|null),' % ((_STRING,) * 3)
)
_UNPLACED = re.compile(rb'"unplaced": \[([^\]]*)\]')


@dataclass(frozen=True)
class Entry:
    """One stored row: its place in the file, and what lists and curves need of it."""

    number: int
    id: str
    group: str
    step: int | None
    claims: int
    unplaced: int  # by the method that could place least


@dataclass(frozen=True)
class Index:
    """The rows of a run by id, by group and by step."""

    entries: tuple[Entry, ...]
    by_id: dict[str, Entry] = field(repr=False)
    by_group: dict[str, list[Entry]] = field(repr=False)
    by_step: dict[int | None, list[Entry]] = field(repr=False)


class Runs:
    """The runs below `root`. A run is named by its path from there; whatever leads elsewhere is refused."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def names(self) -> list[str]:
        """The runs that have recorded anything, sorted by name."""
        return sorted(folder.relative_to(self.root).as_posix() for folder in self._walk(self.root, 0))

    def folder(self, name: str) -> Path:
        """The folder of a run.

        Raises:
            WorkbenchError: the name leads out of the runs folder, through a link, or to no run.
        """
        parts = Path(name).parts
        folder = self.root.joinpath(*parts)
        refused = Path(name).is_absolute() or ".." in parts or "\0" in name or len(parts) > DEPTH
        if refused or any(path.is_symlink() for path in self._below(folder)):
            raise WorkbenchError(f"'{name}' is not below the runs folder: name a run of the list")
        if not (folder / ROLLOUTS).is_file() or any((folder / file).is_symlink() for file in (ROLLOUTS, QUESTIONS, PASSAGES)):
            raise WorkbenchError(f"no run '{name}' with a {ROLLOUTS} in the runs folder: name a run of the list")
        return folder

    def index(self, name: str) -> Index:
        path = self.folder(name) / ROLLOUTS
        stat = path.stat()
        return _index(path, stat.st_size, stat.st_mtime_ns)

    def entry(self, name: str, row: str) -> Entry:
        """The entry of a row's id."""
        found = self.index(name).by_id.get(row)
        if found is None:
            raise WorkbenchError(f"run '{name}' has no row '{row[:80]}': choose one of its list")
        return found

    def feedback(self, name: str, entry: Entry) -> tuple[Feedback, tuple[float, ...]]:
        """A row, and the probability ratios of its tokens if the run stores them."""
        folder = self.folder(name)
        row = read_page(folder / ROLLOUTS, entry.number, 1)[0]
        asked = str(row.get("question_id"))
        question = self.questions(name).get(asked) or Question(asked, "")
        try:
            return Feedback.from_row(row, question), tuple(row["tokens"].get("ratios", ()))
        except (KeyError, TypeError, ValueError) as error:
            raise WorkbenchError(f"row {entry.number + 1} of run '{name}' is not a feedback row ({error!r})") from None

    def group(self, name: str, entry: Entry) -> list[Feedback]:
        """The responses to the same prompt, this one among them; alone where the row names no group."""
        members = self.index(name).by_group[entry.group] if entry.group else [entry]
        return [self.feedback(name, member)[0] for member in members[:64]]

    def questions(self, name: str) -> dict[str, Question]:
        path = self.folder(name) / QUESTIONS
        if not path.exists():
            return {}
        stat = path.stat()
        return _questions(path.parent, stat.st_size, stat.st_mtime_ns)

    def passages(self, name: str) -> dict[str, Passage]:
        """The passages beside the rows, by id."""
        path = self.folder(name) / PASSAGES
        if not path.exists():
            return {}
        stat = path.stat()
        return _passages(path.parent, stat.st_size, stat.st_mtime_ns)

    def metrics(self, name: str) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl; none where the run was not trained."""
        path = self.folder(name) / "metrics.jsonl"
        return list(iter_rows(path)) if path.is_file() and not path.is_symlink() else []

    def described(self, name: str, file: str) -> dict[str, Any]:
        """A JSON file of the run ("config.json", "summary.json"), or nothing."""
        path = self.folder(name) / file
        try:
            return _mapping(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() and not path.is_symlink() else {}
        except ValueError:
            return {}

    def settings(self, name: str) -> dict[str, dict[str, Any]]:
        """By method, the settings that the run was trained or scored with, as far as they are stored."""
        trained, scored = self.described(name, "config.json"), self.described(name, settings_path(Path(ROLLOUTS)).name)
        by_method = {**_mapping(scored.get("config")), str(trained.get("method")): trained.get("config")}
        return {method: _mapping(config) for method, config in by_method.items()}

    def _walk(self, folder: Path, depth: int) -> Iterator[Path]:
        if depth > DEPTH or not folder.is_dir():
            return
        if depth and (folder / ROLLOUTS).is_file():
            yield folder
            return
        for below in folder.iterdir():
            if below.is_dir() and not below.is_symlink() and below.name not in INSIDE and not below.name.startswith("."):
                yield from self._walk(below, depth + 1)

    def _below(self, folder: Path) -> list[Path]:
        """The folder and its parents below the root."""
        return [path for path in (folder, *folder.parents) if path != self.root and self.root in path.parents]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


@lru_cache(maxsize=8)
def _index(path: Path, size: int, modified: int) -> Index:
    entries = tuple(_entries(path))
    by_group: dict[str, list[Entry]] = {}
    by_step: dict[int | None, list[Entry]] = {}
    for entry in entries:
        by_group.setdefault(entry.group, []).append(entry)
        by_step.setdefault(entry.step, []).append(entry)
    return Index(entries, {entry.id: entry for entry in entries}, by_group, by_step)


def _entries(path: Path) -> Iterator[Entry]:
    number = 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):  # still being written
                return
            if line.strip():
                yield _entry(number, line)
                number += 1


def _entry(number: int, line: bytes) -> Entry:
    head = _HEAD.match(line)
    if head:
        identity, _, group, step = (json.loads(part) for part in head.groups())
    else:  # written by others, with its keys in another order
        row = _row(line)
        identity, group, step = str(row.get("id")), str(row.get("group") or ""), row.get("step")
    unplaced = (len(found.group(1).split(b",")) if found.group(1).strip() else 0 for found in _UNPLACED.finditer(line))
    return Entry(number, identity, group, step, line.count(b'"coverage":'), max(unplaced, default=0))


def _row(line: bytes) -> dict[str, Any]:
    """A line's object; nothing for a line that is none, which is told when that row is opened."""
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


@lru_cache(maxsize=8)
def _questions(folder: Path, size: int, modified: int) -> dict[str, Question]:
    return read_questions(folder)


@lru_cache(maxsize=8)
def _passages(folder: Path, size: int, modified: int) -> dict[str, Passage]:
    return read_passages(folder)
