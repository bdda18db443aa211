r"""The parts of a response: what it thought, what it answered, and the rest *(ours)*.

The rules agree with `workbench.answers.final_answer`: a tag is read in any case; one that is never closed goes on to the end
(the policy was cut off, or the closing tag is a stop string); one that is closed without having been opened was opened by the
prompt, and holds all since the last `</think>` (for `</answer>`: since the last tag); opened again inside itself, it changes
nothing, so that `<think>a<think>b</think>c</think>` is thought from beginning to end. Inside `<think>` there is no answer.
What a `\boxed{…}` whose braces balance holds is an answer. In an outlined answer (FoRAG, arXiv 2406.13779, section 3.1)
`[Answer]` begins the answer; what follows `[Structure]` and `[Outline]` is a plan: it states nothing and is in no section.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from workbench.answers.text import boxes

Section = tuple[str, int, int]  # "think", "answer" or "body", and the half-open range of its characters

_PLAN = "plan"
_MARKER = re.compile(r"<(?P<close>/?)(?P<tag>(?i:think|answer))>|\[(?P<part>Structure|Outline|Answer)\]")


def sections(text: str) -> tuple[Section, ...]:
    """The sections of `text` in order, disjoint; the markers stand between them, and white space alone is none."""
    pieces: list[Section] = []
    state, start = "body", 0
    for marker in _MARKER.finditer(text):
        pieces.append((state, start, marker.start()))
        if marker["close"]:
            _claim(pieces, marker["tag"].lower())
        state, start = _after(state, marker), marker.end()
    pieces.append((state, start, len(text)))
    divided = (part for piece in pieces if piece[0] != _PLAN for part in _boxed(text, *piece))
    return tuple(part for part in divided if text[part[1] : part[2]].strip())


def section_at(found: Sequence[Section], position: int) -> str | None:
    """The section, of those that `sections` found, that holds the character at `position`; None in a marker or a plan."""
    number = bisect_right(found, position, key=lambda section: section[1]) - 1
    return found[number][0] if number >= 0 and position < found[number][2] else None


def _after(state: str, marker: re.Match[str]) -> str:
    if marker["part"]:
        return state if state == "think" else "answer" if marker["part"] == "Answer" else _PLAN
    tag = marker["tag"].lower()
    if state == "think":
        return "body" if marker["close"] and tag == "think" else "think"
    return "body" if marker["close"] else tag


def _claim(pieces: list[Section], tag: str) -> None:
    """Give a closing tag that nothing opened the pieces before it, back to the last tag that it may not cross."""
    if pieces[-1][0] in ("think", tag):
        return
    first = len(pieces)
    while first and pieces[first - 1][0] != "think" and (tag == "think" or pieces[first - 1][0] == "body"):
        first -= 1
    pieces[first:] = [(tag, start, end) for _, start, end in pieces[first:]]


def _boxed(text: str, section: str, start: int, end: int) -> Iterator[Section]:
    r"""A piece divided at each outermost `\boxed{` and its brace."""
    at = start
    for opening, begin, finish in sorted(boxes(text[start:end])):
        if start + opening >= at:
            yield section, at, start + opening
            yield "answer" if section == "body" else section, start + begin, start + finish
            at = start + finish + 1
    yield section, at, end
