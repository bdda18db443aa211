"""Open a finished index of passages and search it by text, by vectors, or by both."""

from __future__ import annotations

import os
import re
import shlex
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.retrieval.encoder import load_encoder
from workbench.retrieval.in_memory import InMemoryIndex
from workbench.retrieval.words import (
    clean,
    hidden_words,
    known_titles,
    strict_title,
    title_key,
)
from workbench.runs.folder import read_json
from workbench.types import JsonMapping, JsonObject, Passage, WorkbenchError
from workbench.util.grouping import split_batches

if TYPE_CHECKING:
    import numpy as np
    from lancedb import DBConnection
    from lancedb.table import Table

ROOT = Path("runs/indexes")
CARD, TABLE, SCHEMA = "index.json", "passages", 1
NEEDED = ("status", "source", "words", "encoder", "command")  # required keys of a card
MOST_WORDS, MOST_CHARACTERS = 256, 4096  # of a query; the rest is ignored
FUSED, RRF = 50, 60  # length of each list for fusion; the constant of Cormack et al. 2009
# 8 · k passages are read, so that equal scores can be ordered by id: a search returns them in any
# order. If more passages have the same score, the order is incomplete.
DEEPER = 8
# of the vector index: the number of cells that are read; 10 · k vectors are compared exactly
PROBES, REFINE = 32, 10
THREADS = 4

Mode = Literal["text", "dense", "hybrid"]


@dataclass(frozen=True)
class Index:
    """A finished index of passages on disk.

    Attributes:
        folder: the LanceDB directory.
        card: source, settings and counts of the index: the content of `index.json`.
    """

    folder: Path
    card: JsonMapping = field(repr=False)

    def __len__(self) -> int:
        return self.card["passages"]

    def search(
        self,
        queries: Sequence[str],
        k: int,
        titles: Sequence[str | None] | None = None,
        mode: Mode = "text",
    ) -> list[list[Passage]]:
        """Return a list of the best `k` passages for each query, best first.

        Repeated words of a query count once, and words after the first 256 are ignored. Passages
        with equal scores are ordered by id. The score of a passage depends on `mode`:

        * "text": BM25. If a title limits the query, the word weights (IDF) are computed from the
          passages of the title's pages.
        * "dense": cosine similarity of the vectors.
        * "hybrid": Σ 1 / (60 + rank), summed over the rankings by "text" and by "dense".

        Args:
            titles: for each query, the title of the pages to search, or several titles joined by
                ";". A query with None or "" searches all pages. By default, all queries do.

        Raises:
            WorkbenchError: `queries` or `titles` is a string instead of a list, or the mode is
                unknown or needs vectors that the index lacks.
        """
        if isinstance(queries, str) or isinstance(titles, str):
            raise WorkbenchError(
                "search takes a list of queries and an optional list of titles, and got one string:"
                " write [QUERY]"
            )
        self._check_mode(mode)
        limits = [(limit or "").strip() for limit in titles or [""] * len(queries)]
        requests = list(zip(limits, map(bag, queries), strict=True))
        groups: dict[str, list[str]] = defaultdict(list)
        for limit, query in dict.fromkeys(requests):
            groups[limit].append(query)
        unlimited = groups.pop("", [])
        hits = {"": dict(zip(unlimited, self._search(unlimited, k, mode), strict=True))}
        # limited queries: read the named pages once for all their queries and rank them in memory
        columns = ["id", "row", "title", "key", "body", *(["vector"] if mode != "text" else [])]
        for chunk in split_batches(list(groups), 200):  # limits the pages in memory
            for limit, rows in zip(chunk, self._pages(chunk, columns), strict=True):
                ranked = self._rank(groups[limit], rows, k, mode)
                hits[limit] = dict(zip(groups[limit], ranked, strict=True))
        return [list(hits[limit][query]) for limit, query in requests]

    def _check_mode(self, mode: str) -> None:
        if mode not in ("text", "dense", "hybrid"):
            raise WorkbenchError(f"no search mode '{mode}': choose text, dense or hybrid")
        if mode != "text" and not self.card["encoder"]:
            raise WorkbenchError(
                f"the index {self.folder} has no vectors, which mode {mode} needs: build one with"
                " --encoder all-MiniLM-L6-v2 (or any sentence-transformers model), or search with"
                " mode text"
            )

    @cached_property
    def _table(self) -> Table:
        return connect(self.folder).open_table(TABLE)

    def _search(self, queries: Sequence[str], k: int, mode: Mode) -> list[list[Passage]]:
        vectors = {}
        if mode != "text":
            vectors = dict(zip(queries, self._encode(queries), strict=True))
        deep = max(k, FUSED) if mode == "hybrid" else k

        def search(query: str) -> list[Passage]:
            lists = []
            if mode != "dense":
                lists.append(self._text(query, deep))
            if mode != "text":
                lists.append(self._dense(query, vectors[query], deep))
            return fuse(lists, k) if mode == "hybrid" else lists[0]

        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(search, queries))

    def _encode(self, queries: Sequence[str]) -> np.ndarray | list[np.ndarray]:
        return load_encoder(self.card["encoder"])(queries) if queries else []

    def _text(self, query: str, k: int) -> list[Passage]:
        from lancedb.query import MatchQuery

        if not query:
            return []
        words = f"{query} {' '.join(dict.fromkeys(hidden_words(query).split()))}"
        search = self._table.search(MatchQuery(words, "body"), query_type="fts")
        rows = search.select(["id", "title", "body", "_score"]).limit(DEEPER * k).to_list()
        return _ranked(_passages(rows), [row["_score"] for row in rows], k)

    def _dense(self, query: str, vector: np.ndarray, k: int) -> list[Passage]:
        if not query:
            return []
        search = self._table.search(vector, vector_column_name="vector").distance_type("cosine")
        search = search.nprobes(PROBES).refine_factor(REFINE)
        rows = search.select(["id", "title", "body", "_distance"]).limit(DEEPER * k).to_list()
        return _ranked(_passages(rows), [1 - row["_distance"] for row in rows], k)

    def _rank(
        self, queries: Sequence[str], rows: Sequence[JsonObject], k: int, mode: Mode
    ) -> list[list[Passage]]:
        passages = _passages(rows)
        deep = len(passages) if mode == "hybrid" else k
        lists: list[list[list[Passage]]] = []
        if mode != "dense":
            scorer = InMemoryIndex(passages)
            lists.append([_ranked(passages, scorer.scores(query), deep) for query in queries])
        if mode != "text" and rows:
            import numpy as np

            # (queries, dimension) @ (dimension, rows)
            cosines_QN = self._encode(queries) @ np.stack([row["vector"] for row in rows]).T
            lists.append([_ranked(passages, scores, deep) for scores in cosines_QN.tolist()])
        if len(lists) == 2:
            return [fuse(rankings, k) for rankings in zip(*lists, strict=True)]
        return lists[0] if lists else [[] for _ in queries]

    def _pages(self, titles: Sequence[str], columns: Sequence[str]) -> list[list[JsonObject]]:
        """Return, for each entry of `titles`, the table rows of the passages of the named pages.

        The rows have the given columns and are in the order of the pages. An entry may join several
        titles by ";". Pages whose title differs only in case, width or white space are preferred to
        other pages with the same `title_key`.
        """
        keys = sorted(
            {title_key(title) for joined in titles for title in (joined, *joined.split(";"))} - {""}
        )
        by_key: dict[str, list[JsonObject]] = defaultdict(list)
        for batch in split_batches(keys, 500):  # limits the length of a filter
            names = ",".join("'" + key.replace("'", "''") + "'" for key in batch)
            search = self._table.search().where(f"key IN ({names})").select(list(columns))
            for row in search.limit(None).to_list():
                by_key[row["key"]].append(row)
        for rows in by_key.values():
            rows.sort(key=lambda row: (row["row"], int(row["id"].rpartition(":")[2])))
        return [
            [
                row
                for title in known_titles(joined, by_key)
                for row in _closest(title, by_key[title_key(title)])
            ]
            for joined in titles
        ]


def _closest(title: str, rows: list[JsonObject]) -> list[JsonObject]:
    key = strict_title(title)
    return [row for row in rows if strict_title(row["title"]) == key] or rows


def bag(query: str) -> str:
    """Return the first 256 distinct words of a query, as a text: "to be or to" → "to be or"."""
    words = clean(query[: 64 * MOST_CHARACTERS]).split()
    return " ".join(list(dict.fromkeys(words))[:MOST_WORDS])[:MOST_CHARACTERS]


def fuse(lists: Sequence[Sequence[Passage]], k: int) -> list[Passage]:
    """Merge several rankings of passages by reciprocal rank fusion, and return the best `k`.

    A passage's score is Σ 1 / (60 + rank), summed over the rankings (Cormack, Clarke and Büttcher
    2009).
    """
    scores: dict[str, float] = defaultdict(float)
    passages = {}
    for ranking in lists:
        for rank, passage in enumerate(ranking, start=1):
            scores[passage.id] += 1 / (RRF + rank)
            passages[passage.id] = passage
    return _ranked(list(passages.values()), [scores[name] for name in passages], k)


def _ranked(passages: Sequence[Passage], scores: Sequence[float], k: int) -> list[Passage]:
    scored = map(lambda passage, score: replace(passage, score=score), passages, scores)
    return sorted(scored, key=lambda passage: (-(passage.score or 0), passage.id))[:k]


def _passages(rows: Sequence[JsonMapping]) -> list[Passage]:
    """Return the passages of table rows; a text is between the title and the NUL in `body`."""
    return [
        Passage(row["id"], row["title"], row["body"][len(row["title"]) + 1 :].partition("\0")[0])
        for row in rows
    ]


def index_folder(name: str | Path, root: Path | str) -> Path:
    """Return the folder of an index: "wiki" → `root`/wiki, "data/wiki" → data/wiki.

    If `name` has several parts, or begins with "./" or "../", it is a path and `root` is ignored.

    Raises:
        WorkbenchError: a name has characters other than letters, digits, "-", "_" and ".".
    """
    path = Path(name).expanduser()
    is_path = len(path.parts) > 1 or str(name).startswith(("./", "../"))
    folder = path if is_path else Path(root) / path
    usable = is_path or re.fullmatch(r"\w[\w.-]*", path.name) or (folder / CARD).exists()
    if path.name in ("", "..", ".") or not usable:
        raise WorkbenchError(
            f"'{name}' is not a valid name of an index: use letters, digits, '-', '_' and '.', or a"
            " path that begins with ./"
        )
    return folder


def read_card(folder: Path) -> JsonObject | None:
    """Return the content of an index's `index.json`; None if there is no such file.

    Raises:
        WorkbenchError: the file is damaged, or another version of the workbench wrote it.
    """
    if not (folder / CARD).exists():
        return None
    if (card := read_json(folder / CARD)) is None:
        raise WorkbenchError(
            f"'{folder}' is not an index ({CARD} is damaged): name another index, or delete that"
            " folder and build it again"
        )
    if card.get("schema") != SCHEMA:
        raise WorkbenchError(
            f"{folder}: another version of the workbench built this index: build it again under"
            " another name"
        )
    complete = card.get("status") == "complete"
    if missing := {*NEEDED, *(["passages"] if complete else [])} - card.keys():
        raise WorkbenchError(
            f"{folder / CARD} is damaged (it lacks {', '.join(sorted(missing))}): delete that"
            " folder and build it again"
        )
    return card


def build_command(folder: Path, source: str, words: int, encoder: str | None) -> str:
    """Return the command line, `workbench index build …`, that builds or resumes an index."""
    options = [
        *(["--words", str(words)] if words != 100 else []),
        *(["--encoder", encoder] if encoder else []),
    ]
    path = str(folder) if len(folder.parts) > 1 else f"./{folder}"
    name = folder.name if folder.parent == ROOT else path
    return shlex.join(["workbench", "index", "build", name, "--from", source, *options])


def open_index(name: str | Path, root: Path | str = ROOT) -> Index:
    """Open a finished index by its name under `root` or by its path.

    Raises:
        WorkbenchError: there is no complete index; the message names the command that builds it.
    """
    folder = index_folder(name, root)
    card = read_card(folder)
    if card is None and len(Path(name).parts) == 1 and (Path(name) / CARD).exists():
        folder = Path(name)
        card = read_card(folder)
    if card is None:
        raise WorkbenchError(
            f"no index in {folder}: build one with"
            f" `workbench index build {shlex.quote(str(name))} --from FILE`"
        )
    if card["status"] != "complete":
        raise WorkbenchError(
            f"the index {folder} is not finished: resume it with `{card['command']}`"
        )
    return Index(folder, card)


def list_indexes(root: Path | str = ROOT) -> list[JsonObject]:
    """Return a dict for each index under `root`: its `name` and the content of its `index.json`.

    The `status` of a damaged index is "damaged: …", with the reason.
    """
    cards = []
    for path in sorted(Path(root).glob(f"*/{CARD}")):
        folder = path.parent
        try:
            card = read_card(folder)
        except WorkbenchError as error:
            card = {"status": f"damaged: {error}", "source": {}}
        if card:
            cards.append({"name": folder.name, **card})
    return cards


def connect(folder: Path) -> DBConnection:
    """Open a LanceDB directory and return the connection."""
    # LanceDB reads its log level at import
    os.environ.setdefault("LANCEDB_LOG", "error")
    os.environ.setdefault("LANCE_LOG", "error")
    import lancedb

    return lancedb.connect(str(folder))
