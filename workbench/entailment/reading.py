"""What a text mentions: its words in one writing, its numbers as values, its dates as (year,
month, day).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from workbench.answers.kept import kept
from workbench.answers.text import MONTHS, SCALES, canonical, read_number
from workbench.entailment.parts import Part, read_part

LONGEST = 18  # digits of a number; a longer row of digits is a code, and is compared as a word
Date = tuple[int, int, int]  # year, month and day; 0 where it is not said

DENIALS = frozenset("not no never nobody none nothing neither nor without cannot".split())
_PIECE = re.compile(
    r"(?P<either>(?<![\w-])[1-9]\d{3}(?:~\d{4}-\d\d-\d\d)+(?![\w-]))"
    r"|(?P<date>(?<![\w-])[1-9]\d{3}-(?:0[1-9]|1[0-2])(?:-\d\d)?(?![\w-]))"
    r"|(?P<number>\d+(?:\.\d+)?)(?P<suffix>[^\W\d_]*)|(?P<word>[^\W\d_][^\W_]*)|(?P<mark>[^\w\s]|\n)"
)
_POSSESSIVE = re.compile(r"(?<=[^\W\d_])['’]s\b")
_DECADE = re.compile(r"(?<=\d0) ?['’]s\b")  # "the 1970 's" of tokenised texts
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_SLASHED = re.compile(
    r"(?<![\d/.-])(\d{1,2})(?:([/.-])(\d{1,2})\2([12]\d{3})|/(\d{1,2})/(\d\d))(?![\d/-]|\.\d)"
)
_YEAR_FIRST = re.compile(r"(?<![\d/.-])([12]\d{3})([/.])(\d{1,2})\2(\d{1,2})(?![\d/]|\.\d)")
# "2005-10" is no October
_SPAN = re.compile(r"(?<![\w/.-])([12]\d(\d\d))[-–](\d\d)(?![\w/–-]|\.\d)")
_DAY_OF = re.compile(r"(?<=\d)(st|nd|rd|th) day of\b")
_DOTTED_DAY = re.compile(rf"(?<!\w)(\d{{1,2}})\. (?=(?:{'|'.join(MONTHS)}) \d{{4}})", re.I)
_FEET = re.compile("(\\d)['’′] ?(\\d{1,2})(?=\"|″|”|''|\\b)")
_TO_DATE = re.compile(r"(?<=\d)-(?=[12]\d{3}-\d\d(?:-\d\d)?(?![\w-]))")
_VULGAR = re.compile("(?<=\\d)(?=[¼-¾⅐-⅞])")
_GROUPS = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.]\d|,?\d)")
_SHORT = {"k": 10**3, "m": 10**6, "mn": 10**6, "b": 10**9, "bn": 10**9, "tn": 10**12}
_UNITS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
    " fourteenth fifteenth"
)
_UNITS += " sixteenth seventeenth eighteenth nineteenth"
_ORDINAL = {word: value for value, word in enumerate(_UNITS.split(), start=1)}
_TENTHS = "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth hundredth"
_ORDINAL |= {word: 10 * i for i, word in enumerate(_TENTHS.split(), start=2)}
_TENS = {
    word: 10 * i
    for i, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2
    )
}
_DECADES = {f"{word.removesuffix('y')}ies": value for word, value in _TENS.items()}
_ROMAN = re.compile(r"(?=[IVX])X{0,3}(?:IX|IV|V?I{0,3})")


_NO_DENIAL = frozenset("only just merely until before less fewer more later earlier".split())
_DOUBT = frozenset(
    "disputed doubted denied wrong untrue false doubt question secret wonder surprise coincidence".split()
)
_STOPS = frozenset("; . ! ? : ( ) \n but".split(" "))
_PAUSES = frozenset(", - – —".split())
SHORTENED = frozenset("mr mrs ms dr st jr sr no".split())
# behind "and": a new statement
_GOES_ON = frozenset("he she it they we i was is were had has won became wrote made".split())
_OR = frozenset("or nor".split())


class Token(NamedTuple):
    """A word, a number or a mark. `values` are what a number may stand for: "3m" is three of
    something or three million.
    """

    word: str  # small letters, without diacritics; digits as they are
    shown: str
    name: bool = False  # begins with a capital
    values: tuple[Decimal, ...] = ()
    # or "cardinal", "ordinal", "decade", "date", "share" (a part, below 1), "mark"
    kind: str = "word"
    date: Date = (0, 0, 0)
    either: tuple[Date, ...] = ()  # of "03/04/1964" both dates; then `date` has the year alone
    spelt: bool = False  # in words: "twelve"
    rounded: bool = False  # with a scale or a point: "1.2 million"
    unit: str = ""  # written to the number: "km" of "5km"


@kept
def read(text: str) -> tuple[Token, ...]:
    """The tokens of `text`, in time linear in its length."""
    plain = _HYPHEN.sub(
        " ",
        _TO_DATE.sub(" - ", canonical(_plain_dates(_POSSESSIVE.sub("", _DECADE.sub("s", text))))),
    )
    pieces = [_token(match) for match in _PIECE.finditer(plain)]
    found: list[Token] = []
    i = 0
    while i < len(pieces):
        joined, used = _joined(pieces, i)
        found.append(joined)
        i += used
    return tuple(found)


def affirmed(tokens: Sequence[Token]) -> Sequence[Token]:
    """Without what a denial is about, up to the next part of the sentence: "He is not from Rome;
    he won in 1999" still says
    1999. "Not until 1931", "no secret" and "No. 5" deny nothing."""
    kept_tokens: list[Token] = []
    denied = False
    choice = _choices(tokens)
    for i, token in enumerate(tokens):
        denied = (denied and not _ends_denial(tokens, i, choice[i])) or _denies(tokens, i)
        if not denied:
            kept_tokens.append(token)
    return kept_tokens


def _choices(tokens: Sequence[Token]) -> list[bool]:
    """For each place whether an "or" follows before the next full stop."""
    found, follows = [False] * len(tokens), False
    for i in range(len(tokens) - 1, -1, -1):
        follows = tokens[i].word in _OR or (follows and tokens[i].word not in _STOPS)
        found[i] = follows
    return found


def _denies(tokens: Sequence[Token], i: int) -> bool:
    after = [token.word for token in tokens[i + 1 : i + 4]]
    if (
        tokens[i].word not in DENIALS
        or not _DOUBT.isdisjoint(after)
        or (after and after[0] in _NO_DENIAL)
    ):
        return False
    numbered = after[1:] if after[:1] == ["."] else after if tokens[i].name else []
    return not (tokens[i].word == "no" and numbered and numbered[0].isdigit())


def _ends_denial(tokens: Sequence[Token], i: int, choice: bool) -> bool:
    """Whether a new statement begins; "not in 1998, 1999 or 2000" is one denial."""
    word, after = tokens[i].word, tokens[i + 1] if i + 1 < len(tokens) else tokens[i]
    if word in _STOPS:
        return word != "." or i == 0 or tokens[i - 1].word not in SHORTENED
    listed = (
        bool(after.values) or after.kind == "date" or (after.name and choice) or after.word in _OR
    )
    if word in _PAUSES:
        return not (listed and (choice or word != ","))
    return word == "and" and (
        after.word in _GOES_ON or (after.kind == "word" and after.word.endswith("ed"))
    )


def _plain_dates(text: str) -> str:
    """Dates, lengths and numbers in the writings that `canonical` does not know."""
    text = _DOTTED_DAY.sub(
        r"\1 ", _DAY_OF.sub(r"\1 of", _FEET.sub(r"\1 ft \2 in", _VULGAR.sub(" ", text)))
    )
    text = _SLASHED.sub(
        _slashed,
        _YEAR_FIRST.sub(lambda one: _either([one[1]], int(one[3]), int(one[4])) or one[0], text),
    )
    text = _SPAN.sub(lambda one: f"{one[1]} - {one[3]}" if one[3] > one[2] else one[0], text)
    return _GROUPS.sub(lambda one: one[0].replace(".", ""), text)


def _slashed(match: re.Match[str]) -> str:
    """13/03/1964 as 1964-03-13; 03/04/1964 may be either, and so may the century of 3/4/64."""
    years = [match[4]] if match[4] else [f"19{match[6]}", f"20{match[6]}"]
    return _either(years, int(match[1]), int(match[3] or match[5])) or match[4] or match[0]


def _either(years: Sequence[str], first: int, second: int) -> str:
    orders = {
        (month, day)
        for month, day in ((first, second), (second, first))
        if 0 < month < 13 and 0 < day < 32
    }
    dates = [f"{year}-{month:02}-{day:02}" for year in years for month, day in sorted(orders)]
    return dates[0] if len(dates) == 1 else "~".join([years[0], *dates]) if dates else ""


def _token(match: re.Match[str]) -> Token:
    text = match[0]
    if match["mark"]:
        return Token(text, text, kind="mark")
    if match["either"]:
        either = tuple(_parts(one) for one in text.split("~")[1:])
        return Token(text, text, kind="date", date=(int(text[:4]), 0, 0), either=either)
    if match["date"]:
        return Token(text, text, kind="date", date=_parts(text))
    if match["number"] and len(match["number"]) <= LONGEST:
        return _digits(match["number"], match["suffix"].casefold(), text)
    roman = roman_value(text) if text[0] in "IVX" else 0
    return Token(
        text.casefold(), text, name=text[0].isupper(), values=(Decimal(roman),) * bool(roman)
    )


def _parts(text: str) -> Date:
    year, month, *day = map(int, text.split("-"))
    return year, month, day[0] if day else 0


def _digits(number: str, suffix: str, text: str) -> Token:
    value = Decimal(number)
    if suffix in ("st", "nd", "rd", "th"):
        return Token(number, text, values=(value,), kind="ordinal")
    if suffix == "s" and value % 10 == 0 and value > 0:
        return Token(number, text, values=(value,), kind="decade")
    values = (value, value * _SHORT[suffix]) if suffix in _SHORT else (value,)
    return Token(
        number,
        text,
        values=values,
        kind="cardinal",
        rounded="." in number or len(values) > 1,
        unit=suffix,
    )


def _joined(pieces: list[Token], i: int) -> tuple[Token, int]:
    """The token at `i`, or the number that several words make from there, and how many they are."""
    piece, after = pieces[i], pieces[i + 1].word if i + 1 < len(pieces) else ""
    if piece.word in _DECADES:
        return piece._replace(values=(Decimal(_DECADES[piece.word]),), kind="decade", spelt=True), 1
    if piece.word in _BEGINS or piece.kind == "cardinal":
        window = pieces[i : i + 12]
        if part := read_part([one.word for one in window], pieces[i - 1].word if i else ""):
            return _parted(window[: part.used], part), part.used
    if piece.word in _ORDINAL:
        return _ordinal(piece, _ORDINAL[piece.word], 1)
    if piece.word in _TENS and 0 < _ORDINAL.get(after, 0) < 10:
        return _ordinal(
            piece._replace(shown=f"{piece.shown} {after}"), _TENS[piece.word] + _ORDINAL[after], 2
        )
    if not (
        piece.kind == "cardinal"
        or (piece.word in SCALES and not piece.name)
        or piece.word in _WORDS
    ):
        return piece, 1
    window = pieces[i : i + 12]
    value, used = read_number([one.word for one in window])
    if not used:
        return piece, 1
    shown = " ".join(one.shown for one in window[:used])
    rounded = any(one.word in SCALES and one.word != "hundred" for one in window[:used])
    spelt = piece.kind != "cardinal"
    return (
        Token(
            str(value),
            shown,
            values=(value,),
            kind="cardinal",
            spelt=spelt,
            rounded=rounded or piece.rounded,
        ),
        used,
    )


def _parted(pieces: Sequence[Token], part: Part) -> Token:
    shown, kind = " ".join(one.shown for one in pieces), "share" if part.share else "cardinal"
    word = str(part.value) if part.value == int(part.value) else shown.casefold()
    spelt = pieces[0].kind != "cardinal"
    return Token(word, shown, values=(part.value,), kind=kind, spelt=spelt, rounded=part.rounded)


def _ordinal(piece: Token, value: int, used: int) -> tuple[Token, int]:
    return piece._replace(values=(Decimal(value),), kind="ordinal", spelt=True), used


_WORDS = frozenset(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen".split()
) | frozenset(_TENS)
_BEGINS = _WORDS | frozenset("a an half dozen".split())


def roman_value(text: str) -> int:
    """The value of a Roman number below 40, else 0."""
    if not _ROMAN.fullmatch(text):
        return 0
    digits = [{"I": 1, "V": 5, "X": 10}[letter] for letter in text]
    return sum(
        -one if one < after else one for one, after in zip(digits, [*digits[1:], 0], strict=True)
    )


def month(word: str) -> int:
    """1 to 12 for the name of a month, else 0."""
    return MONTHS.index(word) + 1 if word in MONTHS else 0
