"""What passages state of the world: the retrieved text that an answer may be held against in the
place of the facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from workbench.types import Passage
from workbench.world.parser import EDITION, Parser


class Source(NamedTuple):
    """Where a passage states an object: its id, the span of the sentence in it, and the year of
    its edition, 0 for none.
    """

    object: str
    passage: str
    span: tuple[int, int]
    edition: int


Stated = Mapping[tuple[str, str], Sequence[Source]]  # subject and relation -> who states what of it


def stated(parser: Parser, passages: Sequence[Passage]) -> Stated:
    """All that the passages state for certain."""
    found: dict[tuple[str, str], list[Source]] = {}
    for passage in passages:
        heading = EDITION.match(passage.text)
        for claim in parser.parse(passage.text).claims:
            if claim.object is not None and claim.stance == "asserted":
                source = Source(
                    claim.object, passage.id, claim.span, int(heading[1]) if heading else 0
                )
                found.setdefault((claim.subject, claim.relation), []).append(source)
    return found


def newest(sources: Sequence[Source]) -> frozenset[str]:
    """The objects that the newest edition among the sources states: it corrects the older ones."""
    edition = max((source.edition for source in sources), default=0)
    return frozenset(source.object for source in sources if source.edition == edition)
