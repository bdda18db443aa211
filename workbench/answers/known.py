"""What else names a gold answer: its titles, units, places and initials, and the kind of thing that a question asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from workbench.answers.asides import DEMONYM
from workbench.answers.forms import Form, Forms, asked_of, mention_end
from workbench.answers.kept import kept
from workbench.answers.names import (
    KINDS,
    TITLES,
    asks_for_person,
    expands,
    further_forms,
    is_unit,
    kinds_asked,
    name_end,
    spelt_alike,
    titled_alike,
    unit,
)
from workbench.answers.places import place
from workbench.answers.plurals import other_number
from workbench.answers.text import Token, tokenise, words_of
from workbench.answers.variants import variants

_ALIKE = [frozenset(kinds.split()) for kinds in ("season series", "film movie", "song single track", "show series program")]
_BEHIND_NUMBERS = frozenset(  # what may stand behind a number that is told without what it counts
    "of in on at as to for from and or per each by since with who that which when is are was were "
    "will have has total altogether "
    "all there during ago long old , . :".split()
)


class Known(NamedTuple):
    """What else names the gold answer, and finds it in an answer."""

    forms: Forms
    others: tuple[tuple[Form, Form], ...]  # another name, and the form that it stands for; longest first
    named: frozenset[Form]  # forms that are written with a capital
    names: tuple[tuple[Form, Form], ...]  # the named ones with and without a title
    person: bool
    kinds: frozenset[str]  # what the question says that it asks for, "river" of "the Volga River"
    small: frozenset[Form] = frozenset()  # those of the others that name it in small letters alone: "pigs" for "Pig"
    alone: frozenset[Form] = frozenset()  # those that name it where nothing else is said: "Chernobyl" for its power plant
    question: str = ""

    def named_in(self, text: str) -> bool:
        tokens = self.recast(tokenise(text))
        return any(mention_end(tokens, i, form) for i in range(len(tokens)) for form in self.forms)

    def recast(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """The tokens with the words of a form in place of what names the same, and of its title and kind."""
        names = any(token.name for token in tokens)
        cast: list[Token] = []
        i = 0
        while i < len(tokens):
            form, end = self._found(tokens, i, names)
            if form is None or not titled_alike(form, _titles(cast, tokens[i:end])):
                cast.append(tokens[i])
                i += 1
                continue
            article = tokens[i].article
            while cast and form not in self.named and DEMONYM.fullmatch(cast[-1].text):  # "the Polish złoty"
                article = cast.pop().article or article
            while cast and (
                (form in self.named and cast[-1].text in TITLES) or (cast[-1].text == "mount" and "mountain" in self.kinds)
            ):
                article = cast.pop().article or article
            cast += [Token(word, form in self.named, article) for word in form]
            i = end
            while i < len(tokens) and tokens[i].text in self.kinds:
                i += 1
        return cast

    def _found(self, tokens: Sequence[Token], start: int, names: bool) -> tuple[Form | None, int]:
        for form in self.forms:
            if end := mention_end(tokens, start, form):
                longer = (mention_end(tokens, start, o) for o, of in self.others if of == form and o[: len(form)] == form)
                return form, max((end, *filter(None, longer)))  # "Arsenal FC"
        expanded = [form for form in self.forms if not start and expands(form, words_of(tokens), self.question)]
        if expanded:
            return expanded[0], len(tokens)
        for other, form in self.others:
            if (end := mention_end(tokens, start, other)) and self._names(tokens, start, end, other, form):
                return form, end
        words = [token.text for token in tokens[start : start + 8]]
        for pattern, form in self.names:
            alike = spelt_alike(pattern, words[: len(pattern)], self.person)
            size = name_end(words, pattern, self.person) or len(pattern) * alike
            if size and (not names or all(token.name for token in tokens[start : start + size])):
                return form, start + size
        return None, start

    def _names(self, tokens: Sequence[Token], start: int, end: int, other: Form, form: Form) -> bool:
        """Whether another name of a gold answer that stands there is meant: written as a name, or all that is said."""
        alone = not start and not words_of(tokens[end:])
        if other in self.small or other in self.alone:
            written = alone if other in self.alone else not tokens[start].name
        else:
            written = len(other) > 1 or tokens[start].name or alone or form not in self.named
        counts = other[0][0].isdigit() and len(other) < len(form)
        free = _BEHIND_NUMBERS.union(form, tokenised(self.question))
        counted = not counts or end == len(tokens) or tokens[end].text in free
        return (
            written
            and counted
            and not _other_unit(tokens, end, other, form)
            and not _other_date(tokens[start].text, other, form)
        )


def _other_date(word: str, year: Form, form: Form) -> bool:
    """Whether a date in the year of the gold one is another."""
    return len(year) == 1 and word != year[0] and not form[0].startswith(word)


def _titles(before: Sequence[Token], name: Sequence[Token]) -> frozenset[str]:
    """The titles of a name and in front of it."""
    size = next((i for i, token in enumerate(reversed(before)) if token.text not in TITLES), len(before))
    return TITLES.intersection(token.text for token in (*before[len(before) - size :], *name))


def _other_unit(tokens: Sequence[Token], end: int, number: Form, form: Form) -> bool:
    """Whether a unit that is not the gold one's stands behind a number that was found without it."""
    after = tokens[end].text if end < len(tokens) else ""
    return len(number) < len(form) and is_unit(after) and unit(after) not in map(unit, form)


@kept
def known_of(question: str, gold: tuple[str, ...]) -> Known:
    read = [tokenise(form) for form in gold]
    placed = {tuple(words_of(tokenise(place(form)))): tuple(words_of(tokenise(form))) for form in gold}
    inner = {
        tuple(words_of(tokenise(form.split(", ")[0]))): tuple(words_of(tokenise(form))) for form in gold if place(form) != form
    }
    named = frozenset(tuple(words_of(tokens)) for tokens in read if any(t.name and not t.text[0].isdigit() for t in tokens))
    forms, given = asked_of(question, gold)
    others = {(other, form) for form in forms for other in further_forms(form, question, form in named)}
    less = {(rest, form) for form in forms if (rest := _less(form, given, form in named))}
    others |= less
    others |= set(_rewritten(gold, question))
    small = {(other, form) for form in forms if len(form) == 1 and form in named for other in _in_small(form[0], question)}
    others = {
        (other, form) for other, form in others | small | {*placed.items(), *inner.items()} if other and form and other != form
    }
    kinds = kinds_asked(question)
    kinds |= frozenset().union(*(alike for alike in _ALIKE if kinds & alike))
    longest = tuple(sorted(others, key=lambda pair: (-len(pair[0]), pair)))
    names = tuple((pattern, form) for pattern, form in (*((f, f) for f in forms), *longest) if form in named)
    lower, alone = frozenset(other for other, _ in small), frozenset(rest for rest, _ in less)
    return Known(forms, longest, named, names, asks_for_person(question), kinds, lower, alone, question)


def _rewritten(gold: Sequence[str], question: str) -> Iterator[tuple[Form, Form]]:
    """The other ways of writing each gold answer, with their own further forms, and its own."""
    for text in gold:
        form = tuple(words_of(tokenise(text)))
        for other in variants(text, question):
            tokens = tokenise(other)
            words = tuple(words_of(tokens))
            yield words, form
            yield from ((further, form) for further in further_forms(words, question, any(t.name for t in tokens)))


def _less(form: Form, given: frozenset[str], named: bool) -> Form | None:
    """A gold answer without the words at its end (of one that is no name also at its beginning) that the question
    gives, if what is
    left says something: "Chernobyl" of "Chernobyl Nuclear Power Plant"."""
    told = given.union(*map(other_number, given)) if given else given
    start, end = 0, len(form)
    while end > start and form[end - 1] in told:
        end -= 1
    while not named and start < end and form[start] in told:
        start += 1
    rest = form[start:end]
    says = any((len(word) > 2 and word not in KINDS | TITLES) or word[0].isdigit() for word in rest)
    return rest if rest != form and says else None


def _in_small(word: str, question: str) -> set[tuple[str]]:
    """The other number of a gold answer that only begins its line with a capital."""
    if asks_for_person(question) or not question or re.search(r"\bwhere\b|\b(?:city|country|state|place)\b", question.lower()):
        return set()
    return {(other,) for other in other_number(word)}


@kept
def tokenised(text: str) -> frozenset[str]:
    return frozenset(words_of(tokenise(text)))
