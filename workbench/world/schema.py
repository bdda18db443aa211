"""The relations of the closed world, with all sentence templates that state, hedge or ask them.

`{s}` is the subject and `{o}` the object. A template of two relations states two facts in one
sentence, with `{o}` and `{o2}`. `importance` (1–5) is the informativeness of a claim about the
relation.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Relation:
    """A relation, with its templates by language."""

    name: str
    subject: str  # entity kind
    object: str  # entity kind or value kind
    importance: int
    states: dict[str, tuple[str, ...]]
    hedges: dict[str, tuple[str, ...]]
    vague: dict[str, tuple[str, ...]]
    asks: dict[str, tuple[str, ...]]
    checks: dict[str, tuple[str, ...]]  # yes/no questions; only of people

    @property
    def numeric(self) -> bool:
        return self.object in ("year", "population")


@dataclass(frozen=True)
class Template:
    """A sentence template. `stance` is "asserted", "hedged" or "vague" (without an object)."""

    relations: tuple[str, ...]
    lang: str
    stance: str
    text: str


def _relations() -> dict[str, Relation]:
    """Read `relations.toml`, whose order decides what a seed draws."""
    with Path(__file__).with_name("relations.toml").open("rb") as file:
        tables = tomllib.load(file)
    texts = ("states", "hedges", "vague", "asks", "checks")
    return {
        name: Relation(
            name,
            *(table[key] for key in ("subject", "object", "importance")),
            *({lang: tuple(forms) for lang, forms in table.get(key, {}).items()} for key in texts),
        )
        for name, table in tables.items()
    }


RELATIONS = _relations()

# stance -> field of `Relation` with its templates
STANCES = {"asserted": "states", "hedged": "hedges", "vague": "vague"}
PERSON_RELATIONS = tuple(
    relation.name for relation in RELATIONS.values() if relation.subject == "person"
)

COMPOUNDS: tuple[Template, ...] = (
    Template(("profession", "employer"), "en", "asserted", "{s} is a {o} at {o2}."),
    Template(("profession", "employer"), "en", "asserted", "{s} works as a {o} for {o2}."),
    Template(("born_in", "birth_year"), "en", "asserted", "{s} was born in {o} in {o2}."),
    Template(("alma_mater", "award"), "en", "asserted", "{s} studied at {o} and won the {o2}."),
    Template(("profession", "employer"), "l2", "asserted", "{s} ta un {o} che {o2}."),
    Template(("born_in", "birth_year"), "l2", "asserted", "{s} natel en {o} anno {o2}."),
)


def templates() -> tuple[Template, ...]:
    """Return all templates of statements; compounds are first, as simple ones match them too."""
    simple = [
        Template((relation.name,), lang, stance, text)
        for relation in RELATIONS.values()
        for stance, field_name in STANCES.items()
        for lang, texts in getattr(relation, field_name).items()
        for text in texts
    ]
    return (*COMPOUNDS, *simple)


PRONOUNS = {"en": ("He", "She", "It"), "l2": ("Zo",)}
HEDGE_LEADS = {"en": ("Perhaps", "Possibly", "I think"), "l2": ("Forse",)}
LEAD_INS = {"en": ("In comparison,", "By contrast,", "Also,"), "l2": ("Anke,",)}

ABSTAIN = {
    "en": ("I do not know.", "I don't know.", "I am not sure."),
    "l2": ("Mi ne vedu.", "Mi ne sabo."),
}
DECLINE = {
    "en": ("I do not know who {s} is.", "I have no information about {s}."),
    "l2": ("Mi ne vedu ke ta {s}.",),
}
BIOGRAPHY = {
    "en": ("Tell me about {s}.", "Who is {s}?", "Write a biography of {s}."),
    "l2": ("Dike mi de {s}.", "Ke ta {s}?"),
}
LONG_FORM = {"en": ("What is {s} known for and how does it compare with {t}?",), "l2": ()}
LIST = {
    "en": ("Which books did {s} write?", "Name the books by {s}."),
    "l2": ("Ke libros skriva {s}?",),
}
COMPARISON = {
    "en": ("Who was born earlier, {s} or {t}?", "Who is older, {s} or {t}?"),
    "l2": ("Ke natel ante, {s} o {t}?",),
}
TWO_HOP: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {
    ("employer", "headquarters"): {
        "en": ("In which city is the employer of {s} based?",),
        "l2": ("En ke urbe sida lo firma de {s}?",),
    },
    ("born_in", "country"): {
        "en": ("In which country was {s} born?",),
        "l2": ("En ke lando natel {s}?",),
    },
    ("alma_mater", "campus"): {
        "en": ("In which city did {s} study?",),
        "l2": ("En ke urbe studa {s}?",),
    },
}
FALSE_PREMISE = {
    "en": ("In which city was the {o} {s} born?", "Which award did the {o} {s} win?"),
    "l2": ("En ke urbe natel lo {o} {s}?", "Ke premo gana lo {o} {s}?"),
}
FALSE_PREMISE_ASKS = ("born_in", "award")  # relations that the questions above ask for
INVALID = {"en": "invalid question", "l2": "kesto falsa"}
YES_NO = {"en": ("yes", "no"), "l2": ("sia", "noa")}

THINK = "Think first, then answer."
BOX = "Think first, then put the answer in a box."
OUTLINE = "Write an outline first, then answer."
MARKERS = tuple(
    "<think> </think> <answer> </answer> \\boxed{ } [Structure] [Outline] [Answer]".split()
)
# numbers of the passages in a prompt, and references to them
SOURCES = tuple(f"[{number}]" for number in range(1, 6))
# words that are in no document, in the vocabulary for question forms taught after pre-training
SPARE = (
    "Describe Explain Summarize Compare Give Tell Name List overview details life lives career work"
    " studies origin home first then last order time from to both each also but because why how"
    " their there with who where when what Based on passages Using only True False Correct Wrong"
    " Consistent Contradictory Missing supported fact facts claim answer question"
)
