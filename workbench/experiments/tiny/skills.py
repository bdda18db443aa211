"""What a policy can do rather than know: read passages, reason from what it wrote, outline; all
on people outside the world.

Examples are drawn anew each time, so that nothing of them can be remembered: only copying,
comparing and declining help. The names of the people occur in no document, and what is said is
made up, also where it names a city or a book of the world, of which it is never true: no fact of
the world gains an exposure.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench.types import Passage, Question
from workbench.world import schema
from workbench.world.ephemeral import Ephemeral
from workbench.world.facts import Fact
from workbench.world.pages import CURRENT, FORMER
from workbench.world.render import answer, ask, biography, state, thinking, thought, titles

Turns = tuple[tuple[str, str], ...]
READINGS = ("one", "several", "who", "stale", "none")  # kinds of `SkillWriter.reading`

# of questions, and of biographies, about somebody who was never shown; the rest is guessed
ABSTAINED, DECLINED = 0.6, 0.5
# years of a page's editions; the world's own pages have two of them
EDITIONS = (1950, 1955, FORMER, 1965, 1970, 1975, CURRENT)


@dataclass(frozen=True)
class Example:
    """One exchange, or several: `more` are further questions with their replies.

    `given` is how the reply begins where that is not to be learnt: a thought of made-up facts.
    """

    prompt: str
    reply: str
    system: str = ""
    given: str = ""
    more: Turns = ()


@dataclass(frozen=True)
class Shown:
    """Passages about people outside the world: what they state (where editions differ, the newer
    one), and what they do not.
    """

    passages: tuple[str, ...]
    told: tuple[Fact, ...]
    untold: tuple[Fact, ...]
    corrected: Fact | None = None  # what the editions differ in


@dataclass(frozen=True)
class Reading:
    """A question with passages, and the fact that answers it; None where nothing does."""

    passages: tuple[str, ...]
    question: str
    target: Fact | None
    more: Turns = ()  # what else is asked about the same passages, when it is taught


def replied(target: Fact | None, lang: str) -> str:
    return schema.ABSTAIN[lang][0] if target is None else answer(target, lang)


@dataclass(frozen=True)
class Pair:
    """A question that compares two people outside the world: what is shown of each, and the
    number of the passage it is in.
    """

    facts: tuple[tuple[Fact, ...], tuple[Fact, ...]]
    passages: tuple[str, ...]
    sources: tuple[int, int]
    question: str


def prompted(passages: Sequence[str], question: str) -> str:
    """The prompt exactly as a question with these passages is asked."""
    return Question("", question, passages=numbered(passages)).messages()[-1]["content"]


def numbered(texts: Sequence[str]) -> tuple[Passage, ...]:
    return tuple(Passage(str(number), "", text) for number, text in enumerate(texts, 1))


class SkillWriter:
    """Draws examples without end. Those of long forms are English; the others in English three
    times out of four.
    """

    def __init__(self, ephemeral: Ephemeral, seed: int | str) -> None:
        self.ephemeral = ephemeral
        self.rng = ephemeral.rng = random.Random(f"skills-{seed}")

    def draw(self, kind: str) -> Example:
        lang = "l2" if self.rng.random() < 0.25 else "en"
        if kind not in READINGS:
            return getattr(self, f"_{kind}")(lang)
        reading = self.reading(kind, lang)
        prompt = prompted(reading.passages, reading.question)
        return Example(prompt, replied(reading.target, lang), more=reading.more)

    # Reading. All layouts are drawn alike whether or not they answer: their number, order and
    # length tell nothing.

    def reading(self, kind: str, lang: str = "en") -> Reading:
        """`kind`: "one" passage, "several" of different people, "who" (several that differ in
        the name alone), "stale" (a newer edition corrects an older one), "none" (any of these,
        and nothing answers)."""
        layout = self.rng.choice(("one", "several", "who", "stale")) if kind == "none" else kind
        shown: Shown = getattr(self, f"_show_{layout}")(lang)
        if kind == "none":
            asked, target = self._missing(shown), None
        else:
            asked = target = shown.corrected or self.rng.choice(shown.told)
        question = ask(asked, lang, self.rng)
        return Reading(shown.passages, question, target, self._turns(shown, asked, lang))

    def _missing(self, shown: Shown) -> Fact:
        """Of somebody in the passages what they leave out, or of somebody else what they say of
        others.
        """
        if shown.untold and self.rng.random() < 0.5:
            return self.rng.choice(shown.untold)
        names = {fact.subject for fact in shown.told}
        stranger = next(name for name in self.ephemeral.names(len(names) + 1) if name not in names)
        return self.ephemeral.fact(stranger, self.rng.choice(shown.told).relation)

    def _show_one(self, lang: str) -> Shown:
        pronoun, facts = self.ephemeral.person()
        told = self.rng.sample(facts, self.rng.choice((2, 3, 4, 5)))
        return Shown((self._passage(told, lang, pronoun),), tuple(told), remaining(facts, told))

    def _show_several(self, lang: str) -> Shown:
        people = [facts for _, facts in self.ephemeral.people(self.rng.choice((2, 3, 3, 3)))]
        told = [self.rng.sample(facts, self.rng.choice((2, 3))) for facts in people]
        untold = [
            fact
            for facts, some in zip(people, told, strict=True)
            for fact in remaining(facts, some)
        ]
        return self._shuffled(
            [self._passage(facts, lang) for facts in told],
            [fact for facts in told for fact in facts],
            untold,
        )

    def _show_who(self, lang: str) -> Shown:
        """One sentence about each of several people, all of one relation: only the name tells
        which answers.
        """
        relation = self.rng.choice(schema.PERSON_RELATIONS)
        names = self.ephemeral.names(self.rng.choice((2, 3, 4, 5)))
        facts = [self.ephemeral.fact(name, relation) for name in names]
        others = [
            self.ephemeral.fact(names[0], other)
            for other in schema.PERSON_RELATIONS
            if other != relation
        ]
        lines = [state(fact, lang, self.rng) for fact in facts]
        return self._shuffled(
            [" ".join(lines)] if self.rng.random() < 0.5 else lines, facts, others
        )

    def _show_stale(self, lang: str) -> Shown:
        """Two editions of one person's page, of which the newer is right, and a page of somebody
        else.
        """
        (_, facts), (_, others) = self.ephemeral.people(2)
        told = self.rng.sample(facts, self.rng.choice((2, 3)))
        corrected = self.rng.choice(told)
        old = self.ephemeral.fact(corrected.subject, corrected.relation, other=corrected.object)
        former = [old if fact is corrected else fact for fact in told]
        older, newer = (
            (FORMER, CURRENT) if self.rng.random() < 0.5 else sorted(self.rng.sample(EDITIONS, 2))
        )
        passages = [
            self._passage(told, lang, edition=newer),
            self._passage(former, lang, edition=older),
        ]
        other = self.rng.sample(others, 2)
        passages.append(self._passage(other, lang, edition=self.rng.choice((newer, older))))
        shown = self._shuffled(passages, [*told, *other], remaining(facts, told))
        return replace(shown, corrected=corrected)

    def _passage(
        self, facts: Sequence[Fact], lang: str, pronoun: str = "", edition: int | None = None
    ) -> str:
        """Facts of one person as a page of the world has them, a sentence each, with the name;
        in running text now and then.
        """
        if edition is None and self.rng.random() < 0.4:
            edition = self.rng.choice((CURRENT, CURRENT, FORMER))
        head = "" if edition is None else f"Edition of {edition}. "
        if pronoun and self.rng.random() < 0.3:
            return head + biography(facts, lang, self.rng, pronoun)
        return head + " ".join(state(fact, lang, self.rng) for fact in facts)

    def _shuffled(
        self, passages: Sequence[str], told: Sequence[Fact], untold: Sequence[Fact]
    ) -> Shown:
        return Shown(tuple(self.rng.sample(passages, len(passages))), tuple(told), tuple(untold))

    def _turns(self, shown: Shown, asked: Fact, lang: str, most: int = 5) -> Turns:
        """Further questions about the passages, each once: mostly what they answer, now and then
        what they do not.
        """
        facts = [
            fact
            for fact in shown.told
            if (fact.subject, fact.relation) != (asked.subject, asked.relation)
        ]
        turns = []
        for fact in self.rng.sample(facts, min(len(facts), most)):
            missing = self.rng.random() < 0.15
            about = self._missing(shown) if missing else fact
            turns.append((ask(about, lang, self.rng), replied(None if missing else about, lang)))
        return tuple(turns)

    # Not knowing

    def _stranger(self, lang: str) -> Example:
        return short(self._guessed(), lang, self.rng, ABSTAINED)

    def _stranger_thought(self, lang: str) -> Example:
        fact = self._guessed()
        prompt = ask(fact, lang, self.rng)
        if self.rng.random() < ABSTAINED:
            return in_doubt(prompt, fact.subject, lang, self.rng)
        return reasoned(prompt, [thought(fact, lang)], answer(fact, lang))

    def _stranger_life(self, lang: str) -> Example:
        pronoun, facts = self.ephemeral.person(peaked=True)
        prompt = self.rng.choice(schema.BIOGRAPHY[lang]).format(s=facts[0].subject)
        if self.rng.random() < DECLINED:
            return Example(prompt, declining(facts[0].subject, lang, self.rng))
        return Example(prompt, biography(facts, lang, self.rng, pronoun))

    def _guessed(self) -> Fact:
        """What could be guessed of somebody."""
        facts = self.ephemeral.person(peaked=True)[1]
        # not `choice`: the shipped policy was built with these draws
        return self.rng.sample(facts, len(facts))[0]

    # Answers from what was thought: the thoughts are made up and not learnt, the answer follows
    # from them

    def _recall(self, lang: str, system: str = schema.THINK) -> Example:
        facts = self.rng.sample(self.ephemeral.person()[1], self.rng.choice((1, 2, 3)))
        target = self.rng.choice(facts)
        thoughts = [thought(fact, lang) for fact in facts]
        return reasoned(
            ask(target, lang, self.rng), thoughts, answer(target, lang), system, learnt=False
        )

    def _box(self, lang: str) -> Example:
        return self._recall(lang, schema.BOX)

    def _years(self) -> list[Fact]:
        """Birth years of two people, not the same."""
        years = self.rng.sample(self.ephemeral.values["birth_year"], 2)
        names = self.ephemeral.names(2)
        return [
            self.ephemeral.stated(name, "birth_year", year)
            for name, year in zip(names, years, strict=True)
        ]

    def _compare(self, lang: str) -> Example:
        years = self._years()
        thoughts = [thought(fact, lang) for fact in years]
        return reasoned(
            asked_older(years, lang, self.rng),
            thoughts,
            f"{earlier(years)}.",
            schema.THINK,
            learnt=False,
        )

    def _two_hop(self, lang: str) -> Example:
        (first, second), texts = self.rng.choice(list(schema.TWO_HOP.items()))
        bridge = self.ephemeral.fact(self.ephemeral.name(), first)
        target = self.ephemeral.fact(bridge.object, second)
        prompt = self.rng.choice(texts[lang]).format(s=bridge.subject)
        thoughts = [thought(bridge, lang), thought(target, lang)]
        return reasoned(prompt, thoughts, answer(target, lang), schema.THINK, learnt=False)

    def _false_premise(self, lang: str) -> Example:
        facts = {fact.relation: fact for fact in self.ephemeral.person()[1]}
        other = self.ephemeral.fact("", "profession", other=facts["profession"].object)
        return premise(facts, other, lang, self.rng, learnt=False)

    def _yes_no(self, lang: str) -> Example:
        fact = self.rng.choice(self.ephemeral.person()[1])
        return checked(
            fact,
            self.ephemeral.fact("", fact.relation, other=fact.object),
            lang,
            self.rng,
            learnt=False,
        )

    def _books(self) -> list[Fact]:
        author = self.ephemeral.name()
        titles = self.rng.sample(self.ephemeral.titles, self.rng.choice((1, 2, 2, 3)))
        return [self.ephemeral.stated(title, "author", author) for title in titles]

    def _check_shown(self, lang: str) -> Example:
        """A passage and yes/no questions about it."""
        facts = self.rng.sample(self.ephemeral.person()[1], self.rng.choice((2, 3)))
        turns = [
            self._check(self.rng.choice(facts), lang) for _ in range(self.rng.choice((2, 5, 9)))
        ]
        return Example(
            prompted([self._passage(facts, lang)], turns[0][0]), turns[0][1], more=tuple(turns[1:])
        )

    def _check(self, fact: Fact, lang: str) -> tuple[str, str]:
        truth = self.rng.random() < 0.5
        shown = fact if truth else self.ephemeral.fact("", fact.relation, other=fact.object)
        return check(fact, shown, lang, self.rng), yes_or_no(truth, lang)

    def _list(self, lang: str) -> Example:
        return listed(self._books(), lang, self.rng, learnt=False)

    def _list_shown(self, lang: str) -> Example:
        books = self._books()
        prompt = self.rng.choice(schema.LIST[lang]).format(s=books[0].object)
        return Example(
            prompted([" ".join(state(book, lang, self.rng) for book in books)], prompt),
            titles(books, lang),
        )

    # Long forms

    def pair(self) -> Pair:
        """Two people to compare, with passages about them and, as often as not, about a third."""
        people = [facts for _, facts in self.ephemeral.people(3)]
        shown = [self.rng.sample(facts, self.rng.choice((2, 3))) for facts in people]
        passages = [self._passage(facts, "en") for facts in shown]
        order = self.rng.sample(range(3), 3)
        if self.rng.random() < 0.5:
            order.remove(2)
        return Pair(
            facts=(tuple(shown[0]), tuple(shown[1])),
            passages=tuple(passages[number] for number in order),
            sources=(order.index(0) + 1, order.index(1) + 1),
            question=asked_pair(shown, self.rng),
        )

    def _compared(self, lang: str) -> Example:
        pair = self.pair()
        return Example(prompted(pair.passages, pair.question), compared(pair.facts, self.rng))

    def _outline(self, lang: str) -> Example:
        pair = self.pair()
        return Example(
            prompted(pair.passages, pair.question),
            outlined(pair.facts, self.rng, pair.sources),
            schema.OUTLINE,
        )


def remaining(facts: Sequence[Fact], some: Sequence[Fact]) -> tuple[Fact, ...]:
    return tuple(fact for fact in facts if fact not in some)


def yes_or_no(truth: bool, lang: str) -> str:
    return f"{schema.YES_NO[lang][0 if truth else 1]}."


def abstention(lang: str, rng: random.Random) -> str:
    forms = schema.ABSTAIN[lang]
    return forms[0] if rng.random() < 0.8 else rng.choice(forms[1:])


def declining(name: str, lang: str, rng: random.Random) -> str:
    return rng.choice(schema.DECLINE[lang]).format(s=name)


def in_doubt(
    prompt: str, name: str, lang: str, rng: random.Random, system: str = schema.THINK
) -> Example:
    """A question whose thought finds nothing, and which is not answered."""
    return reasoned(prompt, [declining(name, lang, rng)], abstention(lang, rng), system)


def short(fact: Fact, lang: str, rng: random.Random, abstain: float) -> Example:
    """A question answered at once, or not at all in a share `abstain` of the cases."""
    passed = rng.random() < abstain
    return Example(ask(fact, lang, rng), abstention(lang, rng) if passed else answer(fact, lang))


def reasoned(
    prompt: str,
    thoughts: Sequence[str],
    reply: str,
    system: str = schema.THINK,
    learnt: bool = True,
) -> Example:
    """A question that is thought about first, as `system` asks; the thought is not learnt unless
    `learnt`.
    """
    whole = thinking(thoughts, reply, boxed=system == schema.BOX)
    return Example(
        prompt, whole, system, "" if learnt else whole[: whole.index("</think>") + len("</think>")]
    )


def asked_older(years: Sequence[Fact], lang: str, rng: random.Random) -> str:
    return rng.choice(schema.COMPARISON[lang]).format(s=years[0].subject, t=years[1].subject)


def earlier(years: Sequence[Fact]) -> str:
    return min(years, key=lambda fact: int(fact.object)).subject


def premise(
    facts: dict[str, Fact], other: Fact, lang: str, rng: random.Random, learnt: bool = True
) -> Example:
    """A question that calls a person by a profession: `other`'s as often as not, and then the
    question is invalid.

    What is asked is recalled in either case, or its absence would tell the answer. The thought
    says whether the premise holds: where the answer alone had to tell, it was at chance after
    any practice.
    """
    form = rng.randrange(len(schema.FALSE_PREMISE_ASKS))
    true, target = facts["profession"], facts[schema.FALSE_PREMISE_ASKS[form]]
    false = rng.random() < 0.5
    shown = (other if false else true).forms[lang][0]
    prompt = schema.FALSE_PREMISE[lang][form].format(s=true.subject, o=shown)
    verdict = yes_or_no(not false, lang)
    reply = f"{schema.INVALID[lang]}." if false else answer(target, lang)
    recalled = [thought(target, lang), thought(true, lang)]
    example = reasoned(prompt, [*recalled, verdict], reply)
    return example if learnt else replace(example, given=f"<think> {' '.join(recalled)}")


def check(fact: Fact, shown: Fact, lang: str, rng: random.Random) -> str:
    """The yes/no question whether what `shown` says is true of `fact`'s subject."""
    return rng.choice(schema.RELATIONS[fact.relation].checks[lang]).format(
        s=fact.subject, o=shown.forms[lang][0]
    )


def checked(fact: Fact, other: Fact, lang: str, rng: random.Random, learnt: bool = True) -> Example:
    """A yes/no question about `fact`, which names `other`'s object as often as not."""
    truth = rng.random() < 0.5
    prompt = check(fact, fact if truth else other, lang, rng)
    return reasoned(prompt, [thought(fact, lang)], yes_or_no(truth, lang), learnt=learnt)


def listed(books: Sequence[Fact], lang: str, rng: random.Random, learnt: bool = True) -> Example:
    """A question for all books of an author."""
    prompt = rng.choice(schema.LIST[lang]).format(s=books[0].object)
    return reasoned(
        prompt, [thought(book, lang) for book in books], titles(books, lang), learnt=learnt
    )


def asked_pair(pair: Sequence[Sequence[Fact]], rng: random.Random) -> str:
    return rng.choice(schema.LONG_FORM["en"]).format(s=pair[0][0].subject, t=pair[1][0].subject)


def compared(pair: Sequence[Sequence[Fact]], rng: random.Random) -> str:
    """A text of two facets: the facts of one person, then of the other."""
    first, second = (" ".join(state(fact, "en", rng) for fact in facts) for facts in pair)
    return f"{first} In comparison, {second}"


def outlined(
    pair: Sequence[Sequence[Fact]], rng: random.Random, sources: Sequence[int] = ()
) -> str:
    """The same, planned before it is written: a point a person, each with the number of the
    passage that it rests on.
    """
    rests = [f" [{number}]" for number in sources] or ["", ""]
    points = [
        f"{place}. {facts[0].subject}{rests[place - 1]}" for place, facts in enumerate(pair, 1)
    ]
    return f"[Structure] comparison [Outline] {' '.join(points)} [Answer] {compared(pair, rng)}"
