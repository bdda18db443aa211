"""Normalise a text to canonical tokens, so that different spellings of an answer become equal.

SQuAD's exact match ignores case, punctuation and articles. The rules here also unify numbers, dates
and contractions.
"""

import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from workbench.util.patterns import regex

CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
_PUNCT = "!-/:-@\\[-`{-~\u00a1-\u00bf\u00d7\u00f7\u060c\u061b\u061f\u0964\u0965"
_PUNCT += "\u2000-\u206f\u20a0-\u20cf\u2190-\u2bff"
_PUNCT += "\u3000-\u303f\U0001f000-\U0001faff"
_BEGIN, _END = rf"(?<![^\s{_PUNCT}{CJK}])", rf"(?![^\s{_PUNCT}{CJK}])"
_ABBREVIATION = r"(?<!\b[^\W\d_])(?<!\b[SsDdMm][tr])(?<!\bMrs)(?<!\bMs)(?<!\bJr)(?<!\bSr)(?<!\bvs)"
STOP = rf"{_ABBREVIATION}\.(?=\s|$)|\.\.+|[!?;\n。]"

MONTHS = (
    "january february march april may june july august september october november december".split()
)
_MONTH = rf"({'|'.join(MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
_DAY, _YEAR = r"\b(0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?\b", r"\b([1-9]\d{3})\b"
_DATES = {  # pattern -> its groups for year, month and day (0: none)
    regex(pattern, re.I): groups
    for pattern, groups in {
        rf"{_DAY}(?: of)? {_MONTH},?(?: of)? {_YEAR}": (3, 2, 1),
        rf"\b{_MONTH} {_DAY},? {_YEAR}": (3, 1, 2),
        rf"(?<![\w-]){_YEAR}-(0?[1-9]|1[0-2])-(0?[1-9]|[12]\d|3[01])(?![\w-])": (1, 2, 3),
        rf"\b{_MONTH},?(?: of)? {_YEAR}": (2, 1, 0),
        rf"{_DAY}(?: of)? {_MONTH}": (0, 2, 1),
        rf"\b{_MONTH} {_DAY}(?!\w|[-.]\d)": (0, 1, 2),
    }.items()
}
_ERA = regex(r"\b(?:AD|CE) (?=\d)|(?<=\d) (?:AD|CE|(?P<before>BCE))\b")
_LETTERS = str.maketrans(dict(zip("łŁøØđĐıßæÆœ", "l L o O d D i ss ae Ae oe".split(), strict=True)))
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
SMALL = {word: value for value, word in enumerate(_SMALL.split())}
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
TENS = {word: 10 * i for i, word in enumerate(_TENS.split(), start=2)}
SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ORDINAL = dict(
    pair.split()
    for pair in (
        "first 1st,second 2nd,third 3rd,fourth 4th,fifth 5th,sixth 6th,seventh 7th,eighth 8th"
        ",ninth 9th,tenth 10th,eleventh 11th,twelfth 12th"
    ).split(",")
)

_TOKEN = regex(
    rf"(?P<word>{_BEGIN}[1-9]\d{{3}}-(?:0[1-9]|1[0-2])(?:-\d\d)?(?![\w-])"  # a date
    # a number that is more than digits, a time
    rf"|{_BEGIN}-?\d+\.\d+{_END}|{_BEGIN}-\d+{_END}|\d+:\d\d"
    rf"|[{CJK}]|[^\s{_PUNCT}{CJK}]+(?:(?<=[^\W\d_])[+#]+)?)"  # a character, a word (C++ is one)
    rf"|(?P<stop>{STOP})|(?P<comma>[,/|&()\[\]、–—•=+~<>\u2190-\u21ff]|\s-\s)|(?P<colon>:)"
)
_WRAPPERS = regex(r"\\(?:text|textbf|textit|mathrm|mathbf|boxed|mbox)\s*\{([^{}]*)\}")
_CONTRACTIONS = {
    regex(rf"(?i)\b(?:{pattern})\b"): expanded
    for pattern, expanded in {
        "can'?t|cannot": "can not",
        "(do|does|did|is|are|was|were|could|would|should|have|has|had)(?:n'?t| n't)": r"\1 not",
        "won't": "will not",
        "I'm": "I am",
        "(I|you|we|they)'ve": r"\1 have",
        "(it|that|he|she|there|what|who)'s": r"\1 is",
        "I'd": "I would",
        "I'll": "I will",
    }.items()
}
_CONTRACTED = regex("(?i)'|cannot|n ?t")  # one of these is in every contraction


class Token(NamedTuple):
    """A word or separator of a normalised text."""

    text: str  # a canonical word, or one of the separators "," "." ":"
    name: bool = False  # starts with a capital or a digit
    article: bool = False  # follows "the", "a" or "an"


def normalise(text: str) -> str:
    """Return the canonical spelling of a text. Answers that differ only in spelling become equal.

    "The 2,000 men" → "2000 men". These features are unified or removed: case, width, diacritics,
    punctuation, articles, contractions, numbers ("1,200", "two thousand"), initials ("U.S.", "US")
    and dates ("12 March 1921", "1921-03-12"). Chinese, Japanese and Korean are split into
    characters.
    """
    return " ".join(words_of(tokenise(text)))


def _fold(text: str) -> str:
    """Unify Unicode compatibility forms; drop Latin, Greek and Cyrillic diacritics.

    The marks of other scripts are kept, because they are letters.
    """
    if text.isascii():
        return text
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text)).translate(_LETTERS)
    return unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]", "", text))


@lru_cache(maxsize=512)
def canonical(text: str) -> str:
    """Return a text with one spelling for equal numbers, dates, contractions and initials.

    Case and punctuation are kept; `normalise` removes them too.
    """
    text = re.sub(
        r"\s+", lambda match: "\n" if "\n" in match[0] else " ", _fold(text.replace("´", "'"))
    )
    while (unwrapped := _WRAPPERS.sub(r"\1", text)) != text:
        text = unwrapped
    text = re.sub("[\u2010\u2011\u2212]|(?<=\\d)\u2013(?=\\d)", "-", re.sub("[‘’ʼ´`]", "'", text))
    # join "don 't" of tokenised texts
    text = re.sub(r"(?<=[^\W\d_]) '(?=(?:t|s|re|ve|ll|d|m)\b)", "'", text)
    for pattern, expanded in _CONTRACTIONS.items() if _CONTRACTED.search(text) else ():
        text = pattern.sub(expanded, text)
    text = re.sub(r"%|\bper cent\b", " percent", text.replace("'", ""))
    text = re.sub(r"(?i)(?<![\d)] )\b(?:minus|negative) (?=\d)", "-", text)
    text = re.sub(
        r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!,?\d)", lambda match: match[0].replace(",", ""), text
    )
    # the initials of "U.S." and of "J. K. Rowling" become one word
    text = re.sub(
        r"\b(?:[^\W\d_]\.[ \t]*){2,}", lambda match: re.sub(r"[.\s]", "", match[0]) + " ", text
    )
    if not re.search("[0-9]", text):
        return text
    text = _ERA.sub(lambda match: " BC" if match["before"] else "", text)
    for pattern, groups in _DATES.items():
        text = pattern.sub(lambda match, groups=groups: _date(match, *groups), text)  # type: ignore[misc]
    return text


def _date(match: re.Match[str], year: int, month: int, day: int) -> str:
    name = match[month].lower().rstrip(".")
    number = (
        int(name)
        if name.isdigit()
        else next(i for i, full in enumerate(MONTHS, 1) if full.startswith(name[:3]))
    )
    if not year:
        return f"{MONTHS[number - 1].title()} {int(match[day])}"
    return f"{match[year]}-{number:02}" + (f"-{int(match[day]):02}" if day else "")


@lru_cache(maxsize=1024)
def tokenise(text: str) -> tuple[Token, ...]:
    """Split a text into canonical words and separators; leave out articles."""
    tokens = []
    for match in _TOKEN.finditer(canonical(text)):
        if (word := match["word"]) is None:
            tokens.append(Token("." if match["stop"] else "," if match["comma"] else ":"))
            continue
        plain = _fold(word.casefold())
        if re.fullmatch(r"-?\d+\.\d+", plain):
            plain = plain.rstrip("0").rstrip(".")
        if word == "A" and match.string[match.end() : match.end() + 1] == ".":
            plain = "A"  # an initial, not an article
        tokens.append(Token(_ORDINAL.get(plain, plain), word[0].isupper() or word[0].isdigit()))
    articles = [  # not in "Vitamin A" and "A and B"
        token.text in ("the", "a", "an") and after.text not in _AFTER_LETTERS
        for token, after in pairwise([*tokens, Token("")])
    ]
    behind = zip(tokens, articles, [False, *articles], strict=False)
    return tuple(
        _join_numbers(
            [
                Token(token.text.lower(), token.name, article)
                for token, dropped, article in behind
                if not dropped
            ]
        )
    )


_AFTER_LETTERS = ("", ",", ".", ":", "and", "or", "is", "was")


def _join_numbers(tokens: list[Token]) -> list[Token]:
    joined, i = [], 0
    while i < len(tokens):
        value, used = read_number([token.text for token in tokens[i : i + 12]])
        joined.append(Token(str(value), True) if used else tokens[i])
        i += used or 1
    return joined


def read_number(words: list[str]) -> tuple[Decimal, int]:
    """Return the number at the start of `words`, and how many words form it.

    ["two", "thousand", "men"] → (2000, 2). The number is in words, or in digits before a scale
    ("2.5 million"). If there is no such number, the result is (0, 0).
    """
    current, i = _small(words)
    if not i and words[0] in SCALES:
        current = Decimal(1)
    elif not i and len(words) > 1 and words[1] in SCALES and re.fullmatch(r"\d+(\.\d+)?", words[0]):
        current, i = Decimal(words[0]), 1
    elif not i:
        return Decimal(0), 0
    total = Decimal(0)
    while i < len(words) and words[i] in SCALES:
        if words[i] == "hundred":
            current *= 100
        else:
            # a scale multiplies the number since the last scale ("two thousand million": all)
            scale = SCALES[words[i]]
            total, current = (total + current * scale if current else total * scale), Decimal(0)
        i += 1
        skip = i + 1 if words[i : i + 1] == ["and"] else i
        more, used = _small(words[skip:])
        current, i = (current + more, skip + used) if used else (current, i)
    return Decimal(format((total + current).normalize(), "f")), i


def _small(words: list[str]) -> tuple[Decimal, int]:
    """Return the number below 100 at the start of `words`, and how many words it has.

    Without such a number, the result is (0, 0).
    """
    first, second = [*words, "", ""][:2]
    if first not in TENS:
        return Decimal(SMALL.get(first, 0)), int(first in SMALL)
    unit = SMALL.get(second, 0)
    return (Decimal(TENS[first] + unit), 2) if 0 < unit < 10 else (Decimal(TENS[first]), 1)


def words_of(tokens: Iterable[Token]) -> list[str]:
    """Return the texts of the tokens that are not separators."""
    return [token.text for token in tokens if token.text not in (",", ".", ":")]
