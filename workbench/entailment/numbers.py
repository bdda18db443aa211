"""Numbers, dates and years of a claim that its evidence does not have *(ours)*.

A model that has read a claim's words in a passage rarely compares the digits. This rule compares
values. It allows rounding, bounds, other units, durations between two years and counts of what a
passage lists, and it stays silent in doubt.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from workbench.entailment.tokens import MONTHS, Token

COUNTED = 12  # a count up to here may be of things that a passage lists one by one
ABOUT = frozenset(
    "about around approximately approx roughly circa c ca some nearly almost close estimated"
    .split()
)
OVER = frozenset("over than above least exceeding after".split())
UNDER = frozenset("under below most within before".split())
YEARS = {"year": 1, "aged": 1, "age": 1, "season": 1, "decade": 10, "century": 100}
SIZES = {  # what a unit measures, and its size
    unit: (kind, float(size))
    for kind, table in {
        "length": "mm .001 cm .01 m 1 metre 1 meter 1 km 1000 kilometre 1000 kilometer 1000 mile"
        " 1609.34 mi 1609.34 foot .3048 feet .3048 ft .3048 inch .0254 yard .9144",
        "mass": "g .001 gram .001 kg 1 kilogram 1 tonne 1000 ton 1000 pound .4536 lb .4536",
        "time": "second 1 minute 60 hour 3600 day 86400 week 604800 month 2629800"
        " year 31557600 decade 315576000",
    }.items()
    for unit, size in zip(table.split()[::2], table.split()[1::2], strict=True)
}


@dataclass
class Numbers:
    """All numbers and dates of the evidence."""

    values: set[float] = field(default_factory=set)
    years: set[int] = field(default_factory=set)
    decades: set[int] = field(default_factory=set)
    centuries: set[int] = field(default_factory=set)
    days: set[tuple[int, float]] = field(default_factory=set)  # (month, day)
    counts: defaultdict[str, set[float]] = field(default_factory=lambda: defaultdict(set))
    sizes: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    ordered: list[float] = field(default_factory=list)

    def between(self, low: float, high: float) -> bool:
        place = bisect_left(self.ordered, low)
        return place < len(self.ordered) and self.ordered[place] <= high


def numbers_of(texts: Iterable[Sequence[Token]]) -> Numbers:
    found = Numbers()
    for tokens in texts:
        for i, token in enumerate(tokens):
            if token.value:
                _learn(found, tokens, i, token)
    found.ordered = sorted(found.values)
    return found


def _learn(found: Numbers, tokens: Sequence[Token], i: int, token: Token) -> None:
    for value in {token.value, _full_year(tokens, i)}:
        found.values.add(value)
        if token.kind != "ordinal" and 0 < value < 2200 and value == int(value):
            year = int(value)
            found.years.add(year)
            found.decades |= {year // 10 * 10, year // 10 * 10 % 100}
            found.centuries.add((year + 99) // 100)
    if token.kind == "ordinal":
        found.centuries.add(int(token.value))
    for noun in _nouns(tokens, i):
        found.counts[noun].add(token.value)
        if noun in SIZES:
            kind, size = SIZES[noun]
            found.sizes[kind].append(token.value * size)
    near = tokens[max(0, i - 4) : i + 5]
    found.days |= {(month, token.value) for month in map(_month, near) if month}
    if any(one.word == "/" for one in tokens[i + 1 : i + 2]):
        found.days |= {(int(token.value), one.value) for one in tokens[i + 2 : i + 3]}
        found.days |= {(int(one.value), token.value) for one in tokens[i + 2 : i + 3]}


def _full_year(tokens: Sequence[Token], i: int) -> float:
    """1945 for the second number of "1939-45"; any other number as it is."""
    value = tokens[i].value
    if i > 1 and value < 100 and tokens[i - 1].word in ("-", "–", "/") and _is_year(tokens[i - 2]):
        return tokens[i - 2].value // 100 * 100 + value
    return value


def _is_year(token: Token) -> bool:
    return token.kind == "number" and 1000 <= token.value < 2200 and not token.rounded


def _month(token: Token) -> int:
    """1 to 12 for the name of a month or a part of it such as "Sept", else 0."""
    if len(token.word) < 3 or (token.word in ("mar", "march", "may") and not token.capital):
        return 0
    return next((n for n, name in enumerate(MONTHS, 1) if name.startswith(token.word)), 0)


def _nouns(tokens: Sequence[Token], i: int) -> list[str]:
    """The words after a number, up to a mark or another number: one of them is what it counts."""
    words = takewhile(lambda token: token.kind == "word", tokens[i + 1 : i + 5])
    return [_singular(token.word) for token in words]


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word.removesuffix("s") if len(word) > 3 and not word.endswith("ss") else word


def missing(claim: Sequence[Token], evidence: Numbers) -> list[str]:
    """The numbers of `claim`, as written, that the evidence neither has nor explains."""
    return [token.text for i, token in enumerate(claim) if token.value and _lacks(claim, i, evidence)]


def _lacks(tokens: Sequence[Token], i: int, evidence: Numbers) -> bool:
    token = tokens[i]
    beside = [_month(one) for one in (*tokens[max(0, i - 1) : i], *tokens[i + 1 : i + 3])]
    if token.kind == "decade":
        century = token.value % 100 == 0 and int(token.value) // 100 + 1 in evidence.centuries
        return int(token.value) not in evidence.decades and not century
    if any(beside) and token.value <= 31:
        return not any((month, token.value) in evidence.days for month in beside)
    if token.kind == "ordinal" and {"century", "centuries"} & {one.word for one in tokens[i + 1 : i + 4]}:
        return int(token.value) not in evidence.centuries
    if {token.value, _full_year(tokens, i)} & evidence.values or token.value <= 1:
        return False
    if token.kind == "ordinal":
        return token.value > 3
    return not _explained(tokens, i, evidence)


def _explained(tokens: Sequence[Token], i: int, evidence: Numbers) -> bool:
    """Whether the evidence may mean the number without writing it."""
    token, nouns = tokens[i], _nouns(tokens, i)
    before = {one.word for one in tokens[max(0, i - 3) : i]}
    value = token.value
    if before & OVER and evidence.between(value, float("inf")):
        return True
    if (before & UNDER or before >= {"up", "to"}) and evidence.between(0, value):
        return True
    if before & ABOUT and evidence.between(0.95 * value, 1.05 * value):
        return True
    if _is_year(token):
        return _is_attribute(tokens, i) and not any(year > 999 for year in evidence.years)
    if value <= COUNTED and not any(len(evidence.counts.get(noun, ())) == 1 for noun in nouns):
        return True
    room = min(0.05 * value, _last_place(value) / 2) if token.rounded or value > 999 else 0
    return (
        (room > 0 and evidence.between(value - room, value + room))
        or _is_duration(tokens, i, evidence)
        or _is_converted(value, nouns, evidence)
    )


def _is_attribute(tokens: Sequence[Token], i: int) -> bool:
    """Whether a year describes a noun, as in "the 2014 film": evidence may leave it out."""
    before, after = tokens[max(0, i - 1) : i], tokens[i + 1 : i + 2]
    article = bool(before) and (before[0].word in ("the", "a", "an") or before[0].capital)
    return article and bool(after) and after[0].kind == "word" and len(after[0].word) > 3


def _last_place(value: float) -> float:
    """The place of the last digit that is not 0: 100,000 for 3,900,000, and .1 for 12.5."""
    digits = f"{value:f}".rstrip("0").rstrip(".")
    whole, _, part = digits.partition(".")
    return 10.0 ** -len(part) if part else 10.0 ** (len(whole) - len(whole.rstrip("0")))


def _is_duration(tokens: Sequence[Token], i: int, evidence: Numbers) -> bool:
    """Whether an age or a duration is the difference of two years, give or take one."""
    near = (_singular(one.word) for one in tokens[max(0, i - 2) : i + 4])
    length = tokens[i].value * max((YEARS.get(word, 0) for word in near), default=0)
    return length > 0 and any(
        not evidence.years.isdisjoint({year + length - 1, year + length, year + length + 1})
        for year in evidence.years
    )


def _is_converted(value: float, nouns: Sequence[str], evidence: Numbers) -> bool:
    """Whether the evidence has the same size in another unit."""
    return any(
        abs(other - value * size) <= 0.02 * other
        for kind, size in (SIZES[noun] for noun in nouns[:2] if noun in SIZES)
        for other in evidence.sizes[kind]
    )
