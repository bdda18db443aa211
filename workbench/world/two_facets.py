"""Write questions that compare two people, with excerpts of their pages as passages.

They imitate FoRAG's data (arXiv 2406.13779, section 3), where pages are split into segments, of
which a few are retrieved and numbered.

A question has two or three passages in random order. Two of them are excerpts, of two or three
sentences, of the two people's pages. In half of the cases a third passage misleads. It is an
outdated edition of one of the two pages, which the current page corrects; if there is no such
edition, it is an excerpt of a third person's page. Answers are judged by the passages, not by the
world's facts (`meta["evidence"]`). These questions are not part of `World.questions`, so that the
world's fingerprint does not depend on them.
"""

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from workbench.types import BY_PASSAGES, TWO_FACETS, Passage, Question
from workbench.world.facts import KnowledgeBase
from workbench.world.pages import STALE_RELATION, Page
from workbench.world.questions import weaker
from workbench.world.schema import LONG_FORM

_SENTENCE = re.compile(r"[^. ][^.]*\.")
SPLITS = ("sft", "rl", "validation", "test")


class _Cut(NamedTuple):
    """An excerpt of a page, and the ids of the true facts in it."""

    passage: Passage
    fact_ids: tuple[str, ...]


class TwoFacetWriter:
    """Writes the questions of one world.

    Each person with a page has one question, about this person and another person of the same
    split.
    """

    def __init__(self, base: KnowledgeBase, pages: Sequence[Page]) -> None:
        self.entities, self.by = base.entities, base.by
        self.facts = {fact.id: fact for fact in base.facts}
        self.current = {
            page.title: page
            for page in pages
            if not page.stale and self.entities[page.title].kind == "person"
        }
        self.former = {page.title: page for page in pages if page.stale}
        self.rng = random.Random(f"two-facets-{base.config.seed}")

    def write(self) -> list[Question]:
        pairs = [
            (split, name)
            for split in SPLITS
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
        fact_ids = dict.fromkeys(
            fact for cut in cuts for fact in cut.fact_ids if cut.passage.title in (first, second)
        )
        meta = {
            "lang": "en",
            "tier": weaker(self.entities[first], self.entities[second]),
            "split": split,
            "fact_ids": tuple(fact_ids),
            "covered": all(self.facts[fact].covered for fact in fact_ids),
            "evidence": BY_PASSAGES,
        }
        text = self.rng.choice(LONG_FORM["en"]).format(s=first, t=second)
        passages = tuple(cut.passage for cut in self.rng.sample(cuts, len(cuts)))
        return Question(
            name, text, title=f"{first};{second}", passages=passages, kind=TWO_FACETS, meta=meta
        )

    def _cuts(self, first: str, second: str, third: str) -> list[_Cut]:
        """Return the excerpts. They are shorter if there are three, so that prompts have similar
        lengths.
        """
        if self.rng.random() < 0.5:
            return [self._cut(name, self.rng.choice((2, 3))) for name in (first, second)]
        stale = [name for name in (first, second) if name in self.former]
        # without an outdated page, a third person's page misleads
        if not stale:
            return [self._cut(name, 2) for name in (first, second, third)]
        return [
            *(self._cut(name, 2, corrects=name == stale[0]) for name in (first, second)),
            self._outdated(stale[0]),
        ]

    def _cut(self, name: str, count: int, corrects: bool = False) -> _Cut:
        """Return `count` sentences of a page. If it `corrects` an outdated edition, one of them is
        the correction.
        """
        page = self.current[name]
        # sentences and facts of a page have the same order
        needed = [page.fact_ids.index(self.by[name][STALE_RELATION].id)] if corrects else []
        rest = [place for place in range(len(page.fact_ids)) if place not in needed]
        places = sorted([*needed, *self.rng.sample(rest, count - len(needed))])
        return _Cut(excerpt(page, places), tuple(page.fact_ids[place] for place in places))

    def _outdated(self, name: str) -> _Cut:
        """Return two sentences of an outdated edition: the wrong sentence and a true sentence."""
        page = self.former[name]
        # the first sentence is the outdated one, which has no fact id
        place = self.rng.randrange(len(page.fact_ids))
        return _Cut(excerpt(page, (0, place + 1)), (page.fact_ids[place],))


def excerpt(page: Page, places: Sequence[int]) -> Passage:
    """Return the edition of a page and the sentences at `places`, in the order of the page."""
    heading, *lines = _SENTENCE.findall(page.text)
    places = sorted(places)
    return Passage(
        f"{page.id}:{'-'.join(map(str, places))}",
        page.title,
        " ".join((heading, *(lines[place] for place in places))),
    )
