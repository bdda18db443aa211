"""What speaks against a claim's support, whatever a model makes of the words: see `numbers`, `names` and `roles`.

    evidence = Mentioned(["The bridge opened in 1931."])
    objections("The bridge opened in 1932.", evidence)   # [("number", "1932")]

All of it is linear in the texts' lengths.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.entailment.names import names_of, unnamed
from workbench.entailment.numbers import known, missing
from workbench.entailment.reading import affirmed, read
from workbench.entailment.roles import told, turned

SHOWN = 3  # objections of one kind
Objection = tuple[str, str]  # one of `OBJECTIONS`, and the words of the claim that it is about


class Mentioned:
    """What the passages that a claim is held against mention, all together."""

    def __init__(self, texts: Sequence[str]) -> None:
        tokens = [read(text) for text in texts]
        self.numbers, self.names, self.roles = known(tokens), names_of(tokens), told(tokens)


def objections(claim: str, evidence: Mentioned) -> list[Objection]:
    """Why the evidence cannot support `claim`; nothing where that is not sure. What it denies is not asked for."""
    tokens = affirmed(read(claim))
    found = {
        "number": missing(tokens, evidence.numbers),
        "name": unnamed(tokens, evidence.names),
        "role": turned(tokens, evidence.roles),
    }
    return [(kind, text) for kind, texts in found.items() for text in dict.fromkeys(texts[:SHOWN])]
