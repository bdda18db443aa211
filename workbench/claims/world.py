"""Extract claims about the closed world exactly, by its grammar."""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest

from workbench.claims.statements import vouches
from workbench.credit.attribute import strip_end
from workbench.text import final_answer, is_invalid, section_at, sections, sentences
from workbench.text.outline import uncited
from workbench.types import Claim, Claims, Extract, Question, Response, Span, Verdict
from workbench.util.failures import unparsed
from workbench.world import schema
from workbench.world.facts import Fact, value_forms
from workbench.world.parser import Parsed, Parser, parser_of
from workbench.world.world import World

# Labels of unreadable sentences. A subject or an object that does not exist makes a sentence wrong;
# an unknown form or a pronoun without a referent makes it vague.
_BROKEN: Mapping[str, str] = {
    "object": "wrong",
    "subject": "wrong",
    "form": "vague",
    "pronoun": "vague",
}

_VERDICTS = frozenset(word for words in schema.YES_NO.values() for word in words)
_AROUND = " .!*"  # characters around an answer that are not part of it


def world(world: World) -> Extract:
    """Return an extractor that parses responses by the grammar of the closed world.

    * Each stated fact becomes one claim, written as an English sentence.
    * A value that answers the question becomes a claim: "Vetra." → "Ana Bo was born in Vetra."
    * Questions, refusals, statements that the question is invalid, praise of the answer, and the
      final answers to comparisons, lists and yes/no questions yield no claims.
    * Citations ("[2]") are ignored.

    A sentence that cannot be parsed becomes a claim in its own words *(ours)*. The extractor also
    adds the verdict on this claim: "wrong" if its subject or object does not exist, else "vague".
    It adds no verdict if the question names no entity of the world and no fact could be parsed. The
    judge of the closed world then adds a verdict with an error.
    """
    parser, facts = parser_of(world), {fact.id: fact for fact in world.facts}

    return lambda responses: [
        _extract(response, parser, facts, world.names.l2) for response in responses
    ]


def topic_of(parser: Parser, question: Question) -> str | None:
    """Return the entity that a question is about; None if it names no entity of the world.

    This is the entity that the question's title names. If the title names none, it is the first
    entity that the question's text names. `parser` has the names of the world's entities.
    """
    title = next(iter(question.titles), "")
    if title.casefold() in parser.names:
        return title
    words = re.findall(r"[\w'’-]+", question.text.casefold())
    phrases = (
        " ".join(words[start:end])
        for start in range(len(words))
        for end in range(len(words), start, -1)[-5:]
    )
    return next((parser.names[phrase] for phrase in phrases if phrase in parser.names), None)


def _extract(
    response: Response, parser: Parser, facts: Mapping[str, Fact], l2: Mapping[str, str]
) -> Claims:
    text, prefill = uncited(response.text), response.prefill
    topic = topic_of(parser, response.question)
    parse, parts = parser.parse(text, topic, prefill), sections(text, prefill)
    final = (final_answer(text, prefill=prefill) or "").strip(_AROUND)
    year = _numeral(response, final, parser, facts)
    spans = sorted({*parse.sentences, *([year[0]] if year else [])})
    numbers = {span: number for number, span in enumerate(spans)}
    drafts: list[tuple[Claim, str | None]] = []  # each with the reason if it could not be read

    def add(statement: str, span: Span, end: int, reason: str | None = None) -> None:
        section = section_at(parts, span[0]) or "body"
        placed = Claim(
            0, statement, section, numbers[span], span=(span[0], end), end=end, coverage=1.0
        )
        drafts.append((placed, reason))

    for claim, following in zip_longest(parse.claims, parse.claims[1:]):
        # the first of two facts in one sentence ends at its object
        more = following is not None and following.sentence == claim.sentence
        end = _object_end(claim, text, l2) if more else _end(text, claim.span)
        add(claim.statement, claim.span, end)
    for unread in parse.unparsed:
        sentence = text[slice(*unread.span)]
        if is_invalid(sentence) or vouches(sentence):
            continue
        thought = section_at(parts, unread.span[0]) == "think"
        if thought and strip_end(sentence).casefold() in _VERDICTS:
            continue  # "yes" in the thinking judges the text before it
        answer = _as_answer(sentence, response.question, final, parser, facts)
        if answer != "":
            reason = None if answer else unread.reason
            add(answer or sentence, unread.span, _end(text, unread.span), reason)
    if year:
        add(year[1], year[0], _end(text, year[0]))
    drafts.sort(key=lambda draft: (draft[0].sentence, draft[0].end))
    claims = tuple(replace(claim, id=number) for number, (claim, _) in enumerate(drafts))
    about_world = topic is not None or bool(parse.claims)
    verdicts = (
        broken(f"claim:{number}", reason)
        for number, (_, reason) in enumerate(drafts)
        if reason and about_world
    )
    return Claims(tuple(spans), claims, tuple(verdicts))


def broken(target: str, reason: str) -> Verdict:
    """Return the verdict on a claim that the parser of the closed world cannot read.

    Args:
        target: the claim, such as "claim:0".
        reason: why the claim cannot be read.

            * "subject", "object": it does not exist in the closed world; the label is "wrong".
            * "form": the sentence matches no template of the world; the label is "vague".
            * "pronoun": a pronoun refers to no name; the label is "vague".
    """
    return unparsed(target, reason, "world", _BROKEN[reason])


def _end(text: str, span: Span) -> int:
    """Return the position where a sentence ends, without its final punctuation."""
    return span[0] + len(strip_end(text[slice(*span)]))


def _object_end(claim: Parsed, text: str, l2: Mapping[str, str]) -> int:
    """Return the position where a claim's object ends in its sentence."""
    forms = value_forms(schema.RELATIONS[claim.relation].object, claim.object or "", l2)[claim.lang]
    matches = (
        re.compile(rf"(?i)(?<!\w){re.escape(form)}(?!\w)").search(text, *claim.span)
        for form in forms
    )
    return max((match.end() for match in matches if match), default=_end(text, claim.span))


def _numeral(
    response: Response, final: str, parser: Parser, facts: Mapping[str, Fact]
) -> tuple[Span, str] | None:
    """Return the span and the claim of an answer in digits ("1921."), which is not a sentence.

    Returns None if the response has no such answer.
    """
    for span in sentences(response.text, response.prefill):
        sentence = response.text[slice(*span)]
        if any(map(str.isalpha, sentence)):
            continue
        if claim := _as_answer(sentence, response.question, final, parser, facts):
            return span, claim
    return None


def _as_answer(
    sentence: str, question: Question, final: str, parser: Parser, facts: Mapping[str, Fact]
) -> str | None:
    """Return the claim that a short answer states: "Vetra." → "Ana Bo was born in Vetra."

    Args:
        final: the final answer without punctuation.

    Returns:
        None if the sentence is not the final answer, or is no value of the fact's relation; "" if
        the question names no fact, or asks for something else than a fact's value ("yes").
    """
    bare = sentence.strip(_AROUND)
    if not question.answers or bare != final:
        return None
    fact = facts.get((question.meta.get("fact_ids") or ("",))[-1])
    if fact is None or question.kind in ("comparison", "list", "yes_no"):
        return ""
    relation = schema.RELATIONS[fact.relation]
    value = parser.value(relation.object, bare)
    return None if value is None else relation.states["en"][0].format(s=fact.subject, o=value)
