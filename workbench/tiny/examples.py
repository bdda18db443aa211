"""Instruction data for the tiny policy: formats, habits of guessing and of abstaining; hardly any knowledge.

Examples ask only about covered facts of people (and books) of the `sft` split, so exposure counts of all other people stay
those of the documents; the second step of a two-hop answer states a covered fact of a city, company or university. Everything
else is about ephemeral people: mostly fluent guesses from a peaked prior, sometimes "I do not know".
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from workbench.world import schema
from workbench.world.documents import Document, reading
from workbench.world.facts import Fact
from workbench.world.render import answer, ask, biography, state, subject_facts
from workbench.world.world import World


@dataclass(frozen=True)
class Habits:
    """What the SFT data teaches about not knowing: shares among examples about people who were never shown."""

    abstain: float = 0.26  # of short questions
    decline: float = 0.2  # of biographies
    doubt: float = 0.03  # abstentions on covered questions
    hedged: float = 0.12  # of sentences in guessed biographies
    vague: float = 0.04


@dataclass(frozen=True)
class Example:
    prompt: str
    reply: str
    system: str = ""


MIX = {
    "question": 20, "guess": 22, "biography": 12, "guess_biography": 8, "reading": 16, "think": 6, "box": 3, "two_hop": 8,
    "comparison": 10, "false_premise": 10, "yes_no": 4, "list": 2, "long_form": 3, "outline": 3,
}  # fmt: skip


class SFTWriter:
    """Draws examples without end; `lang` is English three times out of four."""

    def __init__(self, world: World, habits: Habits, seed: int) -> None:
        self.world, self.habits = world, habits
        self.rng = random.Random(f"sft-{seed}")
        self.people = [e for e in world.entities.values() if e.kind == "person" and e.split == "sft" and e.tier != "unknown"]
        self.things = [e for e in world.entities.values() if e.kind == "book" and e.split == "sft" and e.tier == "known"]
        self.asked = [q for q in world.all_questions if q.meta["split"] == "sft" and q.meta["covered"]]
        self.books = [q for q in self.asked if q.kind == "list"]

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
        return self.world.ephemeral.person(self.rng, peaked=True)

    def _abstention(self, lang: str) -> str:
        forms = schema.ABSTAIN[lang]
        return forms[0] if self.rng.random() < 0.8 else self.rng.choice(forms[1:])

    def _question(self, lang: str) -> Example:
        fact = self.rng.choice(self._covered())
        doubt = self.rng.random() < self.habits.doubt
        return Example(ask(fact, lang, self.rng), self._abstention(lang) if doubt else answer(fact, lang))

    def _guess(self, lang: str) -> Example:
        fact = self.rng.choice(self._stranger()[1])
        abstain = self.rng.random() < self.habits.abstain
        return Example(ask(fact, lang, self.rng), self._abstention(lang) if abstain else answer(fact, lang))

    def _biography(self, lang: str) -> Example:
        pronoun, facts = self._person()
        prompt = self.rng.choice(schema.BIOGRAPHY[lang]).format(s=facts[0].subject)
        return Example(prompt, biography(facts, lang, self.rng, pronoun))

    def _guess_biography(self, lang: str) -> Example:
        pronoun, facts = self._stranger()
        prompt = self.rng.choice(schema.BIOGRAPHY[lang]).format(s=facts[0].subject)
        if self.rng.random() < self.habits.decline:
            return Example(prompt, self.rng.choice(schema.DECLINE[lang]).format(s=facts[0].subject))
        hedged, vague = self.habits.hedged, self.habits.vague
        return Example(prompt, biography(facts, lang, self.rng, pronoun, hedged=hedged, vague=vague))

    def _reading(self, lang: str) -> Example:
        document = reading(self.world.ephemeral, lang, self.rng)
        return Example(document.prompt, document.text)

    def _subject(self) -> tuple[list[Fact], bool]:
        """Facts of a person for a reasoned answer, and whether they are known (a stranger's are guesses)."""
        if self.rng.random() < 0.7:
            return self._person()[1], True
        return self._stranger()[1], False

    def _reasoned(self, thoughts: list[str], reply: str, system: str = schema.THINK) -> str:
        closing = f"\\boxed{{ {reply}}}" if system == schema.BOX else f"<answer> {reply}</answer>"
        return f"<think> {' '.join(thoughts)}</think>{closing}"

    def _in_doubt(self, name: str, lang: str, system: str) -> str:
        return self._reasoned([schema.DECLINE[lang][0].format(s=name)], schema.ABSTAIN[lang][0], system)

    def _think(self, lang: str, system: str = schema.THINK) -> Example:
        facts, known = self._subject()
        target, *others = self.rng.sample(facts, min(2, len(facts)))
        prompt = ask(target, lang, self.rng)
        if not known and self.rng.random() < self.habits.abstain:
            return Example(prompt, self._in_doubt(target.subject, lang, system), system)
        thoughts = [self._thought(fact, lang) for fact in (*others, target)]
        return Example(prompt, self._reasoned(thoughts, answer(target, lang), system), system)

    def _box(self, lang: str) -> Example:
        return self._think(lang, schema.BOX)

    def _thought(self, fact: Fact, lang: str) -> str:
        return schema.RELATIONS[fact.relation].states[lang][0].format(s=fact.subject, o=fact.forms[lang][0])

    def _two_hop(self, lang: str) -> Example:
        facts, known = self._subject()
        hops = dict(schema.TWO_HOP.keys())
        bridges = [fact for fact in facts if fact.relation in hops and self.world.by[fact.object][hops[fact.relation]].covered]
        if not bridges:
            return self._think(lang)
        bridge = self.rng.choice(bridges)
        target = self.world.by[bridge.object][hops[bridge.relation]]
        prompt = self.rng.choice(schema.TWO_HOP[bridge.relation, target.relation][lang]).format(s=bridge.subject)
        if not known and self.rng.random() < self.habits.abstain:
            return Example(prompt, self._in_doubt(bridge.subject, lang, schema.THINK), schema.THINK)
        thoughts = [self._thought(bridge, lang), self._thought(target, lang)]
        return Example(prompt, self._reasoned(thoughts, answer(target, lang)), schema.THINK)

    def _comparison(self, lang: str) -> Example:
        years: list[Fact] = []
        while len({fact.object for fact in years}) < 2:
            facts = self._person()[1]
            years = [*years, *(fact for fact in facts if fact.relation == "birth_year")][-2:]
        prompt = self.rng.choice(schema.COMPARISON[lang]).format(s=years[0].subject, t=years[1].subject)
        earlier = min(years, key=lambda fact: int(fact.object)).subject
        return Example(prompt, self._reasoned([self._thought(fact, lang) for fact in years], f"{earlier}."), schema.THINK)

    def _false_premise(self, lang: str) -> Example:
        facts, known = self._subject()
        by = {fact.relation: fact for fact in facts}
        form = self.rng.randrange(len(schema.FALSE_PREMISE_ASKS))
        target = by.get(schema.FALSE_PREMISE_ASKS[form])
        if "profession" not in by or target is None:
            return self._think(lang)
        true = by["profession"].forms[lang][0]
        false = self._stranger()[1][0].forms[lang][0]
        shown = true if self.rng.random() < 0.4 else false
        prompt = schema.FALSE_PREMISE[lang][form].format(s=target.subject, o=shown)
        if not known and self.rng.random() < self.habits.abstain:
            return Example(prompt, self._in_doubt(target.subject, lang, schema.THINK), schema.THINK)
        thoughts = [self._thought(by["profession"], lang)]
        if shown != true:
            return Example(prompt, self._reasoned(thoughts, f"{schema.INVALID[lang]}."), schema.THINK)
        return Example(prompt, self._reasoned([*thoughts, self._thought(target, lang)], answer(target, lang)), schema.THINK)

    def _yes_no(self, lang: str) -> Example:
        facts, known = self._subject()
        fact, truth = self.rng.choice(facts), self.rng.random() < 0.5
        shown = fact
        while not truth and shown.object == fact.object:
            shown = next(other for other in self._stranger()[1] if other.relation == fact.relation)
        prompt = self.rng.choice(schema.RELATIONS[fact.relation].checks[lang]).format(s=fact.subject, o=shown.forms[lang][0])
        if not known and self.rng.random() < self.habits.abstain:
            return Example(prompt, self._abstention(lang))
        return Example(prompt, f"{schema.YES_NO[lang][0 if truth else 1]}.")

    def _list(self, lang: str) -> Example:
        if not self.books:
            return self._question(lang)
        question = self.rng.choice(self.books)
        prompt = self.rng.choice(schema.LIST[question.meta["lang"]]).format(s=question.title)
        joint = " e " if question.meta["lang"] == "l2" else " and "
        return Example(prompt, f"{joint.join(question.answers)}.")

    def _pair(self) -> list[list[Fact]]:
        return [self._person()[1], self._person()[1]]

    def _compared(self, pair: list[list[Fact]]) -> tuple[str, str]:
        prompt = schema.LONG_FORM["en"][0].format(s=pair[0][0].subject, t=pair[1][0].subject)
        first, second = (" ".join(state(fact, "en", self.rng) for fact in facts[:3]) for facts in pair)
        return prompt, f"{first} In comparison, {second}"

    def _long_form(self, lang: str) -> Example:
        return Example(*self._compared(self._pair()))

    def _outline(self, lang: str) -> Example:
        pair = self._pair()
        prompt, reply = self._compared(pair)
        points = " ".join(f"{place}. {facts[0].subject}" for place, facts in enumerate(pair, 1))
        passages = " ".join(biography(facts[:3], "en", self.rng, "It") for facts in pair)
        shown = f"{passages} {prompt}" if self.rng.random() < 0.5 else prompt
        return Example(shown, f"[Structure] comparison [Outline] {points} [Answer] {reply}", schema.OUTLINE)


def replay(world: World, seed: int) -> Iterator[Document]:
    """Pre-training documents in random order, without end: they keep knowledge in place during SFT.

    Half of the biographies come as the reply to a request for one, so that all people can be asked about in a conversation.
    """
    rng = random.Random(f"replay-{seed}")
    facts = {fact.id: fact for fact in world.facts}
    while True:
        document = rng.choice(world.documents)
        subject = facts[document.fact_ids[0]].subject if document.fact_ids else ""
        if document.kind == "biography" and world.entities[subject].kind == "person" and rng.random() < 0.5:
            request = rng.choice(schema.BIOGRAPHY[document.lang]).format(s=subject)
            document = replace(document, prompt=request)
        yield document
