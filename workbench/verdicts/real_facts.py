"""Check claims about countries and cities by the table of real facts.

Only claims in a known form ("The capital of X is Y") can be looked up.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from workbench.data.real_facts import Entity, entities
from workbench.retrieval.evidence import given_passages
from workbench.types import SUPPORTED, Batch, Checked, Claims, Response, Verdict, Verify
from workbench.util.patterns import regex
from workbench.verdicts.claims import HEDGED, is_hedged
from workbench.verdicts.local import is_local, mark_local

# Forms of claims by relation; X is the entity and Y the value.
_FORMS = {
    "capital": (
        r"(?:the )?capital(?: city)? of X is (?:the city of )?Y",
        r"Y is the capital(?: city)? of X",
        r"X's capital(?: city)? is Y",
        r"X has (?:its )?capital (?:in|at) Y",
    ),
    "currency": (
        r"(?:the )?(?:official )?currency (?:of|in|used in) X is (?:the )?Y",
        r"X's (?:official )?currency is (?:the )?Y",
        r"X uses (?:the )?Y as its (?:official )?currency",
    ),
    "borders": (
        r"X (?:also )?(?:borders|shares (?:a |its |land )*borders? with|is bordered by) Y",
        r"X is a neighbou?r of Y",
        r"X's (?:neighbou?rs?|neighbou?ring countr(?:y|ies)) (?:is|are|includes?) Y",
    ),
    "inside": (
        # without adjectives: "the largest city in Y" says more
        r"X is an? (?P<kind>country|nation|state|city|town)(?: located| situated| that lies)?"
        r" (?:in|of|on) (?:the )?(?:continent of )?Y",
        r"(?:the city of )?X (?:is|lies|is located|is situated) (?:in|on)"
        r" (?:the )?(?:continent of )?Y",
    ),
    "population": (
        r"X has (?:about |around |approximately |a population of )*N(?: people| inhabitants)?",
        r"(?:the )?population of X is (?:about |around |approximately )?N(?: people)?",
        r"(?:about |around |approximately )?N people live in X",
    ),
    "area": (
        r"X (?:covers|has an area of) (?:about |around |approximately )?N"
        r" (?:km²|km2|sq(?:uare)? k(?:ilo)?m(?:et(?:er|re)s)?)",
        r"(?:the )?area of X is (?:about |around |approximately )?N"
        r" (?:km²|km2|sq(?:uare)? k(?:ilo)?m(?:et(?:er|re)s)?)",
    ),
}
# A name. These are not names: "it", "the largest city", "it is false that Lyon".
_NAME = regex(
    r"(?!(?:It|He|She|They|This|That|The|A|An|Its|His|Her|Their|Our|My|One|No|Not)\b)"
    r"[^\W\d_a-z][\w.'’-]*(?: (?:[^\W\d_a-z][\w.'’-]*|de|del|da|do|of|al|el|la))*"
)
# Words at the start of a claim that mean the question's country. "It" is left out, because it may
# mean the capital in the sentence before.
_SUBJECT = regex(r"(?:the|this) (?:country|nation)(?='s | )|its(?= )", re.I)
_WORD = {"thousand": 1e3, "million": 1e6, "billion": 1e9}
CLOSE = 0.1  # largest relative error of a number that counts as right


def by_table(fact: Verify) -> Verify:
    """Return a function that labels claims by a table of facts about countries and cities.

    `fact` is another check that labels claims. Its informativeness, and the passages in its
    evidence, are always used. Its label is used in two cases:

    * The table cannot decide.
    * The question has passages of its own, and `fact` finds that they support the claim. They may
      have a name or a number that the table lacks.
    """

    def verify(batch: Batch) -> list[Checked]:
        return [
            replace(checked, verdicts=tuple(_exact(response, extraction, checked.verdicts)))
            for (response, extraction), checked in zip(batch, fact(batch), strict=True)
        ]

    return mark_local(verify) if is_local(fact) else verify


def _exact(
    response: Response, extraction: Claims, verdicts: Sequence[Verdict]
) -> Iterator[Verdict]:
    claims = {f"claim:{claim.id}": claim for claim in extraction.claims}
    for verdict in verdicts:
        claim = claims.get(verdict.target)
        title = response.question.title
        true = table_says(claim.text, title) if claim and verdict.aspect == "fact" else None
        own = given_passages(response.question)
        supported = own and verdict.label in SUPPORTED and not verdict.error
        if claim is None or true is None or (supported and not true):
            yield verdict
            continue
        label = "correct" if true else "wrong"
        if is_hedged(response, extraction, claim):
            label = HEDGED[label]
        # the other items of evidence are remarks of the verifier on its own label
        passages = tuple(item for item in verdict.evidence if "passage" in item)
        yield replace(
            verdict, label=label, p=float(true), by="table", evidence=passages, error=None
        )


def table_says(claim: str, title: str = "") -> bool | None:
    """Look up a claim in the table of facts about countries and cities.

    Return True if the table confirms the claim, False if it contradicts the claim, and None if it
    cannot decide.

    Args:
        claim: a sentence, such as "The capital of France is Paris."
        title: title of the question. If it is a country, "the country" and "its" at the beginning
            of the claim mean this country.
    """
    text = " ".join(claim.strip().rstrip(".").split())
    asked = _named().get(_key(title))
    if asked and asked.kind == "country" and (start := _SUBJECT.match(text)):
        text = title + "'s" * (start[0].lower() == "its") + text[start.end() :]
    for relation, forms in _FORMS.items():
        for form in forms:
            match = _pattern(form).fullmatch(text)
            entity = match and _named().get(_key(match["X"]))
            if match and entity:
                kind = match.groupdict().get("kind")
                if kind and (kind.lower() in ("city", "town")) != (entity.kind == "city"):
                    return None
                if relation in ("population", "area"):
                    return _number_fits(entity, relation, match["N"])
                return _value_fits(entity, relation, match["Y"])
    return None


@cache
def _pattern(form: str) -> re.Pattern[str]:
    """Return the regular expression of an entry of `_FORMS`, such as "Y is the capital of X".

    X matches an entity, Y a value and N a number.
    """
    groups = {
        "X": r"(?P<X>(?:the )?[\w .,'’-]+?)",
        "Y": r"(?P<Y>[\w .,'’()-]+)",
        # does not match "83,2" and "83.000", the notation of other languages
        "N": r"(?P<N>(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]{1,2})?"
        r"(?: (?:thousand|million|billion))?)",
    }
    return re.compile(re.sub(r"\b[XYN]\b", lambda letter: groups[letter[0]], form), re.I)


def _value_fits(entity: Entity, relation: str, value: str) -> bool | None:
    if relation == "borders":
        for name in _named():
            if " and " in name:  # "Bosnia and Herzegovina" is one country
                value = re.sub(re.escape(name), name.replace(" and ", "+"), value, flags=re.I)
        parts = [part for part in re.split(r",|\band\b|\bor\b", value) if part.strip()]
        near = [_named().get(_key(part.replace("+", " and "))) for part in parts]
        known = entity.facts.get("borders", ())
        # an unknown neighbour may be a sea or a region, which the table does not have
        if not all(near) or entity.kind != "country":
            return None
        return all(one.name in known for one in near if one)
    relations = ("continent", "country") if relation == "inside" else (relation,)
    names = [name for one in relations for name in entity.facts.get(one, ())]
    if relation == "inside" and entity.kind == "city":  # a city is in its country's continent, too
        names += _named()[_key(names[0])].facts.get("continent", ())
    accepted = set(map(_key, names))
    if not accepted:  # the table lacks this fact, so it can decide nothing
        return None
    key = re.sub(r"^((?:north |south )?[a-z]+?)n? continent$", r"\1", _key(value))
    key = {"europea": "europe"}.get(key, key)
    if key in accepted:
        return True
    # a country has one capital, so any other name is wrong
    other = relation == "capital" and _NAME.fullmatch(value.strip())
    partial = any(name in key for name in accepted)
    return False if (other and not partial) or key in _values()[relation] else None


def _number_fits(entity: Entity, relation: str, text: str) -> bool | None:
    number, _, word = text.partition(" ")
    if not (actual := entity.numbers.get(relation)):
        return None
    stated = float(number.replace(",", "")) * _WORD.get(word.lower(), 1)
    # "a population of 3" may be the beginning of "a population of 3. 7 million"
    if relation == "population" and stated < 500:
        return None
    return abs(stated - actual) <= CLOSE * actual


def _key(name: str) -> str:
    return re.sub(r"^the ", "", name.strip().casefold())


@cache
def _named() -> Mapping[str, Entity]:
    """Return a dict from each name and alias in the table, normalised by `_key`, to its entity."""
    return {_key(name): one for one in entities() for name in (one.name, *one.aliases)}


@cache
def _values() -> Mapping[str, frozenset[str]]:
    """Return a dict from relation to all its values in the table, as normalised by `_key`.

    A claim whose value belongs to another entity is wrong. A value that is not in the table decides
    only about capitals.
    """
    values: dict[str, set[str]] = {"inside": set(_named())}
    for one in entities():
        for relation, names in one.facts.items():
            key = "inside" if relation in ("continent", "country") else relation
            values.setdefault(key, set()).update(map(_key, names))
    return {relation: frozenset(names) for relation, names in values.items()}
