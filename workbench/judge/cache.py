"""A cache of judge replies in a sqlite file that several processes may share."""

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from workbench.types import JsonMapping, Prompt, WorkbenchError

OURS = 0x57424A43  # sqlite's application_id
WAIT = 30.0  # seconds to wait for another process
CREATE = f"""
PRAGMA synchronous=NORMAL;
BEGIN IMMEDIATE;
PRAGMA application_id={OURS};
CREATE TABLE IF NOT EXISTS replies
    (key BLOB PRIMARY KEY, model TEXT, task TEXT, text TEXT NOT NULL) WITHOUT ROWID;
-- a table of its own, so that earlier versions can read and write the file
CREATE TABLE IF NOT EXISTS probabilities (key BLOB PRIMARY KEY, p REAL NOT NULL) WITHOUT ROWID;
COMMIT;
"""
SELECT = "SELECT text, p FROM replies LEFT JOIN probabilities USING (key) WHERE replies.key = ?"


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

    def get(self, keys: Sequence[bytes]) -> dict[bytes, tuple[str, float | None]]:
        """Return key -> (text, p) of the stored replies. Keys without a stored reply are left out.

        `p` is the model's probability of the first label in `wire.LABELS[task]`, such as "correct"
        for the task "verify"; None if unknown.
        """
        with self._lock:
            # reading does not create the file
            if os.getpid() not in self._opened and not self.file.exists():
                return {}
            try:
                execute = self._connection().execute
                return {key: row for key in keys for row in execute(SELECT, (key,))}
            except (OSError, sqlite3.Error) as error:
                raise WorkbenchError(
                    f"cannot use '{self.file}' as a cache of judge replies ({error}): name another"
                    " file, or delete this one"
                ) from error

    def put(
        self, key: bytes, model: str, task: str, text: str, p: float | None = None
    ) -> str | None:
        """Store one reply. Return an error message if the file cannot be written, else None.

        A text that cannot be encoded is not stored, and None is returned.

        Args:
            key: the key of the prompt, from `key`.
            model: name of the model.
            task: name of the prompt's task, such as "verify".
            text: the text of the reply.
            p: the model's probability of the first label in `wire.LABELS[task]`, such as "correct";
                None if unknown.
        """
        with self._lock:
            try:
                execute = self._connection().execute
                if p is not None:  # before the reply, because a `p` without a reply is never read
                    execute("INSERT OR REPLACE INTO probabilities VALUES (?, ?)", (key, p))
                execute(
                    "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", (key, model, task, text)
                )
            except (WorkbenchError, OSError, sqlite3.Error) as error:
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
        self.file.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            self.file, timeout=WAIT, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, self.file)
        except BaseException:
            connection.close()
            raise
        self._opened[os.getpid()] = connection
        return connection


def _prepare(connection: sqlite3.Connection, file: Path) -> None:
    """Create the tables of the cache, after checking that the file is new or a cache.

    Several processes may do so at once.
    """
    [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    # read after the tables, because one transaction sets both
    [owner] = connection.execute("PRAGMA application_id").fetchone()
    if tables and owner != OURS:
        raise WorkbenchError(
            f"'{file}' is a database of another program, not a cache of judge replies: name another"
            " file"
        )
    # WAL allows readers during a write; if the file is locked, another process sets it
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode=WAL")
    connection.executescript(CREATE)
