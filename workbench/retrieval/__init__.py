"""Build an index of passages and search it.

* `build_index(NAME, SOURCE)` builds an index.
* `open_index(NAME).search(queries, k, titles=…)` searches it.
* `from_passages(passages).search(queries, k)` searches a few passages in memory.

Both search methods have the type `Search`. Packaged dictionaries split Chinese, Japanese and Thai
texts into words.

Limits: Korean particles are not removed. Traditional Chinese does not match simplified Chinese. All
words are stemmed as English.
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
