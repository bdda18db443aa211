"""Compare the knowledge store's text search with bm25s and SQLite FTS5, and measure its growth.

    python benchmarks/retrieval.py --passages 100000 --results benchmarks/results/retrieval.json
    python benchmarks/retrieval.py --passages 1000000 --engines workbench --results
    benchmarks/results/retrieval.json

The text is synthetic: passages of 100 words from a Zipf–Mandelbrot distribution over 200,000 words.
The most frequent are the words of the closed world's pages and documents, in their order; the
others are invented. A query is 12 consecutive words of a passage. recall@10 is how often that
passage is among the first ten.

All engines run in one process and take turns, ten queries at a time, so that other load affects all
of them. Trust the ratios, not the times. A result replaces the one of the same size in the file.
"""

import argparse
import json
import os
import platform
import re
import resource
import shlex
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from workbench.retrieval import Page, Source, build_index, open_index
from workbench.util.jsonl import write_json
from workbench.world.world import load_world

VOCABULARY, WORDS, QUERY, TURN, K = 200_000, 100, 12, 10, 10
EXPONENT, SHIFT = 1.05, 2.7  # Zipf–Mandelbrot parameters of English prose

Search = Callable[[list[str]], list[list[str]]]  # queries -> ids, best first


@dataclass
class Engine:
    search: Search
    build_seconds: float
    megabytes: float
    seconds: list[float] = field(default_factory=list)  # of single queries
    batches: list[float] = field(default_factory=list)  # queries per second of a turn, sent at once
    found: int = 0


def vocabulary(seed: int) -> list[str]:
    world = load_world(0)
    texts = [page.text for page in world.pages] + [document.whole for document in world.documents]
    words = [
        word
        for word, _ in Counter(
            word for text in texts for word in re.findall(r"\w+", text)
        ).most_common()
    ]
    rng, known = np.random.default_rng(seed), set(words)
    syllables = [
        a + b
        for a in "b c d f g h j k l m n p r s t v w z br st tr".split()
        for b in "a e i o u ai or en".split()
    ]
    while len(words) < VOCABULARY:
        word = "".join(syllables[i] for i in rng.integers(0, len(syllables), rng.integers(2, 5)))
        if word not in known:
            known.add(word)
            words.append(word)
    return words[:VOCABULARY]


def passages(count: int, seed: int) -> Iterator[str]:
    words = np.array(vocabulary(seed), dtype=object)
    weights = 1 / (np.arange(1, VOCABULARY + 1) + SHIFT) ** EXPONENT
    cumulated, rng = np.cumsum(weights / weights.sum()), np.random.default_rng(seed + 1)
    for start in range(0, count, 10_000):
        drawn = np.searchsorted(cumulated, rng.random((10_000, WORDS)))[: count - start]
        yield from (" ".join(row) for row in words[np.minimum(drawn, VOCABULARY - 1)])


def draw_queries(corpus: list[str], number: int, seed: int) -> list[tuple[str, str]]:
    """Return queries, each with the id of its passage."""
    rng = np.random.default_rng(seed + 2)
    drawn = [
        (int(rng.integers(len(corpus))), int(rng.integers(WORDS - QUERY))) for _ in range(number)
    ]
    return [(str(i), " ".join(corpus[i].split()[start : start + QUERY])) for i, start in drawn]


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def workbench_engine(corpus: list[str], folder: Path) -> Engine:
    import lancedb  # noqa: F401 - not timed as a part of the build

    def pages(skip: int) -> Iterator[tuple[int, Page]]:
        return ((i + 1, Page(str(i), "", corpus[i])) for i in range(skip, len(corpus)))

    source = Source("synthetic", "synthetic", len(corpus), pages)
    seconds = timed(lambda: build_index(folder, source, words=0))
    index = open_index(folder)

    def search(queries: list[str]) -> list[list[str]]:
        return [
            [passage.id.partition(":")[0] for passage in found]
            for found in index.search(queries, K)
        ]

    return Engine(search, seconds, megabytes(folder))


def bm25s_engine(corpus: list[str], folder: Path) -> Engine:
    """Build an index without the text and without stemming."""
    import bm25s

    retriever = bm25s.BM25()

    def build() -> None:
        retriever.index(
            bm25s.tokenize(corpus, stopwords=None, show_progress=False), show_progress=False
        )
        retriever.save(str(folder))

    seconds = timed(build)

    def search(queries: list[str]) -> list[list[str]]:
        tokens = bm25s.tokenize(queries, stopwords=None, show_progress=False)
        found = retriever.retrieve(
            tokens, k=K, show_progress=False, n_threads=1 if len(queries) == 1 else 2
        )
        return [[str(i) for i in row] for row in found.documents.tolist()]

    return Engine(search, seconds, megabytes(folder))


def sqlite_engine(corpus: list[str], folder: Path) -> Engine:
    folder.mkdir()
    database = sqlite3.connect(folder / "fts.sqlite")

    def build() -> None:
        database.execute("CREATE VIRTUAL TABLE p USING fts5(text, tokenize = 'porter unicode61')")
        database.executemany("INSERT INTO p (rowid, text) VALUES (?, ?)", enumerate(corpus))
        database.execute("INSERT INTO p (p) VALUES ('optimize')")
        database.commit()

    seconds = timed(build)

    def one(query: str) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in query.split())
        return [
            str(i)
            for (i,) in database.execute(
                f"SELECT rowid FROM p WHERE p MATCH ? ORDER BY rank LIMIT {K}", (words,)
            )
        ]

    return Engine(lambda queries: [one(query) for query in queries], seconds, megabytes(folder))


ENGINES = {"workbench": workbench_engine, "bm25s": bm25s_engine, "sqlite_fts5": sqlite_engine}


def timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(engines: dict[str, Engine], queries: list[tuple[str, str]]) -> None:
    """Run the engines in turns: each answers ten queries one by one, then the same ten at once."""
    for engine in engines.values():
        # loading at first use is not timed
        engine.search([query for _, query in queries[:TURN]])
    for start in range(0, len(queries), TURN):
        turn = queries[start : start + TURN]
        for engine in engines.values():
            for name, query in turn:
                begun = time.perf_counter()
                found = engine.search([query])[0]
                engine.seconds.append(time.perf_counter() - begun)
                engine.found += name in found
            engine.batches.append(
                len(turn) / timed(partial(engine.search, [query for _, query in turn]))
            )


def report(engine: Engine) -> dict[str, float]:
    return {
        "build_seconds": round(engine.build_seconds, 1),
        "megabytes": round(engine.megabytes, 1),
        "p50_ms": round(1000 * float(np.percentile(engine.seconds, 50)), 2),
        "p95_ms": round(1000 * float(np.percentile(engine.seconds, 95)), 2),
        "queries_per_second": round(float(np.median(engine.batches)), 1),
        "recall_at_10": round(engine.found / len(engine.seconds), 4),
    }


def ratios(reports: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Return each other engine's build time, size, latency and rate divided by ours."""
    names, ours = (
        ("build_seconds", "megabytes", "p50_ms", "queries_per_second"),
        reports.get("workbench", {}),
    )
    return {
        other: {name: round(found[name] / ours[name], 2) for name in names}
        for other, found in reports.items()
        if ours and other != "workbench"
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        corpus = list(passages(given.passages, given.seed))
        queries = draw_queries(corpus, given.queries, given.seed)
        engines = {name: ENGINES[name](corpus, Path(folder, name)) for name in given.engines}
        measure(engines, queries)
    reports = {name: report(engine) for name, engine in engines.items()}
    run = {
        "passages": given.passages,
        "queries": len(queries),
        "seed": given.seed,
        "date": date.today().isoformat(),
        "command": shlex.join(["python", "benchmarks/retrieval.py", *sys.argv[1:]]),
        "machine": f"{os.cpu_count()} cores, shared with other work",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("lancedb", "bm25s", "numpy")}
        | {"sqlite": sqlite3.sqlite_version},
        # includes the corpus as a list
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "engines": reports,
        "times_ours": ratios(reports),
    }
    print(json.dumps(run, indent=1))
    if given.results:
        stored = json.loads(given.results.read_text())["runs"] if given.results.exists() else []
        runs = sorted(
            [*(old for old in stored if old["passages"] != run["passages"]), run],
            key=lambda old: old["passages"],
        )
        write_json(given.results, {"text": "synthetic, see benchmarks/retrieval.py", "runs": runs})


if __name__ == "__main__":
    main()
