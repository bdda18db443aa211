"""What is known of a file that may be growing: each of its lines is looked at once, and only its
latest state is kept.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

State = TypeVar("State")
# files whose state is remembered: more than are drawn together, or each would be read anew at every
# look
KEPT = 16


@dataclass
class Known(Generic[State]):
    """How far a file was read, how it looked then, and what came of it."""

    state: State
    inode: int = -1
    modified: int = -1
    size: int = 0
    scanned: int = 0  # bytes
    begin: int = 0  # where the last complete line begins
    last: bytes = b""  # that line
    kept: int = 0  # bytes that what lies beside the file knows of


class Growing(Generic[State]):
    """The state that `add(state, offset, line)` makes of a file's complete lines, beginning with
    `start()`.

    A file that has only grown is read from where it ended: it is taken to have only grown if it
    is the same file, is no shorter and still has its last line where it was. Any other is read
    anew. The state is the same object from one read to the next and grows in place, also while
    another thread looks at it. `load` may know of a file from before this process, and `keep` is
    told what is known after each growth.
    """

    def __init__(
        self,
        start: Callable[[], State],
        add: Callable[[State, int, bytes], None],
        load: Callable[[Path], Known[State] | None] = lambda path: None,
        keep: Callable[[Path, Known[State]], None] = lambda path, known: None,
    ) -> None:
        self.start, self.add, self.load, self.keep = start, add, load, keep
        self._known: OrderedDict[Path, Known[State]] = OrderedDict()
        self._lock = Lock()
        # of each file: a large one that is read holds up no other
        self._reading: dict[Path, Lock] = {}

    def read(self, path: Path) -> State:
        """The state of the file as it is now; a last line that is still being written is left
        for the next time.
        """
        with self._turn(path), _uncollected(), path.open("rb") as file:
            looks = os.fstat(file.fileno())
            known = self._known.get(path) or self.load(path) or Known(self.start())
            if (known.inode, known.modified, known.size) != (
                looks.st_ino,
                looks.st_mtime_ns,
                looks.st_size,
            ):
                file.seek(known.begin)
                grown = known.inode == looks.st_ino and known.size <= looks.st_size
                if not (grown and file.read(len(known.last)) == known.last):
                    known = Known(self.start())
                file.seek(known.scanned)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    if line.strip():
                        self.add(known.state, known.scanned, line)
                        known.begin, known.last = known.scanned, line
                    known.scanned += len(line)
                known.inode, known.modified, known.size = (
                    looks.st_ino,
                    looks.st_mtime_ns,
                    looks.st_size,
                )
                self.keep(path, known)
            self._remember(path, known)
            return known.state

    def _turn(self, path: Path) -> Lock:
        with self._lock:
            return self._reading.setdefault(path, Lock())

    def _remember(self, path: Path, known: Known[State]) -> None:
        with self._lock:
            self._known[path] = known
            self._known.move_to_end(path)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)

    def known(self, path: Path) -> bool:
        """Whether the file was read already, so that another look is quick."""
        return path in self._known


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """No search for garbage among the many objects that are made and stay: it would take as long
    as they do.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def line_at(path: Path, offset: int) -> bytes:
    """The line that begins there."""
    with path.open("rb") as file:
        file.seek(offset)
        return file.readline()
