"""Where `workbench score` finds evidence for claims: a store, or a file of passages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from workbench.data.record import passage
from workbench.knowledge import Search, build_index, from_passages, open_index
from workbench.score.setup import Options
from workbench.score.source import Malformed, read
from workbench.store import passage_key, stored_passages
from workbench.types import Passage, WorkbenchError

IN_MEMORY = 500  # passages of a file; where there are more, they are indexed


def evidence(options: Options) -> Retrieved | None:
    """Where claims find passages: a store, or a file of them; of a long file the first ones,
    until it is `prepare`d.
    """
    if not (options.store or options.passages):
        return None

    keys = stored_passages(options.out.parent)
    if options.store:
        return Retrieved(open_index(options.store).search, keys)
    passages = read_passages(Path(str(options.passages)), IN_MEMORY + 1)
    folder = options.out.parent.resolve() / f"{options.out.stem}.passages"

    def index() -> Search:
        build_index(folder, str(options.passages))
        return open_index(folder).search

    return Retrieved(
        from_passages(passages[:IN_MEMORY]).search,
        keys,
        index if len(passages) > IN_MEMORY else None,
    )


def read_passages(path: Path, most: int) -> list[Passage]:
    """The first passages of a file of `{text, title?, id?}`.

    Raises:
        WorkbenchError: the file has none, or one that cannot be read; the line is named.
    """
    passages = []
    for line in read(path):
        try:
            if line.row is None:
                raise Malformed(line.problem)
            parsed = passage(line.row)
            passages.append(
                replace(parsed, id=str(line.row.get("id") or parsed.id))
            )  # the file's ids are those of all its passages
        except ValueError as problem:
            raise WorkbenchError(
                f"{path}:{line.number}: {problem}; mend or remove that line"
            ) from problem
        if len(passages) == most:
            break
    if not passages:
        raise WorkbenchError(
            f"'{path}' has no passages: it must have a row with a \"text\" for each"
        )
    return passages


class Retrieved:
    """A search that remembers what it found until that is stored.

    `known` are the passages of the record that the output goes to (id -> `passage_key`). No id
    may come to stand for two, as those of a file that has changed would, or of two stores: the
    second is told from the first by what it says. `index`, where there is one, indexes beside
    the output what `search` holds only the beginning of: nothing is written before `prepare`.
    """

    def __init__(
        self, search: Search, known: dict[str, int], index: Callable[[], Search] | None = None
    ) -> None:
        self.search, self.known, self.found, self.lock = (
            search,
            known,
            dict[str, Passage](),
            threading.Lock(),
        )
        self.index = index

    def prepare(self) -> None:
        """Make all passages of a long file searchable."""
        if self.index:
            self.search = self.index()

    def __call__(
        self, queries: Sequence[str], k: int, titles: Sequence[str | None] | None = None
    ) -> list[list[Passage]]:
        results = self.search(queries, k, titles=titles)
        with self.lock:
            renamed = [[self._one_meaning(hit) for hit in passages] for passages in results]
            self.found.update({hit.id: hit for passages in renamed for hit in passages})
        return renamed

    def _one_meaning(self, hit: Passage) -> Passage:
        key = passage_key(hit)
        if self.known.setdefault(hit.id, key) == key:
            return hit
        digest = passage({"title": hit.title, "text": hit.text}).id
        return replace(hit, id=f"{hit.id}-{digest}" if hit.id else digest)

    def take(self) -> list[Passage]:
        with self.lock:
            passages, self.found = self.found, {}
        return list(passages.values())
