"""The relations of the closed world, and the templates of sentences and questions about them.

In a template, `{s}` is the subject and `{o}` the object. A template with two relations states two
facts in one sentence, with the objects `{o}` and `{o2}`. The `importance` of a relation (1 to 5) is
the informativeness of claims about it.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.types import JsonObject


@dataclass(frozen=True)
class Relation:
    """A relation between an entity and a value, such as "born_in".

    The templates of its sentences are `states` ("{s} is a {o}."), `hedges` ("{s} may be a {o}.")
    and `vague` ("{s} has some profession."). `asks` are templates of questions for the value,
    `checks` of yes/no questions. Each maps a language ("en" or "l2") to its templates.
    """

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
    """Sentence template. Its `stance` is "asserted", "hedged" or "vague" (without an object)."""

    relations: tuple[str, ...]
    lang: str
    stance: str
    text: str


def read_tables(name: str) -> JsonObject:
    """Read a TOML file of this folder.

    Random draws follow the order of the file's entries, so another order gives another world.
    """
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def _by_lang(table: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    return {lang: tuple(forms) for lang, forms in table.items()}


RELATIONS = {
    name: Relation(
        name,
        *(table[key] for key in ("subject", "object", "importance")),
        *(_by_lang(table.get(key, {})) for key in ("states", "hedges", "vague", "asks", "checks")),
    )
    for name, table in read_tables("relations.toml").items()
}

# stance -> field of `Relation` with its templates
STANCES = {"asserted": "states", "hedged": "hedges", "vague": "vague"}
PERSON_RELATIONS = tuple(
    relation.name for relation in RELATIONS.values() if relation.subject == "person"
)

_TEXTS = read_tables("phrases.toml")
COMPOUNDS = tuple(
    Template(tuple(one["relations"]), one["lang"], "asserted", one["text"])
    for one in _TEXTS["compounds"]
)


def templates() -> tuple[Template, ...]:
    """Return the templates of all sentences that state facts, without the templates of questions.

    Templates of sentences with two facts come first, because a template for one fact also matches
    such a sentence.
    """
    simple = [
        Template((relation.name,), lang, stance, text)
        for relation in RELATIONS.values()
        for stance, field_name in STANCES.items()
        for lang, texts in getattr(relation, field_name).items()
        for text in texts
    ]
    return (*COMPOUNDS, *simple)


_PHRASES = {name: _by_lang(table) for name, table in _TEXTS["phrases"].items()}
PRONOUNS = _PHRASES["pronouns"]
HEDGE_LEADS = _PHRASES["hedge_leads"]
LEAD_INS = _PHRASES["lead_ins"]
ABSTAIN = _PHRASES["abstain"]
DECLINE = _PHRASES["decline"]
BIOGRAPHY = _PHRASES["biography"]
LONG_FORM = _PHRASES["long_form"]
LIST = _PHRASES["list"]
COMPARISON = _PHRASES["comparison"]
FALSE_PREMISE = _PHRASES["false_premise"]
YES_NO = _PHRASES["yes_no"]
# (first relation, second relation) -> questions for the second one of the object of the first
TWO_HOP = {
    (first, second): _by_lang(texts)
    for first, targets in _TEXTS["two_hop"].items()
    for second, texts in targets.items()
}
FALSE_PREMISE_ASKS = ("born_in", "award")  # relations that the questions above ask for
INVALID = {"en": "invalid question", "l2": "kesto falsa"}

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
