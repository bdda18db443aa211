"""A cache of judge replies in a sqlite file that several processes may share."""

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.types import JsonMapping, Prompt, WorkbenchError

OURS = 0x57424A43  # sqlite's application_id
WAIT = 30.0  # seconds to wait for another process
TABLE = (
    "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, model TEXT, task TEXT, text TEXT NOT"
    " NULL) WITHOUT ROWID"
)
# a table of its own, so that earlier versions can read and write the file
P_TABLE = (
    "CREATE TABLE IF NOT EXISTS probabilities (key BLOB PRIMARY KEY, p REAL NOT NULL) WITHOUT ROWID"
)


class Cache:
    """A sqlite file that maps keys of prompts to the texts of replies.

    Each `put` is a transaction: a stored reply survives a killed process. A power cut may lose the
    latest replies, but does not damage the file.
    """

    def __init__(self, file: Path | str):
        self.file = Path(file).expanduser()
        self._lock = threading.Lock()
        # by process id, because a forked process must not use or close its parent's connection
        self._opened: dict[int, sqlite3.Connection] = {}
        self.get([])  # raises if the file exists and is not a cache

    @staticmethod
    def key(model: str, prompt: Prompt, sampling: JsonMapping) -> bytes:
        """Return the key of a prompt: a hash of the model, the prompt and the sampling settings."""
        parts = json.dumps([model, prompt.task, prompt.text, sampling], sort_keys=True)
        return hashlib.sha256(parts.encode()).digest()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Return the text of each stored reply by its key; keys without a reply are left out."""
        return self._select("SELECT key, text FROM replies WHERE key = ?", keys)

    def probabilities(self, keys: Sequence[bytes]) -> dict[bytes, float]:
        """Return the stored probability (`Reply.p`) of each reply by its key, if it has one."""
        return self._select("SELECT key, p FROM probabilities WHERE key = ?", keys)

    def _select(self, query: str, keys: Sequence[bytes]) -> dict[bytes, Any]:
        with self._lock:
            # reading does not create the file
            if os.getpid() not in self._opened and not self.file.exists():
                return {}
            try:
                execute = self._connection().execute
                return dict(row for key in keys for row in execute(query, (key,)))
            except sqlite3.Error as error:
                raise self._unusable(error) from error

    def put(
        self, key: bytes, model: str, task: str, text: str, p: float | None = None
    ) -> str | None:
        """Store one reply. Return an error message if the file cannot be written, else None.

        A text that cannot be encoded is not stored, and None is returned.

        Args:
            key: the key of the prompt, from `key`.
            text: the text of the reply.
            p: the probability `Reply.p`; None if unknown.
        """
        with self._lock:
            try:
                if p is not None:  # before the reply, because a `p` without a reply is never read
                    self._connection().execute(
                        "INSERT OR REPLACE INTO probabilities VALUES (?, ?)", (key, p)
                    )
                self._connection().execute(
                    "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", (key, model, task, text)
                )
            except (WorkbenchError, sqlite3.Error) as error:
                return str(error)
            except UnicodeError:  # only this text cannot be stored, so other replies still can
                pass
            return None

    def close(self) -> None:
        with self._lock:
            if connection := self._opened.pop(os.getpid(), None):
                connection.close()

    def _connection(self) -> sqlite3.Connection:
        if connection := self._opened.get(os.getpid()):
            return connection
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self.file, timeout=WAIT, isolation_level=None, check_same_thread=False
            )
            _prepare(connection, self.file)
        except BaseException as error:
            if connection:
                connection.close()
            if isinstance(error, OSError | sqlite3.Error):
                raise self._unusable(error) from error
            raise
        self._opened[os.getpid()] = connection
        return connection

    def _unusable(self, error: Exception) -> WorkbenchError:
        return WorkbenchError(
            f"cannot use '{self.file}' as a cache of judge replies ({error}): name another file, or"
            " delete this one"
        )


def _prepare(connection: sqlite3.Connection, file: Path) -> None:
    """Create the tables of the cache, after checking that the file is new or a cache.

    Several processes may do so at once.
    """

    def number(query: str) -> int:
        return int(connection.execute(query).fetchone()[0])

    tables = number("SELECT count(*) FROM sqlite_master")
    # read after the tables, because one transaction sets both
    if tables and number("PRAGMA application_id") != OURS:
        raise WorkbenchError(
            f"'{file}' is a database of another program, not a cache of judge replies: name another"
            " file"
        )
    # WAL allows readers during a write; if the file is locked, another process sets it
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode=WAL")
    for statement in (
        "PRAGMA synchronous=NORMAL",
        "BEGIN IMMEDIATE",
        f"PRAGMA application_id={OURS}",
        TABLE,
        P_TABLE,
        "COMMIT",
    ):
        connection.execute(statement)
