"""What speaks against a claim's support, whatever a model makes of the words: see `numbers`,
`names` and `roles`.

    evidence = Mentioned(["The bridge opened in 1931."])
    objections("The bridge opened in 1932.", evidence)   # [("number", "1932")]

The rules are *(ours)*, and are meant to keep silent when in doubt; still they object to some
claims that people call supported. They read English: of a claim in another language they say
nothing. All of it is linear in the texts' lengths.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.entailment.known import known
from workbench.entailment.names import FOREIGN, names_of, unnamed
from workbench.entailment.numbers import missing
from workbench.entailment.reading import Token, affirmed, read
from workbench.entailment.roles import deed_of, told, turned

ENGLISH = frozenset(
    "the of and in is was a an by to for with at on from are were be been it its he she his her"
    " they their has had have that this as who which but or not no there against over about after"
    " before into during when while born won lost".split()
)
# Of these, what other languages have as well: beside a foreign word they do not make a claim
# English.
SHARED = frozenset(
    "of and in is was a an to for on at by he her has had have as but or no not over been lost".split()
)
SHOWN = 3  # objections of one kind
Objection = tuple[str, str]  # one of `OBJECTIONS`, and the words of the claim that it is about


class Mentioned:
    """What the passages that a claim is held against mention, all together."""

    def __init__(self, texts: Sequence[str]) -> None:
        tokens = [read(text) for text in texts]
        self.numbers, self.names, self.roles = known(tokens), names_of(tokens), told(tokens)


def objections(claim: str, evidence: Mentioned) -> list[Objection]:
    """What of `claim` the rules do not find in the evidence. They pass over what a denial is
    about, up to the next part of the sentence, and all of a claim that is not in English."""
    whole = read(claim)
    tokens = affirmed(whole) if is_english(whole) else ()
    found = {
        "number": missing(tokens, evidence.numbers),
        "name": unnamed(tokens, evidence.names),
        "role": turned(tokens, evidence.roles),
    }
    return [(kind, text) for kind, texts in found.items() for text in dict.fromkeys(texts[:SHOWN])]


def is_english(tokens: Sequence[Token]) -> bool:
    """Whether a claim has an English function word, verb or number: one that no other language
    has, if a word of another language is there that belongs to no name ("Das Boot"). A foreign
    word alone is no way round the rules."""
    words = [token for token in tokens if token.kind == "word"]
    alien = any(
        token.word in FOREIGN and not (i and token.name) and not _in_name(words, i)
        for i, token in enumerate(words)
    )
    said = any(
        _is_said(token, i, ENGLISH - SHARED if alien else ENGLISH) for i, token in enumerate(words)
    )
    return said or not words or any(token.spelt for token in tokens)


def _is_said(token: Token, i: int, words: frozenset[str]) -> bool:
    capital = token.name and i > 0
    return (token.word in words and not (capital and words is not ENGLISH)) or (
        not capital and bool(deed_of(token.word))
    )


def _in_name(words: Sequence[Token], i: int) -> bool:
    """Whether a foreign word belongs to a name; one that begins the claim may, if an English
    word is there as well.
    """
    return (
        i + 1 < len(words)
        and words[i + 1].name
        and (i > 0 or any(token.word in ENGLISH for token in words))
    )
