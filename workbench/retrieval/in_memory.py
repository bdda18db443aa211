"""Search among the passages that came with a question: thousands of rows, each with a handful of
its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from workbench.retrieval.words import longest_titles, title_key, tokens
from workbench.types import Passage

K1, B = 1.2, 0.75  # BM25's usual constants (Robertson and Zaragoza 2009)


class Search(Protocol):
    """What a verifier asks for evidence: `index.search` and `from_passages(...).search` both are
    one.

    One list for each query, best first, at most `k` long. `titles[i]` limits query i to the
    pages of that title, or of several joined by `;`; None or "" does not limit it. A limited
    query gets passages of its pages even where they share no word with it (their score is 0), so
    its list is empty exactly when none of its titles is there: report that as a `Failure`. A
    query that is not limited gets an empty list when no passage shares a word with it.
    """

    def __call__(
        self, queries: Sequence[str], k: int, titles: Sequence[str | None] | None = None
    ) -> list[list[Passage]]: ...


class InMemoryIndex:
    """A few passages in memory, ranked by BM25; ties keep the order in which they were given."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = list(passages)
        self.postings: dict[str, dict[int, int]] = {}  # word -> passage -> times
        self.lengths = []
        for i, passage in enumerate(self.passages):
            count = Counter(tokens(f"{passage.title}\n{passage.text}"))
            self.lengths.append(count.total())
            for word, times in count.items():
                self.postings.setdefault(word, {})[i] = times
        self.mean = sum(self.lengths) / max(1, len(self.lengths)) or 1.0
        self.titles = [title_key(passage.title) for passage in self.passages]

    def search(
        self, queries: Sequence[str], k: int, titles: Sequence[str | None] | None = None
    ) -> list[list[Passage]]:
        """See `Search`. Word statistics are those of all the passages given."""
        limits = titles if titles is not None else [None] * len(queries)
        return [self._one(query, k, limit) for query, limit in zip(queries, limits, strict=True)]

    def _one(self, query: str, k: int, limit: str | None) -> list[Passage]:
        scores, keys = self.scores(query), self.titles
        inside = [i for i, score in enumerate(scores) if score > 0]
        if limit and limit.strip():
            wanted = {title_key(title) for title in longest_titles(limit, set(keys))}
            inside = [i for i, key in enumerate(keys) if key in wanted]
        best = sorted(inside, key=lambda i: (-scores[i], i))[:k]
        return [replace(self.passages[i], score=scores[i]) for i in best]

    def scores(self, query: str) -> list[float]:
        """The BM25 score of every passage; a word counts once however often the query has it."""
        n, scores = len(self.passages), [0.0] * len(self.passages)
        for word in dict.fromkeys(tokens(query)):
            holding = self.postings.get(word, {})
            idf = math.log(1 + (n - len(holding) + 0.5) / (len(holding) + 0.5))
            for i, times in holding.items():
                norm = 1 - B + B * self.lengths[i] / self.mean
                scores[i] += idf * times * (K1 + 1) / (times + K1 * norm)
        return scores


def from_passages(passages: Sequence[Passage]) -> InMemoryIndex:
    return InMemoryIndex(passages)
