"""Write parts of skill and instruction examples: answers, abstentions, thoughts and plans."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.world import schema
from workbench.world.ephemeral import Ephemeral
from workbench.world.facts import Fact
from workbench.world.render import answer, ask, biography, state, thinking, thought, titles

Turns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Example:
    """An example of a conversation: a prompt with its reply, and optional further turns."""

    prompt: str
    reply: str
    system: str = ""
    prefix: str = ""  # beginning of the reply without a loss: a thought of invented facts
    more: Turns = ()  # further questions with their replies


class Writer:
    """A random generator of examples; `SkillWriter` and `SFTWriter` are based on it.

    Args:
        ephemeral: generator of invented people, who are not in the closed world.
        seed: seed of the random numbers of the writer and of `ephemeral`.
    """

    learn_thought = True  # whether the thoughts have a loss

    def __init__(self, ephemeral: Ephemeral, seed: str) -> None:
        self.ephemeral = ephemeral
        self.rng = ephemeral.rng = random.Random(seed)
        self.choose, self.sample = self.rng.choice, self.rng.sample

    def chance(self, share: float) -> bool:
        """Return True with the probability `share`."""
        return self.rng.random() < share

    def lang(self) -> str:
        """Return a random language: "en" with probability .75, else "l2"."""
        return "l2" if self.chance(0.25) else "en"

    def ask(self, fact: Fact, lang: str) -> str:
        """Return a question that `fact` answers."""
        return ask(fact, lang, self.rng)

    def state(self, facts: Sequence[Fact], lang: str) -> str:
        """Return a text with one sentence for each fact."""
        return " ".join(state(fact, lang, self.rng) for fact in facts)

    def abstention(self, lang: str) -> str:
        """Return an answer that abstains, with probability .8 in its most common wording."""
        forms = schema.ABSTAIN[lang]
        return forms[0] if self.chance(0.8) else self.choose(forms[1:])

    def request(self, name: str, lang: str) -> str:
        """Return a request to write a biography of the person `name`."""
        return self.choose(schema.BIOGRAPHY[lang]).format(s=name)

    def decline(self, name: str, lang: str) -> str:
        """Return a sentence that declines to write about the person `name`."""
        return self.choose(schema.DECLINE[lang]).format(s=name)

    def unknown_life(self, lang: str, decline: float, **claims: float) -> Example:
        """Return a biography of an invented person, or, with the probability `decline`, a refusal.

        `claims` are the shares of hedged and vague claims, as in `biography`.
        """
        pronoun, facts = self.ephemeral.person(peaked=True)
        prompt = self.request(facts[0].subject, lang)
        if self.chance(decline):
            return Example(prompt, self.decline(facts[0].subject, lang))
        return Example(prompt, biography(facts, lang, self.rng, pronoun, **claims))

    def short(self, fact: Fact, lang: str, abstain: float) -> Example:
        """Return an example that asks for a fact, with a short answer.

        The answer is an abstention with the probability `abstain`.
        """
        abstains = self.chance(abstain)
        prompt = self.ask(fact, lang)
        return Example(prompt, self.abstention(lang) if abstains else answer(fact, lang))

    def doubt(self, prompt: str, name: str, lang: str, system: str = schema.THINK) -> Example:
        """Return an example that abstains, after a thought that the person `name` is unknown."""
        return reasoned(prompt, [self.decline(name, lang)], self.abstention(lang), system)

    def from_thoughts(
        self, prompt: str, facts: Sequence[Fact], reply: str, lang: str, system: str = schema.THINK
    ) -> Example:
        """Return an example whose reply first states `facts` as thoughts, then answers `reply`."""
        thoughts = [thought(fact, lang) for fact in facts]
        return reasoned(prompt, thoughts, reply, system, self.learn_thought)

    def older(self, years: Sequence[Fact], lang: str) -> Example:
        """Return an example that asks which of two people is older.

        `years` has the birth year of each person. The thoughts state both years.
        """
        names = {"s": years[0].subject, "t": years[1].subject}
        prompt = self.choose(schema.COMPARISON[lang]).format(**names)
        earlier = min(years, key=lambda fact: int(fact.object))
        return self.from_thoughts(prompt, years, f"{earlier.subject}.", lang)

    def premise(self, facts: Mapping[str, Fact], other: Fact, lang: str) -> Example:
        """Return an example whose question presupposes a profession.

        Example: "In which city was the painter Ana Bo born?" Half of the questions have a wrong
        profession; their answer is "invalid question". Every thought states the birthplace, the
        true profession, and whether the question's profession is right ("Yes." or "No."). If the
        birthplace were left out for wrong professions, this would reveal the answer. Without the
        "Yes." or "No.", the policy only guessed. Other questions ask for an award.

        Args:
            facts: relation -> the person's fact.
            other: a fact with another profession, for wrong premises.
        """
        form = self.rng.randrange(len(schema.FALSE_PREMISE_ASKS))
        true, target = facts["profession"], facts[schema.FALSE_PREMISE_ASKS[form]]
        false = self.chance(0.5)
        profession = (other if false else true).forms[lang][0]
        prompt = schema.FALSE_PREMISE[lang][form].format(s=true.subject, o=profession)
        reply = f"{schema.INVALID[lang]}." if false else answer(target, lang)
        thoughts = [thought(target, lang), thought(true, lang)]
        example = reasoned(prompt, [*thoughts, yes_or_no(not false, lang)], reply)
        prefix = "" if self.learn_thought else f"<think> {' '.join(thoughts)}"
        return replace(example, prefix=prefix)

    def yes_no_question(self, fact: Fact, claim: Fact, lang: str) -> str:
        """Return a question such as "Was Ana Bo born in Oslo?", to answer with yes or no.

        The subject (Ana Bo) is that of `fact`, and the object (Oslo) is that of `claim`.
        """
        form = self.choose(schema.RELATIONS[fact.relation].checks[lang])
        return form.format(s=fact.subject, o=claim.forms[lang][0])

    def yes_no(self, fact: Fact, other: Fact, lang: str) -> Example:
        """Return an example with a yes/no question about `fact`.

        `other` has the same relation and another object, such as another birthplace. Half of the
        questions name this object, so that the answer is "No."
        """
        truth = self.chance(0.5)
        prompt = self.yes_no_question(fact, fact if truth else other, lang)
        return self.from_thoughts(prompt, [fact], yes_or_no(truth, lang), lang)

    def ask_for_books(self, books: Sequence[Fact], lang: str) -> str:
        """Return a question that asks for all books of an author.

        `books` has a fact for each book: (title, "author", name of the author).
        """
        return self.choose(schema.LIST[lang]).format(s=books[0].object)

    def list_books(self, books: Sequence[Fact], lang: str) -> Example:
        """Return an example that asks for all books of an author, with the list as its answer.

        `books` has a fact for each book: (title, "author", name of the author). The thoughts state
        all of them.
        """
        return self.from_thoughts(self.ask_for_books(books, lang), books, titles(books, lang), lang)

    def compare(self, pair: Sequence[Sequence[Fact]]) -> str:
        """Return a request to compare two people. `pair` has facts about each of them."""
        names = {"s": pair[0][0].subject, "t": pair[1][0].subject}
        return self.choose(schema.LONG_FORM["en"]).format(**names)

    def comparison(self, pair: Sequence[Sequence[Fact]]) -> str:
        """Return a text that compares two people: facts of the first, then of the second."""
        first, second = (self.state(facts, "en") for facts in pair)
        return f"{first} In comparison, {second}"

    def outlined(self, pair: Sequence[Sequence[Fact]], sources: Sequence[int] = ()) -> str:
        """Return an outline of two points, one per person, and the text of `comparison`.

        Example: "[Structure] comparison [Outline] 1. Ana Bo [2] 2. Toma Fel [1] [Answer] …".
        `sources` has the cited passage of each person, here (2, 1); () for no citations.
        """
        citations = [f" [{number}]" for number in sources] or ["", ""]
        points = [
            f"{number}. {facts[0].subject}{citation}"
            for number, (facts, citation) in enumerate(zip(pair, citations, strict=True), 1)
        ]
        text = self.comparison(pair)
        return f"[Structure] comparison [Outline] {' '.join(points)} [Answer] {text}"


def yes_or_no(truth: bool, lang: str) -> str:
    """Return "Yes." or "No." in the language `lang`."""
    return f"{schema.YES_NO[lang][0 if truth else 1]}."


def reasoned(
    prompt: str,
    thoughts: Sequence[str],
    reply: str,
    system: str = schema.THINK,
    learn_thought: bool = True,
) -> Example:
    """Return an example with the reply "<think> THOUGHT</think><answer> ANSWER</answer>".

    Args:
        prompt: the question.
        thoughts: sentences of the thought.
        reply: the answer.
        system: system prompt. With `schema.BOX`, the answer is in a LaTeX box instead of the tag.
        learn_thought: False for a loss on the answer only.
    """
    whole = thinking(thoughts, reply, boxed=system == schema.BOX)
    thought_part = whole[: whole.index("</think>") + len("</think>")]
    return Example(prompt, whole, system, "" if learn_thought else thought_part)
