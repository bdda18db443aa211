"""Invent people outside the world, to train and evaluate skills that need no knowledge.

Such skills are, for example, reading passages, reasoning and outlining.
"""

import random

from workbench.world import lexicon as words
from workbench.world import schema
from workbench.world.facts import Fact, KnowledgeBase, value_forms

HELD_OUT = 8  # one of this many free names is reserved for evaluation


class Ephemeral:
    """People with name combinations that no entity has. Each call draws new facts about them.

    Their first and last names occur in the world, but not together. `held_out=True` draws from the
    names that are reserved for evaluation, on which no policy is trained.
    """

    def __init__(self, base: KnowledgeBase, held_out: bool = False) -> None:
        names = base.names
        full = (f"{first} {last}" for first in names.first for last in names.last)
        free = [name for name in full if name not in base.entities]
        random.Random("aside").shuffle(free)
        count = len(free) // HELD_OUT
        self.free = free[:count] if held_out else free[count:]
        self.men = set(names.first[::2])  # as in `draw_entities`
        self.rng = random.Random()  # users replace it by a seeded one
        self.lexicon = names.l2
        self.values = {
            relation: sorted({fact.object for fact in base.facts if fact.relation == relation})
            for relation in schema.RELATIONS
        }
        self.truth = {(fact.subject, fact.relation): fact.object for fact in base.facts}
        self.titles = words.book_titles()

    def names(self, count: int) -> list[str]:
        """Draw `count` different names."""
        return self.rng.sample(self.free, count)

    def name(self) -> str:
        return self.rng.choice(self.free)

    def person(self, peaked: bool = False, name: str = "") -> tuple[str, list[Fact]]:
        """Draw a person; return the pronoun and one fact of each relation.

        `peaked=True` draws a few values often and the others rarely, like a policy that guesses.
        """
        name = name or self.name()
        facts = [self.fact(name, relation, peaked=peaked) for relation in schema.PERSON_RELATIONS]
        return ("He" if name.split()[0] in self.men else "She"), facts

    def people(self, count: int) -> list[list[Fact]]:
        """Draw the facts of `count` people of different names."""
        return [self.person(name=name)[1] for name in self.names(count)]

    def fact(self, subject: str, relation: str, *, peaked: bool = False, other: str = "") -> Fact:
        """Draw a fact about `subject` that is not true in the world; its object is not `other`."""
        values = self.values[relation]
        excluded = (other, self.truth.get((subject, relation), ""))
        value = other
        while value in excluded:
            place = (
                int(len(values) ** (self.rng.random() ** 1.5)) - 1
                if peaked
                else self.rng.randrange(len(values))
            )
            value = values[place]
        return self.stated(subject, relation, value)

    def stated(self, subject: str, relation: str, value: str) -> Fact:
        """Return an invented fact of `subject` and `relation` with the object `value`."""
        kind = schema.RELATIONS[relation]
        forms = value_forms(kind.object, value, self.lexicon)
        return Fact(
            "", subject, relation, value, "unknown", importance=kind.importance, forms=forms
        )
