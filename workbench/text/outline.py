"""Read and write outlined answers (FoRAG, arXiv 2406.13779, section 3.1), and read citations.

    [Structure] comparison
    [Outline] 1. the river [2]
    2. the bridge [1]
    [Answer] …

The structure is a pattern of organisation. The outline has one to five numbered points. A point may
cite a passage: "[2]" is the second passage. The answer follows the outline.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from workbench.text.sections import outlined
from workbench.util.patterns import regex

MOST_POINTS = 5
STRUCTURES = (
    "general to specific",
    "progressive",
    "comparison",
    "cause and effect",
    "parallel",
    "chronological",
)
_MARKER = regex(r"\[(?:Structure|Outline|Answer)\]")
_NUMBER = regex(r"(?<!\S)(\d+)[.)](?!\S)")
_SOURCE = regex(r"\[(\d{1,3})\]$")
_NUMBERED = r"\d+(?:(?:\s*[,;\-\u2010-\u2013]\s*|\s+)\d+)*"  # 2; 2, 3; 2-4
_CITED = regex(rf"[\[\u3010\uff3b]\s*({_NUMBERED})\s*[\]\u3011\uff3d]")
_RANGE = regex(r"(\d+)(?:\s*[\-\u2010-\u2013]\s*(\d+))?")
_DIGITS = 9  # longer passage numbers are cut
_WIDEST = 100  # passages of a range; of a wider range, only the two ends count


@dataclass(frozen=True)
class Point:
    """One numbered point of an outline, such as "the river [2]".

    Attributes:
        text: the point without its number and citation, such as "the river".
        source: number of the cited passage, counted from 1, such as 2; None without a citation.
    """

    text: str
    source: int | None = None


@dataclass(frozen=True)
class Outline:
    """A parsed answer of the form "[Structure] … [Outline] … [Answer] …" (FoRAG).

    Attributes:
        structure: the pattern of organisation, such as "comparison".
        points: the points of the outline.
        answer: the text after "[Answer]".
    """

    structure: str
    points: tuple[Point, ...]
    answer: str


def read_outline(text: str) -> Outline | None:
    """Parse "[Structure] … [Outline] … [Answer] …"; return None if the text is not of this form.

    All three parts must have content. The outline must have 1 to 5 points with text, numbered from
    1. The small policy in this repository is trained to write this form *(ours)*.
    """
    if not outlined(text):
        return None
    _, structure, outline, answer = (part.strip() for part in _MARKER.split(text))
    points = _points(outline)
    if not 1 <= len(points) <= MOST_POINTS or not all(point.text for point in points):
        return None
    return Outline(structure, points, answer)


def read_plan(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return (structure, points) of an answer "[Structure] … [Outline] … [Answer] …".

    An example is ("comparison", ("the river [2]", "the bridge [1]")). If the points are not
    numbered from 1, each line of the outline is a point. The result is None for any other text.
    """
    if not outlined(text):
        return None
    if parsed := read_outline(text):
        return parsed.structure, tuple(map(_written, parsed.points))
    _, structure, outline, _ = (part.strip() for part in _MARKER.split(text))
    return structure, tuple(line.strip() for line in outline.splitlines() if line.strip())


def written_outline(outline: Outline) -> str:
    """Return an outline as a text: "[Structure] … [Outline] … [Answer] …".

    `read_outline` parses this text, unless a part contains a marker such as "[Answer]", or a point
    contains the number of the next point, such as "2." in point 1.
    """
    points = "\n".join(
        f"{number}. {_written(point)}" for number, point in enumerate(outline.points, start=1)
    )
    return f"[Structure] {outline.structure}\n[Outline]\n{points}\n[Answer]\n{outline.answer}"


def _written(point: Point) -> str:
    return point.text if point.source is None else f"{point.text} [{point.source}]"


def formed(outline: Outline) -> bool:
    """Return whether an outline can be written as a text and parsed again without a change."""
    return read_outline(written_outline(outline)) == outline


def citations(text: str) -> list[int]:
    """Return the numbers of the passages that a text cites, in order: "[2-4]" → [2, 3, 4].

    Each number that stands alone in brackets counts as a citation, even "[2019]".
    """
    return [
        number
        for cited in _CITED.findall(text)
        for ends in _RANGE.findall(cited)
        for number in _range(*ends)
    ]


def uncited(text: str) -> str:
    """Return a text with each citation replaced by spaces, so that positions do not change."""
    return _CITED.sub(lambda cited: " " * len(cited[0]), text)


def _range(first: str, last: str) -> Sequence[int]:
    start, end = int(first[:_DIGITS]), int((last or first)[:_DIGITS])
    return range(start, end + 1) if start <= end < start + _WIDEST else (start, end)


def _points(outline: str) -> tuple[Point, ...]:
    """Return the numbered points; () if the outline does not start with number 1.

    A number that is not the next one ("born in 1923.") is part of a point's text.
    """
    numbers: list[tuple[int, int]] = []  # the start and end of each number
    for number in _NUMBER.finditer(outline):
        if number[1] == str(len(numbers) + 1):
            numbers.append(number.span())
    if not numbers or numbers[0][0]:
        return ()
    bounds = pairwise([*numbers, (len(outline), 0)])
    return tuple(_point(outline[start:end].strip()) for (_, start), (end, _) in bounds)


def _point(text: str) -> Point:
    if source := _SOURCE.search(text, max(0, len(text) - 5)):  # short: linear in time
        return Point(text[: source.start()].strip(), int(source[1]))
    return Point(text)
