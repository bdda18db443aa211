"""Split a text into sentences, as exact character spans.

The text between two spans is layout:

* white space, section markers and plans (see `workbench.text.sections`)
* bullets, list numbers, heading signs and quotation signs
* anything without a letter or digit

A line of a heading, list or table is a sentence, and so is a whole code fence. A line that begins
in lower case belongs to the line before it.

Limits:

* An unlisted abbreviation ends a sentence if a capital follows.
* An abbreviation that may end a sentence ("Inc.", "U.S.", a single letter) ends one only before a
  word that often starts a sentence ("He", "In").
* A quotation that ends in "?" or "!" ends its sentence if a name follows ('"Why?" Anna asked.').
"""

import re
from collections import deque
from collections.abc import Iterator

from workbench.text.markup import CITATION, EMOJI
from workbench.text.names import groups
from workbench.text.sections import sections
from workbench.types import Span, Spans
from workbench.util.patterns import regex

_LINE = regex("[^\n\r\x0b\x0c\x85\u2028\u2029]+")
_LAYOUT = regex(
    r"\s*(?:(?:[-*+•‣◦▪–—·]|#{1,6}|>+)\s+|>+|\(?\d{1,2}[.)](?:\s+|(?=[A-Z\u4e00-\u9fff]))|\(?[a-z]\)\s+|\d{1,2}、"
    r")+|\s+"
)
_FENCE = regex(r"\s{0,3}(`{3,}|~{3,})")
_CODE = regex(r"`[^`\n]+`")
_STRONG = "。！？；｡．।॥؟۔"  # these always end a sentence
_CLOSERS = "\"'”’»›)\\]}*_`」』）】》〉"
_END = regex(
    rf"(?:[{_STRONG}]+|(?P<weak>[.!?…]+))(?:{CITATION}|{EMOJI})*(?P<closed>[{_CLOSERS}]*)"
    rf"(?:{CITATION}|{EMOJI})*(?P<space>\s+|$)?"
)
_WORD_BEFORE = regex(r"(?<![=/&?#@:])[\w.&’'-]*$")
_ACRONYM = regex(r"(?:[^\W\d_]\.)*[^\W\d_]|Ph\.D|[A-Z][a-z]?\.[A-Z][a-z]?(?:\.[A-Z])?")

_FULL_WORD, _CAPITALISED = regex(r"[A-Za-z][a-z]{2,}|\d{4}"), regex(r"[A-Z][a-z]*[ ,]")
_FOLLOWING = regex(r"[\"'“‘«‹¿¡(\[*_`]*(\w*)")

# The words of `stops.txt` by heading. A full stop after a "never" word does not end a sentence;
# after a "maybe" word, it ends one before a "starters" word.
_WORDS = {name: frozenset(re.split("[ |]", words)) for name, words in groups("stops.txt").items()}


def sentences(text: str, prefill: str = "") -> Spans:
    """Return the sentences of `text` as half-open character spans.

    The spans are ordered and disjoint. Each has a letter or digit, and no white space at either
    end. Runs in linear time.

    Args:
        prefill: a tag such as "<think>" that the prompt leaves open (see `sections`).
    """
    lower_starts = re.findall(r"[^\W\d_]{3}[.!?] (?=[a-z])", text)
    other_starts = re.findall(r"[^\W\d_]{3}[.!?] (?=[^\Wa-z])", text)
    lower = len(lower_starts) > len(other_starts)  # the text starts sentences in lower case
    spans = (
        span
        for _, start, end in sections(text, prefill)
        for begin, finish, code in _blocks(text, start, end)
        for span in ([(begin, finish)] if code else _split(text, begin, finish, lower))
    )
    return tuple((begin, end) for begin, end in spans if any(map(str.isalnum, text[begin:end])))


def _blocks(text: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Yield (start, end, whether it is a code fence) for each paragraph, list line and code fence.

    Bullets and other layout at the start are left out.
    """
    block: Span | None = None
    fence: tuple[str, int] | None = None  # the fence characters, and the start of their line
    for line in _LINE.finditer(text, start, end):
        if not line[0].strip():
            continue
        sign = _FENCE.match(line[0])
        if fence:
            if sign and sign[1].startswith(fence[0]):
                yield *_strip(text, fence[1], line.end()), True
                fence = None
            continue
        if sign and "`" not in line[0][sign.end() :]:
            if block:
                yield *block, False
            block, fence = None, (sign[1], line.start())
            continue
        layout = _LAYOUT.match(line[0])
        begin = line.start() + (layout.end() if layout else 0)
        if block and begin < line.end() and _continues(text, block, line.start(), begin):
            block = block[0], line.end()
            continue
        if block:
            yield *block, False
        block = begin, line.end()
    if block:
        yield *block, False
    if fence:
        yield *_strip(text, fence[1], end), True


def _continues(text: str, block: Span, line: int, begin: int) -> bool:
    """Whether a line continues the paragraph `block`: in lower case, or after a comma."""
    between = text[block[1] : line]
    if (
        between.count("\n") > 1
        or between.count("\r") > 1
        or text[line:begin].strip()
        or text[block[0]] == "|"
    ):
        return False
    last = text[max(block) - min(99, block[1] - block[0]) : block[1]].rstrip()[-1:]
    return last not in ".!?:;…" + _STRONG and (text[begin].islower() or last == ",")


def _split(text: str, start: int, end: int, lower: bool) -> Iterator[Span]:
    """Yield the sentences of one paragraph.

    Args:
        lower: whether the text starts its sentences in lower case.
    """
    codes = deque(code.span() for code in _CODE.finditer(text, start, end))
    number = _list_number(text, start)
    for match in _END.finditer(text, start, end):
        while codes and codes[0][1] <= match.start():
            codes.popleft()
        if match.start() < start or (codes and codes[0][0] < match.start()):
            continue
        before = _WORD_BEFORE.search(text[max(start, match.start() - 24) : match.start()])
        word = before[0] if before else ""
        if (
            word == str(number + 1)
            and match["space"]
            and _is_item(text, start, match.start() - len(word), number)
        ):
            yield _strip(text, start, match.start() - len(word))  # "1. Ana 2. Belu"
            number += 1
        elif match["weak"] is None or _ends(text, word, match, end, lower):
            yield _strip(text, start, match.end())
        else:
            continue
        layout = _LAYOUT.match(text, match.end(), end)
        start = layout.end() if layout else match.end()
        number = _list_number(text, start) or number
    yield _strip(text, start, end)


def _strip(text: str, start: int, end: int) -> Span:
    while start < end and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    return start, end


def _list_number(text: str, start: int) -> int:
    number = re.search(r"(?<!\d)(\d{1,2})[.)、]\s*$", text[max(0, start - 6) : start])
    return int(number[1]) if number else 0


def _is_item(text: str, start: int, at: int, number: int) -> bool:
    """Whether the number at `at` is a list number inside a line ("Items: 1. Ana 2. Belu").

    It follows white space; the first number also follows a colon.
    """
    before = text[max(start, at - 3) : at]
    return before[-1:].isspace() and (number > 0 or before.rstrip().endswith(":"))


def _ends(text: str, word: str, match: re.Match[str], end: int, lower: bool) -> bool:
    """Whether ".", "!", "?" or an ellipsis after `word` ends a sentence."""
    if match.end() == end:
        return True
    if match["space"] is None:
        if word and word[-1] >= "\u3040" and text[match.end()] >= "\u3040":
            return True  # "他走了.她来了"
        begins = _CAPITALISED.match(text, match.end(), end)
        # "in Vetra.He left"
        return bool(begins and _FULL_WORD.fullmatch(word) and len(match[0]) == 1)
    following = _FOLLOWING.match(text, match.end(), end)
    after = following[1] if following else ""
    if after[:1].islower() and not after[1:2].isupper() and (not lower or match["closed"]):
        return False
    return (
        match["weak"] != "."
        or bool(match["closed"] and word not in _WORDS["never"])
        or not _abbreviates(word, after)
    )


def _abbreviates(word: str, after: str) -> bool:
    """Whether the full stop between `word` and `after` only marks an abbreviation."""
    if word in _WORDS["never"]:
        return True
    if word.casefold() in _WORDS["numbered"] and (
        after[:1].isdigit() or re.fullmatch("[IVXL]{2,}", after)
    ):
        return True
    if word.isdigit() and len(word) < 3:
        return after in _WORDS["months"]
    letter = _ACRONYM.fullmatch(word) and word.lower() != word.upper()
    return (
        bool(letter or word in _WORDS["maybe"]) and after not in _WORDS["starters"] and after != ""
    )
