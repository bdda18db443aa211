"""Read files that are still being written.

A later read of the same file reads only the new complete lines.
"""

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
CACHED_FILES = 16  # more files than a page shows; with fewer, each refresh would read files again
CHUNK = 1 << 26  # bytes of lines added at once, which limits memory


@dataclass
class Progress(Generic[State]):
    """State computed from the lines of a file so far, and the position up to which it was read."""

    state: State
    stamp: tuple[int, int, int] = (-1, -1, -1)  # inode, modification time (ns), size (bytes)
    scanned: int = 0  # bytes
    last: bytes = b""  # the last complete line
    stored: int = 0  # bytes covered by the stored index


class Growing(Generic[State]):
    """Reader for growing files that computes a state, such as a list of rows, from their lines.

    Each read adds only the new lines. If a file was replaced, shortened or edited instead of only
    extended, it is read again from its beginning.

    Args:
        start: returns the state of an empty file.
        add: (state, offset of the first new line in bytes, new lines) -> new state.
        load: returns the `Progress` that `store` wrote for a file; None if there is none, which is
            the default.
        store: writes a file's `Progress` to the disk, where another process can `load` it. By
            default, nothing is written.
        cached_files: number of files whose state stays in memory.
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
        self._file_locks: dict[Path, Lock] = {}  # per file, so a large file blocks no other
        self._lock = Lock()

    def read(self, path: Path) -> State:
        """Read the new lines of a file, and return its state, such as a list of its rows."""
        with self._file_lock(path), path.open("rb") as file:
            stat = os.fstat(file.fileno())
            stamp = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            progress = self._cache.get(path) or self.load(path) or Progress(self.start())
            if progress.stamp != stamp:
                file.seek(progress.scanned - len(progress.last))
                # grown: the same inode, longer, and the previously last line at its place, because
                # an editor may rewrite a file in place
                longer = progress.stamp[0] == stamp[0] and progress.stamp[2] < stamp[2]
                if not (longer and file.read(len(progress.last)) == progress.last):
                    progress = Progress(self.start())
                file.seek(progress.scanned)
                complete = True
                while complete and (lines := file.readlines(CHUNK)):
                    if not (complete := lines[-1].endswith(b"\n")):  # still being written
                        lines.pop()
                    if lines:
                        progress.state = self.add(progress.state, progress.scanned, lines)
                        progress.scanned += sum(map(len, lines))
                        progress.last = lines[-1]
                progress.stamp = stamp
                self.store(path, progress)
            with self._lock:
                self._cache[path] = progress
                self._cache.move_to_end(path)
                while len(self._cache) > self.cached_files:
                    self._cache.popitem(last=False)
            return progress.state

    def is_cached(self, path: Path) -> bool:
        """Return whether a file's state is in memory, so that reading the file is fast."""
        return path in self._cache

    def _file_lock(self, path: Path) -> Lock:
        with self._lock:
            return self._file_locks.setdefault(path, Lock())


def add_objects(rows: list[JsonObject], _: int, lines: list[bytes]) -> list[JsonObject]:
    """Return `rows` followed by the JSON objects in `lines`; for use as `add` in `Growing`.

    Raises:
        ValueError: a line is not a JSON object.
    """
    new = [json.loads(line) for line in lines if line.strip()]
    if not all(isinstance(row, dict) for row in new):
        raise ValueError("a line is not a JSON object")
    return [*rows, *new]


def line_at(path: Path, offset: int) -> bytes:
    """Return the line of a file that begins at a byte offset."""
    with path.open("rb") as file:
        file.seek(offset)
        return file.readline()
