"""Questions that compare two people of the world, with excerpts of their pages to answer from
(FoRAG, arXiv 2406.13779, section 3: pages are cut into segments, a few of which are retrieved
and numbered).

Every one shows two or three passages, in any order: two or three sentences of each person's page
and, as often as not, a third passage that misleads: a former edition that the current one
corrects, where one of the two has such a page, or else the page of somebody else. An answer is
held against these passages, not against the world: `meta["evidence"]` says so. They are no part
of `World.questions`, so that neither those nor the world's fingerprint depend on them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from workbench.types import BY_PASSAGES, TWO_FACETS, Passage, Question
from workbench.world.facts import Entity, Fact
from workbench.world.pages import STALE_RELATION, Page
from workbench.world.questions import weaker
from workbench.world.schema import LONG_FORM

_SENTENCE = re.compile(r"[^. ][^.]*\.")
ASKED = ("sft", "rl", "validation", "test")


class _Cut(NamedTuple):
    """An excerpt, and the facts that it states as they are."""

    passage: Passage
    fact_ids: tuple[str, ...]


class TwoFacetWriter:
    """Writes the questions of one world: one for each person who has a page, about that person
    and another of the split.
    """

    def __init__(
        self,
        entities: Mapping[str, Entity],
        by: Mapping[str, Mapping[str, Fact]],
        pages: Sequence[Page],
        seed: int,
    ) -> None:
        self.entities, self.by = entities, by
        self.facts = {fact.id: fact for facts in by.values() for fact in facts.values()}
        self.current = {
            page.title: page
            for page in pages
            if not page.stale and entities[page.title].kind == "person"
        }
        self.former = {page.title: page for page in pages if page.stale}
        self.rng = random.Random(f"two-facets-{seed}")

    def write(self) -> list[Question]:
        pairs = [
            (split, name)
            for split in ASKED
            for name in self.current
            if self.entities[name].split == split
        ]
        return [
            self._question(f"{TWO_FACETS}-{number:05d}", split, name)
            for number, (split, name) in enumerate(pairs, 1)
        ]

    def _question(self, name: str, split: str, first: str) -> Question:
        others = [
            other
            for other in self.current
            if self.entities[other].split == split and other != first
        ]
        second, third = self.rng.sample(others, 2)
        cuts = self._cuts(first, second, third)
        told = dict.fromkeys(
            fact for cut in cuts for fact in cut.fact_ids if cut.passage.title in (first, second)
        )
        meta = {
            "lang": "en",
            "tier": weaker(self.entities[first], self.entities[second]),
            "split": split,
            "fact_ids": tuple(told),
            "covered": all(self.facts[fact].covered for fact in told if fact in self.facts),
            "evidence": BY_PASSAGES,
        }
        text = self.rng.choice(LONG_FORM["en"]).format(s=first, t=second)
        shown = tuple(cut.passage for cut in self.rng.sample(cuts, len(cuts)))
        return Question(
            name, text, title=f"{first};{second}", passages=shown, kind=TWO_FACETS, meta=meta
        )

    def _cuts(self, first: str, second: str, third: str) -> list[_Cut]:
        """The excerpts, the shorter the more there are, so that prompts are of about one length."""
        if self.rng.random() < 0.5:
            return [self._cut(name, self.rng.choice((2, 3))) for name in (first, second)]
        stale = [name for name in (first, second) if name in self.former]
        if not stale:
            return [self._cut(name, 2) for name in (first, second, third)]
        return [
            *(self._cut(name, 2, corrects=name == stale[0]) for name in (first, second)),
            self._outdated(stale[0]),
        ]

    def _cut(self, name: str, count: int, corrects: bool = False) -> _Cut:
        """Some sentences of a page, among them, if it `corrects` a former edition, the one that
        does.
        """
        page = self.current[name]
        needed = [page.fact_ids.index(self.by[name][STALE_RELATION].id)] if corrects else []
        rest = [place for place in range(len(page.fact_ids)) if place not in needed]
        places = sorted([*needed, *self.rng.sample(rest, count - len(needed))])
        return _Cut(excerpt(page, places), tuple(page.fact_ids[place] for place in places))

    def _outdated(self, name: str) -> _Cut:
        """What the former edition had wrong, its first sentence, and one that still holds."""
        page = self.former[name]
        place = self.rng.randrange(len(page.fact_ids))
        return _Cut(excerpt(page, (0, place + 1)), (page.fact_ids[place],))


def excerpt(page: Page, places: Sequence[int]) -> Passage:
    """The page's edition and some of its sentences, by their places, in the page's order."""
    heading, *lines = _SENTENCE.findall(page.text)
    kept = sorted(places)
    return Passage(
        f"{page.id}:{'-'.join(map(str, kept))}",
        page.title,
        " ".join((heading, *(lines[place] for place in kept))),
    )
