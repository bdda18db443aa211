"""Extract claims from English prose by rules, without a model *(ours)*.

A sentence is split into clauses with a subject and one finite predicate each. Clauses are split
into conjoined predicates, relative clauses, appositions, list items, examples and dated facts. Some
implied claims are added: "Lima is in Peru", "is Brazilian", "“Rain” is a film". A subject pronoun
is replaced by its referent (`workbench.claims.pronouns`).

A part becomes a separate claim only if the form shows what belongs to it; otherwise the sentence
stays whole. Denied, restricted, counted, conditional and quoted statements are not split.
`workbench.claims.guard` checks the results: if a claim lacks a subject or a verb, or lost a denial,
the sentence stays whole.

Limits: other languages mostly yield one claim per sentence. Finite verbs are recognised by a list
and by the ending "-ed". "They" is not resolved. Some long introductions and parentheses are
dropped, except the dates of a life or a work. `docs/numbers.md` reports how often a claim does not
follow from its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from workbench.claims.clauses import LONGEST, clauses
from workbench.claims.pronouns import resolve
from workbench.claims.statements import makes_claims, vouches
from workbench.credit.attribute import coverage, locate, strip_end
from workbench.text import section_at, sections, sentences
from workbench.types import Claim, Claims, Extract, Response


def rules() -> Extract:
    """Return an extractor that uses rules."""
    return lambda responses: [_extract(response) for response in responses]


_NOT_PROSE = re.compile(r"\s*(?:#+ |\||```|~~~)")  # a heading, a row of a table, code
_GLOSS = re.compile(r"\([^()\n]{1,200}\)\s+[a-z]")  # as in "Clear Days! (2001) is a film"
_MOST = 4  # pieces that form one sentence at most, even in an unclosed quotation


def _extract(response: Response) -> Claims:
    text, spans = response.text, sentences(response.text, response.prefill)
    parts = sections(text, response.prefill)
    drafts: list[Claim] = []
    line = before = 0  # the starts of the current line and of the previous sentence
    for first, last in _joined(text, spans):
        start, end = spans[first][0], spans[last][1]
        sentence = text[start:end]
        line, before = max(line, text.rfind("\n", before, start) + 1), start
        if not makes_claims(sentence) or _NOT_PROSE.match(text, line):
            continue
        section = section_at(parts, start) or "body"
        pieces = {number: text[slice(*spans[number])] for number in range(first, last + 1)}
        claims = [
            Claim(0, claim, section, max(pieces, key=lambda n: coverage(claim, pieces[n])))
            for claim in clauses(sentence)
            if not vouches(claim)
        ]
        # the claim is the whole sentence: locating it would take quadratic time
        if len(claims) == 1 and len(sentence) > LONGEST:
            stop = start + len(strip_end(sentence))
            claims = [replace(claims[0], span=(start, stop), end=stop, coverage=1.0)]
        drafts += sorted(claims, key=lambda claim: claim.sentence or 0)
    placed = locate(text, spans, [replace(draft, id=n) for n, draft in enumerate(drafts)])
    return Claims(spans, tuple(resolve(placed, response)))


def _joined(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
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
