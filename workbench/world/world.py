"""One closed world: entities, facts, questions, pages and documents, all functions of a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property, lru_cache

from workbench.types import Question
from workbench.world.documents import Document, exposures, write_documents
from workbench.world.ephemeral import Ephemeral
from workbench.world.facts import Fact, Names, WorldConfig, draw_entities, draw_facts
from workbench.world.fingerprint import of_documents, of_world, remembered
from workbench.world.pages import Page, write_pages
from workbench.world.questions import QuestionWriter, select
from workbench.world.two_facets import TwoFacetWriter


class World:
    """The closed world of one `WorldConfig`. Everything is drawn on first use and never changes."""

    def __init__(self, config: WorldConfig | None = None) -> None:
        self.config = config or WorldConfig()
        rng = random.Random(f"world-{self.config.seed}")
        self.names = Names(rng)
        self.entities, authors = draw_entities(self.config, self.names, rng)
        self.facts: list[Fact] = draw_facts(self.entities, authors, self.names, rng)
        self.by: dict[str, dict[str, Fact]] = {}  # subject -> relation -> fact
        for fact in self.facts:
            self.by.setdefault(fact.subject, {})[fact.relation] = fact
        self.books: dict[str, list[Fact]] = {}  # person -> the author facts of the books they wrote
        for fact in self.facts:
            if fact.relation == "author":
                self.books.setdefault(fact.object, []).append(fact)

    @cached_property
    def all_questions(self) -> list[Question]:
        return QuestionWriter(self.entities, self.by, self.books, self.config.seed).write()

    def questions(
        self, split: str, kinds: Sequence[str] | None = None, lang: str = "en"
    ) -> list[Question]:
        """The questions of one split; all kinds if `kinds` is None. `meta` has tier, lang,
        split, fact_ids and covered.
        """
        return select(self.all_questions, split, kinds, lang)

    @cached_property
    def two_facets(self) -> list[Question]:
        """Questions about two people with excerpts of their pages, which answers are held
        against; in English alone.
        """
        return TwoFacetWriter(self.entities, self.by, self.pages, self.config.seed).write()

    @cached_property
    def pages(self) -> list[Page]:
        return write_pages(
            self.entities, self.by, self.books, seed=self.config.seed, stale_share=self.config.stale
        )

    @cached_property
    def documents(self) -> list[Document]:
        return write_documents(self.entities, self.by, self.books, seed=self.config.seed)

    def ephemeral(self, held_out: bool = False) -> Ephemeral:
        """People outside this world; with `held_out`, those kept for measuring."""
        return Ephemeral(self.entities, self.by, self.names, held_out=held_out)

    @cached_property
    def exposures(self) -> dict[str, dict[str, int]]:
        """Fact id -> language -> how many documents of one pass state it; a fact never stated is
        missing.
        """
        return exposures(self.documents)

    def shown(self, question: Question) -> int | None:
        """How many documents of one pass, in both languages, state the least shown of the facts
        that a question rests on; None where it names no facts."""
        facts = question.meta.get("fact_ids", ())
        return min((sum(self.exposures.get(fact, {}).values()) for fact in facts), default=None)

    @cached_property
    def hash(self) -> str:
        """Fingerprint of what weights and results depend on: facts, questions with their
        answers, pages and documents.
        """
        return remembered(
            "world",
            self.config,
            lambda: of_world(self.facts, self.all_questions, self.pages, self.corpus_hash),
        )

    @cached_property
    def corpus_hash(self) -> str:
        """Fingerprint of the documents: all of the world that pre-trained weights depend on."""
        return remembered("documents", self.config, lambda: of_documents(self.documents))


def load_world(seed: int = 0, scale: float = 1.0) -> World:
    """The world of one seed, built once per process, in about two seconds. `scale` below 1 makes
    a smaller one for tests.
    """
    return _load(seed, scale)


@lru_cache(maxsize=4)
def _load(seed: int, scale: float) -> World:
    return World(WorldConfig(seed=seed, scale=scale))
