"""Text → facts, exactly: inverts every sentence template of both languages and says what it
could not read.

It is made for the noise of a tiny model: a broken sentence, an unknown word or a name that
nobody has is reported as unparsed with a reason, and the sentences around it are still read.
Nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from workbench.text import is_abstention, sections
from workbench.world import lexicon, schema
from workbench.world.facts import value_forms
from workbench.world.world import World


@dataclass(frozen=True)
class Parsed:
    """One fact that a sentence states. `object` is None for a vague statement; `span` is the
    sentence's, in characters.
    """

    subject: str
    relation: str
    object: str | None
    stance: str  # "asserted", "hedged" or "vague"
    lang: str
    sentence: int
    span: tuple[int, int]

    @property
    def statement(self) -> str:
        """The claim on its own: one plain English sentence with the subject's name."""
        relation = schema.RELATIONS[self.relation]
        if self.object is None:
            return relation.vague["en"][0].format(s=self.subject)
        return (relation.hedges if self.stance == "hedged" else relation.states)["en"][0].format(
            s=self.subject, o=self.object
        )


@dataclass(frozen=True)
class Unparsed:
    sentence: int
    span: tuple[int, int]
    reason: str  # "form", "subject", "object", "pronoun"


@dataclass(frozen=True)
class Parse:
    sentences: tuple[tuple[int, int], ...]
    claims: tuple[Parsed, ...]
    unparsed: tuple[Unparsed, ...]
    refusals: tuple[int, ...]  # sentences that decline to answer


_Form = tuple[schema.Template, re.Pattern[str], str]  # the last is a text that it must hold
REASONS = ("object", "pronoun", "subject", "form")  # the most telling first

_SENTENCE = re.compile(r"[^.?!\n]+[.?!]*")
# bullets, list numbers and emphasis around a sentence
_LAYOUT = re.compile(r"^(?:[-*•#>]+|\d+[.)])\s+|[*_`]+")
# characters of a name or a value; without a bound, a long sentence takes the square of its length
_LONGEST = 200
EDITION = re.compile(r"Edition of (\d{4})")  # a page's heading
_DATE = re.compile(
    r"(?P<d>\d{1,2}) (?P<m>[A-Za-z]+) (?P<y>\d{4})|(?P<m2>[A-Za-z]+) (?P<d2>\d{1,2}),?"
    r" (?P<y2>\d{4})"
)
_LEADS = [(lead.casefold(), "asserted") for leads in schema.LEAD_INS.values() for lead in leads]
_LEADS += [(lead.casefold(), "hedged") for leads in schema.HEDGE_LEADS.values() for lead in leads]
_PRONOUNS = {pronoun.casefold() for pronouns in schema.PRONOUNS.values() for pronoun in pronouns}


def sentence_spans(text: str, prefill: str = "") -> list[tuple[int, int]]:
    """Character spans of the sentences, without outer white space; markers and line breaks stand
    between sentences.

    What plans an answer ([Structure], [Outline]), headings and list numbers are no sentences.
    """
    spans = []
    for _, start, end in sections(text, prefill):
        for match in _SENTENCE.finditer(text, start, end):
            piece = match.group()
            begin = match.start() + len(piece) - len(piece.lstrip())
            finish = match.start() + len(piece.rstrip())
            if any(character.isalpha() for character in text[begin:finish]) and not EDITION.match(
                text, begin, finish
            ):
                spans.append((begin, finish))
    return spans


class Parser:
    """Reads the sentences of one world: `parser_of` builds it once. `parse` is a pure function
    of its arguments.

    `strangers` are names of people outside the world whom sentences may be about as well.
    """

    def __init__(self, world: World, strangers: Iterable[str] = ()) -> None:
        self.kinds = {name: entity.kind for name, entity in world.entities.items()} | dict.fromkeys(
            strangers, "person"
        )
        self.names = {name.casefold(): name for name in self.kinds}
        self.values: dict[str, dict[str, str]] = {}
        for kind, canonical in value_inventory(world):
            for forms in value_forms(kind, canonical, world.names.l2).values():
                for form in forms:
                    self.values.setdefault(kind, {})[form.casefold()] = canonical
        for name, entity in world.entities.items():
            for aliases in entity.aliases.values():
                for alias in aliases:
                    self.names.setdefault(alias.casefold(), name)
        self.forms = [_compile(template) for template in schema.templates()]
        # a claim is read for its fact, for a checklist and for the next response's
        self._parse = lru_cache(maxsize=4096)(self._parse_anew)

    def parse(self, text: str, topic: str | None = None, prefill: str = "") -> Parse:
        """All facts that `text` states. `topic` is the entity that a pronoun means before any
        name was mentioned; `prefill` is what the prompt left open."""
        return self._parse(text, topic, prefill)

    def _parse_anew(self, text: str, topic: str | None, prefill: str) -> Parse:
        spans = sentence_spans(text, prefill)
        claims: list[Parsed] = []
        unparsed: list[Unparsed] = []
        refusals: list[int] = []
        topics: dict[str, str] = {}  # entity kind -> the one a pronoun means
        if topic and (name := self.names.get(topic.casefold())):
            topics[self.kinds[name]] = name
        for number, span in enumerate(spans):
            sentence = text[span[0] : span[1]]
            asked = sentence.endswith("?")
            parsed = "question" if asked else self._sentence(sentence, topics, number, span)
            # what states a fact declines nothing, and need not be read for that
            if isinstance(parsed, str):
                if is_abstention(sentence):
                    refusals.append(number)
                elif not asked:
                    unparsed.append(Unparsed(number, span, parsed))
                continue
            claims += parsed
            for name in (parsed[0].object, parsed[0].subject):
                if name in self.kinds:
                    topics[self.kinds[name]] = name
        return Parse(tuple(spans), tuple(claims), tuple(unparsed), tuple(refusals))

    def _sentence(
        self, sentence: str, topics: dict[str, str], number: int, span: tuple[int, int]
    ) -> list[Parsed] | str:
        body = _LAYOUT.sub("", " ".join(sentence.split())).rstrip(".!").strip()
        stance = "asserted"
        for lead, lead_stance in _LEADS:
            if body.casefold().startswith(lead):
                body, stance = body[len(lead) :].lstrip(", "), lead_stance
        folded, reasons = body.casefold(), ["form"]
        for template, pattern, anchor in self.forms:
            match = pattern.fullmatch(body) if anchor in folded else None
            if not match:
                continue
            read = self._resolve(template, match.groupdict(), topics)
            if isinstance(read, str):
                reasons.append(read)
                continue
            subject, objects = read
            hedged = stance == "hedged" and template.stance == "asserted"
            stance = "hedged" if hedged else template.stance
            return [
                Parsed(subject, relation, value, stance, template.lang, number, span)
                for relation, value in zip(template.relations, objects, strict=True)
            ]
        return min(reasons, key=REASONS.index)

    def _resolve(
        self, template: schema.Template, slots: dict[str, str], topics: dict[str, str]
    ) -> tuple[str, list[str | None]] | str:
        relations = [schema.RELATIONS[name] for name in template.relations]
        kind, mention = relations[0].subject, slots["s"].casefold()
        pronoun = mention in _PRONOUNS
        subject = topics.get(kind) if pronoun else self.names.get(mention)
        if subject is None or self.kinds[subject] != kind:
            return "pronoun" if pronoun else "subject"
        if template.stance == "vague":
            return subject, [None]
        objects = [
            self.value(relation.object, slots[slot])
            for relation, slot in zip(relations, ("o", "o2"), strict=False)
        ]
        return "object" if None in objects else (subject, objects)

    def value(self, kind: str, said: str) -> str | None:
        """The canonical form of a value of `kind`, or None if `said` is not one."""
        folded = said.casefold()
        if kind == "year" and re.fullmatch(r"(the year |anno )?\d{4}", folded):
            return folded[-4:]
        if kind == "date" and (match := _DATE.fullmatch(said.strip())):
            part = match.groupdict()
            day, month, year = (part[key] or part[f"{key}2"] for key in "dmy")
            known = month.capitalize() in lexicon.MONTHS and 1 <= int(day) <= 31
            return f"{int(day)} {month.capitalize()} {year}" if known else None
        if kind == "population":  # in thousands; the sentence says so
            return folded if re.fullmatch(r"\d{1,4}", folded) else None
        return self.values.get(kind, {}).get(folded)


@lru_cache(maxsize=4)
def parser_of(world: World) -> Parser:
    """The parser of a world, built once."""
    return Parser(world)


def value_inventory(world: World) -> Iterator[tuple[str, str]]:
    """Every value an object can be, by kind: a name of known parts that nobody bears is one too,
    and makes a false claim.

    Years, dates and populations are not listed: any of their form is a value.
    """
    names = world.names
    plain = {
        "profession": lexicon.PROFESSIONS,
        "industry": lexicon.INDUSTRIES,
        "field": lexicon.FIELDS,
        "genre": lexicon.GENRES,
        "country": names.countries,
        "river": names.rivers,
        "city": names.cities,
    }
    types = {
        "company": lexicon.COMPANY_TYPES,
        "university": lexicon.UNIVERSITY_TYPES,
        "award": lexicon.AWARD_TYPES,
    }
    combined = {
        kind: [f"{stem} {ending}" for stem in names.stems for ending in endings]
        for kind, endings in types.items()
    }
    combined["person"] = [f"{first} {last}" for first in names.first for last in names.last]
    for kind, values in (plain | combined).items():
        for value in values:
            yield kind, value


def _compile(template: schema.Template) -> _Form:
    text = template.text.rstrip(".")
    literals = [piece.casefold() for piece in re.split(r"\{\w+\}", text)]
    pattern = re.escape(text).replace(r"\{", "{").replace(r"\}", "}")
    for slot in ("s", "o", "o2"):
        pattern = pattern.replace(f"{{{slot}}}", f"(?P<{slot}>.{{1,{_LONGEST}}}?)")
    # an article more or less changes no fact
    pattern = re.sub(r"\b(the|a|an|lo|un)\\ ", r"(?:\1\\ )?", pattern)
    pattern = re.sub(r"^(The|Lo)\\ ", r"(?:\1\\ )?", pattern)
    anchor = max((re.sub(r"\b(the|a|an|lo|un) $", "", piece) for piece in literals), key=len)
    anchor = re.sub(r"^(the|lo) ", "", anchor)
    return template, re.compile(pattern, re.IGNORECASE), anchor.strip()
