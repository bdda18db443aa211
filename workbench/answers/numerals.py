"""Numerals in names: "Rocky II" and "Rocky 2", "the third season" and "season 3", "World War II" and "the Second World War"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.answers.rivals import PARTS

_ROMAN = re.compile(r"(?=[IVXL])(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50}
_ENDS_ROMAN = re.compile(r"^(.*[^\W\d_].*) ([IVXL]+)$")
_ENDS_DIGITS = re.compile(r"^(.*[^\W\d_]) ([1-9]\d?)$")
_PART = re.compile(rf"^(?:in )?(?:the )?({'|'.join(sorted(PARTS))}) (\w+)$", re.I)
_ORDINAL_PART = re.compile(rf"^(?:in )?(?:the )?(\w+) ({'|'.join(sorted(PARTS))})$", re.I)
_WAR = re.compile(r"^(?:the )?(?:world war (i{1,2}|1|2|one|two)|ww ?(i{1,2}|1|2)|(first|second) world war)$", re.I)
_CARDINALS = "one two three four five six seven eight nine ten eleven twelve".split()
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
_TIMES = {1: "once", 2: "twice", 3: "thrice"}
_HOW_OFTEN = re.compile(r"\bhow (?:many times|often)\b", re.I)
_HOW_MANY = re.compile(r"\bhow many\b", re.I)


def counted(text: str, question: str) -> Iterator[str]:
    """A gold answer with its numeral written in another way."""
    if match := _WAR.match(text):
        second = (match[1] or match[2] or match[3]).lower() in ("ii", "2", "two", "second")
        roman, digit, word = ("II", 2, "Second") if second else ("I", 1, "First")
        yield from (f"World War {roman}", f"World War {digit}", f"WW{roman}", f"WW{digit}", f"WW {roman}", f"{word} World War")
    elif (match := _ENDS_ROMAN.match(text)) and _ROMAN.fullmatch(match[2]):
        value = _value(match[2])
        yield from (f"{match[1]} {value}", f"{match[1]} {_ordinal(value)}")
    elif match := _ENDS_DIGITS.match(text):
        yield f"{match[1]} {_roman(int(match[2]))}"
    if (match := _PART.match(text)) and (number := _number(match[2], _CARDINALS)):
        yield f"{_ordinal(number)} {match[1]}"
    if (match := _ORDINAL_PART.match(text)) and (number := _number(match[1], _ORDINALS)):
        yield f"{match[2]} {number}"
    yield from _alone(text.strip().lower(), question)


def _alone(text: str, question: str) -> Iterator[str]:
    """A number that is the whole answer, in words that only say how often or that there are none."""
    times = text.removesuffix(" times").removesuffix(" time")
    if _HOW_OFTEN.search(question) and (number := _number(times, _CARDINALS)) in _TIMES:
        yield _TIMES[number]
    often = {word: number for number, word in _TIMES.items()}
    if _HOW_OFTEN.search(question) and text in often:
        yield str(often[text])
    if _HOW_MANY.search(question) and text in ("0", "zero", "none"):
        yield from ("0", "none")


def _number(word: str, words: list[str]) -> int:
    """The number that a word or digits say, 0 for none; "3rd" counts among ordinals alone."""
    digits = re.fullmatch(r"([1-9]\d?)(st|nd|rd|th)?", word.lower())
    if digits and bool(digits[2]) == (words is _ORDINALS):
        return int(digits[1])
    return words.index(word.lower()) + 1 if word.lower() in words else 0


def _ordinal(number: int) -> str:
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _value(roman: str) -> int:
    values = [_VALUES[letter] for letter in roman]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))


def _roman(number: int) -> str:
    signs = ((90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))
    made = ""
    for value, sign in signs:
        made += sign * (number // value)
        number %= value
    return made
