"""Replies on disk: one sqlite file that many processes may share and that survives being killed."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.types import Prompt, WorkbenchError

OURS = 0x57424A43  # sqlite's application_id
VERSION = 1  # its user_version: 0 kept an endpoint's replies without its address
WAIT = 30.0  # seconds that one process waits for another
TABLE = (
    "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, model TEXT, task TEXT, text TEXT NOT"
    " NULL) WITHOUT ROWID"
)


class Cache:
    """Texts by key. Every `put` is a transaction of its own: durable against the end of the
    process when it returns (a power cut may take the last ones, never the file)."""

    def __init__(self, file: Path | str):
        self.file = Path(file).expanduser()
        self._lock = threading.Lock()
        self._opened: dict[int, sqlite3.Connection] = {}  # by process
        self._warned = False
        with self._lock:
            self._connection()

    def __repr__(self) -> str:
        return f"Cache({str(self.file)!r})"

    @staticmethod
    def key(model: str, prompt: Prompt, sampling: Mapping[str, Any]) -> bytes:
        parts = json.dumps([model, prompt.task, prompt.text, sampling], sort_keys=True)
        return hashlib.sha256(parts.encode()).digest()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """The stored texts of those keys that there are."""
        texts: dict[bytes, str] = {}
        with self._lock:
            if self._absent():
                return texts
            try:
                for part in _parts(keys, 500):
                    places = ",".join("?" * len(part))
                    texts.update(
                        self._connection()
                        .execute(f"SELECT key, text FROM replies WHERE key IN ({places})", part)
                        .fetchall()
                    )
            except sqlite3.Error as error:
                raise self._unusable(error) from error
        return texts

    def put(self, key: bytes, model: str, task: str, text: str) -> bool:
        """Store one reply. It was paid for, so a full disk does not lose it: that is a warning,
        once.

        Returns whether others can be stored: False where the file takes nothing more.
        """
        with self._lock:
            try:
                self._connection().execute(
                    "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", (key, model, task, text)
                )
            except (WorkbenchError, sqlite3.Error, UnicodeError) as error:
                if not self._warned:
                    warnings.warn(
                        f"replies are not stored in '{self.file}': {error}",
                        RuntimeWarning,
                        stacklevel=2,
                    )
                self._warned = True
                return isinstance(error, UnicodeError)  # this text alone is at fault
            return True

    def __len__(self) -> int:
        with self._lock:
            if self._absent():
                return 0
            return int(self._connection().execute("SELECT count(*) FROM replies").fetchone()[0])

    def __bool__(self) -> bool:
        return True

    def close(self) -> None:
        with self._lock:
            if connection := self._opened.pop(os.getpid(), None):
                connection.close()

    def _absent(self) -> bool:
        """Whether it was closed and removed: to look for a reply is then no reason to make it
        again.
        """
        return os.getpid() not in self._opened and not self.file.exists()

    def _connection(self) -> sqlite3.Connection:
        """The connection of this process: after a fork, that of the parent must be neither used
        nor closed.
        """
        if os.getpid() not in self._opened:
            self._opened[os.getpid()] = self._open()
        return self._opened[os.getpid()]

    def _open(self) -> sqlite3.Connection:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self.file, timeout=WAIT, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error
        try:
            _prepare(connection, self.file)
        except sqlite3.Error as error:
            connection.close()
            raise self._unusable(error) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _unusable(self, error: Exception) -> WorkbenchError:
        return WorkbenchError(
            f"cannot use '{self.file}' as a cache of judge replies ({error}): name another file, or"
            " delete it to start anew"
        )


def _prepare(connection: sqlite3.Connection, file: Path) -> None:
    """Check that the file is empty or ours, and set it up. Several processes may do so at once."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    # after the tables: both are made in one transaction
    (program,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if tables and program != OURS:
        raise WorkbenchError(
            f"'{file}' is the database of another program: name another file for the cache"
        )
    if (
        tables
        and version < VERSION
        and connection.execute("SELECT count(*) FROM replies").fetchone()[0]
    ):
        warnings.warn(
            f"'{file}' holds replies of an earlier version, which did not note the address of their"
            " endpoint: an endpoint is asked again",
            RuntimeWarning,
            stacklevel=2,
        )
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id={OURS}")
    connection.execute(f"PRAGMA user_version={VERSION}")
    connection.execute(TABLE)
    connection.execute("COMMIT")


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Readers and one writer side by side. sqlite does not wait by itself for the change of
    mode.
    """
    until = time.monotonic() + WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
        time.sleep(0.01)


def _parts(keys: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))
