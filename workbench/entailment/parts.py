"""Numbers that words make with a part: "two dozen", "half a million", "two and a half", "two
thirds", "nineteen thirty-one".

What they are worth is *(ours)* to read: a rule that sees a fraction anywhere and falls silent is
a way round all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from workbench.answers.text import SCALES, read_number

MOST = 16  # the greatest denominator, so that there are few shares
_NAMES = "third fourth fifth sixth seventh eighth ninth tenth"
_ONE = {"half": 2, "quarter": 4} | {word: n for n, word in enumerate(_NAMES.split(), start=3)}
_MANY = {"halves": 2, "quarters": 4} | {
    f"{word}s": n for n, word in enumerate(_NAMES.split(), start=3)
}
_ARTICLES = frozenset("a an one".split())
_FEW = frozenset("few several some many couple of".split())  # "a few dozen" is no number
_DATED = frozenset(
    "in since by until till from to of and or during before after between year late early".split()
)


class Part(NamedTuple):
    """A number and how many words it takes; `share` if it is a part of something that may be
    counted.
    """

    value: Decimal
    used: int
    share: bool = False
    rounded: bool = False


def read_part(words: Sequence[str], before: str) -> Part | None:
    """What `words` begin with, if it has a part, dozens or a year as it is spoken; `before` is
    the word in front.
    """
    if words[0] == "dozen" and before not in _FEW:
        return Part(Decimal(12), 1)
    if words[0] == "half":
        return None if _is_ordinal(before) else _scaled(words, Decimal("0.5"), 1)
    number, used = (Decimal(1), 1) if words[0] in _ARTICLES else _number(words)
    after = list(words[used:])
    if not used or not after:
        return None
    if after[0] == "dozen" and number == int(number):
        return Part(12 * number, used + 1)
    if (not before or before in _DATED) and words[0].isalpha() and (year := _spoken(number, after)):
        return year._replace(used=used + year.used)
    if share := _share(number, after, "⁄"):
        return _scaled(words, share.value, used + share.used)
    return _mixed(words, number, used)


def _number(words: Sequence[str]) -> tuple[Decimal, int]:
    if words[0].replace(".", "", 1).isdecimal() and len(words[0]) < 10:
        return Decimal(words[0]), 1
    return read_number(list(words))


def _is_ordinal(word: str) -> bool:
    """In front of "half", where it is half a match or half a century, and no number."""
    return word in ("first", "second", "1st", "2nd")


def _spoken(number: Decimal, after: Sequence[str]) -> Part | None:
    """The years of "nineteen thirty-one"."""
    tail, used = read_number(list(after)) if after[0].isalpha() else (Decimal(0), 0)
    return Part(100 * number + tail, used) if used and 12 < number < 21 and 9 < tail < 100 else None


def _share(number: Decimal, after: Sequence[str], bars: str) -> Part | None:
    """Behind `number` a denominator: "thirds", "⁄ 4", and of one or "a" also "quarter", "third
    of". A plain "3/4" alone may be a date or a score."""
    if (
        after[0] in bars
        and len(after) > 1
        and after[1].isdecimal()
        and 0 < number < int(after[1]) <= MOST
    ):
        return Part(number / Decimal(after[1]), 2)
    named = _MANY.get(after[0], 0)
    if number == 1 and (
        after[0] in ("half", "quarter") or (after[0] in _ONE and after[1:2] == ["of"])
    ):
        named = _ONE[after[0]]
    return Part(number / named, 1) if 0 < number < named and number == int(number) else None


def _mixed(words: Sequence[str], number: Decimal, used: int) -> Part | None:
    """ "two and a half", "2 1/2", and with a scale "two and a half million"."""
    joint = used + (words[used] == "and")
    if joint >= len(words) or number != int(number) or words[0] in _ARTICLES - {"one"}:
        return None
    first = words[joint]
    if joint == used and not (first.isdecimal() and len(first) < 3 and words[0].isdecimal()):
        return None
    top, more = (Decimal(1), 1) if first in _ARTICLES else _number(words[joint:])
    share = _share(top, words[joint + more :], "/⁄") if more and joint + more < len(words) else None
    if share is None:
        return None
    return _scaled(words, number + share.value, joint + more + share.used)._replace(rounded=True)


def _scaled(words: Sequence[str], value: Decimal, used: int) -> Part:
    """With a scale or a dozen behind: "half a million", "a quarter of a million", "half a
    dozen".
    """
    at = used + (words[used : used + 1] == ["of"])
    at += words[at : at + 1] in (["a"], ["an"])
    scale = words[at] if at < len(words) else ""
    if scale == "dozen":
        return Part(_plain(12 * value), at + 1)
    return (
        Part(_plain(value * SCALES[scale]), at + 1, rounded=True)
        if scale in SCALES
        else Part(value, used, share=value < 1)
    )


def _plain(value: Decimal) -> Decimal:
    """6 of 6.0, since places behind the point tell how exact a number is."""
    return Decimal(format(value.normalize(), "f"))
