"""Split texts of any script into words and passages, and normalise texts and titles."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Container, Sequence
from itertools import pairwise

from workbench.text import sentences

# scripts without spaces between words: Thai to Khmer, kana, Han (with its extensions)
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_COUNTED = re.compile(rf"[{_SPACELESS}]|[^\s{_SPACELESS}]{{1,64}}")
_RUN = re.compile(rf"[{_SPACELESS}]+|(?:(?![{_SPACELESS}])[^\W_])+")
_FIRST_SPACELESS = re.compile(rf"[{_SPACELESS}]")
_REMOVED = frozenset("'’‘ʼ`´.·")  # removed from a title; other punctuation separates words
_KEPT = frozenset("#%&@*")  # punctuation that distinguishes titles, such as C# from C


def word_starts(text: str) -> list[int]:
    """Return the character position where each word of a text starts.

    A word has no white space and at most 64 characters. In a script without spaces between words,
    such as Chinese, each character counts as a word *(ours)*.
    """
    return [match.start() for match in _COUNTED.finditer(text)]


def tokens(text: str) -> list[str]:
    """Return the normalised words of a text, for matching: "The Cafés" → ["the", "cafe"].

    Words are case-folded, and accents and the plural s are removed. In a script without spaces
    between words, such as Chinese, each pair of neighbouring characters counts as a word.
    """
    # NFKD separates letters from their accents
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
    """Return the singular of a plural, such as "city" for "cities", by its last three letters.

    The rules are those of Harman 1991, "How effective is suffixing?".
    """
    if len(word) < 4:
        return word
    if word.endswith("ies") and word[-4:-3] not in ("a", "e"):
        return f"{word[:-3]}y"
    if word.endswith("es") and word[-3:-2] not in ("a", "e", "o"):
        return word[:-1]
    return word[:-1] if word.endswith("s") and word[-2:-1] not in ("u", "s") else word


def hidden_words(text: str) -> str:
    """Return each pair of neighbouring characters in scripts without spaces between words.

    Example: "北京人口" → "北京 京人 人口".

    The full-text index splits such scripts into words by a dictionary. It may split a word in two:
    人口 in 两千万人口 becomes 万人 and 口. Because the index also stores the pairs, a search for
    人口 finds this text.
    """
    # the dictionary finds 人口 in 北京人口, but not in 两千万人口, which it segments as 万人 and 口
    runs = (
        [] if text.isascii() else [run for run in _RUN.findall(text) if _FIRST_SPACELESS.match(run)]
    )
    return " ".join(run[i : i + 2] for run in runs for i in range(len(run) - 1))


def clean(text: str) -> str:
    """Return a text that can be stored as UTF-8.

    A pair of surrogates becomes one character. Lone surrogates and NUL become U+FFFD.
    """
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "\ufffd")


def strict_title(title: str) -> str:
    """Normalise a title for comparison: lower case, normal character width, single spaces.

    Underscores count as spaces.
    """
    return " ".join(
        clean(unicodedata.normalize("NFKC", clean(title))).casefold().replace("_", " ").split()
    )


def title_key(title: str) -> str:
    """Return `strict_title(title)` without punctuation: "C#: a Guide" → "c# a guide".

    Symbols that distinguish titles, such as + and #, are kept.
    """
    strict = strict_title(title)
    characters = (
        ""
        if character in _REMOVED
        else " "
        if unicodedata.category(character)[0] == "P" and character not in _KEPT
        else character
        for character in strict
    )
    return " ".join("".join(characters).split()) or strict


def known_titles(titles: str, known: Container[str]) -> list[str]:
    """Return those titles in a text such as "Ana Bo; Toma Fel" that are known; [] without any.

    The titles are returned as they are written in the text. A title may contain ";" itself, as in
    "Steins;Gate". If the whole text is a known title, only this title is returned.

    Args:
        titles: one title, or several titles joined by ";".
        known: the known titles, each normalised by `title_key`.
    """
    for choice in ([titles], titles.split(";")):
        matches = [part.strip() for part in choice if (key := title_key(part)) and key in known]
        if matches:
            return list(dict.fromkeys(matches))
    return []


def split_page(text: str, words: int) -> list[str]:
    """Split a page at sentence ends into passages of at most `words` words.

    A sentence with more words is cut between words. In a script without spaces, such as Chinese,
    each character counts as a word. White space around passages is removed. With `words=0`, the
    whole page is one passage. A page without text gives [].
    """
    if not text.strip():
        return []
    if not words:
        return [text.strip()]
    cuts = _cuts(word_starts(text), [start for start, _ in sentences(text)], words)
    return [
        piece for begin, end in pairwise([*cuts, len(text)]) if (piece := text[begin:end].strip())
    ]


def _cuts(word_at: Sequence[int], sentence_at: Sequence[int], words: int) -> list[int]:
    """Return the character positions where passages begin.

    Args:
        word_at: positions of the words.
        sentence_at: positions of the sentences.
        words: maximum number of words of a passage.
    """
    cuts, first = [0], 0  # `first`: the number of the word with which the current passage begins
    bounds = [bisect_left(word_at, position) for position in sentence_at if position > 0]
    # words start:end are one sentence
    for start, end in pairwise([0, *bounds, len(word_at)]):
        if end - first <= words:
            continue
        if start > first:  # the sentence does not fit: it begins a new passage
            cuts.append(word_at[start])
            first = start
        while end - first > words:  # a sentence over the budget
            first += words
            cuts.append(word_at[first])
    return cuts
