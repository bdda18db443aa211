"""Sentences that are one, though a "!", "?" or "..." stands in them: in a title's quotation
marks, or in brackets *(ours)*.

`workbench.answers.sentences` ends a sentence there, and its places stay what they are. Here the
pieces are only read together, as a piece that begins inside a title says nothing by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from workbench.credit.attribute import coverage
from workbench.extract import english
from workbench.extract.statements import makes_claims

_MOST = 4  # pieces: a sign that is never closed joins nothing
_LONGEST = 600  # characters
_SIGN = re.compile(r"[\"“”()]")
_GLOSS = re.compile(r"\([^()]*\)\s+[a-z]")  # what goes on behind a title: "Clear Days! (2001) is …"


def joined(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The numbers of the first and the last piece of each sentence, in order; mostly they are
    the same.
    """
    number = 0
    while number < len(spans):
        last = _last(text, spans, number)
        if last == number and text[spans[number][1] - 1] in "!?…" and number + 1 < len(spans):
            end = _last(text, spans, number + 1)
            goes_on = _GLOSS.match(text, spans[number + 1][0], spans[end][1])
            last = end if goes_on and _is_line(text, spans, number, end) else number
        yield number, last
        number = last + 1


def best(claim: str, text: str, spans: Sequence[tuple[int, int]], first: int, last: int) -> int:
    """The number of the piece that has most of a claim's words."""
    if first == last:
        return first
    return max(
        range(first, last + 1), key=lambda number: coverage(claim, text[slice(*spans[number])])
    )


def _last(text: str, spans: Sequence[tuple[int, int]], first: int) -> int:
    """The piece in which what the first one leaves open is closed; the first one itself if there
    is none.
    """
    begin = spans[first][0]
    opened = _opened(text[begin : spans[first][1]])
    if opened < 0:
        return first
    for last in range(first + 1, min(first + _MOST, len(spans))):
        whole = text[begin : spans[last][1]]
        if not _is_line(text, spans, first, last):
            return first
        if _opened(whole) < 0:
            return last if _is_inside(whole, opened) and makes_claims(whole) else first
    return first


def _is_line(text: str, spans: Sequence[tuple[int, int]], first: int, last: int) -> bool:
    whole = text[spans[first][0] : spans[last][1]]
    return len(whole) <= _LONGEST and "\n" not in whole


def _opened(text: str) -> int:
    """Where the first quotation or bracket begins that is not closed; -1 if all are."""
    quoted, brackets = -1, list[int]()
    for sign in _SIGN.finditer(text):
        at = sign.start()
        if quoted >= 0:
            quoted = -1 if sign[0] in '"”' else quoted
        # not 5" of length
        elif sign[0] == "“" or (sign[0] == '"' and not text[max(0, at - 1) : at].isalnum()):
            quoted = at
        elif sign[0] == "(":
            brackets.append(at)
        elif sign[0] == ")" and brackets:
            brackets.pop()
    return min([quoted, *brackets] if quoted >= 0 else brackets, default=-1)


def _is_inside(whole: str, opened: int) -> bool:
    """Whether what was opened is a part of a sentence: not sentences within brackets, and not a
    quotation alone.
    """
    if whole[opened] != "(":
        return bool(
            re.search(r"\w", whole[:opened])
            or re.search(r"[\"”][^\"“”]*[a-z]", whole[opened + 1 :])
        )
    words = ["", *english.TOKEN.findall(whole[opened + 1 : whole.find(")", opened)])]
    return not any(
        english.is_verb(words, i) or words[i] in english.PRONOUNS for i in range(1, len(words))
    )
