"""Tokenize text into words, numbers and punctuation for the rules of `numbers` and `names`."""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from workbench.text.normal_form import MONTHS, SCALES, SMALL, TENS
from workbench.util.patterns import regex

_PIECE = regex(
    r"(?P<money>[$£€] ?)?(?P<number>\d{1,3}(?:[, ]\d{3})+(?!\d)(?:\.\d+)?"
    r"|\d{1,3}(?:\.\d{3}){2,}|\d{1,15}(?:\.\d+)?)"
    r"(?P<suffix>[^\W\d_]*)"
    r"|(?P<word>[^\W\d_][^\W_]*)|(?P<mark>[^\w\s]|\n)"
)
_POSSESSIVE = regex(r"(?<=[^\W\d_])['’]s\b")
_DECADE = regex(r"(?<=\d0) ?['’]s\b")  # "the 1970 's" of tokenised texts
_HYPHEN = regex(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_DATE = regex(r"\b(\d{1,2})[./](\d{1,2})[./](\d{4})\b")
_INITIALS = regex(r"(?<=\b[A-Z])\.(?=[A-Z]\b)")  # "U.S." is "US."
_HALF = regex(r" and a half\b|½")
_ISO_DATE = regex(r"(?<![\w-])([12]\d{3})-(0[1-9]|1[0-2])-(\d\d)(?![\w-])")
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
    " fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth".split()
)
UNITS = SMALL | TENS
ORDINALS = {word: value for value, word in enumerate(_ORDINALS, start=1)} | {
    f"{word[:-1]}ieth": value for word, value in TENS.items()
}
DECADES = {f"{word[:-1]}ies": value for word, value in TENS.items()}
_SCALES = SCALES | {"dozen": 12, "k": 10**3, "mn": 10**6, "bn": 10**9}
_ROMAN = regex(r"X{0,3}(?:IX|IV|V?I{0,3})")
MOST_PIECES = 12  # maximum pieces per number, so that the running time is linear
ROMAN = {"I": 1, "V": 5, "X": 10}


class Token(NamedTuple):
    """One word, number or punctuation mark of a text."""

    word: str  # lower case, without diacritics
    text: str  # as written
    kind: str = "word"  # or "mark", "number", "ordinal", "decade"
    value: float = 0.0  # the value of a number, an ordinal or a decade

    @property
    def capital(self) -> bool:
        """Whether the token is a capitalised word."""
        return self.kind == "word" and self.text[0].isupper()

    @property
    def month(self) -> int:
        """The number of the month that the token names, 1 to 12 ("Sept": 9); 0 for other words."""
        if len(self.word) < 3 or (self.word in ("mar", "march", "may") and not self.capital):
            return 0
        return next((n for n, name in enumerate(MONTHS, 1) if name.startswith(self.word)), 0)

    @property
    def is_year(self) -> bool:
        """Whether the token may be a year from 1000 to 2199."""
        return self.kind == "number" and 1000 <= self.value < 2200 and "," not in self.text


def tokenize(text: str) -> list[Token]:
    """Split `text` into tokens in linear time; words that form one number become one token.

    "two thousand men" → "two thousand" (value 2000), "men".
    """
    text = _ISO_DATE.sub(
        lambda date: f"{date[3]} {MONTHS[int(date[2]) - 1].title()} {date[1]}", text
    )
    text = _HALF.sub(" onehalf", _INITIALS.sub("", text))
    text = _HYPHEN.sub(" ", _DATE.sub(r"\1 / \2 / \3", _POSSESSIVE.sub("", _DECADE.sub("s", text))))
    pieces = [token for match in _PIECE.finditer(_fold(text)) for token in _pieces(match)]
    tokens: list[Token] = []
    position = 0
    while position < len(pieces):
        token, used = _merge_number(pieces[position : position + MOST_PIECES])
        tokens.append(token)
        position += used
    return tokens


def _fold(text: str) -> str:
    """Unify Unicode compatibility forms and drop diacritics."""
    if text.isascii():
        return text
    return re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", text))


def _pieces(match: re.Match[str]) -> list[Token]:
    text = match[0]
    if match["mark"]:
        return [Token(text, text, "mark")]
    if match["word"]:
        if len(text) > 1 and (roman := _ROMAN.fullmatch(text)):
            return [Token(text.lower(), text, "ordinal", _roman(roman[0]))]
        return [Token(text.lower(), text)]
    digits, suffix = re.sub("[, ]", "", match["number"]), match["suffix"].lower()
    value = float(digits if digits.count(".") < 2 else digits.replace(".", ""))
    if suffix in ("st", "nd", "rd", "th"):
        return [Token(text, text, "ordinal", value)]
    if suffix == "s" and value % 10 == 0:
        return [Token(text, text, "decade", value)]
    if match["money"] and suffix in ("m", "b"):
        suffix += "n"  # "$3.5m"
    number = Token(match["number"], match["number"], "number", value)
    return [number, Token(suffix, suffix)] if suffix else [number]


def _roman(text: str) -> float:
    values = [ROMAN[letter] for letter in text] + [0]
    return sum(-value if value < after else value for value, after in pairwise(values))


def _merge_number(pieces: Sequence[Token]) -> tuple[Token, int]:
    """Return the first token of `pieces`, and how many pieces it consists of.

    If the first pieces form a number, the token is this number. Otherwise, it is the first piece.
    """
    first, second = pieces[0], pieces[1].word if len(pieces) > 1 else ""
    if first.word in DECADES:
        return first._replace(kind="decade", value=DECADES[first.word]), 1
    if first.word in UNITS and UNITS[first.word] > 19 and 0 < ORDINALS.get(second, 0) < 10:
        ordinal = UNITS[first.word] + ORDINALS[second]
        return Token(f"{ordinal}", f"{first.text} {second}", "ordinal", ordinal), 2
    if first.word in ORDINALS:
        return first._replace(kind="ordinal", value=ORDINALS[first.word]), 1
    if first.word == "half" and second in ("a", "an"):
        whole, used = _merge_number(pieces[1:])
        if whole.kind == "number":  # "half a million"
            return whole._replace(text=f"half {whole.text}", value=whole.value / 2), used + 1
    article = first.word in ("a", "an") and second in _SCALES
    if not article and first.kind != "number" and first.word not in UNITS:
        return first, 1
    value, used = _value(pieces)
    text = " ".join(piece.text for piece in pieces[:used])
    return Token(text.lower(), text, "number", value), used


def _value(pieces: Sequence[Token]) -> tuple[float, int]:
    """Return the value of the number at the start of `pieces`, and how many pieces it consists of.

    The number can be in digits, words or both.
    """
    total, current, last = 0.0, 0.0, ""  # `last`: kind of the previous piece
    used = 0
    for position, piece in enumerate(pieces):
        unit, scale = UNITS.get(piece.word), _SCALES.get(piece.word.removesuffix("s"))
        if position == 0:
            current, last = piece.value if piece.kind == "number" else float(unit or 1), "unit"
        elif scale == 100:
            current, last = current * 100, "scale"
        elif scale:
            total, current, last = total + current * scale, 0.0, "scale"
        elif unit is not None and (last != "unit" or 0 < unit < 10 <= current % 100 - current % 10):
            current, last = current + unit, "unit"
        elif unit is not None and 10 < current < 21 and unit > 9:
            current, last = current * 100 + unit, "unit"  # "nineteen thirty-one"
        elif piece.word == "onehalf":
            current += 0.5
        elif piece.word == "and" and last == "scale":
            continue
        else:
            break
        used = position + 1
    return total + current, used
