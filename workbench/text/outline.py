"""The form of an answer that is planned before it is written (FoRAG, arXiv 2406.13779, section
3.1):

    [Structure] comparison [Outline] 1. … [2] 2. … [1] [Answer] …

The structure is one pattern of organisation, the outline one to five numbered points, each of
which may name the passage that it rests on, and the answer follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.text.sections import outlined

MOST_POINTS = 5
STRUCTURES = (
    "general to specific",
    "progressive",
    "comparison",
    "cause and effect",
    "parallel",
    "chronological",
)
_MARKER = re.compile(r"\[(?:Structure|Outline|Answer)\]")
_NUMBER = re.compile(r"(?<!\S)(\d+)[.)](?!\S)")
_SOURCE = re.compile(r"\[(\d{1,3})\]$")
_NUMBERED = r"\d+(?:(?:\s*[,;\-\u2010-\u2013]\s*|\s+)\d+)*"  # 2; 2, 3; 2-4
_CITED = re.compile(rf"[\[\u3010\uff3b]\s*({_NUMBERED})\s*[\]\u3011\uff3d]")
_RANGE = re.compile(r"(\d+)(?:\s*[\-\u2010-\u2013]\s*(\d+))?")
# of a number that is read: no passage has a higher one; passages that a range may name
_DIGITS, _WIDEST = 9, 100


@dataclass(frozen=True)
class Point:
    """One point of an outline; `source` is the number of the passage that it names, counted from
    1, or None.
    """

    text: str
    source: int | None = None


@dataclass(frozen=True)
class Outline:
    structure: str
    points: tuple[Point, ...]
    answer: str


def read_outline(text: str) -> Outline | None:
    """The parts of a planned answer; None unless it is `outlined`, and the points of its outline
    are numbered from 1 without a gap, five at most, none of them empty.

    That is the form which the tiny policy is taught *(ours)*; a plan of another model may be
    laid out as it likes.
    """
    if not outlined(text):
        return None
    _, structure, outline, answer = (part.strip() for part in _MARKER.split(text))
    points = _points(outline)
    if not 1 <= len(points) <= MOST_POINTS or not all(point.text for point in points):
        return None
    return Outline(structure, points, answer)


def read_plan(text: str) -> tuple[str, tuple[str, ...]] | None:
    """The structure and the points of a planned answer as they are written, each with the source
    that it names; None unless it is `outlined`. Where the outline is not laid out as
    `read_outline` asks, its lines are the points."""
    if not outlined(text):
        return None
    if read := read_outline(text):
        return read.structure, tuple(
            p.text if p.source is None else f"{p.text} [{p.source}]" for p in read.points
        )
    _, structure, outline, _ = (part.strip() for part in _MARKER.split(text))
    return structure, tuple(line.strip() for line in outline.splitlines() if line.strip())


def written_outline(outline: Outline) -> str:
    """The text that `read_outline` reads as this. If a part holds a marker, or a point the
    number of the next, there is none: then it reads something else."""
    points = "\n".join(
        f"{number}. {point.text}"
        if point.source is None
        else f"{number}. {point.text} [{point.source}]"
        for number, point in enumerate(outline.points, start=1)
    )
    return f"[Structure] {outline.structure}\n[Outline]\n{points}\n[Answer]\n{outline.answer}"


def formed(outline: Outline) -> bool:
    """Whether it is read back as it is written."""
    return read_outline(written_outline(outline)) == outline


def citations(text: str) -> list[int]:
    """The numbers of the passages that a text cites, as in "… [2][3].", "[2, 3]" or "[2-4]", in
    their order.

    Whatever stands alone in brackets as a number is a citation, "[2019]" too: there is no other
    sign of one. Of a range of many its ends are named.
    """
    return [
        number
        for cited in _CITED.findall(text)
        for ends in _RANGE.findall(cited)
        for number in _named(*ends)
    ]


def uncited(text: str) -> str:
    """The text with as much white space in the place of its citations: what it says, with every
    character where it was.
    """
    return _CITED.sub(lambda cited: " " * len(cited[0]), text)


def _named(first: str, last: str) -> Sequence[int]:
    start, end = int(first[:_DIGITS]), int((last or first)[:_DIGITS])
    return range(start, end + 1) if start <= end < start + _WIDEST else (start, end)


def _points(outline: str) -> tuple[Point, ...]:
    """The numbered points; a number out of turn ("born in 1923.") is text. () if the outline
    does not begin with the first.
    """
    begins: list[tuple[int, int]] = []  # where each number starts and ends
    for number in _NUMBER.finditer(outline):
        if number[1] == str(len(begins) + 1):
            begins.append(number.span())
    if not begins or begins[0][0]:
        return ()
    ends = [start for start, _ in begins[1:]] + [len(outline)]
    return tuple(
        _point(outline[start:end].strip()) for (_, start), end in zip(begins, ends, strict=True)
    )


def _point(text: str) -> Point:
    source = _SOURCE.search(text, max(0, len(text) - 5))
    return (
        Point(text, None)
        if source is None
        else Point(text[: source.start()].strip(), int(source[1]))
    )
