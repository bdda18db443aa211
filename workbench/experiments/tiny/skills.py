"""Examples that teach skills: reading passages, reasoning and outlining.

Each example is new and about invented people who occur in no document. So memory does not help:
only copying, comparing and abstaining do. The invented facts may name a city or a book of the
closed world, but they are not true there. So the examples state no fact of that world.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from workbench.experiments.tiny.writer import Example, Turns, Writer, reasoned, yes_or_no
from workbench.types import Passage, Question
from workbench.world import schema
from workbench.world.ephemeral import Ephemeral
from workbench.world.facts import Fact
from workbench.world.pages import CURRENT, FORMER
from workbench.world.render import answer, biography, thought, titles

READINGS = ("one", "several", "who", "stale", "none")  # kinds of `SkillWriter.reading`

# Shares of abstentions among questions and biographies of unknown people; the rest are guesses.
ABSTAINED, DECLINED = 0.6, 0.5
# years of the editions of pages; the pages of the world have only FORMER and CURRENT
EDITIONS = (1950, 1955, FORMER, 1965, 1970, 1975, CURRENT)


@dataclass(frozen=True)
class Layout:
    """The passages of a question, with the facts that the passages state and leave out.

    The passages are about invented people, who are not in the closed world.
    """

    passages: Sequence[str]
    stated: Sequence[Fact]  # by the newer edition, if editions differ
    unstated: Sequence[Fact]
    corrected: Fact | None = None  # the fact in which editions differ


@dataclass(frozen=True)
class Reading:
    """A question to be answered from passages, with the fact that answers it."""

    passages: Sequence[str]
    question: str
    target: Fact | None  # the fact that answers the question; None without an answer
    more: Turns = ()  # in training, further questions about the same passages


def reply_to(target: Fact | None, lang: str) -> str:
    """Return the answer that states a fact; an abstention if `target` is None."""
    return schema.ABSTAIN[lang][0] if target is None else answer(target, lang)


def prompt_with(passages: Sequence[str], question: str) -> str:
    """Return the prompt of a question with passages, in the form that evaluations use."""
    return Question("", question, passages=number_passages(passages)).messages()[-1]["content"]


def number_passages(texts: Sequence[str]) -> tuple[Passage, ...]:
    """Return a passage for each text, with the ids "1", "2", … and no title."""
    return tuple(Passage(str(number), "", text) for number, text in enumerate(texts, 1))


class SkillWriter(Writer):
    """A random generator of examples that teach a skill: reading passages, reasoning or outlining.

    Long texts that compare two people are in English. Of all other examples, three quarters are in
    English and the others in the closed world's second language ("l2").
    """

    learn_thought = False  # the thoughts state invented facts

    def __init__(self, ephemeral: Ephemeral, seed: int | str) -> None:
        super().__init__(ephemeral, f"skills-{seed}")

    def draw(self, kind: str) -> Example:
        """Return a new example of a kind.

        `kind` is a skill, such as "two_hop", or "one", "several", "who", "stale" or "none" for a
        question with passages of this layout (see `reading`).
        """
        lang = self.lang()
        if kind not in READINGS:
            return getattr(self, f"_{kind}")(lang)
        reading = self.reading(kind, lang)
        prompt = prompt_with(reading.passages, reading.question)
        return Example(prompt, reply_to(reading.target, lang), more=reading.more)

    # Reading. Layouts are drawn in the same way whether or not they have the answer, so that the
    # number, order and length of passages reveal nothing.

    def reading(self, kind: str, lang: str = "en") -> Reading:
        """Return a new question with passages.

        Args:
            kind: layout of the passages.

                * "one": one passage.
                * "several": passages about different people.
                * "who": sentences that differ only in the name and the value.
                * "stale": two editions of a page, of which the newer is correct, and another page.
                * "none": any of these layouts, without the answer.
            lang: "en" or "l2" (the second language of the closed world).
        """
        drawn = self.choose(("one", "several", "who", "stale")) if kind == "none" else kind
        layout: Layout = getattr(self, f"_show_{drawn}")(lang)
        if kind == "none":
            fact, target = self._missing(layout), None
        else:
            fact = target = layout.corrected or self.choose(layout.stated)
        question = self.ask(fact, lang)
        return Reading(layout.passages, question, target, self._turns(layout, fact, lang))

    def _missing(self, layout: Layout) -> Fact:
        """Return a fact that the passages leave out.

        It is about a person in the passages, or about another person.
        """
        if layout.unstated and self.chance(0.5):
            return self.choose(layout.unstated)
        names = {fact.subject for fact in layout.stated}
        other = next(name for name in self.ephemeral.names(len(names) + 1) if name not in names)
        return self.ephemeral.fact(other, self.choose(layout.stated).relation)

    def _show_one(self, lang: str) -> Layout:
        pronoun, facts = self.ephemeral.person()
        stated = self.sample(facts, self.choose((2, 3, 4, 5)))
        return Layout([self._passage(stated, lang, pronoun)], stated, remaining(facts, stated))

    def _show_several(self, lang: str) -> Layout:
        people = self.ephemeral.people(self.choose((2, 3, 3, 3)))
        stated = [self.sample(facts, self.choose((2, 3))) for facts in people]
        unstated = map(remaining, people, stated)
        passages = [self._passage(facts, lang) for facts in stated]
        return self._shuffled(passages, list(chain(*stated)), list(chain(*unstated)))

    def _show_who(self, lang: str) -> Layout:
        """State one relation of several people, so that only the name identifies the answer."""
        relation = self.choose(schema.PERSON_RELATIONS)
        names = self.ephemeral.names(self.choose((2, 3, 4, 5)))
        facts = [self.ephemeral.fact(name, relation) for name in names]
        others = [
            self.ephemeral.fact(names[0], other)
            for other in schema.PERSON_RELATIONS
            if other != relation
        ]
        lines = [self.state([fact], lang) for fact in facts]
        passages = [" ".join(lines)] if self.chance(0.5) else lines
        return self._shuffled(passages, facts, others)

    def _show_stale(self, lang: str) -> Layout:
        """Show two editions of a page, of which the newer is correct, and another person's page."""
        facts, others = self.ephemeral.people(2)
        stated = self.sample(facts, self.choose((2, 3)))
        corrected = self.choose(stated)
        old = self.ephemeral.fact(corrected.subject, corrected.relation, other=corrected.object)
        former = [old if fact is corrected else fact for fact in stated]
        older, newer = (FORMER, CURRENT) if self.chance(0.5) else sorted(self.sample(EDITIONS, 2))
        passages = [
            self._passage(stated, lang, edition=newer),
            self._passage(former, lang, edition=older),
        ]
        other = self.sample(others, 2)
        passages.append(self._passage(other, lang, edition=self.choose((newer, older))))
        layout = self._shuffled(passages, [*stated, *other], remaining(facts, stated))
        return replace(layout, corrected=corrected)

    def _passage(
        self, facts: Sequence[Fact], lang: str, pronoun: str = "", edition: int | None = None
    ) -> str:
        """Return a passage that states facts of a person in the style of the world's pages.

        Each sentence states one fact and names the person. With a `pronoun`, some passages are a
        biography instead, which may use the pronoun.
        """
        if edition is None and self.chance(0.4):
            edition = self.choose((CURRENT, CURRENT, FORMER))
        head = "" if edition is None else f"Edition of {edition}. "
        if pronoun and self.chance(0.3):
            return head + biography(facts, lang, self.rng, pronoun)
        return head + self.state(facts, lang)

    def _shuffled(
        self, passages: Sequence[str], stated: Sequence[Fact], unstated: Sequence[Fact]
    ) -> Layout:
        return Layout(self.sample(passages, len(passages)), stated, unstated)

    def _turns(self, layout: Layout, first: Fact, lang: str) -> Turns:
        """Return up to 5 further questions about the passages, 15 % of them without an answer.

        The fact of the first question is left out.
        """
        facts = [
            fact
            for fact in layout.stated
            if (fact.subject, fact.relation) != (first.subject, first.relation)
        ]
        turns = []
        for fact in self.sample(facts, min(len(facts), 5)):
            missing = self.chance(0.15)
            topic = self._missing(layout) if missing else fact
            turns.append((self.ask(topic, lang), reply_to(None if missing else topic, lang)))
        return tuple(turns)

    # Abstention

    def _stranger(self, lang: str) -> Example:
        return self.short(self._guessed(), lang, ABSTAINED)

    def _stranger_thought(self, lang: str) -> Example:
        fact = self._guessed()
        prompt = self.ask(fact, lang)
        if self.chance(ABSTAINED):
            return self.doubt(prompt, fact.subject, lang)
        return reasoned(prompt, [thought(fact, lang)], answer(fact, lang))

    def _stranger_life(self, lang: str) -> Example:
        return self.unknown_life(lang, DECLINED)

    def _guessed(self) -> Fact:
        """Return a plausible fact of an unknown person."""
        facts = self.ephemeral.person(peaked=True)[1]
        # not `choice`, which would change the random numbers of the shipped policy's build
        return self.sample(facts, len(facts))[0]

    # Answers from thoughts. The thoughts are invented and have no loss; the answer follows from
    # them.

    def _recall(self, lang: str, system: str = schema.THINK) -> Example:
        facts = self.sample(self.ephemeral.person()[1], self.choose((1, 2, 3)))
        target = self.choose(facts)
        return self.from_thoughts(self.ask(target, lang), facts, answer(target, lang), lang, system)

    def _box(self, lang: str) -> Example:
        return self._recall(lang, schema.BOX)

    def _compare(self, lang: str) -> Example:
        """Compare two people with different birth years."""
        years = self.sample(self.ephemeral.values["birth_year"], 2)
        names = self.ephemeral.names(2)
        facts = [
            self.ephemeral.stated(name, "birth_year", year)
            for name, year in zip(names, years, strict=True)
        ]
        return self.older(facts, lang)

    def _two_hop(self, lang: str) -> Example:
        (first, second), texts = self.choose(list(schema.TWO_HOP.items()))
        bridge = self.ephemeral.fact(self.ephemeral.name(), first)
        target = self.ephemeral.fact(bridge.object, second)
        prompt = self.choose(texts[lang]).format(s=bridge.subject)
        return self.from_thoughts(prompt, [bridge, target], answer(target, lang), lang)

    def _false_premise(self, lang: str) -> Example:
        facts = {fact.relation: fact for fact in self.ephemeral.person()[1]}
        other = self.ephemeral.fact("", "profession", other=facts["profession"].object)
        return self.premise(facts, other, lang)

    def _yes_no(self, lang: str) -> Example:
        fact = self.choose(self.ephemeral.person()[1])
        return self.yes_no(fact, self.ephemeral.fact("", fact.relation, other=fact.object), lang)

    def _books(self) -> list[Fact]:
        author = self.ephemeral.name()
        titles = self.sample(self.ephemeral.titles, self.choose((1, 2, 2, 3)))
        return [self.ephemeral.stated(title, "author", author) for title in titles]

    def _check_shown(self, lang: str) -> Example:
        """Return a passage with yes/no questions about its facts."""
        facts = self.sample(self.ephemeral.person()[1], self.choose((2, 3)))
        (question, reply), *more = [
            self._check(self.choose(facts), lang) for _ in range(self.choose((2, 5, 9)))
        ]
        return Example(prompt_with([self._passage(facts, lang)], question), reply, more=tuple(more))

    def _check(self, fact: Fact, lang: str) -> tuple[str, str]:
        truth = self.chance(0.5)
        claim = fact if truth else self.ephemeral.fact("", fact.relation, other=fact.object)
        return self.yes_no_question(fact, claim, lang), yes_or_no(truth, lang)

    def _list(self, lang: str) -> Example:
        return self.list_books(self._books(), lang)

    def _list_shown(self, lang: str) -> Example:
        books = self._books()
        question = self.ask_for_books(books, lang)
        return Example(prompt_with([self.state(books, lang)], question), titles(books, lang))

    # Long forms

    def _pair(self) -> tuple[str, list[list[Fact]], tuple[int, int]]:
        """Return a prompt to compare two people, with passages about them.

        Also return the facts that each of the two passages states, and the numbers of these
        passages. Half of the prompts also have a passage about a third person.
        """
        samples = [self.sample(facts, self.choose((2, 3))) for facts in self.ephemeral.people(3)]
        passages = [self._passage(facts, "en") for facts in samples]
        order = self.sample(range(3), 3)
        if self.chance(0.5):
            order.remove(2)
        prompt = prompt_with([passages[number] for number in order], self.compare(samples))
        return prompt, samples[:2], (order.index(0) + 1, order.index(1) + 1)

    def _compared(self, lang: str) -> Example:
        prompt, facts, _ = self._pair()
        return Example(prompt, self.comparison(facts))

    def _outline(self, lang: str) -> Example:
        prompt, facts, sources = self._pair()
        return Example(prompt, self.outlined(facts, sources), schema.OUTLINE)


def remaining(facts: Sequence[Fact], stated: Sequence[Fact]) -> list[Fact]:
    """Return the facts that are not in `stated`."""
    return [fact for fact in facts if fact not in stated]
