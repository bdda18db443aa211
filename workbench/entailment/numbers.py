"""Which numbers and dates of a claim are not found in its evidence *(ours)*.

A model that has read a claim's words in a passage hardly looks at the digits. A rule does, and
is meant to keep silent when in doubt: a number may be written out, rounded ("about 3.9 million"
of 3,856,000), a bound, in other units, be the years between two dates, a sum, or count what the
passage lists; a year may stand for its date, a decade or a century for its years. It may still
be wrong about a number that the passage says in yet another way.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from workbench.entailment.known import (
    MEASURES,
    ODD,
    SMALL,
    Known,
    grouped,
    is_century,
    month_beside,
    nouns_of,
    year_of,
)
from workbench.entailment.reading import Date, Token

ABOUT = frozenset(
    "about around approximately approx roughly circa c ca some nearly almost close estimated".split()
)
OVER, UNDER = (
    frozenset("over than above least exceeding".split()),
    frozenset("under below most within".split()),
)
LATEST = 2199  # year
NOT = frozenset("no not".split())
FEWER = frozenset("less fewer lower under".split())
LISTED = 3  # and up to here a passage seldom says the number
ROUGH = Decimal("0.05")  # how far a rounded number may be off
NEAR = Decimal("0.01")  # how near two parts are that may be one
AGES = {
    "year": 1,
    "years": 1,
    "aged": 1,
    "age": 1,
    "season": 1,
    "seasons": 1,
    "decade": 10,
    "decades": 10,
    "centuries": 100,
}
TIMES = frozenset(
    "in since by until till from to year during before after early late mid spring summer autumn"
    " fall winter".split()
)


def missing(claim: Sequence[Token], evidence: Known) -> list[str]:
    """The numbers and dates of `claim`, as it writes them, that are not found in the evidence."""
    return [token.shown for i, token in enumerate(claim) if _is_missing(claim, i, token, evidence)]


def _is_missing(tokens: Sequence[Token], i: int, token: Token, evidence: Known) -> bool:
    if token.kind == "date":
        return not any(_has_date(date, evidence) for date in token.either or (token.date,))
    if not token.values or (token.kind == "word" and len(token.word) < 2):
        return False
    value = token.values[0]
    if token.kind == "share":
        return _lacks_share(tokens, i, value, evidence)
    if token.kind == "decade":
        return _lacks_decade(int(value), token, evidence)
    if value <= 31 and (number := month_beside(tokens, i)):
        # "In March 12 people died"
        counted = bool(nouns_of(tokens, i)) and value in evidence.values
        return (0, number, int(value)) not in evidence.dates and not counted
    if (
        (begun := year_of(tokens[i - 2]) if i > 1 else 0)
        and tokens[i - 1].word in ("-", "–", "/")
        and value < 100
    ):
        year = begun // 100 * 100 + int(value)  # "1939-45", and "2005-10" may be October
        return (
            value not in evidence.values
            and not evidence.year(year, year)
            and (0, int(value), 0) not in evidence.dates
        )
    if token.kind == "ordinal":
        return _lacks_ordinal(tokens, i, value, evidence)
    return not evidence.values & set(token.values) and not _explained(tokens, i, token, evidence)


def _has_date(date: Date, evidence: Known) -> bool:
    """A full date may be told in two places, its day in one without a year and its year in the
    other.
    """
    year, number, day = date
    if not evidence.year(year, year):
        return False
    if year in evidence.vague:
        return True
    return date in evidence.dates or (0, number, day) in evidence.yearless


def _lacks_ordinal(tokens: Sequence[Token], i: int, value: Decimal, evidence: Known) -> bool:
    if is_century(tokens, i):
        return int(value) not in evidence.centuries and not evidence.short
    return value > LISTED and value not in evidence.values


def _lacks_share(tokens: Sequence[Token], i: int, value: Decimal, evidence: Known) -> bool:
    """Whether the evidence tells other parts alone than "a quarter of them"."""
    words = {one.word for one in tokens[max(0, i - 3) : i]}
    counted = tokens[i + 1 : i + 2] and tokens[i + 1].word == "of"
    if not counted or not evidence.shares or not words.isdisjoint(ABOUT | OVER | UNDER):
        return False
    return not any(abs(one - value) < NEAR for one in evidence.shares) and not evidence.makes(value)


def _lacks_decade(value: int, token: Token, evidence: Known) -> bool:
    if value % 100 == 0 and (
        value // 100 + 1 in evidence.centuries or evidence.year(value, value + 99)
    ):
        return False
    unsaid = {value % 100} if token.spelt or value < 100 else set()
    return value % 100 not in evidence.short and not ({value} | unsaid) & evidence.decades


def _explained(tokens: Sequence[Token], i: int, token: Token, evidence: Known) -> bool:
    """Whether the evidence may mean the number though it does not write it."""
    value = token.values[0]
    if _is_bound(tokens, i, value, evidence) or _is_unsaid(tokens, i, token, evidence):
        return True
    nouns = [noun for noun in nouns_of(tokens, i) if noun not in MEASURES]
    if nouns and value <= SMALL and value == int(value):
        counts = [evidence.counted[noun] for noun in nouns if noun in evidence.counted]
        return value < 2 or not any(len(one) == 1 for one in counts) or evidence.counts > 1
    return (
        _rounded(tokens, i, token, evidence)
        or _spans_years(tokens, i, value, evidence)
        or _converted(tokens, i, value, evidence)
    )


def _is_bound(tokens: Sequence[Token], i: int, value: Decimal, evidence: Known) -> bool:
    """Whether the number is a bound, and one of the evidence is on its side."""
    words, after = (
        [one.word for one in tokens[max(0, i - 3) : i]],
        [one.word for one in tokens[i + 1 : i + 3]],
    )
    if words[-1:] == ["between"] and after[:1] in (["and"], ["to"], ["-"]):
        high = tokens[i + 2].values if i + 2 < len(tokens) else ()
        return bool(high) and evidence.between(value, high[0])
    if words[-1:] in (["and"], ["to"], ["-"]) and i > 2 and tokens[i - 3].word == "between":
        low = tokens[i - 2].values
        return bool(low) and evidence.between(low[0], value)
    if words[-1:] in (["before"], ["after"]):
        return _is_beside(words, int(value), evidence)
    if words and words[-1] in TIMES and _is_year(tokens, i, tokens[i], nouns_of(tokens, i)):
        return False  # "It opened over there in 1932"
    over = not OVER.isdisjoint(words) or after in (["or", "more"], ["or", "over"])
    under = (
        not UNDER.isdisjoint(words)
        or words[-2:] == ["up", "to"]
        or after in (["or", "less"], ["or", "fewer"])
    )
    if not over and not under:
        return False
    below = ((under and not over) or not FEWER.isdisjoint(words)) != (
        not NOT.isdisjoint(words) and "than" in words
    )
    return (
        evidence.between(Decimal(0), value)
        if below
        else bool(evidence.ordered) and evidence.ordered[-1] >= value
    )


def _is_beside(words: Sequence[str], year: int, evidence: Known) -> bool:
    """ "Before 1932" is any year before, "the year before 1932" is one."""
    before, one = words[-1] == "before", words[-2:-1] == ["year"]
    first, last = (1, year - 1) if before else (year + 1, LATEST)
    if one:
        first, last = (last, last) if before else (first, first)
    return 0 < first <= last <= LATEST and evidence.year(first, last)


def _is_unsaid(tokens: Sequence[Token], i: int, token: Token, evidence: Known) -> bool:
    """Whether the evidence may say the number in a form that is not read, as a part or as a sum.
    A year it would write.
    """
    value = token.values[0]
    if not evidence.values.isdisjoint(grouped(tokens, i)):
        return True
    nouns = nouns_of(tokens, i)
    near = {one.word for one in tokens[max(0, i - 1) : i + 2]}
    measured = not {":", "/", *ODD}.isdisjoint(near) or any(
        noun in MEASURES or noun in ODD for noun in nouns
    )
    unread = measured and "measure" in evidence.unread
    if value != int(value) or token.kind != "cardinal":
        return unread or (token.kind == "cardinal" and evidence.partly(value))
    if _is_year(tokens, i, token, nouns):
        return False
    half = Decimal("0.5")
    return (
        unread
        or evidence.partly(value)
        or (value > SMALL and evidence.sums(int(value)))
        or (value >= LISTED and not token.rounded and evidence.between(value - half, value + half))
    )


def _is_year(tokens: Sequence[Token], i: int, token: Token, nouns: Sequence[str]) -> bool:
    plural = i + 1 < len(tokens) and tokens[i + 1].word.endswith("s")
    timed = any(one.word in TIMES for one in tokens[max(0, i - 3) : i])
    return (
        1000 <= token.values[0] < 2200 and not token.rounded and (timed or not (nouns and plural))
    )


def _rounded(tokens: Sequence[Token], i: int, token: Token, evidence: Known) -> bool:
    value, words = token.values[-1], [one.word for one in tokens[max(0, i - 3) : i]]
    dated = 1000 <= value < 2200 and not token.rounded and any(word in TIMES for word in words)
    about = any(word in ABOUT for word in words)
    step = Decimal(10) ** _trailing(value)
    if dated:
        return _is_about_year(tokens, i) and evidence.year(max(1, int(value) - 5), int(value) + 5)
    if about:
        room = max(value * ROUGH, step / 2 if step > 1 else Decimal(0))
    elif token.rounded:
        room = min(value * ROUGH, step / 2)
    else:
        room = value / 100 if step >= 1000 else Decimal(0)
    return room > 0 and evidence.between(value - room, value + room)


def _is_about_year(tokens: Sequence[Token], i: int) -> bool:
    """ "around 1850", "c. 1850", "around the year 1850": "some time in 1850" is a year like any
    other.
    """
    before = [
        one.word
        for one in tokens[max(0, i - 4) : i]
        if one.kind != "mark" and one.word not in ("the", "year")
    ]
    if before[-1:] == ["in"]:
        before.pop()
    return bool(before) and before[-1] in ABOUT - {"some", "close"}


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
        for kind, size in (MEASURES[noun] for noun in nouns_of(tokens, i)[:2] if noun in MEASURES)
        for (other, unit), sizes in evidence.measured.items()
        if other == kind and unit != size
    )
