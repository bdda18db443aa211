"""Claims of English prose by rules, without a model *(ours)*.

A sentence is cut into clauses (a subject and one finite predicate each), and the clauses into
parts that stand on their own: conjoined predicates, relative clauses, appositions, what a person
is or is known for, date and place of a birth, lists of names, examples. Some claims are implied:
"Lima is in Peru", "is Brazilian", "“Rain” is a film". A pronoun that is a subject is replaced by
what it stands for (`workbench.extract.pronouns`).

A part becomes a claim of its own only where its form shows what belongs to it. Otherwise the
sentence, or the part with the words before it, stays whole. Of the phrases behind a verb, the
first may stand without the later ones, and all without a date, but none without the phrases
before it (`workbench.extract.shorter`). A list is divided where each item ends by itself: names
beside names, figures beside figures, nothing behind the last item that may belong to all. "Who"
is a person's name or a noun for people; "where" and "when" belong to a named person, and so does
a participle in "-ing" that only persons do. Denied, restricted, counted, conditional and quoted
statements are not divided. The results are checked (`workbench.extract.guard`): if one has no
subject, one subject for a plural verb, a participle without its "was", two clauses in one, or has
lost a denial, the sentence stays whole.

Limits: English only; a sentence of another language is mostly one claim. Finite verbs are known
by a list and by the ending "-ed", so a clause with a rarer verb is not divided. "They" is not
resolved, and "it" is the question's title only where the response calls nobody "he" or "she" and
the sentence before is not about something else. Some long introductions ("In addition to his
work on …,") and parentheses are left out, except the dates of a life or a work. A claim keeps the
words of its sentence, so it can be found there again. `docs/numbers.md` says how often a claim
says something that its text does not.
"""

from __future__ import annotations

import re
from dataclasses import replace

from workbench.answers import section_at, sections, sentences
from workbench.credit.attribute import locate, strip_end
from workbench.extract.clauses import LONGEST, clauses
from workbench.extract.pronouns import resolve
from workbench.extract.statements import makes_claims, vouches
from workbench.types import Claim, Claims, Extract, Response


def rules() -> Extract:
    """Claims by rules."""
    return lambda responses: [_extract(response) for response in responses]


_NOT_PROSE = re.compile(r"\s*(?:#+ |\||```|~~~)")  # a heading, a row of a table, code


def _extract(response: Response) -> Claims:
    text, spans = response.text, sentences(response.text, response.prefill)
    parts = sections(text, response.prefill)
    drafts: list[Claim] = []
    line = 0  # where the line of a sentence begins
    for number, (start, end) in enumerate(spans):
        sentence = text[start:end]
        line = max(line, text.rfind("\n", spans[number - 1][0] if number else 0, start) + 1)
        if not makes_claims(sentence) or _NOT_PROSE.match(text, line):
            continue
        section = section_at(parts, start) or "body"
        claims = [
            Claim(0, claim, section, number) for claim in clauses(sentence) if not vouches(claim)
        ]
        # the claim is the sentence: to search for its place takes quadratic time
        if len(claims) == 1 and len(sentence) > LONGEST:
            stop = start + len(strip_end(sentence))
            claims = [replace(claims[0], span=(start, stop), end=stop, coverage=1.0)]
        drafts += claims
    placed = locate(text, spans, [replace(draft, id=n) for n, draft in enumerate(drafts)])
    return Claims(spans, tuple(resolve(placed, response)))
