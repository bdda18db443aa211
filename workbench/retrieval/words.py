"""How the knowledge store sees text: words of any script, clean text, and titles by which a page
is found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container

# Scripts that are written without spaces: Thai to Khmer, kana, Han (with its extensions).
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_COUNTED = re.compile(rf"[{_SPACELESS}]|[^\s{_SPACELESS}]{{1,64}}")
_RUN = re.compile(rf"[{_SPACELESS}]+|(?:(?![{_SPACELESS}])[^\W_])+")
_FIRST_SPACELESS = re.compile(rf"[{_SPACELESS}]")
_JOINING = frozenset("'’‘ʼ`´.·")  # vanish from a title; other punctuation separates words
_TELLING = frozenset("#%&@*")  # is all that tells C# from C


def word_starts(text: str) -> list[int]:
    """Where each word begins: what a passage's budget counts.

    A word is a run without white space, at most 64 characters; in a script without spaces every
    character is one *(ours)*.
    """
    return [match.start() for match in _COUNTED.finditer(text)]


def tokens(text: str) -> list[str]:
    """Words for matching: without case, accents and plural s; a run of a script without spaces
    as pairs of characters.
    """
    folded = unicodedata.normalize("NFKD", text.casefold())
    plain = (
        "".join(character for character in folded if not unicodedata.combining(character))
        if not text.isascii()
        else folded
    )
    words: list[str] = []
    for run in _RUN.findall(plain):
        pairs = len(run) > 1 and _FIRST_SPACELESS.match(run)
        words += [run[i : i + 2] for i in range(len(run) - 1)] if pairs else [_singular(run)]
    return words


def _singular(word: str) -> str:
    """A plural's singular, by the last three letters (Harman 1991, "How effective is
    suffixing?").
    """
    if len(word) < 4:
        return word
    if word.endswith("ies") and word[-4:-3] not in ("a", "e"):
        return f"{word[:-3]}y"
    if word.endswith("es") and word[-3:-2] not in ("a", "e", "o"):
        return word[:-1]
    return word[:-1] if word.endswith("s") and word[-2:-1] not in ("u", "s") else word


def hidden_words(text: str) -> str:
    """Each run of a script without spaces as pairs of characters.

    With these beside the text, any two neighbouring characters can be found: a dictionary cuts
    人口 out of 北京人口, but not out of 两千万人口, which it reads as 万人 and 口.
    """
    runs = (
        [] if text.isascii() else [run for run in _RUN.findall(text) if _FIRST_SPACELESS.match(run)]
    )
    return " ".join(run[i : i + 2] for run in runs for i in range(len(run) - 1))


def clean(text: str) -> str:
    """Text that can be stored: surrogates joined to pairs, what is left of them and NUL replaced
    by U+FFFD.
    """
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "\ufffd")


def strict_title(title: str) -> str:
    """A title up to case, width and white space (an underscore is one)."""
    return " ".join(
        clean(unicodedata.normalize("NFKC", clean(title))).casefold().replace("_", " ").split()
    )


def title_key(title: str) -> str:
    """A title up to case, width, white space and punctuation; "" if nothing is left. Symbols
    such as + and # stay.
    """
    strict = strict_title(title)
    characters = (_plain(character) for character in strict)
    return " ".join("".join(characters).split()) or strict


def _plain(character: str) -> str:
    if character in _JOINING:
        return ""
    return (
        " "
        if unicodedata.category(character)[0] == "P" and character not in _TELLING
        else character
    )


def title_runs(titles: str, most: int = 12) -> list[list[str]]:
    """What `;`-joined titles may mean, as rows: row i has every title that begins at part i, the
    longest first.

    A title may hold a `;` itself, so neighbours are also read as one. Beyond `most` parts each
    part is one title.
    """
    parts = titles.split(";")
    longest = len(parts) if len(parts) <= most else 1
    return [
        [";".join(parts[i:j]) for j in range(min(len(parts), i + longest), i, -1)]
        for i in range(len(parts))
    ]


def longest_titles(titles: str, known: Container[str]) -> list[str]:
    """The titles meant by a `;`-joined list: from the left, the longest run of parts whose key
    is in `known`.
    """
    rows, chosen, start = title_runs(titles), [], 0
    while start < len(rows):
        fitting = (
            (len(rows[start]) - i, title)
            for i, title in enumerate(rows[start])
            if (key := title_key(title)) and key in known
        )
        size, title = next(fitting, (1, ""))
        chosen += [title] if title else []
        start += size
    return list(dict.fromkeys(chosen))
