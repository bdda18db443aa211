"""Instruction data for the tiny policy: formats, habits of guessing and of abstaining; hardly
any knowledge.

Examples ask only about people (and books) of the `sft` split, so exposure counts of all other
people stay those of the documents: about covered facts, and about what the documents leave out
of partly known people, where a guess that is always wrong and "I do not know" follow. The second
step of a two-hop answer states a covered fact of a city, company or university. Everything else
is about people outside the world: skills (`skills.py`), fluent guesses from a peaked
prior.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from workbench.experiments.tiny.curriculum import SKILLS
from workbench.experiments.tiny.skills import (
    Example,
    SkillWriter,
    asked_older,
    asked_pair,
    checked,
    compared,
    declining,
    earlier,
    in_doubt,
    listed,
    outlined,
    premise,
    reasoned,
    short,
)
from workbench.world import schema
from workbench.world.documents import Document
from workbench.world.facts import Fact
from workbench.world.render import answer, ask, biography, subject_facts, thought
from workbench.world.world import World


@dataclass(frozen=True)
class Habits:
    """What the SFT data teaches about not knowing: shares among examples about what was never
    shown.
    """

    abstain: float = 0.1  # of short questions about people who were never shown
    doubt: float = 0.4  # of answers that think first, about people who were never shown
    gaps: float = 0.5  # of short questions about what is not known of partly known people
    decline: float = 0.4  # of biographies
    hedged: float = 0.12  # of sentences in guessed biographies
    vague: float = 0.04


MIX = {
    "question": 18,
    "guess": 12,
    "gap": 12,
    "biography": 12,
    "guess_biography": 8,
    "skill": 24,
    "think": 14,
    "box": 3,
    "two_hop": 18,
    "comparison": 12,
    "false_premise": 14,
    "yes_no": 8,
    "list": 4,
    "long_form": 4,
    "outline": 8,
}


class SFTWriter:
    """Draws examples without end; `lang` is English three times out of four."""

    def __init__(self, world: World, habits: Habits, seed: int) -> None:
        self.world, self.habits = world, habits
        self.ephemeral = world.ephemeral()
        self.rng = self.ephemeral.rng = random.Random(f"sft-{seed}")
        self.skills = SkillWriter(world.ephemeral(), f"sft-{seed}")
        shown = [
            entity
            for entity in world.entities.values()
            if entity.split == "sft" and entity.tier != "unknown"
        ]
        self.people = [entity for entity in shown if entity.kind == "person"]
        self.things = [
            entity for entity in shown if entity.kind == "book" and entity.tier == "known"
        ]
        self.gaps = [
            fact
            for entity in self.people
            if entity.tier == "partial"
            for fact in subject_facts(world.by, entity.name, covered=False)
            if not fact.covered
        ]
        written = [
            [book for book in world.books.get(entity.name, []) if book.covered]
            for entity in self.people
        ]
        self.books = [books for books in written if books]

    def examples(self, mix: dict[str, int] | None = None) -> Iterator[Example]:
        mix = mix or MIX
        while True:
            kind = self.rng.choices(list(mix), list(mix.values()))[0]
            lang = "l2" if self.rng.random() < 0.25 else "en"
            yield getattr(self, f"_{kind}")(lang)

    def _covered(self) -> list[Fact]:
        """Covered facts of one sft person (or, now and then, of another entity)."""
        pool = self.things if self.things and self.rng.random() < 0.15 else self.people
        return subject_facts(self.world.by, self.rng.choice(pool).name)

    def _person(self) -> tuple[str, list[Fact]]:
        entity = self.rng.choice(self.people)
        return entity.pronoun, subject_facts(self.world.by, entity.name)

    def _stranger(self) -> tuple[str, list[Fact]]:
        return self.ephemeral.person(peaked=True)

    def _subject(self) -> tuple[list[Fact], bool]:
        """Facts of a person for a reasoned answer, and whether they are known (a stranger's are
        guesses).
        """
        if self.rng.random() < 0.7:
            return self._person()[1], True
        return self._stranger()[1], False

    def _other(self, fact: Fact) -> Fact:
        """A fact of the same relation with another object."""
        return self.ephemeral.fact(fact.subject, fact.relation, peaked=True, other=fact.object)

    # Not knowing

    def _passes(self, known: bool) -> bool:
        """Whether a reasoned answer about an unknown person abstains."""
        return not known and self.rng.random() < self.habits.doubt

    def _or_doubt(self, example: Example, subject: str, known: bool, lang: str) -> Example:
        """The example, or an abstention in its place."""
        if self._passes(known):
            return in_doubt(example.prompt, subject, lang, self.rng)
        return example

    # Short answers

    def _question(self, lang: str) -> Example:
        fact = self.rng.choice(self._covered())
        return short(fact, lang, self.rng, abstain=0.0)

    def _guess(self, lang: str) -> Example:
        return short(self.rng.choice(self._stranger()[1]), lang, self.rng, self.habits.abstain)

    def _gap(self, lang: str) -> Example:
        """What the documents never say of somebody of whom they say other things: a guess or an
        abstention.
        """
        if not self.gaps:
            return self._guess(lang)
        return short(self._other(self.rng.choice(self.gaps)), lang, self.rng, self.habits.gaps)

    def _skill(self, lang: str) -> Example:
        (kind,) = self.rng.choices(list(SKILLS), list(SKILLS.values()))
        return self.skills.draw(kind)

    # Whole texts

    def _biography(self, lang: str) -> Example:
        pronoun, facts = self._person()
        prompt = self.rng.choice(schema.BIOGRAPHY[lang]).format(s=facts[0].subject)
        return Example(prompt, biography(facts, lang, self.rng, pronoun))

    def _guess_biography(self, lang: str) -> Example:
        pronoun, facts = self._stranger()
        prompt = self.rng.choice(schema.BIOGRAPHY[lang]).format(s=facts[0].subject)
        if self.rng.random() < self.habits.decline:
            return Example(prompt, declining(facts[0].subject, lang, self.rng))
        hedged, vague = self.habits.hedged, self.habits.vague
        return Example(
            prompt, biography(facts, lang, self.rng, pronoun, hedged=hedged, vague=vague)
        )

    def _pair(self) -> list[list[Fact]]:
        people = (self._subject()[0] for _ in range(2))
        return [self.rng.sample(facts, min(3, len(facts))) for facts in people]

    def _long_form(self, lang: str) -> Example:
        pair = self._pair()
        return Example(asked_pair(pair, self.rng), compared(pair, self.rng))

    def _outline(self, lang: str) -> Example:
        pair = self._pair()
        return Example(asked_pair(pair, self.rng), outlined(pair, self.rng), schema.OUTLINE)

    # Reasoned answers

    def _think(self, lang: str, system: str = schema.THINK) -> Example:
        facts, known = self._subject()
        target, *others = self.rng.sample(facts, min(2, len(facts)))
        prompt = ask(target, lang, self.rng)
        if self._passes(known):
            return in_doubt(prompt, target.subject, lang, self.rng, system)
        if self.rng.random() < 0.5:
            others = []
        return reasoned(
            prompt,
            [thought(fact, lang) for fact in (*others, target)],
            answer(target, lang),
            system,
        )

    def _box(self, lang: str) -> Example:
        return self._think(lang, schema.BOX)

    def _two_hop(self, lang: str) -> Example:
        facts, known = self._subject()
        hops = dict(schema.TWO_HOP.keys())
        bridges = [
            fact
            for fact in facts
            if fact.relation in hops and self.world.by[fact.object][hops[fact.relation]].covered
        ]
        if not bridges:
            return self._think(lang)
        bridge = self.rng.choice(bridges)
        target = self.world.by[bridge.object][hops[bridge.relation]]
        prompt = self.rng.choice(schema.TWO_HOP[bridge.relation, target.relation][lang]).format(
            s=bridge.subject
        )
        thoughts = [thought(bridge, lang), thought(target, lang)]
        example = reasoned(prompt, thoughts, answer(target, lang))
        return self._or_doubt(example, bridge.subject, known, lang)

    def _comparison(self, lang: str) -> Example:
        years: list[Fact] = []
        while len({fact.object for fact in years}) < 2 or len({fact.subject for fact in years}) < 2:
            years = [
                *years,
                *(fact for fact in self._person()[1] if fact.relation == "birth_year"),
            ][-2:]
        return reasoned(
            asked_older(years, lang, self.rng),
            [thought(fact, lang) for fact in years],
            f"{earlier(years)}.",
        )

    def _false_premise(self, lang: str) -> Example:
        facts, known = self._subject()
        by = {fact.relation: fact for fact in facts}
        if not {"profession", *schema.FALSE_PREMISE_ASKS} <= by.keys():
            return self._think(lang)
        example = premise(by, self._other(by["profession"]), lang, self.rng)
        return self._or_doubt(example, facts[0].subject, known, lang)

    def _yes_no(self, lang: str) -> Example:
        facts, known = self._subject()
        fact = self.rng.choice(facts)
        example = checked(fact, self._other(fact), lang, self.rng)
        return self._or_doubt(example, fact.subject, known, lang)

    def _list(self, lang: str) -> Example:
        return (
            listed(self.rng.choice(self.books), lang, self.rng)
            if self.books
            else self._question(lang)
        )


def replay(world: World, seed: int) -> Iterator[Document]:
    """Pre-training documents in random order, without end: they keep knowledge in place during
    SFT.
    """
    rng = random.Random(f"replay-{seed}")
    while True:
        yield rng.choice(world.documents)
