"""What numbers and dates some texts have, in whatever writing, and what they may say in one that
is not read *(ours)*.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import gcd

from workbench.entailment.parts import MOST
from workbench.entailment.reading import Date, Token, month

_BETWEEN = frozenset("and or to early late - –".split())
_JOINED = frozenset("and or to - – &".split())
_PARTED = frozenset("/ . -".split())
ODD = frozenset(
    "square sq cubic per mph kph kmh stone am pm oclock clock degree degrees knot knots".split()
)
# before a number: "6 ft 2 in"
_COMPOUND = frozenset("ft feet foot hour hours minute minutes pound pounds lb".split())
_HALF = Decimal("0.5")
_DOZENS = range(20, 151)  # what "dozens" may be
SMALL = 12  # a count up to here may be of what a passage lists one by one
_SUMS = 1000  # numbers below may be parts of a sum
MEASURES: dict[str, tuple[str, Decimal]] = {  # what a unit measures, and how much of it
    name: (kind, Decimal(size))
    for kind, table in {
        "length": (
            "mm .001 cm .01 m 1 metre 1 meter 1 km 1000 kilometre 1000 kilometer 1000 mile 1609.34"
            " mi 1609.34 foot .3048 feet .3048 ft .3048 inch .0254 inche .0254 yard .9144"
        ),
        "mass": (
            "g .001 gram .001 kg 1 kilogram 1 kilo 1 tonne 1000 ton 1000 pound .4536 lb .4536 ounce"
            " .02835 oz .02835"
        ),
        "area": "acre .4047 hectare 1 ha 1 km2 100",
        "time": (
            "second 1 minute 60 min 60 hour 3600 day 86400 week 604800 month 2629800 year 31557600"
            " decade 315576000"
        ),
    }.items()
    for name, size in zip(table.split()[::2], table.split()[1::2], strict=True)
}


@dataclass
class Known:
    """All numbers and dates of some texts."""

    values: set[Decimal] = field(default_factory=set)
    years: int = 0  # a bit for each
    # with all their parts: a full date is there as its year and month too
    dates: set[Date] = field(default_factory=set)
    # those of them whose year is not said, or said elsewhere
    yearless: set[Date] = field(default_factory=set)
    decades: set[int] = field(default_factory=set)
    centuries: set[int] = field(default_factory=set)
    # by what is counted
    counted: defaultdict[str, set[Decimal]] = field(default_factory=lambda: defaultdict(set))
    # by unit
    measured: defaultdict[tuple[str, Decimal], list[Decimal]] = field(
        default_factory=lambda: defaultdict(list)
    )
    ordered: list[Decimal] = field(default_factory=list)
    short: set[int] = field(default_factory=set)  # decades of an unsaid century: "the 80s"
    vague: set[int] = field(default_factory=set)  # years beside a number that may be of their date
    # "dozens", without a number; "measure": a time, a compound unit
    unread: set[str] = field(default_factory=set)
    # "half", "two thirds", "two in five", with what they leave
    shares: set[Decimal] = field(default_factory=set)
    counts: int = 0  # how many numbers that are no date may add up to a small count
    parts: int = 0  # a bit for each number below `_SUMS` that is no date
    made: dict[Decimal, bool] = field(default_factory=dict)  # what `makes` found
    turned: int = 0  # `parts` the other way round

    def between(self, low: Decimal, high: Decimal, values: list[Decimal] | None = None) -> bool:
        within = self.ordered if values is None else values
        place = bisect_left(within, low)
        return place < len(within) and within[place] <= high

    def year(self, low: int, high: int) -> bool:
        return bool(self.years >> low & ((1 << (high - low + 1)) - 1))

    def partly(self, value: Decimal) -> bool:
        """Whether `value` may be told by a part: so many percent, or so much of a number that is
        told as well.
        """
        room = min(_HALF, Decimal(10) ** int(value.as_tuple().exponent) / 2)  # 66.7 of two thirds
        dozens = "dozens" in self.unread and value in _DOZENS
        return dozens or any(
            abs(value - 100 * share) <= room
            or self.between((value - room) / share, (value + room) / share)
            for share in self.shares
        )

    def makes(self, share: Decimal) -> bool:
        """Whether a number and so much of it are told: 21 and 84 make a quarter."""
        if share not in self.made:
            parts = (
                (one * share - _HALF, one * share + _HALF) for one in self.ordered if one >= 10
            )
            self.made[share] = any(self.between(*part) for part in parts)
        return self.made[share]

    def sums(self, value: int) -> bool:
        """Whether two of the numbers make `value`."""
        return 0 < value < _SUMS and bool(self.parts & self.turned >> (_SUMS - 1 - value))


def known(texts: Iterable[Sequence[Token]]) -> Known:
    found = Known()
    for tokens in texts:
        for i, token in enumerate(tokens):
            _learn(found, tokens, i, token)
    found.dates |= found.yearless
    found.ordered = sorted(found.values)
    found.turned = int(f"{found.parts:0{_SUMS}b}"[::-1], 2)
    for sizes in found.measured.values():
        sizes.sort()
    return found


def _learn(found: Known, tokens: Sequence[Token], i: int, token: Token) -> None:
    if form := _unread(tokens, i):
        found.unread.add(form)
    if token.kind == "date":
        for date in token.either or (token.date,):
            _learn_date(found, *date)
        # "3-5 May 1964"
        begins = tokens[max(0, i - 2) : i - 1] if i and tokens[i - 1].word in _JOINED else ()
        found.yearless |= {(0, token.date[1], day) for day in _days(begins)}
    elif number := _month(token):
        # "May 3-5"
        ends = (
            tokens[i + 3 : i + 4] if i + 2 < len(tokens) and tokens[i + 2].word in _JOINED else ()
        )
        near = (*tokens[max(0, i - 2) : i], *tokens[i + 1 : i + 2], *ends)
        found.yearless |= {(0, number, 0), *((0, number, day) for day in _days(near))}
    elif token.kind == "share":
        _learn_share(found, tokens, i, token.values[0])
    elif token.values:
        _learn_number(found, tokens, i, token)


def _days(tokens: Iterable[Token]) -> list[int]:
    return [int(one.values[0]) for one in tokens if one.values and 1 <= one.values[0] <= 31]


def _unread(tokens: Sequence[Token], i: int) -> str:
    """What kind of claim the token has nothing to say against, since its value is not read; or
    nothing.
    """
    token, before = tokens[i], tokens[i - 1].word if i else ""
    if token.word in ("dozen", "dozens"):
        return "dozens"
    after = tokens[i + 1] if i + 1 < len(tokens) else Token("", "")
    timed = token.word == ":" and before.isdigit() and after.word.isdigit()
    if (
        timed
        or token.word in ODD
        or token.unit in ODD
        or (token.word == "/" and before and after.kind == "word")
    ):
        return "measure"
    return "measure" if token.word in _COMPOUND and after.kind == "cardinal" else ""


def _learn_share(found: Known, tokens: Sequence[Token], i: int, share: Decimal) -> None:
    """A part, and what it leaves; "half a mile" and "an hour and a half" are lengths besides."""
    found.values |= {share, 100 * share}
    found.shares |= {share, 1 - share}
    _learn_unit(found, tokens, i, tokens[i])
    noun = _stem(tokens[i - 2].word) if i > 1 and tokens[i - 1].word == "and" else ""
    if noun in MEASURES:
        number = tokens[i - 3].values[:1] if i > 2 else ()
        found.measured[MEASURES[noun]].append(
            (*number, Decimal(1))[0] * MEASURES[noun][1] + share * MEASURES[noun][1]
        )


def _learn_ratio(found: Known, tokens: Sequence[Token], i: int, whole: Decimal) -> None:
    """ "two in five", "3 out of 8", "5/8": so many percent, and those that are left."""
    middle = [token.word for token in tokens[max(0, i - 3) : i]]
    back = (
        3
        if middle[-2:] == ["out", "of"]
        else 2
        if middle and middle[-1] in ("in", "of", "/")
        else 0
    )
    part = (
        tokens[i - back].values[:1] if 0 < back <= i and tokens[i - back].kind == "cardinal" else ()
    )
    if not part or not 0 < part[0] < whole < 1000:
        return
    share = part[0] / whole
    found.values |= {100 * share, 100 - 100 * share, whole - part[0]}
    if part[0] == int(part[0]) and whole / gcd(int(part[0]), int(whole)) <= MOST:
        found.shares |= {share, 1 - share}


def _learn_date(found: Known, year: int, number: int, day: int) -> None:
    # "2010-11" may be two years
    ends = [year + 1] if not day and number == (year + 1) % 100 else []
    for one in (year, *ends):
        _learn_year(found, one)
        found.values.add(Decimal(one))
    found.values.add(Decimal(day))
    found.dates |= {(year, number, day), (year, number, 0), (0, number, day), (0, number, 0)}


def _learn_number(found: Known, tokens: Sequence[Token], i: int, token: Token) -> None:
    value = token.values[0]
    found.values.update(token.values if token.kind != "decade" else ())
    if token.kind == "ordinal" and i and tokens[i - 1].word in ("a", "an") and 2 < value <= MOST:
        found.shares |= {1 / value, 1 - 1 / value}  # "a third less"
    if token.kind == "cardinal" and value == int(value):
        _learn_ratio(found, tokens, i, value)
        _learn_year(found, int(value))
        _learn_count(found, tokens, i, int(value))
        begun = (
            year_of(tokens[i - 2])
            if i > 1 and tokens[i - 1].word in ("-", "–", "/") and value < 100
            else 0
        )
        if begun:  # 1939-45
            _learn_year(found, begun // 100 * 100 + int(value))
            found.values.add(begun // 100 * 100 + value)
    found.values.update(grouped(tokens, i))
    _learn_unit(found, tokens, i, token)


def _learn_count(found: Known, tokens: Sequence[Token], i: int, value: int) -> None:
    if year_of(tokens[i]):
        near = (tokens[i - 1 : i], tokens[i + 1 : i + 2])
        far = (
            tokens[max(0, i - 2) : i - 1] if i and tokens[i - 1].word in _PARTED else (),
            tokens[i + 2 : i + 3],
        )
        marked = i + 1 < len(tokens) and tokens[i + 1].word in _PARTED
        if _days([*near[0], *near[1], *far[0], *(far[1] if marked else ())]):
            found.vague.add(value)
    elif value < _SUMS and not month_beside(tokens, i):
        found.counts += value <= SMALL
        found.parts |= 1 << value


def grouped(tokens: Sequence[Token], i: int) -> list[Decimal]:
    """What a number may be besides: "1 050" is 1,050, and so may "1.050" be."""
    if tokens[i].rounded and len(tokens[i].word.partition(".")[2]) == 3:
        return [Decimal(tokens[i].word.replace(".", ""))]
    begin = i
    while begin > max(0, i - 3) and _is_group(tokens[begin]) and tokens[begin - 1].word.isdigit():
        begin -= 1
    end = begin + 1
    while end < min(len(tokens), begin + 4) and _is_group(tokens[end]):
        end += 1
    row = "".join(token.word for token in tokens[begin:end])
    return (
        [Decimal(row)]
        if end - begin > 1 and row.isdecimal() and len(tokens[begin].word) < 4
        else []
    )


def _is_group(token: Token) -> bool:
    return token.kind == "cardinal" and len(token.word) == 3 and token.word.isdecimal()


def _learn_year(found: Known, year: int) -> None:
    if 0 < year < 2200:
        found.years |= 1 << year
        found.decades |= {year // 10 * 10, year // 10 * 10 % 100}
        found.centuries.add((year + 99) // 100)


def _learn_unit(found: Known, tokens: Sequence[Token], i: int, token: Token) -> None:
    value = token.values[0]
    if token.kind == "decade":
        found.decades |= {int(value), int(value) % 100}
        if value > 999:
            found.centuries.add(int(value) // 100 + 1)
        else:
            found.short.add(int(value))
        return
    for noun in nouns_of(tokens, i):
        found.counted[noun].update(token.values)
        if noun in MEASURES:
            found.measured[MEASURES[noun]].append(value * MEASURES[noun][1])
    if token.kind == "ordinal" and is_century(tokens, i):
        found.centuries.add(int(value))


def nouns_of(tokens: Sequence[Token], i: int) -> list[str]:
    """What a number counts may be any of the next words, up to a mark or another number."""
    nouns = [_stem(tokens[i].unit)] if tokens[i].unit else []
    for token in tokens[i + 1 : i + 5]:
        if token.kind != "word" and token.word != "-":
            break
        if len(token.word) > 2 or _stem(token.word) in MEASURES:
            nouns.append(_stem(token.word))
    return nouns


def _stem(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def year_of(token: Token) -> int:
    if token.kind == "date":
        return token.date[0]
    value = token.values[0] if token.kind == "cardinal" and token.values else Decimal(0)
    return int(value) if 1000 <= value < 2200 and value == int(value) else 0


def _month(token: Token) -> int:
    return month(token.word) if token.name else 0  # not "may"


def month_beside(tokens: Sequence[Token], i: int) -> int:
    """The month of "March 13", "13 March" and "13th of March"."""
    after = tokens[i + 1 : i + 3]
    beside = [
        *tokens[max(0, i - 1) : i],
        *(after[1:] if after and after[0].word == "of" else after[:1]),
    ]
    return next((number for number in map(_month, beside) if number), 0)


def is_century(tokens: Sequence[Token], i: int) -> bool:
    """Whether an ordinal is a century's: "the 19th century", "the 18th and 19th centuries"."""
    after = tokens[i + 1 : i + 6]
    end = next((n for n, one in enumerate(after) if one.word in ("century", "centuries")), None)
    return end is not None and all(
        one.kind == "ordinal" or one.word in _BETWEEN for one in after[:end]
    )
