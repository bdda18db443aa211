"""Texts that skill and instruction examples share: answers, abstentions, thoughts, plans."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.world import schema
from workbench.world.ephemeral import Ephemeral
from workbench.world.facts import Fact
from workbench.world.render import answer, ask, state, thinking, thought, titles

Turns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Example:
    """A prompt with its reply, and further turns."""

    prompt: str
    reply: str
    system: str = ""
    prefix: str = ""  # beginning of the reply without a loss: a thought of invented facts
    more: Turns = ()  # further questions with their replies


class Writer:
    """Draws examples with one source of random numbers.

    Args:
        ephemeral: people outside the world, who are drawn with the same random numbers.
        seed: seed of the random numbers.
    """

    learn_thought = True  # whether the thoughts have a loss

    def __init__(self, ephemeral: Ephemeral, seed: str) -> None:
        self.ephemeral = ephemeral
        self.rng = ephemeral.rng = random.Random(seed)
        self.choose, self.sample = self.rng.choice, self.rng.sample

    def chance(self, share: float) -> bool:
        """Return True in a share of the calls."""
        return self.rng.random() < share

    def lang(self) -> str:
        """Draw the language of an example: in three quarters of the cases English."""
        return "l2" if self.chance(0.25) else "en"

    def ask(self, fact: Fact, lang: str) -> str:
        """Return a question for a fact."""
        return ask(fact, lang, self.rng)

    def state(self, facts: Sequence[Fact], lang: str) -> str:
        """Return a sentence for each fact."""
        return " ".join(state(fact, lang, self.rng) for fact in facts)

    def abstention(self, lang: str) -> str:
        """Return an abstention, mostly in its most common wording."""
        forms = schema.ABSTAIN[lang]
        return forms[0] if self.chance(0.8) else self.choose(forms[1:])

    def request(self, name: str, lang: str) -> str:
        """Return a request for a biography."""
        return self.choose(schema.BIOGRAPHY[lang]).format(s=name)

    def decline(self, name: str, lang: str) -> str:
        """Return a sentence that declines to write about a person."""
        return self.choose(schema.DECLINE[lang]).format(s=name)

    def short(self, fact: Fact, lang: str, abstain: float) -> Example:
        """Return an example with a short answer or, with probability `abstain`, an abstention."""
        abstains = self.chance(abstain)
        prompt = self.ask(fact, lang)
        return Example(prompt, self.abstention(lang) if abstains else answer(fact, lang))

    def doubt(self, prompt: str, name: str, lang: str, system: str = schema.THINK) -> Example:
        """Return an example whose thought says that the person is unknown, and which abstains."""
        return reasoned(prompt, [self.decline(name, lang)], self.abstention(lang), system)

    def from_thoughts(
        self, prompt: str, facts: Sequence[Fact], reply: str, lang: str, system: str = schema.THINK
    ) -> Example:
        """Return a question with thoughts that state facts, and the answer that follows."""
        thoughts = [thought(fact, lang) for fact in facts]
        return reasoned(prompt, thoughts, reply, system, self.learn_thought)

    def older(self, years: Sequence[Fact], lang: str) -> Example:
        """Return an example that asks which of two people is older, given their birth years."""
        names = {"s": years[0].subject, "t": years[1].subject}
        prompt = self.choose(schema.COMPARISON[lang]).format(**names)
        earlier = min(years, key=lambda fact: int(fact.object))
        return self.from_thoughts(prompt, years, f"{earlier.subject}.", lang)

    def premise(self, facts: Mapping[str, Fact], other: Fact, lang: str) -> Example:
        """Return a question that names a person's profession; half the time it is wrong (`other`).

        The answer to a wrong premise is that the question is invalid. The thought recalls the fact
        of the question in both cases, since its absence would reveal the answer. The thought also
        says whether the premise holds: without this, accuracy stayed at chance after any practice.
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
        """Return the question whether the subject of `fact` has the object of `claim`."""
        form = self.choose(schema.RELATIONS[fact.relation].checks[lang])
        return form.format(s=fact.subject, o=claim.forms[lang][0])

    def yes_no(self, fact: Fact, other: Fact, lang: str) -> Example:
        """Return a yes/no question about `fact`; half the time with the object of `other`."""
        truth = self.chance(0.5)
        prompt = self.yes_no_question(fact, fact if truth else other, lang)
        return self.from_thoughts(prompt, [fact], yes_or_no(truth, lang), lang)

    def ask_for_books(self, books: Sequence[Fact], lang: str) -> str:
        """Return a question for all books of an author."""
        return self.choose(schema.LIST[lang]).format(s=books[0].object)

    def list_books(self, books: Sequence[Fact], lang: str) -> Example:
        """Return a question for all books of an author with its answer."""
        prompt = self.ask_for_books(books, lang)
        return self.from_thoughts(prompt, books, titles(books, lang), lang)

    def compare(self, pair: Sequence[Sequence[Fact]]) -> str:
        """Return a question that compares two people, given facts of each."""
        names = {"s": pair[0][0].subject, "t": pair[1][0].subject}
        return self.choose(schema.LONG_FORM["en"]).format(**names)

    def comparison(self, pair: Sequence[Sequence[Fact]]) -> str:
        """Return a text on two facets: the facts of one person, then those of the other."""
        first, second = (self.state(facts, "en") for facts in pair)
        return f"{first} In comparison, {second}"

    def outlined(self, pair: Sequence[Sequence[Fact]], sources: Sequence[int] = ()) -> str:
        """Return a `comparison` after its plan, with a point per person.

        With `sources`, each point cites the number of the passage about the person.
        """
        citations = [f" [{number}]" for number in sources] or ["", ""]
        points = [
            f"{number}. {facts[0].subject}{citation}"
            for number, (facts, citation) in enumerate(zip(pair, citations, strict=True), 1)
        ]
        text = self.comparison(pair)
        return f"[Structure] comparison [Outline] {' '.join(points)} [Answer] {text}"


def yes_or_no(truth: bool, lang: str) -> str:
    """Return "Yes." or "No." in a language."""
    return f"{schema.YES_NO[lang][0 if truth else 1]}."


def reasoned(
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
