"""Read what passages state, so that answers can be judged by passages instead of the facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from workbench.types import Passage
from workbench.world.parser import EDITION, Parser


class Source(NamedTuple):
    """A sentence of a passage that states an object for a subject and relation.

    It has the passage's id, the span of the sentence, and the year of the page's edition (0: none).
    """

    object: str
    passage: str
    span: tuple[int, int]
    edition: int


Statements = Mapping[tuple[str, str], Sequence[Source]]  # by subject and relation


def read_statements(parser: Parser, passages: Sequence[Passage]) -> Statements:
    """Return all statements of the passages that are neither hedged nor vague."""
    statements: dict[tuple[str, str], list[Source]] = {}
    for passage in passages:
        heading = EDITION.match(passage.text)
        for claim in parser.parse(passage.text).claims:
            if claim.object is not None and claim.stance == "asserted":
                source = Source(
                    claim.object, passage.id, claim.span, int(heading[1]) if heading else 0
                )
                statements.setdefault((claim.subject, claim.relation), []).append(source)
    return statements


def newest(sources: Sequence[Source]) -> frozenset[str]:
    """Return the objects that the newest edition among the sources states.

    Newer editions of a page correct older ones.
    """
    edition = max((source.edition for source in sources), default=0)
    return frozenset(source.object for source in sources if source.edition == edition)
