"""Write the instruction data (SFT) of the tiny policy.

The examples teach formats, and habits of guessing and abstaining. A fact of the world is *covered*
if a document states it. The number of such documents is its *exposure*. A *gap* is a fact about a
partly known person that no document states.

The data adds little knowledge:

* Examples about the world's people and books use only the split `sft`. So facts about people and
  books of other splits occur only in the documents.
* These examples ask about covered facts and about gaps. The answer to a gap is a wrong guess or "I
  do not know".
* A two-hop answer, such as to "In which country was Ana Bo born?", also states a covered fact of a
  city, company or university.
* All other examples are about people outside the world. They are skills (`skills.py`), or fluent
  guesses, in which a few values are frequent.

The questions and biographies about the world's people are documents. Some requests about unknown
people get the biography of another person.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.experiments.tiny.curriculum import SKILLS
from workbench.experiments.tiny.skills import SkillWriter
from workbench.experiments.tiny.writer import Example, Writer
from workbench.world import schema
from workbench.world.documents import Document
from workbench.world.facts import Fact
from workbench.world.render import answer
from workbench.world.world import World


@dataclass(frozen=True)
class Habits:
    """How often SFT examples about unknown facts abstain, hedge or are vague, as shares."""

    abstain: float = 0.14  # abstentions among short questions about unknown people
    doubt: float = 0.5  # abstentions among reasoned answers about unknown people
    gaps: float = 0.55  # abstentions among short questions about gaps of partly known people
    # abstentions among biographies of unknown people, without those about another person
    decline: float = 0.5
    hedged: float = 0.12  # hedged sentences in guessed biographies
    vague: float = 0.04  # vague sentences in guessed biographies
    off_subject: float = 0.25  # biographies of another person, if an unknown person is asked for
    unknown_compared: float = 0.5  # comparisons with an unknown person, among comparisons
    thoughts: tuple[int, int] = (2, 4)  # facts of a short and of a long thought, equally frequent


class SFTWriter(Writer):
    """A random generator of SFT examples.

    Long texts that compare two people are in English. Of all other examples, three quarters are in
    English and the others in the closed world's second language ("l2").
    """

    def __init__(self, world: World, habits: Habits, seed: int) -> None:
        super().__init__(world.ephemeral(), f"sft-{seed}")
        self.world, self.habits = world, habits
        self.skills = SkillWriter(world.ephemeral(), f"sft-{seed}")
        self.people = [person for person in world.people("sft") if person.tier != "unknown"]
        self.gaps = [
            fact
            for person in self.people
            if person.tier == "partial"
            for fact in world.by[person.name].values()
            if not fact.covered
        ]
        books = (world.covered_books(person.name) for person in self.people)
        self.books = list(filter(None, books))  # of each author
        # (kind, language) -> documents with a prompt about a person
        self.documents: dict[tuple[str, str], list[Document]] = {}
        names = {person.name for person in self.people}
        for document in world.documents:
            if any(name in document.prompt for name in names):
                self.documents.setdefault((document.kind, document.lang), []).append(document)

    def examples(self, kinds: Mapping[str, int]) -> Iterator[Example]:
        """Yield random SFT examples without end. `kinds` has the weights of their kinds."""
        while True:
            (kind,) = self.rng.choices(*zip(*kinds.items(), strict=True))
            yield getattr(self, f"_{kind}")(self.lang())

    def _person(self) -> list[Fact]:
        return self.world.covered(self.choose(self.people).name)

    def _subject(self) -> tuple[list[Fact], bool]:
        """Return facts about a person, and whether the person is known.

        The facts about an unknown person are guesses.
        """
        if self.chance(0.7):
            return self._person(), True
        return self.ephemeral.person(peaked=True)[1], False

    def _other(self, fact: Fact) -> Fact:
        """Return a fact of the same relation with another object."""
        return self.ephemeral.fact(fact.subject, fact.relation, peaked=True, other=fact.object)

    # Abstention

    def _abstains(self, known: bool) -> bool:
        """Return whether a reasoned answer abstains. Answers about known persons never abstain."""
        return not known and self.chance(self.habits.doubt)

    def _or_doubt(self, example: Example, subject: str, known: bool, lang: str) -> Example:
        """Return the example or, for some unknown subjects, an abstention to the same prompt."""
        if self._abstains(known):
            return self.doubt(example.prompt, subject, lang)
        return example

    # Short answers

    def _from_document(self, kind: str, lang: str) -> Example:
        document = self.choose(self.documents[kind, lang])
        return Example(document.prompt, document.text, document.system)

    def _question(self, lang: str) -> Example:
        return self._from_document("qa", lang)

    def _guess(self, lang: str) -> Example:
        fact = self.choose(self.ephemeral.person(peaked=True)[1])
        return self.short(fact, lang, self.habits.abstain)

    def _gap(self, lang: str) -> Example:
        """Return a question for a fact of a partly known person that the documents leave out.

        The answer is a wrong guess or an abstention.
        """
        if not self.gaps:
            return self._guess(lang)
        return self.short(self._other(self.choose(self.gaps)), lang, self.habits.gaps)

    def _skill(self, lang: str) -> Example:
        (kind,) = self.rng.choices(*zip(*SKILLS.items(), strict=True))
        return self.skills.draw(kind)

    # Whole texts

    def _biography(self, lang: str) -> Example:
        return self._from_document("biography", lang)

    def _guess_biography(self, lang: str) -> Example:
        habits = self.habits
        if self.chance(habits.off_subject):
            return Example(self.request(self.ephemeral.name(), lang), self._biography(lang).reply)
        return self.unknown_life(lang, habits.decline, hedged=habits.hedged, vague=habits.vague)

    def _pair(self) -> list[list[Fact]]:
        people = (self._subject()[0] for _ in range(2))
        return [self.sample(facts, min(3, len(facts))) for facts in people]

    def _long_form(self, lang: str) -> Example:
        pair = self._pair()
        return Example(self.compare(pair), self.comparison(pair))

    def _outline(self, lang: str) -> Example:
        pair = self._pair()
        return Example(self.compare(pair), self.outlined(pair), schema.OUTLINE)

    # Reasoned answers

    def _think(self, lang: str, system: str = schema.THINK) -> Example:
        facts, known = self._subject()
        few, many = self.habits.thoughts
        target, *others = self.sample(facts, min(many, len(facts)))
        prompt = self.ask(target, lang)
        if self._abstains(known):
            return self.doubt(prompt, target.subject, lang, system)
        if self.chance(0.5):
            others = others[: few - 1]
        return self.from_thoughts(prompt, [*others, target], answer(target, lang), lang, system)

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
        bridge = self.choose(bridges)
        target = self.world.by[bridge.object][hops[bridge.relation]]
        templates = schema.TWO_HOP[bridge.relation, target.relation][lang]
        prompt = self.choose(templates).format(s=bridge.subject)
        example = self.from_thoughts(prompt, [bridge, target], answer(target, lang), lang)
        return self._or_doubt(example, bridge.subject, known, lang)

    def _comparison(self, lang: str) -> Example:
        with_unknown = self.chance(self.habits.unknown_compared)
        years: list[Fact] = []
        # until the last two people, and their years, differ
        while len({fact.object for fact in years}) < 2 or len({fact.subject for fact in years}) < 2:
            years += [fact for fact in self._person() if fact.relation == "birth_year"]
            years = years[-2:]
        if not with_unknown:
            return self.older(years, lang)
        unknown = self._other(replace(years[1], subject=self.ephemeral.name()))
        example = self.older(self.sample([unknown, years[1]], 2), lang)
        return self._or_doubt(example, unknown.subject, known=False, lang=lang)

    def _false_premise(self, lang: str) -> Example:
        facts, known = self._subject()
        by = {fact.relation: fact for fact in facts}
        if not {"profession", *schema.FALSE_PREMISE_ASKS} <= by.keys():
            return self._think(lang)
        example = self.premise(by, self._other(by["profession"]), lang)
        return self._or_doubt(example, facts[0].subject, known, lang)

    def _yes_no(self, lang: str) -> Example:
        facts, known = self._subject()
        fact = self.choose(facts)
        return self._or_doubt(self.yes_no(fact, self._other(fact), lang), fact.subject, known, lang)

    def _list(self, lang: str) -> Example:
        if not self.books:
            return self._question(lang)
        return self.list_books(self.choose(self.books), lang)


def replay(documents: Sequence[Document], seed: int) -> Iterator[Document]:
    """Yield random pre-training documents without end.

    Mixed with the SFT examples, they keep the policy from forgetting its knowledge.
    """
    rng = random.Random(f"replay-{seed}")
    while True:
        yield rng.choice(documents)
