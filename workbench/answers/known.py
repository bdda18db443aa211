"""What else names a gold answer: its titles, units, places and initials, and the kind of thing
that a question asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workbench.answers.asides import DEMONYM
from workbench.answers.forms import Form, Forms, asked_of, mention_end
from workbench.answers.kept import kept
from workbench.answers.names import (
    TITLES,
    asks_for_person,
    further_forms,
    is_unit,
    kinds_asked,
    name_end,
    spelt_alike,
    titled_alike,
    unit,
)
from workbench.answers.places import place
from workbench.answers.text import Token, tokenise, words_of


class Known(NamedTuple):
    """What else names the gold answer, and finds it in an answer."""

    forms: Forms
    # another name, and the form that it stands for; longest first
    others: tuple[tuple[Form, Form], ...]
    named: frozenset[Form]  # forms that are written with a capital
    names: tuple[tuple[Form, Form], ...]  # the named ones with and without a title
    person: bool
    kinds: frozenset[str]  # what the question says that it asks for, "river" of "the Volga River"

    def named_in(self, text: str) -> bool:
        tokens = self.recast(tokenise(text))
        return any(mention_end(tokens, i, form) for i in range(len(tokens)) for form in self.forms)

    def recast(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """The tokens with the words of a form in place of what names the same, and of its title
        and kind.
        """
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
            # "the Polish złoty"
            while cast and form not in self.named and DEMONYM.fullmatch(cast[-1].text):
                article = cast.pop().article or article
            while cast and (
                (form in self.named and cast[-1].text in TITLES)
                or (cast[-1].text == "mount" and "mountain" in self.kinds)
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
                return form, end
        for other, form in self.others:
            end = mention_end(tokens, start, other)
            if (
                end
                and (len(other) > 1 or tokens[start].name or form not in self.named)
                and not _other_unit(tokens, end, other, form)
                and not _other_date(tokens[start].text, other, form)
            ):
                return form, end
        words = [token.text for token in tokens[start : start + 8]]
        for pattern, form in self.names:
            size = name_end(words, pattern, self.person) or len(pattern) * spelt_alike(
                pattern, words[: len(pattern)]
            )
            if size and (not names or all(token.name for token in tokens[start : start + size])):
                return form, start + size
        return None, start


def _other_date(word: str, year: Form, form: Form) -> bool:
    """Whether a date in the year of the gold one is another."""
    return len(year) == 1 and word != year[0] and not form[0].startswith(word)


def _titles(before: Sequence[Token], name: Sequence[Token]) -> frozenset[str]:
    """The titles of a name and in front of it."""
    size = next(
        (i for i, token in enumerate(reversed(before)) if token.text not in TITLES), len(before)
    )
    return TITLES.intersection(token.text for token in (*before[len(before) - size :], *name))


def _other_unit(tokens: Sequence[Token], end: int, number: Form, form: Form) -> bool:
    """Whether a unit that is not the gold one's stands behind a number that was found without
    it.
    """
    after = tokens[end].text if end < len(tokens) else ""
    return len(number) < len(form) and is_unit(after) and unit(after) not in map(unit, form)


@kept
def known_of(question: str, gold: tuple[str, ...]) -> Known:
    read = [tokenise(form) for form in gold]
    placed = {
        tuple(words_of(tokenise(place(form)))): tuple(words_of(tokenise(form))) for form in gold
    }
    inner = {
        tuple(words_of(tokenise(form.split(", ")[0]))): tuple(words_of(tokenise(form)))
        for form in gold
        if place(form) != form
    }
    named = frozenset(
        tuple(words_of(tokens))
        for tokens in read
        if any(t.name and not t.text[0].isdigit() for t in tokens)
    )
    forms, _ = asked_of(question, gold)
    others = {
        (other, form) for form in forms for other in further_forms(form, question, form in named)
    }
    others = {
        (other, form)
        for other, form in others | {*placed.items(), *inner.items()}
        if other and form and other != form
    }
    kinds = kinds_asked(question)
    longest = tuple(sorted(others, key=lambda pair: (-len(pair[0]), pair)))
    names = tuple(
        (pattern, form) for pattern, form in (*((f, f) for f in forms), *longest) if form in named
    )
    return Known(forms, longest, named, names, asks_for_person(question), kinds)
