"""Parse text about the closed world: match sentences with the templates of both languages.

A sentence of a tiny model may be broken, or have unknown words or names. Such a sentence is
reported as unparsed, with the reason. The other sentences of the text are still parsed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from workbench.text import is_abstention, sections
from workbench.util.patterns import regex
from workbench.world import lexicon, schema
from workbench.world.facts import value_forms
from workbench.world.world import World


@dataclass(frozen=True)
class Parsed:
    """One fact that a sentence states, whether true or not.

    `object` is None for a vague statement. `sentence` is the number of the sentence in the text,
    from 0, and `span` has its character positions (start, end).
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
        """The fact as one English sentence in a fixed wording, with the subject's name."""
        relation = schema.RELATIONS[self.relation]
        template: str = getattr(relation, schema.STANCES[self.stance])["en"][0]
        return template.format(s=self.subject, o=self.object)


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


# a template, its pattern, and a part of its text that every match contains
_Form = tuple[schema.Template, re.Pattern[str], str]
REASONS = ("object", "pronoun", "subject", "form")  # the most specific first

_SENTENCE = regex(r"[^.?!\n]+[.?!]*")
# bullets, list numbers and emphasis around a sentence
_LAYOUT = regex(r"^(?:[-*•#>]+|\d+[.)])\s+|[*_`]+")
# longest name or value; without a bound, matching takes quadratic time in the sentence's length
_LONGEST = 200
EDITION = regex(r"Edition of (\d{4})")  # a page's heading
_DATE = regex(
    r"(?P<d>\d{1,2}) (?P<m>[A-Za-z]+) (?P<y>\d{4})|(?P<m2>[A-Za-z]+) (?P<d2>\d{1,2}),?"
    r" (?P<y2>\d{4})"
)
_LEADS = [
    (lead.casefold(), stance)
    for stance, leads in (("asserted", schema.LEAD_INS), ("hedged", schema.HEDGE_LEADS))
    for lead in chain(*leads.values())
]
_PRONOUNS = {pronoun.casefold() for pronoun in chain(*schema.PRONOUNS.values())}


def sentence_spans(text: str, prefill: str) -> list[tuple[int, int]]:
    """Return the character spans of the sentences of a text, without white space at their ends.

    Line breaks, tags such as `<think>` and markers such as [Answer] also end a sentence. Left out
    are list numbers, the heading of a page ("Edition of 1985."), and an outline before the answer
    (the text after [Structure] and [Outline]).

    Args:
        text: a response, or another text about the world.
        prefill: opening tag at the end of the prompt, such as "<think>"; "" if there is none.
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
    """Parser for sentences about one world. Call `parser_of` to get one: it caches the parser."""

    def __init__(self, world: World) -> None:
        self.kinds = {name: entity.kind for name, entity in world.entities.items()}
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
        # a claim is parsed for its fact and for checklists, and again in other responses
        self._parse = lru_cache(maxsize=4096)(self._parse_text)

    def parse(self, text: str, topic: str | None = None, prefill: str = "") -> Parse:
        """Parse a text; return a `Parse` with three fields.

        `sentences` are the spans of all sentences, `claims` the facts that they state, and
        `unparsed` the sentences that cannot be parsed, except questions and abstentions.

        Args:
            text: a response, a part of a response, or a claim.
            topic: the entity to which a pronoun refers if the text has named no entity before the
                pronoun; None if there is no such entity.
            prefill: opening tag at the end of the prompt, such as "<think>"; "" if there is none.
        """
        return self._parse(text, topic, prefill)

    def _parse_text(self, text: str, topic: str | None, prefill: str) -> Parse:
        spans = sentence_spans(text, prefill)
        claims: list[Parsed] = []
        unparsed: list[Unparsed] = []
        topics: dict[str, str] = {}  # entity kind -> the one a pronoun means
        if topic and (name := self.names.get(topic.casefold())):
            topics[self.kinds[name]] = name
        for number, span in enumerate(spans):
            sentence = text[span[0] : span[1]]
            question = sentence.endswith("?")
            parsed = "question" if question else self._sentence(sentence, topics, number, span)
            # a sentence with a fact is not an abstention, so only the others are checked for it
            if isinstance(parsed, str):
                if not question and not is_abstention(sentence):
                    unparsed.append(Unparsed(number, span, parsed))
                continue
            claims += parsed
            for name in (parsed[0].object, parsed[0].subject):
                if name in self.kinds:
                    topics[self.kinds[name]] = name
        return Parse(tuple(spans), tuple(claims), tuple(unparsed))

    def _sentence(
        self, sentence: str, topics: dict[str, str], number: int, span: tuple[int, int]
    ) -> list[Parsed] | str:
        """Return the facts of a sentence, or the reason why it cannot be parsed."""
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
            resolved = self._resolve(template, match.groupdict(), topics)
            if isinstance(resolved, str):
                reasons.append(resolved)
                continue
            subject, objects = resolved
            hedged = stance == "hedged" and template.stance == "asserted"
            stance = "hedged" if hedged else template.stance
            return [
                Parsed(subject, relation, value, stance, template.lang, number, span)
                for relation, value in zip(template.relations, objects, strict=True)
            ]
        # several templates may have matched: the reason that comes first in REASONS is reported
        return min(reasons, key=REASONS.index)

    def _resolve(
        self, template: schema.Template, slots: dict[str, str], topics: dict[str, str]
    ) -> tuple[str, list[str | None]] | str:
        """Return the subject and the objects in the slots of a template.

        If a slot has no valid subject or object, return the reason as a string.
        """
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

    def value(self, kind: str, text: str) -> str | None:
        """Return the canonical form of a value; None if `text` is not a value of the kind.

        Example: "the year 1921" of the kind "year" gives "1921".
        """
        folded = text.casefold()
        if kind == "year" and re.fullmatch(r"(the year |anno )?\d{4}", folded):
            return folded[-4:]
        if kind == "date" and (match := _DATE.fullmatch(text.strip())):
            part = match.groupdict()
            day, month, year = (part[key] or part[f"{key}2"] for key in "dmy")
            known = month.capitalize() in lexicon.MONTHS and 1 <= int(day) <= 31
            return f"{int(day)} {month.capitalize()} {year}" if known else None
        if kind == "population":  # in thousands, which is in the template
            return folded if re.fullmatch(r"\d{1,4}", folded) else None
        return self.values.get(kind, {}).get(folded)


@lru_cache(maxsize=4)
def parser_of(world: World) -> Parser:
    """Return the parser that reads the world's sentences as facts; it is built once per world."""
    return Parser(world)


def value_inventory(world: World) -> Iterator[tuple[str, str]]:
    """Yield (kind, canonical form) of every value that the object of a claim may have.

    The values include names that no entity has, such as unused combinations of first and last
    names. A claim with such an object is wrong, not unparsed.

    Years, dates and populations are not listed: any text of the right form is such a value.
    """
    names = world.names
    combined = {
        kind: [f"{stem} {ending}" for stem in names.stems for ending in endings]
        for kind, endings in lexicon.TYPES.items()
    }
    combined["person"] = [f"{first} {last}" for first in names.first for last in names.last]
    return ((kind, value) for kind, values in (names.values | combined).items() for value in values)


def _compile(template: schema.Template) -> _Form:
    text = template.text.rstrip(".")
    literals = [piece.casefold() for piece in re.split(r"\{\w+\}", text)]
    pattern = re.escape(text).replace(r"\{", "{").replace(r"\}", "}")
    for slot in ("s", "o", "o2"):
        pattern = pattern.replace(f"{{{slot}}}", f"(?P<{slot}>.{{1,{_LONGEST}}}?)")
    # articles are optional, and so is "the year"
    pattern = re.sub(r"\bthe\\ year\\ (?=\(\?P<o)", r"(?:the\\ year\\ )?", pattern)
    pattern = re.sub(r"\b(the|a|an|lo|un)\\ ", r"(?:\1\\ )?", pattern)
    pattern = re.sub(r"^(The|Lo)\\ ", r"(?:\1\\ )?", pattern)
    # a substring test with the longest literal rejects most templates faster than their pattern
    anchor = max((re.sub(r"\b(the|a|an|lo|un) $", "", piece) for piece in literals), key=len)
    anchor = re.sub(r"\bthe year $", "", re.sub(r"^(the|lo) ", "", anchor))
    return template, re.compile(pattern, re.IGNORECASE), anchor.strip()
