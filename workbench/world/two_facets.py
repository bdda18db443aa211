"""Write questions that compare two people, with excerpts of their pages as passages.

They imitate FoRAG's data (arXiv 2406.13779, section 3), where pages are split into segments, of
which a few are retrieved and numbered.

The passages of a question, in random order, are:

* an excerpt of each person's page, with two or three sentences;
* in half of the cases, a misleading passage: an outdated edition of one of the pages, which the
  excerpt corrects. If there is no outdated edition, it is an excerpt of a third person's page.

Answers are judged by the passages, not by the world's facts (`meta["evidence"]`). `World.questions`
does not return these questions, and the world's fingerprint does not depend on them.
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
    """Writer of the questions that compare two people of one world.

    There is one question for each person who has a page and is not in the split "ood". The question
    compares this person with another person of the same split.
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
        """Return the excerpts for a question about two people.

        Three excerpts are shorter than two, so that prompts have similar lengths.
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
        """Return an excerpt with `count` sentences of a person's page.

        Args:
            corrects: True if one of the sentences must be the correction of an outdated edition.
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
    """Return a passage with selected sentences of a page, in the order of the page.

    The passage begins with the heading of the page, such as "Edition of 1985.".

    Args:
        places: numbers of the sentences, from 0; the heading is not counted.
    """
    heading, *lines = _SENTENCE.findall(page.text)
    places = sorted(places)
    return Passage(
        f"{page.id}:{'-'.join(map(str, places))}",
        page.title,
        " ".join((heading, *(lines[place] for place in places))),
    )
