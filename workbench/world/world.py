"""The closed world (`World`): its entities, facts, questions, pages and documents."""

from collections.abc import Sequence
from functools import cached_property, lru_cache

from workbench.types import Question
from workbench.world.documents import Document, DocumentWriter, Exposures, count_exposures
from workbench.world.ephemeral import Ephemeral
from workbench.world.facts import KnowledgeBase, WorldConfig
from workbench.world.fingerprint import cached_fingerprint, of_world
from workbench.world.pages import Page, write_pages
from workbench.world.questions import QuestionWriter, select
from workbench.world.two_facets import TwoFacetWriter


class World(KnowledgeBase):
    """The closed world of one `WorldConfig`, with its entities and facts.

    Questions, pages and documents are built when they are first used.
    """

    def __init__(self, config: WorldConfig | None = None) -> None:
        super().__init__(config or WorldConfig())

    @cached_property
    def all_questions(self) -> list[Question]:
        return QuestionWriter(self).write()

    def questions(
        self, split: str, kinds: Sequence[str] | None = None, lang: str = "en"
    ) -> list[Question]:
        """Return the questions of a split in one language.

        The `meta` of a question has "tier", "lang", "split", "fact_ids" (the facts that its answer
        needs) and "covered" (whether pre-training documents state all of these facts).

        Args:
            split: "sft", "rl", "validation", "test" or "ood".
            kinds: kinds of questions, such as "single"; None for all kinds.
            lang: "en", or "l2" for the invented second language.
        """
        return select(self.all_questions, split, kinds, lang)

    @cached_property
    def two_facets(self) -> list[Question]:
        """English questions that compare two people; their passages are excerpts of pages."""
        return TwoFacetWriter(self, self.pages).write()

    @cached_property
    def pages(self) -> list[Page]:
        return write_pages(self)

    @cached_property
    def documents(self) -> list[Document]:
        """The pre-training documents, which leave out facts and contradict each other."""
        return DocumentWriter(self).documents()

    def ephemeral(self, held_out: bool = False) -> Ephemeral:
        """Return a generator of invented people who are not in this world.

        Args:
            held_out: True for people who are reserved for evaluation.
        """
        return Ephemeral(self, held_out)

    @cached_property
    def exposures(self) -> Exposures:
        """Return how many of `documents` state each fact correctly."""
        return count_exposures(self.documents)

    def shown(self, question: Question) -> int | None:
        """Return the number of pre-training documents that state the fact that a question needs.

        If it needs several facts, the result is the smallest of their numbers. If it needs no
        facts, the result is None. Documents of both languages are counted.
        """
        facts = question.meta.get("fact_ids", ())
        return min((sum(self.exposures.get(fact, {}).values()) for fact in facts), default=None)

    @cached_property
    def hash(self) -> str:
        """Return the fingerprint: a hash of facts, questions with answers, pages and documents.

        Weights and results are valid only for a world with the same fingerprint.
        """
        return cached_fingerprint(
            self.config,
            lambda: of_world(self.facts, self.all_questions, self.pages, self.documents),
        )


def load_world(seed: int = 0, scale: float = 1.0) -> World:
    """Return the closed world of a seed. It is built once per process, in about two seconds.

    A `scale` below 1 makes a smaller world, for tests.
    """
    return _load(seed, scale)


@lru_cache(maxsize=4)
def _load(seed: int, scale: float) -> World:
    return World(WorldConfig(seed=seed, scale=scale))
