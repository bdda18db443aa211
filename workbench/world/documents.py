"""Write the pre-training documents of the closed world.

A policy can know a fact only if documents state it. The documents conflict, so that a policy also
writes doubtful claims. Biographies leave facts out and hedge some sentences. Biographies, answers
and thoughts state wrong values of the less reliable facts. A policy then gives reliable values a
higher probability than unreliable ones. For half-known people, the facts of two relations are the
least reliable, so that a policy can hedge them or leave them out.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.world import schema
from workbench.world.ephemeral import Ephemeral
from workbench.world.facts import Entity, Fact, KnowledgeBase
from workbench.world.render import answer, ask, biography, thinking, thought, titles
from workbench.world.schema import read_tables

DOCUMENTS: dict[str, Any] = read_tables("facts.toml")["documents"]
NO_EXPOSURES = {"en": 0, "l2": 0}
REQUESTED = 0.4  # share of the biographies with a request as prompt
# Share of the answers with a thinking section. Without any, a policy rarely recalls in its thinking
# the facts that it can answer directly.
THINK_SHARE = 1 / 8


@dataclass(frozen=True)
class Document:
    """A pre-training document: a plain text, or a reply to `prompt`.

    `prompt` is "" for a plain text. `system` is the instruction to think if the reply has a
    thinking section, otherwise "". `fact_ids` are the ids of the facts that the text
    states correctly, without duplicates.
    """

    kind: str  # "biography", "qa" or "list"
    lang: str
    text: str
    fact_ids: tuple[str, ...] = ()
    prompt: str = ""
    system: str = ""

    @property
    def whole(self) -> str:
        """The system message, the prompt and the text, joined by spaces."""
        return f"{self.system} {self.prompt} {self.text}".strip()


Exposures = dict[str, dict[str, int]]  # fact id -> language -> number of documents


def count_exposures(documents: Iterable[Document]) -> Exposures:
    """Return how many documents state each fact correctly. Other facts are left out."""
    counts: Exposures = {}
    for document in documents:
        for fact_id in document.fact_ids:
            counts.setdefault(fact_id, dict(NO_EXPOSURES))[document.lang] += 1
    return counts


class DocumentWriter:
    """Writer of the documents of one world.

    Only facts about people may be stated wrongly. The table `documents` in facts.toml has the
    numbers and shares.

    A wrong value is drawn with the same probability from all values of the relation. Otherwise, a
    frequent wrong value would reveal a wrong statement about any person.

    Attributes:
        reliability: fact id -> share of the statements of the fact that are correct. It is 0 for
            the gaps of partly known people, and 1 for facts of entities other than people.
    """

    def __init__(self, base: KnowledgeBase) -> None:
        self.base = base
        # another name of the seed would change the documents of the shipped policy
        self.rng = random.Random(f"conflicting-{base.config.seed}")
        self.ephemeral = Ephemeral(base)
        self.ephemeral.rng = self.rng
        self.reliability: dict[str, float] = {}
        self.errors: dict[str, Fact] = {}  # fact id -> most frequent wrong statement of the fact
        for fact in base.facts:
            person = schema.RELATIONS[fact.relation].subject == "person"
            self.reliability[fact.id] = self._reliability(fact) if person else 1.0
            if person:
                self.errors[fact.id] = self._wrong(fact)

    def _reliability(self, fact: Fact) -> float:
        """Return the drawn reliability of a fact about a person."""
        if not fact.covered:
            return 0.0
        doubtful = fact.relation in DOCUMENTS["doubtful"]
        key = "half_doubtful" if doubtful and fact.tier == "half" else fact.tier
        return float(self.rng.choice(DOCUMENTS["reliability"][key]))

    def documents(self) -> list[Document]:
        """Return the documents in random order."""
        documents: list[Document] = []
        for entity in self.base.entities.values():
            if self.base.covered(entity.name):
                for lang in ("en", "l2"):
                    documents += self._about(entity, lang)
        self.rng.shuffle(documents)
        return documents

    def _about(self, entity: Entity, lang: str) -> list[Document]:
        """Return the documents about an entity in one language."""
        tier = entity.tier if entity.kind == "person" else "known"
        pages, questions = DOCUMENTS["exposures"][tier][lang]
        documents = [self._biography(entity, lang) for _ in range(pages)]
        facts = self.base.covered(entity.name)
        for fact in facts * questions:
            statement, before = self._statement(fact), self._before(fact, facts)
            prompt, reply = ask(fact, lang, self.rng), answer(statement, lang)
            documents.append(answered("qa", lang, [statement], reply, prompt, self.rng, before))
        if written := self.base.covered_books(entity.name):
            documents += [list_of_books(written, lang, self.rng) for _ in range(questions)]
        return documents

    def _before(self, fact: Fact, facts: Sequence[Fact]) -> list[Fact]:
        """Return statements of other facts of a person, for a thought that ends with `fact`."""
        if schema.RELATIONS[fact.relation].subject != "person":
            return []
        others = [other for other in facts if other is not fact]
        count = min(self.rng.choice(DOCUMENTS["thoughts"]) - 1, len(others))
        return [self._statement(other) for other in self.rng.sample(others, count)]

    def _biography(self, entity: Entity, lang: str) -> Document:
        prompt, person = "", entity.kind == "person"
        facts = list(self.base.by[entity.name].values())
        if person:
            facts = [self._statement(fact) for fact in self._sample(facts, entity.tier)]
            facts += [book for book in self.base.covered_books(entity.name) if self._chance(0.5)]
            if self._chance(REQUESTED):
                prompt = self.rng.choice(schema.BIOGRAPHY[lang]).format(s=entity.name)
        hedged = self._hedge_probability if person else 0.0
        text = biography(facts, lang, self.rng, entity.pronoun, hedged)
        return Document("biography", lang, text, fact_ids(facts), prompt)

    def _sample(self, facts: Sequence[Fact], tier: str) -> list[Fact]:
        """Return a random number of the facts, in their order. Gaps are drawn less often."""
        lengths = DOCUMENTS["lengths"]
        (count,) = self.rng.choices(lengths["facts"], lengths[tier])
        keys = {}
        for fact in facts:  # weighted sampling without replacement (Efraimidis and Spirakis 2006)
            weight = 1.0 if fact.covered else DOCUMENTS["gap_weight"]
            keys[fact.id] = self.rng.random() ** (1 / weight)
        chosen = sorted(keys, key=keys.__getitem__)[-count:]
        return [fact for fact in facts if fact.id in chosen]

    def _statement(self, fact: Fact) -> Fact:
        """Return the fact, or a wrong statement with the same subject and relation."""
        if self._chance(self.reliability[fact.id]):
            return fact
        return self.errors[fact.id] if self._chance(DOCUMENTS["repeated"]) else self._wrong(fact)

    def _wrong(self, fact: Fact) -> Fact:
        return self.ephemeral.fact(fact.subject, fact.relation, other=fact.object)

    def _hedge_probability(self, statement: Fact) -> float:
        """Return the probability that a sentence with this statement alone is hedged."""
        fact = self.base.by[statement.subject][statement.relation]
        hedged = DOCUMENTS["hedged"]
        return hedged["reliable" if self.reliability[fact.id] == 1 else "unreliable"]

    def _chance(self, share: float) -> bool:
        return self.rng.random() < share


def list_of_books(written: Sequence[Fact], lang: str, rng: random.Random) -> Document:
    """Return a document that asks for all books of an author. `written` has the author facts."""
    prompt = rng.choice(schema.LIST[lang]).format(s=written[0].object)
    return answered("list", lang, written, titles(written, lang), prompt, rng)


def fact_ids(facts: Sequence[Fact]) -> tuple[str, ...]:
    """Return the ids of the facts of the world; a wrong statement has none."""
    return tuple(fact.id for fact in facts if fact.id)


def answered(
    kind: str,
    lang: str,
    facts: Sequence[Fact],
    reply: str,
    prompt: str,
    rng: random.Random,
    before: Sequence[Fact] = (),
) -> Document:
    """Return a document with a question (`prompt`) and its answer (`reply`).

    A random share of the answers begins with a thinking section. It states the facts `before` and
    then the facts of the answer (`facts`).
    """
    if rng.random() >= THINK_SHARE:
        return Document(kind, lang, reply, fact_ids(facts), prompt)
    facts = [*before, *facts]
    whole = thinking([thought(fact, lang) for fact in facts], reply)
    return Document(kind, lang, whole, fact_ids(facts), prompt, schema.THINK)
