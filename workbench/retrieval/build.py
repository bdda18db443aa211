"""Build an index from pages in steps, so that a stopped build can be resumed.

The file `index.json` is the *card* of the index: its settings, and whether the index is complete.
The database `build.sqlite` has the state of the build: the position in the source, hashes of the
pages read so far, and the unreadable rows.

A step first writes its passages, then commits the state. A resumed build deletes passages that were
written after the last commit, so each passage is stored once.
"""

import contextlib
import hashlib
import shutil
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.retrieval.encoder import encoder_name, load_encoder
from workbench.retrieval.index import (
    CARD,
    ROOT,
    SCHEMA,
    TABLE,
    build_command,
    connect,
    index_folder,
    read_card,
)
from workbench.retrieval.sources import Page, Source, open_source
from workbench.retrieval.words import hidden_words, split_page, title_key
from workbench.types import JsonMapping, JsonObject, WorkbenchError
from workbench.util.disk import check_space
from workbench.util.jsonl import remove_new_folders_on_error, write_json

if TYPE_CHECKING:
    import pyarrow
    from lancedb.table import Table

STATE, LOCK = "build.sqlite", "build.lock"
STEP, STEP_ENCODED = 8192, 256  # passages per step, without and with vectors
EXACT = 50_000  # an index with more vectors gets an approximate vector index
SHOWN = 20  # failures that the card lists

# called with the phase ("reading" or "indexing"), the rows read and the passages so far
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Settings:
    """Settings of an index: maximum words per passage, and the encoder for vectors (or None)."""

    words: int
    encoder: str | None


def build_index(
    name: str | Path,
    source: str | Path | Source,
    encoder: str | None = None,
    words: int = 100,
    root: Path | str = ROOT,
    progress: Progress | None = None,
) -> JsonObject:
    """Build an index, or resume an unfinished build; return the content of its `index.json`.

    If the index is already complete, with the same source and settings, nothing is built.

    Args:
        name: a name under `root`, or a path.
        source: a file, a folder, `hf:DATASET` for a hub data set, `world` for the generated pages
            of the closed world, or the result of `open_source`.
        encoder: sentence-transformers model for vectors; None builds an index for text search only.
        words: maximum number of words of a passage; 0 makes each page one passage.
        progress: called as `progress("reading" or "indexing", rows, passages)`, with the numbers of
            rows read and of passages stored so far; None for no calls.

    Raises:
        WorkbenchError: the source cannot be read or has no page, the encoder cannot be loaded, or
            the folder has an index of another source or settings, or other files.
    """
    folder, settings = index_folder(name, root), Settings(words, encoder_name(encoder))
    card = read_card(folder)
    opened = source if isinstance(source, Source) else open_source(source)
    _check_same(folder, card, opened, settings)
    if card and card["status"] == "complete":
        return card
    if settings.encoder:
        load_encoder(settings.encoder)  # fails before the first page is read, not after a long job
    if not card:
        check_space(folder, opened.size, "build it under a --root on another disk")
        # raises for a source with the wrong columns before anything is written
        next(opened.pages(0), None)
    with remove_new_folders_on_error(folder), _locked(folder):
        # another process may have built the index since the card was read
        card = read_card(folder) or _begin(folder, opened, settings)
        _check_same(folder, card, opened, settings)
        return (
            card
            if card["status"] == "complete"
            else _build(folder, card, opened, settings, progress or (lambda *_: None))
        )


def _check_same(folder: Path, card: JsonMapping | None, source: Source, settings: Settings) -> None:
    if card is None:
        if folder.exists() and any(
            # left by a build that was killed before its card was written
            path.name not in (LOCK, f".{CARD}.tmp")
            for path in folder.iterdir()
        ):
            raise WorkbenchError(
                f"{folder} contains something that is not an index: choose another name"
            )
        return
    same_source = card["source"]["fingerprint"] == source.fingerprint
    if same_source and (card["words"], card["encoder"]) == (settings.words, settings.encoder):
        return
    raise WorkbenchError(
        f"the index {folder} was built from {card['source']['spec']} (words {card['words']},"
        f" encoder {card['encoder'] or 'none'}), which differs from {source.spec} as it is now"
        f" (words {settings.words}, encoder {settings.encoder or 'none'}): choose another name, or"
        " delete that folder first"
    )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of an index folder, so that one process at a time builds the index.

    If the process ends in any way, the lock is released.

    Raises:
        WorkbenchError: another process holds the lock.
    """
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise WorkbenchError(
                f"the index {folder} is being built by another process: wait for it"
            ) from None
        yield


def _begin(folder: Path, source: Source, settings: Settings) -> JsonObject:
    card = {
        "schema": SCHEMA,
        "status": "building",
        "source": {"spec": source.spec, "fingerprint": source.fingerprint},
        "words": settings.words,
        "encoder": settings.encoder,
        "command": build_command(folder, source.spec, settings.words, settings.encoder),
    }
    write_json(folder / CARD, card)
    return card


def _build(
    folder: Path, card: JsonMapping, source: Source, settings: Settings, progress: Progress
) -> JsonObject:
    started = time.monotonic()
    with contextlib.closing(_State(folder / STATE)) as state:
        table = None
        if state["passages"]:  # otherwise the table is created again
            table = connect(folder).open_table(TABLE)
            table.delete(f"row > {state['row']}")  # written after the last commit
        progress("reading", state["row"], state["passages"])
        for rows, number in _steps(source, settings, state):
            if rows:
                batch = _arrow(rows, settings.encoder)
                if table is None:
                    table = connect(folder).create_table(TABLE, batch, mode="overwrite")
                else:
                    table.add(batch)
            # after the table: a kill in between repeats this step
            state.commit(number, len(rows), time.monotonic() - started)
            started = time.monotonic()
            progress("reading", number, state["passages"])
        progress("indexing", state["row"], state["passages"])
        counts = {
            name: state[name] for name in ("pages", "passages", "empty", "duplicates", "failed")
        }
        seconds, failures = state["milliseconds"] / 1000, state.failures(source.unit)
    if table is None:
        problem = f"; the first problem: {failures[0]}" if failures else ""
        shutil.rmtree(folder)
        raise WorkbenchError(
            f"{source.spec} has no page with text{problem}: no index was built; check the field"
            " 'text' of its rows"
        )
    # the state stays until the card is complete, so that a kill repeats the indexing
    _finish(table, counts["passages"] if settings.encoder else 0)
    final_card = {
        **card,
        "status": "complete",
        **counts,
        "failures": failures[:SHOWN],
        "seconds": round(seconds + time.monotonic() - started, 1),
    }
    write_json(folder / CARD, final_card)
    (folder / STATE).unlink()
    return final_card


def _steps(
    source: Source, settings: Settings, state: "_State"
) -> Iterator[tuple[list[JsonObject], int]]:
    """Yield (passages, number of the last row read) for each step of a build.

    A step has about `STEP` passages, or `STEP_ENCODED` if the index has vectors. It ends at the end
    of a page.
    """
    step, rows, number = STEP_ENCODED if settings.encoder else STEP, [], state["row"]
    seen_at = number
    for number, page in source.pages(seen_at):
        if new := state.admit(number, page):
            rows += [
                {
                    "id": f"{new.id}:{part}",
                    "row": number,
                    "title": new.title,
                    "key": title_key(new.title),
                    "text": text,
                }
                for part, text in enumerate(split_page(new.text, settings.words))
            ]
        # store the position after many empty rows, too
        if len(rows) >= step or number - seen_at >= 100 * step:
            yield rows, number
            rows, seen_at = [], number
    yield rows, number


def _arrow(rows: list[JsonObject], encoder: str | None) -> "pyarrow.Table":
    """Return passages as a table for LanceDB.

    The column `body` has the title, the text and, after a NUL, the `hidden_words`. With an encoder,
    the column `vector` has the vector of title and text.
    """
    import pyarrow as pa

    plain = [f"{row['title']}\n{row['text']}" for row in rows]
    body = [f"{text}\0\n{hidden}" if (hidden := hidden_words(text)) else text for text in plain]
    columns = {
        name: pa.array([row[name] for row in rows]) for name in ("id", "row", "title", "key")
    } | {"body": pa.array(body)}
    if encoder:
        vectors = load_encoder(encoder)(plain)
        columns["vector"] = pa.FixedSizeListArray.from_arrays(
            pa.array(vectors.ravel()), vectors.shape[1]
        )
    return pa.table(columns)


def _finish(table: "Table", vectors: int) -> None:
    """Compact the table and create its search indexes. A resumed build calls this function again.

    ICU splits the texts into words; it is part of LanceDB, so nothing is downloaded. Stop words are
    kept: a band may be called The Who. Positions are not stored, so there is no phrase search.

    Args:
        vectors: number of vectors; 0 if the index has no vectors.
    """
    from lancedb.index import FTS, BTree, IvfRq

    with warnings.catch_warnings():
        # the warning is about concurrent readers, which an incomplete index does not have
        warnings.simplefilter("ignore", UserWarning)
        table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
    table.create_index("key", config=BTree())
    if vectors > EXACT:
        table.create_index("vector", config=IvfRq(distance_type="cosine"))
    table.create_index(
        "body", config=FTS(base_tokenizer="icu/split", remove_stop_words=False, with_position=False)
    )


class _State:
    """The state of a build, in SQLite. If the process is killed, the last `commit` remains.

    `state[name]` is a count, such as "pages" or "row"; 0 if it was never set.
    """

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path)
        self._db.executescript(
            "CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, value INTEGER) WITHOUT"
            " ROWID;CREATE TABLE IF NOT EXISTS seen (hash INTEGER PRIMARY KEY);CREATE TABLE IF NOT"
            " EXISTS failures (row INTEGER PRIMARY KEY, message TEXT);"
        )
        self._counts: dict[str, int] = dict(self._db.execute("SELECT name, value FROM counts"))

    def __getitem__(self, name: str) -> int:
        return self._counts.get(name, 0)

    def admit(self, number: int, page: Page | str) -> Page | None:
        """Count a page, and return it if it has text and is new; otherwise return None.

        A page with the title and text of an earlier page counts as a duplicate. A page with only
        the id of an earlier page counts as failed.

        Args:
            number: number of the page's row in the source.
            page: the page; for a row that cannot be read, the reason as text. Such a row counts as
                failed.
        """
        kind = "failed" if isinstance(page, str) else self._kind(page)
        self._counts[kind] = self[kind] + 1
        if kind == "failed":
            if isinstance(page, Page):
                page = f"an earlier page with another text has the id '{page.id[:80]}' too"
            self._db.execute("INSERT OR REPLACE INTO failures VALUES (?, ?)", (number, page))
        return page if kind == "pages" and isinstance(page, Page) else None

    def _kind(self, page: Page) -> str:
        """Return the counter to increase for a page: "pages", "empty", "duplicates" or "failed"."""
        if not page.text.strip():
            return "empty"
        hashes = _hash(f"content {page.title}\n{page.text}"), _hash(f"id {page.id}")
        for number, kind in zip(hashes, ("duplicates", "failed"), strict=True):
            if self._db.execute("SELECT 1 FROM seen WHERE hash = ?", (number,)).fetchone():
                return kind
        self._db.executemany("INSERT INTO seen VALUES (?)", [(number,) for number in hashes])
        return "pages"

    def commit(self, row: int, passages: int, seconds: float) -> None:
        """Store the progress of the build on disk; a resumed build continues after this point.

        Args:
            row: number of the last row that was read from the source.
            passages: number of passages that were added since the last commit.
            seconds: time since the last commit.
        """
        self._counts |= {"row": row, "passages": self["passages"] + passages}
        self._counts["milliseconds"] = self["milliseconds"] + round(1000 * seconds)
        self._db.executemany("INSERT OR REPLACE INTO counts VALUES (?, ?)", self._counts.items())
        self._db.commit()

    def failures(self, unit: str) -> list[str]:
        """Return a text for each of the first 20 (`SHOWN`) failed rows, such as "line 3: …".

        `unit` is what a row of the source is called: "line", "row" or "file".
        """
        rows = self._db.execute("SELECT row, message FROM failures ORDER BY row LIMIT ?", (SHOWN,))
        return [f"{unit} {row}: {message}" for row, message in rows]

    def close(self) -> None:
        self._db.close()


def _hash(value: str) -> int:
    """Return an 8-byte hash of a text.

    With 20 million pages (two hashes each), about one build in 20,000 has a collision.
    """
    return int.from_bytes(
        hashlib.blake2b(value.encode(), digest_size=8).digest(), "big", signed=True
    )
