"""The store of knowledge: build an index of passages, and search it.

    build_index("wiki", "hf:wikimedia/wikipedia/20231101.simple:train")
    open_index("wiki").search(["Who wrote Hamlet?"], 5)
    open_index("wiki").search(["He wrote Hamlet."], 5, titles=["William Shakespeare;Hamlet"])
    from_passages(question.passages).search(["He wrote Hamlet."], 3)

A verifier takes any `Search`. Chinese, Japanese and Thai are segmented by dictionaries that come
with the store. Limits: Korean words are found with the particles they are written with,
traditional and simplified characters are different, words are stemmed as English.
"""

from workbench.retrieval.build import build_index
from workbench.retrieval.in_memory import Search, from_passages
from workbench.retrieval.index import Index, list_indexes, open_index
from workbench.retrieval.sources import Page, Source

__all__ = [
    "Index",
    "Page",
    "Search",
    "Source",
    "build_index",
    "from_passages",
    "list_indexes",
    "open_index",
]
