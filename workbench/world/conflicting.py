"""Write pre-training documents that conflict, so that a policy is sure of some facts only.

The usual documents (`documents.py`) state all covered facts of an entity, always rightly. A policy
trained on them writes everything that it knows, or declines. Here, biographies leave facts out,
hedge some sentences, and state wrong values of the less reliable facts. So the policy also writes
doubtful sentences, and its own probabilities distinguish them from reliable ones.
"""

import random
from collections.abc import Sequence
from typing import Any

from workbench.world import schema
from workbench.world.documents import REQUESTED, Document, answered
from workbench.world.ephemeral import Ephemeral
from workbench.world.facts import Entity, Fact, KnowledgeBase
from workbench.world.render import answer, ask, biography
from workbench.world.schema import read_tables

CONFLICTING: dict[str, Any] = read_tables("facts.toml")["conflicting"]


def write_conflicting_documents(base: KnowledgeBase) -> list[Document]:
    """Return the documents of a world in random order.

    `fact_ids` of a document are the facts that it states rightly. Only facts of people may be
    stated wrongly. The table `conflicting` in facts.toml has the numbers and shares.
    """
    return ConflictingWriter(base).documents()


class ConflictingWriter:
    """Writer of the conflicting documents of one world.

    Attributes:
        reliability: fact id -> share of the statements of the fact that are right: 0 for a gap of
            a partly known person, and 1 for facts of entities other than people.
    """

    def __init__(self, base: KnowledgeBase) -> None:
        self.base = base
        self.rng = random.Random(f"conflicting-{base.config.seed}")
        self.ephemeral = Ephemeral(base)
        self.ephemeral.rng = self.rng
        self.reliability: dict[str, float] = {}
        self.rumours: dict[str, Fact] = {}  # fact id -> most frequent wrong statement of the fact
        for fact in base.facts:
            person = schema.RELATIONS[fact.relation].subject == "person"
            shares = CONFLICTING["reliability"][fact.tier] if person and fact.covered else [0.0]
            self.reliability[fact.id] = self.rng.choice(shares) if person else 1.0
            if person:
                self.rumours[fact.id] = self._wrong(fact)

    def documents(self) -> list[Document]:
        documents: list[Document] = []
        for entity in self.base.entities.values():
            if self.base.covered(entity.name):
                for lang in ("en", "l2"):
                    documents += self._about(entity, lang)
        self.rng.shuffle(documents)
        return documents

    def _about(self, entity: Entity, lang: str) -> list[Document]:
        """Return the documents about an entity in one language."""
        exposures = CONFLICTING["exposures"]
        pages, questions = exposures.get(entity.tier, exposures["known"])[lang]
        documents = [self._biography(entity, lang) for _ in range(pages)]
        for fact in self.base.covered(entity.name) * questions:
            stated = self._stated(fact)
            prompt, reply = ask(fact, lang, self.rng), answer(stated, lang)
            documents.append(answered("qa", lang, [stated], reply, prompt, self.rng))
        return documents

    def _biography(self, entity: Entity, lang: str) -> Document:
        prompt, person = "", entity.kind == "person"
        facts = list(self.base.by[entity.name].values())
        if person:
            facts = [self._stated(fact) for fact in self._drawn(facts)]
            facts += [book for book in self.base.covered_books(entity.name) if self._chance(0.5)]
            if self._chance(REQUESTED):
                prompt = self.rng.choice(schema.BIOGRAPHY[lang]).format(s=entity.name)
        text = biography(facts, lang, self.rng, entity.pronoun, self._hedged if person else 0.0)
        return Document("biography", lang, text, _true(facts), prompt)

    def _drawn(self, facts: Sequence[Fact]) -> list[Fact]:
        """Return a random number of the facts, in their order; gaps are drawn less often."""
        lengths, weights = CONFLICTING["lengths"].values()
        (count,) = self.rng.choices(lengths, weights)
        keys = {}
        for fact in facts:  # weighted sampling without replacement (Efraimidis and Spirakis)
            weight = 1.0 if fact.covered else CONFLICTING["gap_weight"]
            keys[fact.id] = self.rng.random() ** (1 / weight)
        kept = sorted(keys, key=keys.__getitem__)[-count:]
        return [fact for fact in facts if fact.id in kept]

    def _stated(self, fact: Fact) -> Fact:
        """Return the fact, or a wrong statement with the same subject and relation."""
        if self._chance(self.reliability[fact.id]):
            return fact
        return self.rumours[fact.id] if self._chance(CONFLICTING["rumour"]) else self._wrong(fact)

    def _wrong(self, fact: Fact) -> Fact:
        return self.ephemeral.fact(fact.subject, fact.relation, peaked=True, other=fact.object)

    def _hedged(self, stated: Fact) -> float:
        """Return the probability that a sentence about a single fact is hedged."""
        true = self.base.by[stated.subject][stated.relation]
        hedged = CONFLICTING["hedged"]
        return hedged["reliable" if self.reliability[true.id] == 1 else "unreliable"]

    def _chance(self, share: float) -> bool:
        return self.rng.random() < share


def _true(facts: Sequence[Fact]) -> tuple[str, ...]:
    return tuple(fact.id for fact in facts if fact.id)
