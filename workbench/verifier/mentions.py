"""Objections to a claim: numbers and names that its evidence does not mention.

    evidence = Mentions(["The bridge opened in 1931."])
    objections("The bridge opened in 1932.", evidence)   # [("number", "1932")]

The rules *(ours)* read English only. They do not object in doubtful cases, but still object to some
claims that people label as supported. Their work is linear in the lengths of the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from workbench.verifier.names import missing_names, names_of
from workbench.verifier.numbers import missing_numbers, numbers_of
from workbench.verifier.tokens import Token, tokenize

ENGLISH = frozenset(  # function words that are not also words of another language, as "in" is
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
MOST_SHOWN = 3  # objections per kind
Objection = tuple[str, str]  # "number" or "name", and the words of the claim that it is about


class Mentions:
    """The numbers and names that a claim's passages mention, taken together."""

    def __init__(self, texts: Sequence[str]) -> None:
        tokens = [tokenize(text) for text in texts]
        self.numbers, self.names = numbers_of(tokens), names_of(tokens)


def objections(claim: str, evidence: Mentions) -> list[Objection]:
    """Return the numbers and names that `claim` asserts and the evidence does not mention.

    A claim in another language than English has no objections.
    """
    tokens = tokenize(claim)
    if not is_english(tokens):
        return []
    tokens = without_denied(tokens)
    missing = {
        "number": missing_numbers(tokens, evidence.numbers),
        "name": missing_names(tokens, evidence.names),
    }
    return [
        (kind, text)
        for kind, texts in missing.items()
        for text in dict.fromkeys(texts[:MOST_SHOWN])
    ]


def is_english(tokens: Sequence[Token]) -> bool:
    """Whether a claim has at least as many English as foreign function words."""
    english = sum(token.word in ENGLISH or token.word.endswith("ed") for token in tokens)
    foreign = sum(
        token.word in FOREIGN and not (token.capital and after.capital)  # "Das Boot" is a name
        for token, after in pairwise([*tokens, Token("", "", "mark")])
    )
    return english >= foreign


def without_denied(tokens: Sequence[Token]) -> list[Token]:
    """Drop the tokens between a denial and the next punctuation, "but" or "and".

    "not until 1931" and "no doubt" are not denials.
    """
    asserted: list[Token] = []
    denied = False
    for i, token in enumerate(tokens):
        after = {other.word for other in tokens[i + 1 : i + 3]}
        # a comma before a number often belongs to a date or a list
        in_list = token.word == "," and any(other.value for other in tokens[i + 1 : i + 2])
        if (token.kind == "mark" and not in_list) or token.word in ("but", "and"):
            denied = False
        elif token.word in DENIALS and after.isdisjoint(NO_DENIAL):
            denied = True
        if not denied:
            asserted.append(token)
    return asserted
