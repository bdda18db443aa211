"""Read files that are still being written: each complete line once, then only what was added."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from workbench.types import JsonObject

State = TypeVar("State")
CACHED_FILES = 16  # more than are drawn together, or each would be read again at every look
CHUNK = 1 << 26  # bytes of lines that are added at once


@dataclass
class Progress(Generic[State]):
    """How far a file was read, what it looked like then, and the state so far."""

    state: State
    look: tuple[int, int, int] = (-1, -1, -1)  # inode, modification time, size
    scanned: int = 0  # bytes
    last: bytes = b""  # the last complete line
    stored: int = 0  # bytes that an index beside the file covers


class Growing(Generic[State]):
    """The state that `add(state, offset, lines)` makes of a file's complete lines.

    A file that has only grown is read from where it ended: it is the same file, is not shorter
    and still has its last line in place. Any other is read again from `start()`. `load` returns
    the progress stored beside a file, and `store` writes it.
    """

    def __init__(
        self,
        start: Callable[[], State],
        add: Callable[[State, int, list[bytes]], State],
        load: Callable[[Path], Progress[State] | None] = lambda path: None,
        store: Callable[[Path, Progress[State]], None] = lambda path, progress: None,
        cached_files: int = CACHED_FILES,
    ) -> None:
        self.start, self.add, self.load, self.store = start, add, load, store
        self.cached_files = cached_files
        self._cache: OrderedDict[Path, Progress[State]] = OrderedDict()
        self._reading: dict[Path, Lock] = {}  # one lock a file: a large one blocks no other
        self._lock = Lock()

    def read(self, path: Path) -> State:
        """Return the state of the file as it is now, without an unfinished last line."""
        with self._file_lock(path), path.open("rb") as file:
            stat = os.fstat(file.fileno())
            look = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            progress = self._cache.get(path) or self.load(path) or Progress(self.start())
            if progress.look != look:
                file.seek(progress.scanned - len(progress.last))
                same = progress.look[0] == look[0] and progress.look[2] <= look[2]
                if not (same and file.read(len(progress.last)) == progress.last):
                    progress = Progress(self.start())
                file.seek(progress.scanned)
                whole = True
                while whole and (lines := file.readlines(CHUNK)):
                    if not (whole := lines[-1].endswith(b"\n")):  # it is still being written
                        lines.pop()
                    if lines:
                        progress.state = self.add(progress.state, progress.scanned, lines)
                        progress.scanned += sum(map(len, lines))
                        progress.last = lines[-1]
                progress.look = look
                self.store(path, progress)
            with self._lock:
                self._cache[path] = progress
                self._cache.move_to_end(path)
                while len(self._cache) > self.cached_files:
                    self._cache.popitem(last=False)
            return progress.state

    def is_cached(self, path: Path) -> bool:
        """Whether the file was read before, so that another look is quick."""
        return path in self._cache

    def _file_lock(self, path: Path) -> Lock:
        with self._lock:
            return self._reading.setdefault(path, Lock())


def add_objects(rows: list[JsonObject], _: int, lines: list[bytes]) -> list[JsonObject]:
    """The rows and those of more lines; a ValueError for a line that is not a JSON object."""
    new = [json.loads(line) for line in lines if line.strip()]
    if not all(isinstance(row, dict) for row in new):
        raise ValueError("a line is not a JSON object")
    return [*rows, *new]


def line_at(path: Path, offset: int) -> bytes:
    """Return the line that begins at a byte offset."""
    with path.open("rb") as file:
        file.seek(offset)
        return file.readline()
