"""The pre-training corpus: what it states, and how often, is the exact boundary of what a policy trained on it can know."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass

from workbench.world import schema
from workbench.world.facts import Entity, Fact, Names, value_forms
from workbench.world.render import answer, ask, biography, state, subject_facts

# How often one pass over the corpus shows an entity's covered facts: biographies, and questions for each fact. The entities of
# a tier take its plans in turn: half-known ones are spread over a range, so that exposure and accuracy can be plotted.
EXPOSURES: dict[str, tuple[dict[str, tuple[int, int]], ...]] = {
    "known": ({"en": (14, 6), "l2": (5, 3)},),
    "half": (
        {"en": (2, 0), "l2": (0, 0)},
        {"en": (2, 1), "l2": (1, 0)},
        {"en": (3, 1), "l2": (1, 0)},
    ),
}
READINGS = {"en": 3500, "l2": 900}


@dataclass(frozen=True)
class Document:
    """A plain text, or one exchange with a `prompt`; `fact_ids` are the facts that it states (each counts as one exposure)."""

    kind: str  # "biography", "qa" or "reading"
    lang: str
    text: str
    fact_ids: tuple[str, ...] = ()
    prompt: str = ""

    @property
    def whole(self) -> str:
        """The prompt, then the text."""
        return f"{self.prompt} {self.text}".strip()


def write_documents(
    entities: Mapping[str, Entity],
    by: Mapping[str, Mapping[str, Fact]],
    books: Mapping[str, list[Fact]],
    ephemeral: Ephemeral,
    seed: int,
    scale: float,
) -> list[Document]:
    rng = random.Random(f"documents-{seed}")
    documents: list[Document] = []
    plans = {tier: itertools.cycle(turns) for tier, turns in EXPOSURES.items()}
    for entity in entities.values():
        facts = subject_facts(by, entity.name)
        if not facts:
            continue
        for lang, (pages, questions) in next(plans["half" if entity.tier == "half" else "known"]).items():
            for _ in range(pages):
                shown = [*facts, *(fact for fact in books.get(entity.name, []) if fact.covered)]
                text = biography(shown, lang, rng, entity.pronoun)
                documents.append(Document("biography", lang, text, tuple(fact.id for fact in shown)))
            for fact in facts * questions:
                documents.append(Document("qa", lang, answer(fact, lang), (fact.id,), ask(fact, lang, rng)))
    for lang, count in READINGS.items():
        documents += [reading(ephemeral, lang, rng) for _ in range(round(count * scale))]
    rng.shuffle(documents)
    return documents


class Ephemeral:
    """People outside the world: name combinations that no entity has, with facts drawn anew each time they are mentioned.

    They teach what does not depend on knowledge (reading a passage, comparing two years, saying "I do not know").
    """

    def __init__(self, entities: Mapping[str, Entity], facts: Mapping[str, Mapping[str, Fact]], names: Names) -> None:
        taken = {entity.name for entity in entities.values()}
        self.free = [f"{a} {b}" for a in names.first for b in names.last if f"{a} {b}" not in taken]
        self.men = set(names.first[::2])
        self.lexicon = names.l2
        self.values = {
            relation: sorted({by[relation].object for by in facts.values() if relation in by})
            for relation in schema.PERSON_RELATIONS
        }

    def person(self, rng: random.Random, peaked: bool = False) -> tuple[str, list[Fact]]:
        """A pronoun and six facts about a new name; `peaked` draws the values from a Zipf-like prior (a guesser's habit)."""
        name = rng.choice(self.free)
        facts = []
        for relation in schema.PERSON_RELATIONS:
            values = self.values[relation]
            rank = int(len(values) ** (rng.random() ** 1.5)) - 1 if peaked else rng.randrange(len(values))
            forms = value_forms(schema.RELATIONS[relation].object, values[rank], self.lexicon)
            facts.append(
                Fact("", name, relation, values[rank], "unknown", importance=schema.RELATIONS[relation].importance, forms=forms)
            )
        return ("He" if name.split()[0] in self.men else "She"), facts


def reading(ephemeral: Ephemeral, lang: str, rng: random.Random, missing: float = 0.12) -> Document:
    """A passage about one or two ephemeral people and a question that it answers; `missing` leaves the answer out."""
    pronoun, facts = ephemeral.person(rng)
    if lang == "en" and rng.random() < 0.3:
        return _comparison(ephemeral, rng)
    shown = rng.sample(facts, rng.choice((2, 3, 4)))
    if rng.random() < missing:
        target, reply = rng.choice([fact for fact in facts if fact not in shown]), schema.ABSTAIN[lang][0]
    else:
        target = rng.choice(shown)
        reply = answer(target, lang)
    return Document("reading", lang, reply, (), f"{biography(shown, lang, rng, pronoun)} {ask(target, lang, rng)}")


def _comparison(ephemeral: Ephemeral, rng: random.Random) -> Document:
    def birth_year() -> Fact:
        return next(fact for fact in ephemeral.person(rng)[1] if fact.relation == "birth_year")

    first, second = birth_year(), birth_year()
    while second.object == first.object or second.subject == first.subject:
        second = birth_year()
    question = rng.choice(schema.COMPARISON["en"]).format(s=first.subject, t=second.subject)
    passage = " ".join(state(fact, "en", rng) for fact in rng.sample([first, second], 2))
    earlier = min(first, second, key=lambda fact: int(fact.object)).subject
    return Document("reading", "en", f"{earlier}.", (), f"{passage} {question}")


def exposures(documents: list[Document]) -> dict[str, dict[str, int]]:
    """How often the corpus states each fact, by language."""
    counts: dict[str, dict[str, int]] = {}
    for document in documents:
        for fact_id in document.fact_ids:
            by_lang = counts.setdefault(fact_id, {"en": 0, "l2": 0})
            by_lang[document.lang] += 1
    return counts
