"""Where `workbench score` finds evidence for claims: a store, or a file of passages."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.data.files import open_rows
from workbench.data.record import passage
from workbench.knowledge import Search, build_index, from_passages, open_index
from workbench.score.options import Options
from workbench.store import passage_key, stored_passages
from workbench.types import Passage, WorkbenchError

IN_MEMORY = 500  # passages of a file; a longer file is indexed


def evidence(options: Options, known: dict[str, int] | None = None) -> Evidence | None:
    """The search over a store or a file of passages; over the first passages of a long file,
    until it is `prepare`d. `known`: see `Evidence`; by default from the output's record.
    """
    if known is None:
        known = stored_passages(options.out.parent)
    if options.store:
        return Evidence(open_index(options.store).search, known)
    if not options.passages:
        return None
    source, passages = str(options.passages), read_passages(options.passages, IN_MEMORY + 1)
    folder = index_folder(options)

    def index() -> Search:
        build_index(folder, source)
        return open_index(folder).search

    long = len(passages) > IN_MEMORY
    return Evidence(from_passages(passages[:IN_MEMORY]).search, known, index if long else None)


def index_folder(options: Options) -> Path:
    """Where a long file of passages is indexed."""
    return options.out.parent.resolve() / f"{options.out.stem}.passages"


def read_passages(path: Path, most: int) -> list[Passage]:
    """The first passages of a file of `{text, title?, id?}`.

    Raises:
        WorkbenchError: the file is empty, or has a row that cannot be read; the line is named.
    """
    passages: list[Passage] = []
    for number, row in itertools.islice(open_rows(path)[1], most):
        try:
            if isinstance(row, str):
                raise ValueError(row)
            parsed = passage(row)
        except ValueError as problem:
            raise WorkbenchError(
                f"{path}:{number}: {problem}; correct or remove that line"
            ) from problem
        passages.append(replace(parsed, id=str(row.get("id") or parsed.id)))
    if not passages:
        raise WorkbenchError(
            f"'{path}' has no passages: it must have a row with a \"text\" for each"
        )
    return passages


@dataclass
class Evidence:
    """A search whose passages have ids that fit the record of the output.

    `known` are the passages of that record (id -> `passage_key`). A passage with other words
    under a known id, as from a file that has changed, gets an id of its own. `index` indexes
    beside the output what `search` has only the first passages of.
    """

    search: Search
    known: dict[str, int]
    index: Callable[[], Search] | None = None

    def prepare(self) -> None:
        """Make all passages of a long file searchable."""
        if self.index:
            self.search = self.index()

    def __call__(
        self, queries: Sequence[str], k: int, titles: Sequence[str | None] | None = None
    ) -> list[list[Passage]]:
        results = self.search(queries, k, titles=titles)
        return [[self._own_id(hit) for hit in passages] for passages in results]

    def _own_id(self, hit: Passage) -> Passage:
        key = passage_key(hit)
        if self.known.setdefault(hit.id, key) == key:
            return hit
        digest = passage({"title": hit.title, "text": hit.text}).id
        return replace(hit, id=f"{hit.id}-{digest}" if hit.id else digest)
