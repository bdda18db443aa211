"""Extract claims from English prose by rules, without a model *(ours)*.

A sentence is split into clauses with a subject and one finite verb each. A clause is split further
at conjoined predicates, relative clauses, appositions, list items, examples and dates. Some implied
claims are added: "Lima is in Peru", "is Brazilian", "“Rain” is a film".

A subject pronoun is replaced by the name that it refers to (`workbench.claims.pronouns`). List
items, fields and table rows get the subject that their heading, the title or the question names
(`workbench.claims.layout`).

The modules of this package use these terms:

* introduction: the phrase before the subject of a sentence ("In 1998, …")
* adjunct: a phrase of time, place or manner after the verb
* part: a section of a sentence with one predicate

A part becomes a separate claim only if its grammar shows which words belong to it. Statements with
a denial, a restriction ("only"), a count, a condition or a quotation are not split. A sentence
becomes a single claim if one of its claims would have no subject or lose a denial
(`workbench.claims.guard`).

Limits:

* Other languages mostly yield one claim per sentence.
* Finite verbs are recognised by a list and by the ending "-ed".
* "They" is not resolved.
* Some long introductions and parentheses are dropped, except the dates of a life or a work.

`docs/numbers.md` reports how often a claim does not follow from its text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from workbench.claims.clauses import SENTENCE_CHARACTERS, clauses
from workbench.claims.english import first_verb, words_of
from workbench.claims.layout import Layout
from workbench.claims.pronouns import resolve
from workbench.claims.statements import makes_claims, says_nothing
from workbench.claims.topic import is_unclear, topic_of
from workbench.credit.attribute import THRESHOLD, coverage, locate, strip_end
from workbench.text import sections, sentences
from workbench.types import Claim, Claims, Extract, Response, Span
from workbench.util.patterns import regex


def rules() -> Extract:
    """Return an extractor that finds claims by the rules of this package, without a model."""
    return lambda responses: [_extract(response) for response in responses]


_GLOSS = regex(r"\([^()\n]{1,200}\)\s+[a-z]")  # as in "Clear Days! (2001) is a film"
_MOST = 4  # pieces that form one sentence at most, even in an unclosed quotation
_FENCE = regex(r"\s*(?:`{3,}|~{3,})")
_CODE = regex(r"[{}=<>\\|$;]|\w[(\[]")  # signs in a code block that prose does not have
_STATED = regex(r"\||[A-Z][\w ]*: \S")  # a row of a table, or a field


def _extract(response: Response) -> Claims:
    spans = sentences(response.text, response.prefill)
    numbers, pieces = _pieces(response.text, spans)
    drafts = [replace(draft, id=n) for n, draft in enumerate(_drafts(response, pieces))]
    claims = resolve(locate(response.text, pieces, drafts), response)
    return Claims(
        spans, tuple(replace(claim, sentence=numbers[claim.sentence or 0]) for claim in claims)
    )


def _drafts(response: Response, pieces: Sequence[Span]) -> Iterator[Claim]:
    """Yield the claims of all sentences, list items, fields and table rows in order.

    Args:
        pieces: spans of the texts to read, from `_pieces`.
    """
    text, parts = response.text, sections(response.text, response.prefill)
    layout = Layout("" if is_unclear(response) else topic_of(response))
    line = before = 0  # the start of the current line and the end of the previous unit
    for first, last in _joined(text, pieces):
        start, end = pieces[first][0], pieces[last][1]
        if start < before:
            continue  # the rest of a table row
        section, begin, _ = parts[bisect_right(parts, start, key=lambda part: part[1]) - 1]
        line = max(line, text.rfind("\n", before, start) + 1, begin)
        end = _line_end(text, start) if text[start] == "|" else end
        opens, stated = line >= before, None
        if opens or text[end - 1] == ":":  # "… He won:" introduces a list
            following = _line_end(text, end) + 1
            stated = layout.read(
                text[line if opens else start : end],
                text[following : _line_end(text, following)],
            )
        inside = {number: text[slice(*pieces[number])] for number in range(first, last + 1)}
        yield from _claims(start, text[start:end], inside, section, stated)
        before = end


def _claims(
    start: int, sentence: str, pieces: dict[int, str], section: str, stated: list[str] | None
) -> list[Claim]:
    """Return the claims of a sentence or line.

    A claim gets the span of the whole sentence if its words differ too much from the sentence, or
    if the sentence is too long. The caller locates the other claims.

    Args:
        start: position of the sentence in the response.
        pieces: the pieces of the sentence (see `_pieces`) by index.
        section: the section of the response, such as "think".
        stated: the statements of a line (see `Layout.read`); None for prose.
    """
    texts = [
        claim
        for one in ([sentence] if stated is None else stated)
        if makes_claims(sentence) and makes_claims(one)
        for claim in clauses(one)
        if not says_nothing(claim)
    ]
    end = start + len(strip_end(sentence))
    # to locate a claim as long as its sentence would take quadratic time
    whole = len(texts) == 1 and len(sentence) > SENTENCE_CHARACTERS
    claims = []
    for text in texts:
        number = max(pieces, key=lambda n: coverage(text, pieces[n]))
        claim = Claim(0, text, section, number)
        if whole or (stated and coverage(text, sentence) < THRESHOLD):
            claim = replace(claim, span=(start, end), end=end, coverage=1.0)
        claims.append(claim)
    return sorted(claims, key=lambda claim: claim.sentence or 0)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)


def _pieces(text: str, spans: Sequence[Span]) -> tuple[list[int], list[Span]]:
    """Return two lists of equal length: sentence indices, and spans of the texts to read.

    Each sentence is one text. In a code block, which is one sentence, each line that states
    something is a text.
    """
    numbers, pieces = list[int](), list[Span]()
    for number, (start, end) in enumerate(spans):
        inside = [(start, end)]
        if _FENCE.match(text, start):
            begin = _line_end(text, start)
            lines = [(begin + a, begin + b) for a, b in sentences(text[begin:end])]
            inside = [line for line in lines if _is_prose(text[slice(*line)])]
        numbers += [number] * len(inside)
        pieces += inside
    return numbers, pieces


def _is_prose(line: str) -> bool:
    """Whether a line of a code block states something, unlike a line of code."""
    return bool(_STATED.match(line) or (not _CODE.search(line) and first_verb(words_of(line))))


def _joined(text: str, spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Yield the indices of the first and the last piece of each sentence.

    A "!" or "?" inside a quotation ends a piece but not the sentence.
    """
    first = 0
    while first < len(spans):
        start, last = spans[first][0], first
        for number in range(first, min(first + _MOST, len(spans))):
            whole = text[start : spans[number][1]]
            if "\n" in whole or whole[0] in '"“':
                break
            marks = re.sub(r'\d"', "", whole)  # 5" of length
            if marks.count('"') % 2 == 0 and marks.count("“") == marks.count("”"):
                last = number
                break
        after = spans[first + 1 : first + _MOST] if text[spans[first][1] - 1] in "!?…" else ()
        if after and (gloss := _GLOSS.match(text, after[0][0])):
            ends = (n for n, span in enumerate(after, first + 1) if span[1] >= gloss.end())
            last = next(ends, last)
        yield first, last
        first = last + 1
