"""Find numbers, dates and years of a claim that its evidence does not mention *(ours)*.

The entailment model often ignores digits. Therefore this rule compares the values of numbers. It
accepts rounding, bounds ("over 100"), counts of listed things, and doubtful cases. It does not
convert units.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from workbench.verifier.tokens import Token

MOST_COUNTED = 12  # a passage may list up to this many things without stating their number
ABOUT = frozenset("about around approximately roughly circa c ca some nearly almost".split())
OVER = frozenset("over more above least exceeding after between".split())
UNDER = frozenset("under below most within before less fewer no between".split())


@dataclass
class Numbers:
    """All numbers and dates of the evidence."""

    values: set[float] = field(default_factory=set)
    ordered: list[float] = field(default_factory=list)  # `values`, sorted
    years: set[float] = field(default_factory=set)  # < 2200, with the first years of decades
    days: set[tuple[int, float]] = field(default_factory=set)  # (month, day)
    # noun -> the numbers that precede it
    counts: defaultdict[str, set[float]] = field(default_factory=lambda: defaultdict(set))


def numbers_of(texts: Iterable[Sequence[Token]]) -> Numbers:
    """Return the numbers and dates of the evidence. Each of `texts` is a list of tokens."""
    numbers = Numbers()
    for tokens in texts:
        for i, token in enumerate(tokens):
            if token.value:
                _add(numbers, tokens, i)
    numbers.ordered = sorted(numbers.values)
    return numbers


def _add(numbers: Numbers, tokens: Sequence[Token], i: int) -> None:
    value = tokens[i].value
    if tokens[i].kind != "decade":
        numbers.values |= {value, _full_year(tokens, i)}
    if tokens[i].kind != "ordinal" and value < 2200:
        numbers.years |= {value, _full_year(tokens, i)}
    for noun in _nouns(tokens, i):
        numbers.counts[noun].add(value)
    months = {token.month for token in tokens[max(0, i - 4) : i + 5]} - {0}
    numbers.days |= {(month, value) for month in months}


def _full_year(tokens: Sequence[Token], i: int) -> float:
    """Expand the second number of "1939-45" to 1945; return any other number unchanged."""
    value = tokens[i].value
    if i > 1 and value < 100 and tokens[i - 1].word in ("-", "–", "/") and tokens[i - 2].is_year:
        return tokens[i - 2].value // 100 * 100 + value
    return value


def _nouns(tokens: Sequence[Token], i: int) -> list[str]:
    """Return up to four words after a number; one of them may be the noun that it counts."""
    words = takewhile(lambda token: token.kind == "word", tokens[i + 1 : i + 5])
    return [_singular(token.word) for token in words]


def _singular(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 and not word.endswith("ss") else word


def missing_numbers(claim: Sequence[Token], evidence: Numbers) -> list[str]:
    """Return the numbers of `claim`, as written, that the evidence neither states nor implies."""
    return [
        token.text
        for i, token in enumerate(claim)
        if token.value and _is_missing(claim, i, evidence)
    ]


def _is_missing(tokens: Sequence[Token], i: int, evidence: Numbers) -> bool:
    token, value = tokens[i], tokens[i].value
    near = (*tokens[max(0, i - 1) : i], *tokens[i + 1 : i + 3])
    months = {other.month for other in near} - {0}
    if token.kind == "decade":
        return not _has_decade(int(value), evidence)
    if months and value <= 31 and evidence.days:
        return evidence.days.isdisjoint((month, value) for month in months)
    if value <= 1 or {value, _full_year(tokens, i)} & evidence.values:
        return False
    if token.kind == "ordinal":
        # "19th century" is known if the evidence has a year of it; "first" to "third" are common
        is_century = any(after.word.startswith("centur") for after in tokens[i + 1 : i + 4])
        years = evidence.years if is_century else ()
        return value > 3 and all((year + 99) // 100 != value for year in years)
    return not _explained(tokens, i, evidence)


def _has_decade(decade: int, evidence: Numbers) -> bool:
    """Return whether the evidence has a year of a decade; "the 1800s" may also mean the century."""
    century = decade > 99 and decade % 100 == 0
    years = evidence.years if decade > 99 else {year % 100 for year in evidence.years}
    within = any(decade <= year < decade + (100 if century else 10) for year in years)
    return within or decade % 100 in years or (century and decade // 100 + 1 in evidence.values)


def _explained(tokens: Sequence[Token], i: int, evidence: Numbers) -> bool:
    """Return whether the evidence may imply a number of the claim, token `i`, without stating it.

    For example, "120" in the evidence implies "over 100".
    """
    value, is_year, nouns = tokens[i].value, tokens[i].is_year, _nouns(tokens, i)
    before = {other.word for other in tokens[max(0, i - (2 if is_year else 3)) : i]}
    if before & OVER and _has(evidence.ordered, value, 2199 if is_year else float("inf")):
        return True
    if (before & UNDER or before >= {"up", "to"}) and _has(evidence.ordered, 0, value):
        return True
    tolerance = 5 if is_year else 0.05 * value
    if before & ABOUT and _has(evidence.ordered, value - tolerance, value + tolerance):
        return True
    if is_year:  # evidence about "the 2014 film" may leave the year out
        attribute = i > 0 and (tokens[i - 1].word in ("the", "a", "an") or tokens[i - 1].capital)
        return attribute and bool(nouns) and max(evidence.years, default=0) < 1000
    named = i > 1 and tokens[i - 1].capital  # "Apollo 11"
    if (
        value <= MOST_COUNTED
        and not named
        and all(len(evidence.counts.get(noun, ())) != 1 for noun in nouns)
    ):
        return True
    # whole numbers may be rounded, whole thousands more coarsely
    tolerance = 0.02 * value if value % 1000 == 0 else 0.5 * (value % 1 == 0)
    return _has(evidence.ordered, value - tolerance, value + tolerance)


def _has(ordered: Sequence[float], low: float, high: float) -> bool:
    """Whether a sorted list has a value between two bounds."""
    index = bisect_left(ordered, low)
    return index < len(ordered) and ordered[index] <= high
