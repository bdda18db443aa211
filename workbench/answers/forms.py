"""The forms of a gold answer, found in an answer's words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from workbench.answers.kept import kept
from workbench.answers.rivals import MENTION, is_mention
from workbench.answers.text import Token, tokenise, words_of

Form = tuple[str, ...]  # the words of a gold answer
Forms = Sequence[Form]

OR = frozenset("or either oder o ou 或 alternatively versus vs".split())
AND = frozenset("and und et y e 和 plus".split())


def same(form: str, word: str) -> bool:
    return form == word or (
        bool(re.fullmatch(r"\d{4}(-\d\d)?", form)) and word.startswith(form + "-")
    )


def equal(form: Form, words: list[str]) -> bool:
    return len(form) == len(words) and all(same(*pair) for pair in zip(form, words, strict=True))


def mention_end(sentence: Sequence[Token], start: int, form: Form) -> int | None:
    i = start
    for word in form:
        while start < i < len(sentence) and sentence[i].text == ",":
            i += 1
        if i == len(sentence) or not same(word, sentence[i].text):
            return None
        i += 1
    return i


def mask(sentence: Sequence[Token], forms: Forms) -> Sequence[Token]:
    """The sentence with each gold form, longest first, replaced by one token that names which
    form it was.
    """
    for form in forms:
        masked: list[Token] = []
        i = 0
        while i < len(sentence):
            if (end := mention_end(sentence, i, form)) is None:
                masked.append(sentence[i])
                i += 1
            else:
                masked.append(
                    Token(
                        MENTION + " ".join(form),
                        any(token.name for token in sentence[i:end]),
                        sentence[i].article,
                    )
                )
                i = end
        sentence = masked
    return sentence


def split(tokens: Iterable[Token], *separators: str) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        # A capital E or Y is a name ("B, E"); in small letters it is "and".
        if token.text in separators and not (token.name and len(token.text) == 1):
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


@kept
def asked_of(question: str, gold: tuple[str, ...]) -> tuple[tuple[Form, ...], frozenset[str]]:
    """The forms of the gold answer, longest first, and the words of the question that an answer
    may repeat.
    """
    forms = tuple(
        sorted({tuple(words_of(tokenise(form))) for form in gold} - {()}, key=len, reverse=True)
    )
    return forms, given_by(question, forms)


def given_by(question: str, forms: Forms) -> frozenset[str]:
    """The words of a question that an answer may repeat: not the candidates where it offers some
    to choose from, which are its names if the gold answer is one, and may be any of its words
    else."""
    tokens = tokenise(question)
    masked = mask(tokens, forms)
    if not (OR.intersection(words_of(tokens)) or any(map(is_mention, masked))):
        return frozenset(words_of(tokens))
    names = any(token.name for token in masked if is_mention(token))
    return frozenset(
        token.text for token in masked if names and not (token.name or is_mention(token))
    )
