"""Find objections to a claim: numbers and names that its evidence does not mention.

    evidence = Mentions(["The bridge opened in 1931."])
    objections("The bridge opened in 1932.", evidence)   # [("number", "1932")]

The rules *(ours)* read English only. In doubtful cases they make no objection. Nevertheless, they
object to some claims that people label as supported. Their time is linear in the length of the
texts.
"""

from collections.abc import Sequence

from workbench.verifier.names import missing_names, names_of
from workbench.verifier.numbers import missing_numbers, numbers_of
from workbench.verifier.reading import is_english
from workbench.verifier.tokens import tokenize

MOST_SHOWN = 3  # objections per kind
Objection = tuple[str, str]  # "number" or "name", and the number or name as the claim writes it


class Mentions:
    """The numbers and names that a claim's passages mention, taken together."""

    def __init__(self, texts: Sequence[str]) -> None:
        tokens = [tokenize(text) for text in texts]
        self.numbers, self.names = numbers_of(tokens), names_of(tokens)


def objections(claim: str, evidence: Mentions) -> list[Objection]:
    """Return the numbers and names that a claim contains and its evidence does not mention.

    Each objection is a pair such as ("number", "1932") or ("name", "Osk"). At most three of each
    kind are returned. A claim in another language than English has no objections.
    """
    tokens = tokenize(claim)
    if not is_english(tokens):
        return []
    missing = {
        "number": missing_numbers(tokens, evidence.numbers),
        "name": missing_names(tokens, evidence.names),
    }
    return [
        (kind, text)
        for kind, texts in missing.items()
        for text in dict.fromkeys(texts[:MOST_SHOWN])
    ]
