"""Claims of English prose by rules, without any model *(ours)*.

A sentence is cut into clauses (a subject and one finite predicate each), the clauses into the
parts that stand on their own: conjoined predicates, relative clauses, appositions, what a person
is or is known for, a birth's date and place, lists of names, examples. Beside them stands what
is said in passing: "Lima is in Peru", "is Brazilian", "“Rain” is a film". Pronouns that are a
subject become what they stand for (see `workbench.extract.pronouns`). A "!" or "?" within a
title ends no sentence (see `workbench.extract.joined`).

A part is told alone only where its form shows what belongs to it; else the sentence, or the part
with the words before it, stays whole. Of the phrases behind a verb the first are told without
the later ones, and all without a date, but none without those before it
(`workbench.extract.shorter`). A list is divided where each item ends by itself: nothing behind
the last one that may belong to all, names beside names, figures beside figures. "Who" is a
person's name or a noun for people that no other noun follows, and not "the men who"; "where" and
"when" a named person's; a word in "-ing" a person's, if only persons do so. What is denied,
restricted, counted, conditional, or somebody's word is not divided at all. What is made is
looked at again (`workbench.extract.guard`): with no subject, one subject for a plural verb, a
participle without its "was", two clauses run together, or a denial lost, the sentence stays
whole.

Limits: English only; a sentence of another language is mostly one claim, whole. Finite verbs are
known by a list and by the ending "-ed", so a clause with a rarer verb is not divided. "They" is
not resolved, and "it" as the question's title only where the response speaks of nobody as "he"
or "she", and the sentence before of nothing else. Some long introductions ("In addition to his
work on …,") and what stands in brackets, other than the dates of a life or a work, are left out.
A claim keeps the words of its sentence, so it can be found there again; how often it says
something else is in `docs/numbers.md`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from operator import itemgetter

from workbench.answers import section_at, sections, sentences
from workbench.credit.attribute import locate, strip_end
from workbench.extract.clauses import LONGEST, clauses
from workbench.extract.joined import best, joined
from workbench.extract.pronouns import resolve
from workbench.extract.statements import makes_claims, vouches
from workbench.types import Claim, Claims, Extract, Response


def rules() -> Extract:
    """Claims by rules."""
    return lambda responses: [_extract(response) for response in responses]


_LAYOUT = re.compile(r"\s*(?:#+ |\|)")  # a heading or a row of a table


def _extract(response: Response) -> Claims:
    text, spans = response.text, sentences(response.text, response.prefill)
    parts = sections(text, response.prefill)
    drafts: list[Claim] = []
    line = before = 0  # where the line of a sentence begins, and where the sentence before it does
    for first, last in joined(text, spans):
        start, end = spans[first][0], spans[last][1]
        sentence = text[start:end]
        line, before = max(line, text.rfind("\n", before, start) + 1), start
        if (
            not makes_claims(sentence)
            or sentence.startswith(("```", "~~~"))
            or _LAYOUT.match(text, line)
        ):
            continue
        section = section_at(parts, start) or "body"
        told = [
            (best(claim, text, spans, first, last), claim)
            for claim in clauses(sentence)
            if not vouches(claim)
        ]
        claims = [
            Claim(0, claim, section, number) for number, claim in sorted(told, key=itemgetter(0))
        ]
        # it is the sentence: to look for it takes the square of its length
        if len(claims) == 1 and len(sentence) > LONGEST:
            stop = start + len(strip_end(sentence))
            claims = [replace(claims[0], span=(start, stop), end=stop, coverage=1.0)]
        drafts += claims
    placed = locate(text, spans, [replace(draft, id=n) for n, draft in enumerate(drafts)])
    return Claims(spans, tuple(resolve(placed, response)))
