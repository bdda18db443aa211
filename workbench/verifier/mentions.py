"""Objections to a claim: its numbers and names that the evidence does not have.

    evidence = Mentioned(["The bridge opened in 1931."])
    objections("The bridge opened in 1932.", evidence)   # [("number", "1932")]

The rules are *(ours)*. They stay silent in doubt, and still object to some claims that people call
supported. They read English only. Their work is linear in the lengths of the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from workbench.verifier.names import names_of, unnamed
from workbench.verifier.numbers import missing, numbers_of
from workbench.verifier.tokens import Token, read

ENGLISH = frozenset(  # without words that other languages have as well, such as "in" or "was"
    "the it its with are from were be been she his their they that this who which there against"
    " about after before into during when while born won".split()
)
FOREIGN = frozenset(
    "der das und ist wurde ein eine einen einem einer im mit vom zu zum zur dem des auf nicht sich"
    " auch bei nach aus sie le la les une et dans avec qui que il elle aux etait ete el los las una"
    " es por fue del para gli della dello nel nella stato di uma foi em ao het een werd zijn voor"
    " niet te dat och ar ett blev og er af av som na sie byl ve bir yang adalah pada de da du"
    " os".split()
)
DENIALS = frozenset("not no never nobody none nothing neither nor without cannot".split())
NO_DENIAL = frozenset(
    "only just until less fewer more later earlier doubt secret disputed denied".split()
)
SHOWN = 3  # objections of one kind
Objection = tuple[str, str]  # "number" or "name", and the words of the claim that it is about


class Mentioned:
    """The numbers and names of all passages together."""

    def __init__(self, texts: Sequence[str]) -> None:
        tokens = [read(text) for text in texts]
        self.numbers, self.names = numbers_of(tokens), names_of(tokens)


def objections(claim: str, evidence: Mentioned) -> list[Objection]:
    """The numbers and names of `claim` that the evidence does not have, without those that the
    claim denies; none for a claim in another language than English."""
    tokens = read(claim)
    if not is_english(tokens):
        return []
    tokens = affirmed(tokens)
    found = {
        "number": missing(tokens, evidence.numbers),
        "name": unnamed(tokens, evidence.names),
    }
    return [(kind, text) for kind, texts in found.items() for text in dict.fromkeys(texts[:SHOWN])]


def is_english(tokens: Sequence[Token]) -> bool:
    """Whether a claim has no fewer English than foreign function words."""
    english = sum(token.word in ENGLISH or token.word.endswith("ed") for token in tokens)
    foreign = sum(
        token.word in FOREIGN and not (token.capital and after.capital)  # "Das Boot" is a name
        for token, after in pairwise([*tokens, Token("", "", "mark")])
    )
    return english >= foreign


def affirmed(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without those between a denial and the next mark, "but" or "and"; "not until 1931"
    and "no doubt" deny nothing."""
    kept: list[Token] = []
    denied = False
    for i, token in enumerate(tokens):
        after = {one.word for one in tokens[i + 1 : i + 3]}
        listed = token.word == "," and any(one.value for one in tokens[i + 1 : i + 2])
        if (token.kind == "mark" and not listed) or token.word in ("but", "and"):
            denied = False
        elif token.word in DENIALS and after.isdisjoint(NO_DENIAL):
            denied = True
        if not denied:
            kept.append(token)
    return kept
