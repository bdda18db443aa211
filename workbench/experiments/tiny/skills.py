"""Examples of skills on people outside the world: reading passages, reasoning, outlining.

Each example is new, so that memory does not help: only copying, comparing and abstaining do. The
names of the people do not occur in documents, and the facts are invented. They may name a city or
a book of the world, but are never true of it, so no fact of the world gains an exposure.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from workbench.types import Passage, Question
from workbench.world import schema
from workbench.world.ephemeral import Ephemeral
from workbench.world.facts import Fact
from workbench.world.pages import CURRENT, FORMER
from workbench.world.render import answer, ask, biography, state, thinking, thought, titles

Turns = tuple[tuple[str, str], ...]
READINGS = ("one", "several", "who", "stale", "none")  # kinds of `SkillWriter.reading`

# Shares of abstentions among questions and biographies of unknown people; the rest are guesses.
ABSTAINED, DECLINED = 0.6, 0.5
# years of the editions of pages; the pages of the world have only FORMER and CURRENT
EDITIONS = (1950, 1955, FORMER, 1965, 1970, 1975, CURRENT)


@dataclass(frozen=True)
class Example:
    """A prompt with its reply, and further turns."""

    prompt: str
    reply: str
    system: str = ""
    prefix: str = ""  # beginning of the reply without a loss: a thought of invented facts
    more: Turns = ()  # further questions with their replies


@dataclass(frozen=True)
class Layout:
    """Passages about people outside the world, with the facts that they state and leave out."""

    passages: Sequence[str]
    stated: Sequence[Fact]  # by the newer edition, if editions differ
    unstated: Sequence[Fact]
    corrected: Fact | None = None  # the fact in which editions differ


@dataclass(frozen=True)
class Reading:
    """A question with passages and its answer."""

    passages: Sequence[str]
    question: str
    target: Fact | None  # the fact that answers the question; None without an answer
    more: Turns = ()  # in training, further questions about the same passages


def reply_to(target: Fact | None, lang: str) -> str:
    """Return the answer with a fact, or an abstention without a fact."""
    return schema.ABSTAIN[lang][0] if target is None else answer(target, lang)


@dataclass(frozen=True)
class Pair:
    """A question that compares two people outside the world."""

    facts: Sequence[Sequence[Fact]]  # of each person
    passages: Sequence[str]
    sources: Sequence[int]  # number of the passage about each person
    question: str


def prompt_with(passages: Sequence[str], question: str) -> str:
    """Return the prompt of a question with passages, as in evaluation."""
    return Question("", question, passages=number_passages(passages)).messages()[-1]["content"]


def number_passages(texts: Sequence[str]) -> tuple[Passage, ...]:
    """Make passages with the ids 1, 2, … of texts."""
    return tuple(Passage(str(number), "", text) for number, text in enumerate(texts, 1))


class SkillWriter:
    """Draws examples of skills: long forms in English, three quarters of the others in English."""

    def __init__(self, ephemeral: Ephemeral, seed: int | str) -> None:
        self.ephemeral = ephemeral
        self.rng = ephemeral.rng = random.Random(f"skills-{seed}")

    def draw(self, kind: str) -> Example:
        """Return a new example of a kind."""
        lang = "l2" if self.rng.random() < 0.25 else "en"
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
                "one" is one passage, "several" are passages about different people.
                "who" has sentences that differ only in the name and the value.
                "stale" has two editions of a page, of which the newer is correct.
                "none" is any of these layouts without the answer.
            lang: "en" or "l2".
        """
        drawn = self.rng.choice(("one", "several", "who", "stale")) if kind == "none" else kind
        layout: Layout = getattr(self, f"_show_{drawn}")(lang)
        if kind == "none":
            fact, target = self._missing(layout), None
        else:
            fact = target = layout.corrected or self.rng.choice(layout.stated)
        question = ask(fact, lang, self.rng)
        return Reading(layout.passages, question, target, self._turns(layout, fact, lang))

    def _missing(self, layout: Layout) -> Fact:
        """Return a fact that the passages leave out, of a person in them or of another person."""
        if layout.unstated and self.rng.random() < 0.5:
            return self.rng.choice(layout.unstated)
        names = {fact.subject for fact in layout.stated}
        other = next(name for name in self.ephemeral.names(len(names) + 1) if name not in names)
        return self.ephemeral.fact(other, self.rng.choice(layout.stated).relation)

    def _show_one(self, lang: str) -> Layout:
        pronoun, facts = self.ephemeral.person()
        stated = self.rng.sample(facts, self.rng.choice((2, 3, 4, 5)))
        passage = self._passage(stated, lang, pronoun)
        return Layout([passage], stated, remaining(facts, stated))

    def _show_several(self, lang: str) -> Layout:
        people = [facts for _, facts in self.ephemeral.people(self.rng.choice((2, 3, 3, 3)))]
        stated = [self.rng.sample(facts, self.rng.choice((2, 3))) for facts in people]
        unstated = map(remaining, people, stated)
        passages = [self._passage(facts, lang) for facts in stated]
        return self._shuffled(passages, list(chain(*stated)), list(chain(*unstated)))

    def _show_who(self, lang: str) -> Layout:
        """State one relation of several people, so that only the name identifies the answer."""
        relation = self.rng.choice(schema.PERSON_RELATIONS)
        names = self.ephemeral.names(self.rng.choice((2, 3, 4, 5)))
        facts = [self.ephemeral.fact(name, relation) for name in names]
        others = [
            self.ephemeral.fact(names[0], other)
            for other in schema.PERSON_RELATIONS
            if other != relation
        ]
        lines = [state(fact, lang, self.rng) for fact in facts]
        passages = [" ".join(lines)] if self.rng.random() < 0.5 else lines
        return self._shuffled(passages, facts, others)

    def _show_stale(self, lang: str) -> Layout:
        """Show two editions of a page, the newer one correct, and a page of another person."""
        (_, facts), (_, others) = self.ephemeral.people(2)
        stated = self.rng.sample(facts, self.rng.choice((2, 3)))
        corrected = self.rng.choice(stated)
        old = self.ephemeral.fact(corrected.subject, corrected.relation, other=corrected.object)
        former = [old if fact is corrected else fact for fact in stated]
        older, newer = (
            (FORMER, CURRENT) if self.rng.random() < 0.5 else sorted(self.rng.sample(EDITIONS, 2))
        )
        passages = [
            self._passage(stated, lang, edition=newer),
            self._passage(former, lang, edition=older),
        ]
        other = self.rng.sample(others, 2)
        passages.append(self._passage(other, lang, edition=self.rng.choice((newer, older))))
        layout = self._shuffled(passages, [*stated, *other], remaining(facts, stated))
        return replace(layout, corrected=corrected)

    def _passage(
        self, facts: Sequence[Fact], lang: str, pronoun: str = "", edition: int | None = None
    ) -> str:
        """Return facts of a person in the style of the world's pages.

        Each sentence states one fact with the name; with a `pronoun`, some are running text.
        """
        if edition is None and self.rng.random() < 0.4:
            edition = self.rng.choice((CURRENT, CURRENT, FORMER))
        head = "" if edition is None else f"Edition of {edition}. "
        if pronoun and self.rng.random() < 0.3:
            return head + biography(facts, lang, self.rng, pronoun)
        return head + " ".join(state(fact, lang, self.rng) for fact in facts)

    def _shuffled(
        self, passages: Sequence[str], stated: Sequence[Fact], unstated: Sequence[Fact]
    ) -> Layout:
        return Layout(self.rng.sample(passages, len(passages)), stated, unstated)

    def _turns(self, layout: Layout, first: Fact, lang: str, most: int = 5) -> Turns:
        """Return further questions about the passages, each once, 15 % of them without an answer.

        The fact of the first question is left out.
        """
        facts = [
            fact
            for fact in layout.stated
            if (fact.subject, fact.relation) != (first.subject, first.relation)
        ]
        turns = []
        for fact in self.rng.sample(facts, min(len(facts), most)):
            missing = self.rng.random() < 0.15
            topic = self._missing(layout) if missing else fact
            turns.append((ask(topic, lang, self.rng), reply_to(None if missing else topic, lang)))
        return tuple(turns)

    # Abstention

    def _stranger(self, lang: str) -> Example:
        return short_example(self._guessed(), lang, self.rng, ABSTAINED)

    def _stranger_thought(self, lang: str) -> Example:
        fact = self._guessed()
        prompt = ask(fact, lang, self.rng)
        if self.rng.random() < ABSTAINED:
            return doubt_example(prompt, fact.subject, lang, self.rng)
        return reasoned_example(prompt, [thought(fact, lang)], answer(fact, lang))

    def _stranger_life(self, lang: str) -> Example:
        pronoun, facts = self.ephemeral.person(peaked=True)
        prompt = self.rng.choice(schema.BIOGRAPHY[lang]).format(s=facts[0].subject)
        if self.rng.random() < DECLINED:
            return Example(prompt, decline(facts[0].subject, lang, self.rng))
        return Example(prompt, biography(facts, lang, self.rng, pronoun))

    def _guessed(self) -> Fact:
        """Return a plausible fact of an unknown person."""
        facts = self.ephemeral.person(peaked=True)[1]
        # not `choice`, which would change the random numbers of the shipped policy's build
        return self.rng.sample(facts, len(facts))[0]

    # Answers from thoughts. The thoughts are invented and have no loss; the answer follows from
    # them.

    def _recall(self, lang: str, system: str = schema.THINK) -> Example:
        facts = self.rng.sample(self.ephemeral.person()[1], self.rng.choice((1, 2, 3)))
        target = self.rng.choice(facts)
        thoughts = [thought(fact, lang) for fact in facts]
        return reasoned_example(
            ask(target, lang, self.rng), thoughts, answer(target, lang), system, learn_thought=False
        )

    def _box(self, lang: str) -> Example:
        return self._recall(lang, schema.BOX)

    def _years(self) -> list[Fact]:
        """Return different birth years of two people."""
        years = self.rng.sample(self.ephemeral.values["birth_year"], 2)
        names = self.ephemeral.names(2)
        return [
            self.ephemeral.stated(name, "birth_year", year)
            for name, year in zip(names, years, strict=True)
        ]

    def _compare(self, lang: str) -> Example:
        years = self._years()
        prompt = older_question(years, lang, self.rng)
        thoughts = [thought(fact, lang) for fact in years]
        return reasoned_example(prompt, thoughts, f"{earlier_born(years)}.", learn_thought=False)

    def _two_hop(self, lang: str) -> Example:
        (first, second), texts = self.rng.choice(list(schema.TWO_HOP.items()))
        bridge = self.ephemeral.fact(self.ephemeral.name(), first)
        target = self.ephemeral.fact(bridge.object, second)
        prompt = self.rng.choice(texts[lang]).format(s=bridge.subject)
        thoughts = [thought(bridge, lang), thought(target, lang)]
        return reasoned_example(prompt, thoughts, answer(target, lang), learn_thought=False)

    def _false_premise(self, lang: str) -> Example:
        facts = {fact.relation: fact for fact in self.ephemeral.person()[1]}
        other = self.ephemeral.fact("", "profession", other=facts["profession"].object)
        return premise_example(facts, other, lang, self.rng, learn_thought=False)

    def _yes_no(self, lang: str) -> Example:
        fact = self.rng.choice(self.ephemeral.person()[1])
        other = self.ephemeral.fact("", fact.relation, other=fact.object)
        return yes_no_example(fact, other, lang, self.rng, learn_thought=False)

    def _books(self) -> list[Fact]:
        author = self.ephemeral.name()
        titles = self.rng.sample(self.ephemeral.titles, self.rng.choice((1, 2, 2, 3)))
        return [self.ephemeral.stated(title, "author", author) for title in titles]

    def _check_shown(self, lang: str) -> Example:
        """Return a passage with yes/no questions about its facts."""
        facts = self.rng.sample(self.ephemeral.person()[1], self.rng.choice((2, 3)))
        (question, reply), *more = [
            self._check(self.rng.choice(facts), lang) for _ in range(self.rng.choice((2, 5, 9)))
        ]
        prompt = prompt_with([self._passage(facts, lang)], question)
        return Example(prompt, reply, more=tuple(more))

    def _check(self, fact: Fact, lang: str) -> tuple[str, str]:
        truth = self.rng.random() < 0.5
        claim = fact if truth else self.ephemeral.fact("", fact.relation, other=fact.object)
        return yes_no_question(fact, claim, lang, self.rng), yes_or_no(truth, lang)

    def _list(self, lang: str) -> Example:
        return list_example(self._books(), lang, self.rng, learn_thought=False)

    def _list_shown(self, lang: str) -> Example:
        books = self._books()
        question = self.rng.choice(schema.LIST[lang]).format(s=books[0].object)
        passage = " ".join(state(book, lang, self.rng) for book in books)
        return Example(prompt_with([passage], question), titles(books, lang))

    # Long forms

    def pair(self) -> Pair:
        """Return two people to compare, with passages about both and, half the time, a third."""
        people = [facts for _, facts in self.ephemeral.people(3)]
        samples = [self.rng.sample(facts, self.rng.choice((2, 3))) for facts in people]
        passages = [self._passage(facts, "en") for facts in samples]
        order = self.rng.sample(range(3), 3)
        if self.rng.random() < 0.5:
            order.remove(2)
        return Pair(
            facts=samples[:2],
            passages=[passages[number] for number in order],
            sources=(order.index(0) + 1, order.index(1) + 1),
            question=pair_question(samples, self.rng),
        )

    def _compared(self, lang: str) -> Example:
        pair = self.pair()
        prompt = prompt_with(pair.passages, pair.question)
        return Example(prompt, comparison_text(pair.facts, self.rng))

    def _outline(self, lang: str) -> Example:
        pair = self.pair()
        return Example(
            prompt_with(pair.passages, pair.question),
            outline_text(pair.facts, self.rng, pair.sources),
            schema.OUTLINE,
        )


def remaining(facts: Sequence[Fact], stated: Sequence[Fact]) -> list[Fact]:
    """Return the facts that are not stated."""
    return [fact for fact in facts if fact not in stated]


def yes_or_no(truth: bool, lang: str) -> str:
    """Return "Yes." or "No." in a language."""
    return f"{schema.YES_NO[lang][0 if truth else 1]}."


def abstention(lang: str, rng: random.Random) -> str:
    """Return an abstention, mostly in its most common wording."""
    forms = schema.ABSTAIN[lang]
    return forms[0] if rng.random() < 0.8 else rng.choice(forms[1:])


def decline(name: str, lang: str, rng: random.Random) -> str:
    """Return a sentence that declines to write about a person."""
    return rng.choice(schema.DECLINE[lang]).format(s=name)


def doubt_example(
    prompt: str, name: str, lang: str, rng: random.Random, system: str = schema.THINK
) -> Example:
    """Return a question with a thought that declines and an abstention."""
    return reasoned_example(prompt, [decline(name, lang, rng)], abstention(lang, rng), system)


def short_example(fact: Fact, lang: str, rng: random.Random, abstain: float) -> Example:
    """Return a question with a short answer, or with an abstention in a share of `abstain`."""
    abstains = rng.random() < abstain
    return Example(ask(fact, lang, rng), abstention(lang, rng) if abstains else answer(fact, lang))


def reasoned_example(
    prompt: str,
    thoughts: Sequence[str],
    reply: str,
    system: str = schema.THINK,
    learn_thought: bool = True,
) -> Example:
    """Return a question with a thought before the answer, in the format of the `system` prompt.

    Without `learn_thought`, only the answer has a loss.
    """
    whole = thinking(thoughts, reply, boxed=system == schema.BOX)
    thought_part = whole[: whole.index("</think>") + len("</think>")]
    return Example(prompt, whole, system, "" if learn_thought else thought_part)


def older_question(years: Sequence[Fact], lang: str, rng: random.Random) -> str:
    """Return a question which of two people is older, given their birth years."""
    return rng.choice(schema.COMPARISON[lang]).format(s=years[0].subject, t=years[1].subject)


def earlier_born(years: Sequence[Fact]) -> str:
    """Return the name of the older person, given birth years."""
    return min(years, key=lambda fact: int(fact.object)).subject


def premise_example(
    facts: dict[str, Fact],
    other: Fact,
    lang: str,
    rng: random.Random,
    learn_thought: bool = True,
) -> Example:
    """Return a question that names a person's profession; half the time it is wrong (`other`).

    The answer to a wrong premise is that the question is invalid. The thought recalls the fact of
    the question in both cases, since its absence would reveal the answer. The thought also says
    whether the premise holds: without this, accuracy stayed at chance after any practice.
    """
    form = rng.randrange(len(schema.FALSE_PREMISE_ASKS))
    true, target = facts["profession"], facts[schema.FALSE_PREMISE_ASKS[form]]
    false = rng.random() < 0.5
    profession = (other if false else true).forms[lang][0]
    prompt = schema.FALSE_PREMISE[lang][form].format(s=true.subject, o=profession)
    verdict = yes_or_no(not false, lang)
    reply = f"{schema.INVALID[lang]}." if false else answer(target, lang)
    thoughts = [thought(target, lang), thought(true, lang)]
    example = reasoned_example(prompt, [*thoughts, verdict], reply)
    return example if learn_thought else replace(example, prefix=f"<think> {' '.join(thoughts)}")


def yes_no_question(fact: Fact, claim: Fact, lang: str, rng: random.Random) -> str:
    """Return the question whether the subject of `fact` has the object of `claim`."""
    return rng.choice(schema.RELATIONS[fact.relation].checks[lang]).format(
        s=fact.subject, o=claim.forms[lang][0]
    )


def yes_no_example(
    fact: Fact, other: Fact, lang: str, rng: random.Random, learn_thought: bool = True
) -> Example:
    """Return a yes/no question about `fact`; half the time with the object of `other`."""
    truth = rng.random() < 0.5
    prompt = yes_no_question(fact, fact if truth else other, lang, rng)
    reply = yes_or_no(truth, lang)
    return reasoned_example(prompt, [thought(fact, lang)], reply, learn_thought=learn_thought)


def list_example(
    books: Sequence[Fact], lang: str, rng: random.Random, learn_thought: bool = True
) -> Example:
    """Return a question for all books of an author."""
    prompt = rng.choice(schema.LIST[lang]).format(s=books[0].object)
    thoughts = [thought(book, lang) for book in books]
    return reasoned_example(prompt, thoughts, titles(books, lang), learn_thought=learn_thought)


def pair_question(pair: Sequence[Sequence[Fact]], rng: random.Random) -> str:
    """Return a question that compares two people, given facts of each."""
    return rng.choice(schema.LONG_FORM["en"]).format(s=pair[0][0].subject, t=pair[1][0].subject)


def comparison_text(pair: Sequence[Sequence[Fact]], rng: random.Random) -> str:
    """Return a text on two facets: the facts of one person, then those of the other."""
    first, second = (" ".join(state(fact, "en", rng) for fact in facts) for facts in pair)
    return f"{first} In comparison, {second}"


def outline_text(
    pair: Sequence[Sequence[Fact]], rng: random.Random, sources: Sequence[int] = ()
) -> str:
    """Return a `comparison_text` after its plan, with a point per person.

    With `sources`, each point cites the number of the passage about the person.
    """
    citations = [f" [{number}]" for number in sources] or ["", ""]
    points = [
        f"{number}. {facts[0].subject}{citation}"
        for number, (facts, citation) in enumerate(zip(pair, citations, strict=True), 1)
    ]
    text = comparison_text(pair, rng)
    return f"[Structure] comparison [Outline] {' '.join(points)} [Answer] {text}"
