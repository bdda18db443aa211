"""Where `workbench score` finds evidence for claims: a store, or a file of passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench.data.files import open_rows
from workbench.data.record import passage
from workbench.retrieval import Search, from_passages, open_index
from workbench.runs.store import passage_key, stored_passages
from workbench.scoring.options import Options
from workbench.types import Passage, WorkbenchError


def evidence(options: Options, known: dict[str, int] | None = None) -> Evidence | None:
    """The search over a store or a file of passages. `known`: see `Evidence`; by default from
    the output's record.

    Raises:
        WorkbenchError: the file is empty, or has a row that cannot be read; the line is named.
    """
    if known is None:
        known = stored_passages(options.out.parent)
    if options.store:
        return Evidence(open_index(options.store).search, known)
    if not options.passages:
        return None
    path, passages = options.passages, []
    for number, row in open_rows(path)[1]:
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
    return Evidence(from_passages(passages).search, known)


@dataclass
class Evidence:
    """A search whose passages have ids that fit the record of the output.

    `known` are the passages of that record (id -> `passage_key`). A passage with other words
    under a known id, as from a file that has changed, gets an id of its own.
    """

    search: Search
    known: dict[str, int]

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
