"""Invent people who are not in the closed world, for skills that need no knowledge.

With invented people, a policy is trained and evaluated in reading passages, reasoning and
outlining.
"""

import random

from workbench.world import lexicon as words
from workbench.world import schema
from workbench.world.facts import Fact, KnowledgeBase, value_forms

HELD_OUT = 8  # one of this many free names is reserved for evaluation


class Ephemeral:
    """Generator of invented people with facts. No entity of the world has their names.

    Their first and last names occur in the world, but not together. Each call draws new names or
    facts.

    Args:
        base: the world.
        held_out: True draws only names that are reserved for evaluation, on which no policy is
            trained; False draws the other names.
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
        """Draw `count` different full names."""
        return self.rng.sample(self.free, count)

    def name(self) -> str:
        return self.rng.choice(self.free)

    def person(self, peaked: bool = False, name: str = "") -> tuple[str, list[Fact]]:
        """Draw a person; return the pronoun ("He" or "She") and the person's facts.

        There is one fact for each relation of people, such as "born_in".

        Args:
            peaked: True draws a few values often and the others rarely, as a guessing policy does.
                False draws all values with the same probability.
            name: name of the person; "" to draw a name.
        """
        name = name or self.name()
        facts = [self.fact(name, relation, peaked=peaked) for relation in schema.PERSON_RELATIONS]
        return ("He" if name.split()[0] in self.men else "She"), facts

    def people(self, count: int) -> list[list[Fact]]:
        """Draw `count` people with different names; return the list of facts of each."""
        return [self.person(name=name)[1] for name in self.names(count)]

    def fact(self, subject: str, relation: str, *, peaked: bool = False, other: str = "") -> Fact:
        """Draw a random object for `subject` and `relation`; return them as a fact.

        The drawn object is never the one that is true in the world.

        Args:
            peaked: True draws a few objects often and the others rarely. False draws all objects
                with the same probability.
            other: an object that must not be drawn; "" for no such object.
        """
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
        """Return the fact that `subject` has the object `value` in `relation`, true or not."""
        kind = schema.RELATIONS[relation]
        forms = value_forms(kind.object, value, self.lexicon)
        return Fact(
            "", subject, relation, value, "unknown", importance=kind.importance, forms=forms
        )
