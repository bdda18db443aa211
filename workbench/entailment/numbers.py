"""Which numbers and dates of a claim its evidence does not have: no passage can support those *(ours)*.

A model that has read a claim's words in a passage hardly looks at the digits. A rule does. It speaks up only where it is
sure: a number may be written out, rounded ("about 3.9 million" of 3,856,000), in other units, be the years between two dates,
or count what the passage lists; a year may stand for its date, a decade or a century for its years.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from workbench.entailment.reading import Date, Token, month

ABOUT = frozenset("about around approximately approx roughly circa c ca some nearly almost close estimated".split())
OVER, UNDER = frozenset("over than above least exceeding".split()), frozenset("under below most within".split())
FEWER = frozenset("less fewer lower under".split())
SMALL = 12  # a count up to here may be of what a passage lists one by one
LISTED = 3  # and up to here a passage seldom says the number
ROUGH = Decimal("0.05")  # how far a rounded number may be off
FRACTIONS = {"half": "50", "third": "33.3", "thirds": "66.7", "quarter": "25", "quarters": "75", "fifth": "20", "tenth": "10"}
AGES = {"year": 1, "years": 1, "aged": 1, "age": 1, "season": 1, "seasons": 1, "decade": 10, "decades": 10, "centuries": 100}
TIMES = frozenset(
    "in since by until till from to year during before after early late mid spring summer autumn fall winter".split()
)
_BETWEEN = frozenset("and or to early late - –".split())
MEASURES: dict[str, tuple[str, Decimal]] = {  # what a unit measures, and how much of it
    name: (kind, Decimal(size))
    for kind, table in {
        "length": "mm .001 cm .01 m 1 metre 1 meter 1 km 1000 kilometre 1000 kilometer 1000 mile 1609.34 mi 1609.34 foot .3048 "
        "feet .3048 ft .3048 inch .0254 inche .0254 yard .9144",
        "mass": "g .001 gram .001 kg 1 kilogram 1 kilo 1 tonne 1000 ton 1000 pound .4536 lb .4536 ounce .02835 oz .02835",
        "area": "acre .4047 hectare 1 ha 1 km2 100",
        "time": "second 1 minute 60 min 60 hour 3600 day 86400 week 604800 month 2629800 year 31557600 decade 315576000",
    }.items()
    for name, size in zip(table.split()[::2], table.split()[1::2], strict=True)
}


@dataclass
class Known:
    """All numbers and dates of some texts."""

    values: set[Decimal] = field(default_factory=set)
    years: int = 0  # a bit for each
    dates: set[Date] = field(default_factory=set)  # with all their parts: a full date is there as its year and month too
    decades: set[int] = field(default_factory=set)
    centuries: set[int] = field(default_factory=set)
    counted: defaultdict[str, set[Decimal]] = field(default_factory=lambda: defaultdict(set))  # by what is counted
    measured: defaultdict[tuple[str, Decimal], list[Decimal]] = field(default_factory=lambda: defaultdict(list))  # by unit
    ordered: list[Decimal] = field(default_factory=list)

    def between(self, low: Decimal, high: Decimal, values: list[Decimal] | None = None) -> bool:
        within = self.ordered if values is None else values
        place = bisect_left(within, low)
        return place < len(within) and within[place] <= high

    def year(self, low: int, high: int) -> bool:
        return bool(self.years >> low & ((1 << (high - low + 1)) - 1))


def known(texts: Iterable[Sequence[Token]]) -> Known:
    found = Known()
    for tokens in texts:
        for i, token in enumerate(tokens):
            _learn(found, tokens, i, token)
    found.ordered = sorted(found.values)
    for sizes in found.measured.values():
        sizes.sort()
    return found


def missing(claim: Sequence[Token], evidence: Known) -> list[str]:
    """The numbers and dates of `claim`, as it writes them, that the evidence cannot have meant."""
    return [token.shown for i, token in enumerate(claim) if _is_missing(claim, i, token, evidence)]


def _learn(found: Known, tokens: Sequence[Token], i: int, token: Token) -> None:
    if token.kind == "date":
        _learn_date(found, *token.date)
    elif number := _month(token):
        near = (*tokens[max(0, i - 2) : i], *tokens[i + 1 : i + 2])
        found.dates |= {
            (0, number, 0),
            *((0, number, int(one.values[0])) for one in near if one.values and one.values[0] <= 31),
        }
    elif token.values:
        _learn_number(found, tokens, i, token)
    elif token.word in FRACTIONS:
        found.values.add(Decimal(FRACTIONS[token.word]))


def _learn_date(found: Known, year: int, number: int, day: int) -> None:
    ends = [year + 1] if not day and number == (year + 1) % 100 else []  # "2010-11" may be two years
    for one in (year, *ends):
        _learn_year(found, one)
        found.values.add(Decimal(one))
    found.values.add(Decimal(day))
    found.dates |= {(year, number, day), (year, number, 0), (0, number, day), (0, number, 0)}


def _learn_number(found: Known, tokens: Sequence[Token], i: int, token: Token) -> None:
    value = token.values[0]
    found.values.update(token.values if token.kind != "decade" else ())
    if token.kind == "cardinal" and value == int(value):
        _learn_year(found, int(value))
        begun = _year_of(tokens[i - 2]) if i > 1 and tokens[i - 1].word in ("-", "–", "/") and value < 100 else 0
        if begun:  # 1939-45
            _learn_year(found, begun // 100 * 100 + int(value))
            found.values.add(begun // 100 * 100 + value)
    _learn_unit(found, tokens, i, token)


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
        return
    for noun in _nouns(tokens, i):
        found.counted[noun].update(token.values)
        if noun in MEASURES:
            found.measured[MEASURES[noun]].append(value * MEASURES[noun][1])
    if token.kind == "ordinal" and _is_century(tokens, i):
        found.centuries.add(int(value))


def _nouns(tokens: Sequence[Token], i: int) -> list[str]:
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


def _year_of(token: Token) -> int:
    if token.kind == "date":
        return token.date[0]
    value = token.values[0] if token.kind == "cardinal" and token.values else Decimal(0)
    return int(value) if 1000 <= value < 2200 and value == int(value) else 0


def _is_missing(tokens: Sequence[Token], i: int, token: Token, evidence: Known) -> bool:
    if token.kind == "date":
        return not _has_date(token.date, evidence)
    if not token.values or (token.kind == "word" and len(token.word) < 2):
        return False
    value = token.values[0]
    if token.kind == "decade":
        return not {int(value), *([int(value) % 100] if token.spelt or value < 100 else [])} & evidence.decades
    if value <= 31 and (number := _month_beside(tokens, i)):
        return (0, number, int(value)) not in evidence.dates
    if token.kind == "ordinal":
        return _lacks_ordinal(tokens, i, value, evidence)
    return not evidence.values & set(token.values) and not _explained(tokens, i, token, evidence)


def _month(token: Token) -> int:
    return month(token.word) if token.name else 0  # not "may"


def _month_beside(tokens: Sequence[Token], i: int) -> int:
    """The month of "March 13", "13 March" and "13th of March"."""
    after = tokens[i + 1 : i + 3]
    beside = [*tokens[max(0, i - 1) : i], *(after[1:] if after and after[0].word == "of" else after[:1])]
    return next((number for number in map(_month, beside) if number), 0)


def _has_date(date: Date, evidence: Known) -> bool:
    """A full date may be told in two places: its day in one, its year in the other."""
    year, number, day = date
    if not evidence.year(year, year):
        return False
    return date in evidence.dates or (not day and (0, number, 0) in evidence.dates) or (0, number, day) in evidence.dates


def _lacks_ordinal(tokens: Sequence[Token], i: int, value: Decimal, evidence: Known) -> bool:
    if _is_century(tokens, i):
        return int(value) not in evidence.centuries
    return value > LISTED and value not in evidence.values


def _is_century(tokens: Sequence[Token], i: int) -> bool:
    """Whether an ordinal is a century's: "the 19th century", "the 18th and 19th centuries"."""
    after = tokens[i + 1 : i + 6]
    end = next((n for n, one in enumerate(after) if one.word in ("century", "centuries")), None)
    return end is not None and all(one.kind == "ordinal" or one.word in _BETWEEN for one in after[:end])


def _explained(tokens: Sequence[Token], i: int, token: Token, evidence: Known) -> bool:
    """Whether the evidence may mean the number though it does not write it."""
    value = token.values[0]
    nouns = [noun for noun in _nouns(tokens, i) if noun not in MEASURES]
    if nouns and value <= SMALL and value == int(value):
        return value < 2 or not any(evidence.counted.get(noun) for noun in nouns)
    return (
        _rounded(tokens, i, token, evidence)
        or _spans_years(tokens, i, value, evidence)
        or _converted(tokens, i, value, evidence)
    )


def _rounded(tokens: Sequence[Token], i: int, token: Token, evidence: Known) -> bool:
    value, words = token.values[-1], [one.word for one in tokens[max(0, i - 3) : i]]
    dated = 1000 <= value < 2200 and not token.rounded and any(word in TIMES for word in words)
    about, over = any(word in ABOUT for word in words), any(word in OVER for word in words)
    step = Decimal(10) ** _trailing(value)
    if dated:
        return about and evidence.year(max(1, int(value) - 5), int(value) + 5)
    if over or any(word in UNDER for word in words):
        below = any(word in FEWER for word in words) or (any(word in UNDER for word in words) and not over)
        return evidence.between(value / 2, value) if below else evidence.between(value, value * 2)
    if about:
        room = max(value * ROUGH, step / 2 if step > 1 else Decimal(0))
    elif token.rounded:
        room = min(value * ROUGH, step / 2)
    else:
        room = value / 100 if step >= 1000 else Decimal(0)
    return room > 0 and evidence.between(value - room, value + room)


def _trailing(value: Decimal) -> int:
    """The place of the last digit that is not 0: 5 of 3,900,000, −1 of 12.5."""
    return int(value.normalize().as_tuple().exponent)


def _spans_years(tokens: Sequence[Token], i: int, value: Decimal, evidence: Known) -> bool:
    """Ages and durations: the years between two dates, or one less."""
    scales = [AGES[one.word] for one in tokens[max(0, i - 2) : i + 4] if one.word in AGES]
    if not scales or value != int(value) or not 0 < value < 2200:
        return False
    length = int(value) * max(scales)
    return any(evidence.years & evidence.years >> one for one in (length, length + 1))


def _converted(tokens: Sequence[Token], i: int, value: Decimal, evidence: Known) -> bool:
    """Whether the evidence measures as much in another unit."""
    low, high = value * Decimal("0.98"), value * Decimal("1.02")
    return any(
        evidence.between(low * size, high * size, sizes)
        for kind, size in (MEASURES[noun] for noun in _nouns(tokens, i)[:2] if noun in MEASURES)
        for (other, unit), sizes in evidence.measured.items()
        if other == kind and unit != size
    )
