"""People outside the world: they teach and measure what does not depend on knowledge."""

from __future__ import annotations

import random
from collections.abc import Mapping

from workbench.world import lexicon as words
from workbench.world import schema
from workbench.world.facts import Entity, Fact, Names, value_forms

HELD_OUT = 8  # one free name in so many is kept for measuring


class Ephemeral:
    """People with name combinations that no entity has, whose facts are drawn anew each time
    they are mentioned.

    Every first and every last name occurs in the world, only not together. With `held_out` the
    people are the others: those on whose names nobody was trained, kept for measuring.
    """

    def __init__(
        self,
        entities: Mapping[str, Entity],
        facts: Mapping[str, Mapping[str, Fact]],
        names: Names,
        held_out: bool = False,
    ) -> None:
        free = [f"{a} {b}" for a in names.first for b in names.last if f"{a} {b}" not in entities]
        random.Random("aside").shuffle(free)
        kept = len(free) // HELD_OUT
        self.free = free[:kept] if held_out else free[kept:]
        self.men = set(names.first[::2])
        self.rng = random.Random()  # of all that is drawn; replaced by a seeded one
        self.lexicon = names.l2
        self.values = {
            relation: sorted({by[relation].object for by in facts.values() if relation in by})
            for relation in schema.RELATIONS
        }
        self.truth = {
            (subject, relation): fact.object
            for subject, by in facts.items()
            for relation, fact in by.items()
        }
        every = (
            f"The {adjective} {noun}"
            for adjective in words.BOOK_ADJECTIVES
            for noun in words.BOOK_NOUNS
        )
        self.titles = list(every)

    def names(self, count: int) -> list[str]:
        """So many different names."""
        return self.rng.sample(self.free, count)

    def name(self) -> str:
        return self.rng.choice(self.free)

    def person(self, peaked: bool = False, name: str = "") -> tuple[str, list[Fact]]:
        """A pronoun and six facts about a new name; `peaked` draws the values from a Zipf-like
        prior (a guesser's habit).
        """
        name = name or self.name()
        facts = [self.fact(name, relation, peaked=peaked) for relation in schema.PERSON_RELATIONS]
        return ("He" if name.split()[0] in self.men else "She"), facts

    def people(self, count: int) -> list[tuple[str, list[Fact]]]:
        """So many people of different names."""
        return [self.person(name=name) for name in self.names(count)]

    def fact(self, subject: str, relation: str, *, peaked: bool = False, other: str = "") -> Fact:
        """A made-up fact of that relation, with another object than `other`."""
        values = self.values[relation]
        # nothing that is true of the world is made up
        taken = (other, self.truth.get((subject, relation), ""))
        value = other
        while value in taken:
            place = (
                int(len(values) ** (self.rng.random() ** 1.5)) - 1
                if peaked
                else self.rng.randrange(len(values))
            )
            value = values[place]
        return self.stated(subject, relation, value)

    def stated(self, subject: str, relation: str, value: str) -> Fact:
        """The made-up fact that `value` is the object."""
        kind = schema.RELATIONS[relation]
        forms = value_forms(kind.object, value, self.lexicon)
        return Fact(
            "", subject, relation, value, "unknown", importance=kind.importance, forms=forms
        )
