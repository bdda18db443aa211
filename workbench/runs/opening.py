"""A large record while it is opened: its last rows at once, and all of them as soon as a thread
has read them.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from threading import Lock, Thread

from workbench.runs.rows import Index, index_path, is_quick, read_index, tail_index

PATIENCE = 1.0  # seconds from the beginning that the whole is waited for
# where an index lies beside the record: reading it is sooner done than counting the rows before the
# last ones
INDEXED = 3.0
TAIL = 8_000_000  # bytes of the rows that are shown meanwhile

_readers: dict[Path, tuple[Thread, float]] = {}  # and when each began
_tails: dict[Path, tuple[tuple[int, int], Index]] = {}  # how each file looked, and its last rows
_turns: dict[Path, Lock] = {}  # of each file: one whose last rows are read holds up no other
_lock = Lock()


def opened_index(path: Path) -> Index:
    """The index of a file of rows; of one that takes longer to read, that of its last rows,
    which says how many are missing.
    """
    if not is_quick(path):
        began, patience = time.monotonic(), INDEXED if index_path(path).is_file() else PATIENCE
        if patience == PATIENCE and not _is_being_read(path):
            # before the other thread computes: beside it this would take several times as long
            _tail(path)
        reader, began = _reader(path, began)
        reader.join(max(0.0, began + patience - time.monotonic()))
        if reader.is_alive() and (tail := _tail(path)).entries:
            return tail
        reader.join()
    # at hand now; or what the reader ran into, for whoever asks
    known, index = _tails.pop(path, None), read_index(path)
    if known and known[1].entries == index.entries[known[1].missing : known[1].rows]:
        # what was paid of its rows is not paid again
        index.memory.setdefault("paid", known[1].memory.get("paid", {}))
    return index


def at_hand(path: Path) -> bool:
    """Whether the index takes no time; one that lies beside its file is read for the next time
    that this is asked.
    """
    waiting = index_path(path).is_file() and path not in _readers
    if (
        waiting
        and not is_quick(path)
        and not any(thread.is_alive() for thread, _ in list(_readers.values()))
    ):
        _reader(path, time.monotonic())
    return is_quick(path)


def _is_being_read(path: Path) -> bool:
    return path in _readers and _readers[path][0].is_alive()


def _reader(path: Path, began: float) -> tuple[Thread, float]:
    """The thread that reads a file, which goes on when nobody waits for it; one that is begun
    now says that it began then.
    """
    with _lock:
        if not _is_being_read(path):
            _readers[path] = Thread(target=_read, args=(path,), daemon=True), began
            _readers[path][0].start()
        return _readers[path]


def _read(path: Path) -> None:
    with contextlib.suppress(Exception):  # raised anew where the index is asked for
        read_index(path)


def _tail(path: Path) -> Index:
    """The last rows, read once for as long as the file looks the same."""
    with _lock:
        turn = _turns.setdefault(path, Lock())
    with turn:
        stat = path.stat()
        look, known = (stat.st_size, stat.st_mtime_ns), _tails.get(path)
        if known is None or known[0] != look:
            known = _tails[path] = look, tail_index(path, TAIL)
        return known[1]
