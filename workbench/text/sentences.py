"""Sentences, exact to the character: every one is a span of the text, and what lies between two
is layout.

Layout is white space, the markers of sections, what plans an answer (see
`workbench.text.sections`), bullets, list numbers, the signs of headings and quotations, and
whatever has no letter or digit. A line of a heading, list or table, and a fence of code as a
whole, is a sentence of its own; a line that goes on in small letters belongs to the one before
it.

Limits: an abbreviation that is not listed here ends a sentence where a capital follows; one that
also ends sentences ("Inc.", "U.S.", a single letter) does so only before a word that often
begins one ("He", "In"); a quotation that ends in "?" or "!" and is followed by a name ends its
sentence ('"Why?" Anna asked.').
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from workbench.text.sections import sections

Span = tuple[int, int]

_LINE = re.compile("[^\n\r\x0b\x0c\x85\u2028\u2029]+")
_LAYOUT = re.compile(
    r"\s*(?:(?:[-*+•‣◦▪–—·]|#{1,6}|>+)\s+|>+|\(?\d{1,2}[.)](?:\s+|(?=[A-Z\u4e00-\u9fff]))|\(?[a-z]\)\s+|\d{1,2}、"
    r")+|\s+"
)
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_CODE = re.compile(r"`[^`\n]+`")
_STRONG = "。！？；｡．।॥؟۔"  # these end a sentence whatever follows
_CLOSERS = "\"'”’»›)\\]}*_`」』）】》〉"
_END = re.compile(
    rf"(?:[{_STRONG}]+|(?P<weak>[.!?…]+))(?:\[\d{{1,3}}\])*(?P<closed>[{_CLOSERS}]*)(?:\[\d{{1,3}}\])*(?P<space>\s+|$)?"
)
_WORD_BEFORE = re.compile(r"(?<![=/&?#@:])[\w.&’'-]*$")
_ACRONYM = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]|Ph\.D|[A-Z][a-z]?\.[A-Z][a-z]?(?:\.[A-Z])?")

_FULL_WORD, _CAPITALISED = re.compile(r"[A-Za-z][a-z]{2,}|\d{4}"), re.compile(r"[A-Z][a-z]*[ ,]")
_FOLLOWING = re.compile(r"[\"'“‘«‹¿¡(\[*_`]*(\w*)")

_NEVER = frozenset(  # followed by what they belong to
    "Dr Drs Mr Mrs Ms Mx Prof Gen Col Capt Cpt Lt Sgt Maj Cmdr Rev Hon Sen Rep Gov Pres Mt Ft Mme"
    " Mlle Hr Fr Sra Dra Msgr Dipl e.g i.e viz cf al eg ie vs v ca approx z.B d.h bzw z u.a p.ej"
    " resp incl esp abbr née né lit".split()
)
_NUMBERED = frozenset(
    "no nos nr nº vol vols fig figs eq eqs sec sect ch chap pp p art op par cat ref tab str".split()
)
_MAYBE = frozenset(  # these end a sentence where a word follows that often begins one
    "Inc Ltd Co Corp Bros Jr Sr Esq St Ste Ave Blvd Rd Hwy Sq etc usw Univ Dept Assn Bldg Ed Eds ed"
    " eds Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Ala Ariz Ark Calif Colo Conn Del Fla Ga"
    " Ill Ind Kan Ky La Mass Md Mich Minn Miss Mo Mont Neb Nev Okla Ore Pa Penn Tenn Tex Va Vt Wash"
    " Wis Wyo Ph.D Cie Hrsg Bd Aufl jr sr gest geb ft lb oz in mi km hrs min sec b d r fl".split()
)
_STARTERS = frozenset(
    "The A An He She It They We I You His Her Its Their Our My Your This That These Those There"
    " Here In On At By For From With As After Before During Since Until While When Where Who What"
    " Which Why How If Although Though However Moreover Furthermore Additionally Also But And Or So"
    " Yet Then Later Today Now Some Many Most Both Each Every One Two Several Other Another Upon"
    " Despite Because Among Along Over Under Through Throughout Following According Overall"
    " Unfortunately Despite Not No Yes Der Die Das Er Sie Es Ein Eine Im Am El La Los Las Él Ella"
    " En Un Una Le Les Il Elle Une".split()
)
_MONTHS = frozenset(
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split()
)


def sentences(text: str, prefill: str = "") -> tuple[Span, ...]:
    """The sentences of `text` as half-open character spans: ordered, disjoint, with no white
    space at either end, and each with a letter or a digit. `prefill` is what the prompt left
    open (see `sections`). Takes time linear in the text."""
    small = _writes_small(text)
    found = (
        span
        for _, start, end in sections(text, prefill)
        for begin, finish, code in _blocks(text, start, end)
        for span in ([(begin, finish)] if code else _split(text, begin, finish, small))
    )
    return tuple((begin, end) for begin, end in found if any(map(str.isalnum, text[begin:end])))


def _writes_small(text: str) -> bool:
    """Whether the sentences of a text mostly begin with a small letter."""
    return len(re.findall(r"[^\W\d_]{3}[.!?] (?=[a-z])", text)) > len(
        re.findall(r"[^\W\d_]{3}[.!?] (?=[^\Wa-z])", text)
    )


def _blocks(text: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """The paragraphs, lines of lists and (True) fences of code from `start` to `end`, without
    layout at their begin.
    """
    block: Span | None = None
    fence: tuple[str, int] | None = None  # its sign, and where its line begins
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
        if block and begin < line.end() and _goes_on(text, block, line.start(), begin):
            block = block[0], line.end()
            continue
        if block:
            yield *block, False
        block = begin, line.end()
    if block:
        yield *block, False
    if fence:
        yield *_strip(text, fence[1], end), True


def _goes_on(text: str, block: Span, line: int, begin: int) -> bool:
    """Whether a line only goes on with the paragraph before it: it begins with a small letter,
    or a comma came before it.
    """
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


def _split(text: str, start: int, end: int, small: bool) -> Iterator[Span]:
    """The sentences of one paragraph."""
    codes = deque(code.span() for code in _CODE.finditer(text, start, end))
    number = _list_number(text, start)
    for match in _END.finditer(text, start, end):
        while codes and codes[0][1] <= match.start():
            codes.popleft()
        if match.start() < start or (codes and codes[0][0] < match.start()):
            continue
        word = _before(text, start, match.start())
        if (
            word == str(number + 1)
            and match["space"]
            and _is_item(text, start, match.start() - len(word), number)
        ):
            yield _strip(text, start, match.start() - len(word))  # "1. Ana 2. Belu"
            number += 1
        elif match["weak"] is None or _ends(text, word, match, end, small):
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
    found = re.search(r"(?<!\d)(\d{1,2})[.)、]\s*$", text[max(0, start - 6) : start])
    return int(found[1]) if found else 0


def _is_item(text: str, start: int, at: int, number: int) -> bool:
    """Whether the number at `at` is a list's inside a line: it follows white space, the first
    one a colon too.
    """
    before = text[max(start, at - 3) : at]
    return before[-1:].isspace() and (number > 0 or before.rstrip().endswith(":"))


def _before(text: str, start: int, end: int) -> str:
    found = _WORD_BEFORE.search(text[max(start, end - 24) : end])
    return found[0] if found else ""


def _ends(text: str, word: str, match: re.Match[str], end: int, small: bool) -> bool:
    """Whether a full stop, "!", "?" or an ellipsis after `word` ends its sentence."""
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
    if after[:1].islower() and not after[1:2].isupper() and (not small or match["closed"]):
        return False
    return (
        match["weak"] != "."
        or bool(match["closed"] and word not in _NEVER)
        or not _abbreviates(word, after)
    )


def _abbreviates(word: str, after: str) -> bool:
    """Whether the full stop between `word` and `after` only marks an abbreviation."""
    if word in _NEVER:
        return True
    if word.casefold() in _NUMBERED and (after[:1].isdigit() or re.fullmatch("[IVXL]{2,}", after)):
        return True
    if word.isdigit() and len(word) < 3:
        return after in _MONTHS
    letter = _ACRONYM.fullmatch(word) and word.lower() != word.upper()
    return bool(letter or word in _MAYBE) and after not in _STARTERS and after != ""
