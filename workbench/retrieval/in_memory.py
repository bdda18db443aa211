"""Search a few passages in memory by BM25, for example the passages of a question."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from workbench.retrieval.words import known_titles, title_key, tokens
from workbench.types import Passage

K1, B = 1.2, 0.75  # BM25's usual constants (Robertson and Zaragoza 2009)


class Search(Protocol):
    """The type of a search function, such as `Index.search` and `from_passages(...).search`.

    For each query, a search returns a list of at most `k` passages, best first.

    A title limits a query to the pages with this title: `titles[i]` is the title for query i.
    Several titles are joined by ";". Without a title (None or ""), all pages are searched.

    A text search without a title returns only passages that share a word with the query. A text
    search with a title may return any passage of the title's pages. Passages that share no word
    with the query have the score 0 and come last.
    """

    def __call__(
        self, queries: Sequence[str], k: int, titles: Sequence[str | None] | None = None
    ) -> list[list[Passage]]: ...


class InMemoryIndex:
    """Search index in memory that ranks passages by BM25. Ties keep the original order."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = list(passages)
        self.postings: dict[
            str, dict[int, int]
        ] = {}  # word -> number of a passage -> occurrences in it
        self.lengths = []
        for i, passage in enumerate(self.passages):
            counts = Counter(tokens(f"{passage.title}\n{passage.text}"))
            self.lengths.append(counts.total())
            for word, count in counts.items():
                self.postings.setdefault(word, {})[i] = count
        # `or 1.0` if all passages are empty
        self.mean = sum(self.lengths) / max(1, len(self.lengths)) or 1.0
        self.titles = [title_key(passage.title) for passage in self.passages]

    def search(
        self, queries: Sequence[str], k: int, titles: Sequence[str | None] | None = None
    ) -> list[list[Passage]]:
        """Return a list of the best `k` passages for each query, best first.

        BM25's word weights (IDF) are computed from all passages, even if a title limits the query.

        Args:
            titles: for each query, the title of the pages to search, or several titles joined by
                ";". A query with None or "" searches all pages. By default, all queries do.
        """
        limits = titles if titles is not None else [None] * len(queries)
        return [self._one(query, k, limit) for query, limit in zip(queries, limits, strict=True)]

    def _one(self, query: str, k: int, limit: str | None) -> list[Passage]:
        scores, keys = self.scores(query), self.titles
        candidates = [i for i, score in enumerate(scores) if score > 0]
        if limit and limit.strip():
            wanted = {title_key(title) for title in known_titles(limit, set(keys))}
            candidates = [i for i, key in enumerate(keys) if key in wanted]
        best = sorted(candidates, key=lambda i: (-scores[i], i))[:k]
        return [replace(self.passages[i], score=scores[i]) for i in best]

    def scores(self, query: str) -> list[float]:
        """Return the BM25 score of every passage; repeated words of the query count once."""
        n, scores = len(self.passages), [0.0] * len(self.passages)
        for word in dict.fromkeys(tokens(query)):
            postings = self.postings.get(word, {})
            # log(1 + …), so that the weight of a frequent word is not negative
            idf = math.log(1 + (n - len(postings) + 0.5) / (len(postings) + 0.5))
            for i, count in postings.items():
                norm = 1 - B + B * self.lengths[i] / self.mean
                scores[i] += idf * count * (K1 + 1) / (count + K1 * norm)
        return scores


def from_passages(passages: Sequence[Passage]) -> InMemoryIndex:
    """Return a search index of `passages` in memory."""
    return InMemoryIndex(passages)
