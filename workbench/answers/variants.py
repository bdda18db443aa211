"""Other ways of writing a gold answer that name the same: with parts left out, in another order, shortened or spelt out.

Each rewrites the text of a gold answer by a class of its own, never by single answers; what would name more than the
gold answer
does, or something else that has a name of its own, is left out ("City of London", "northern Ireland", "Hank Williams" for
"Hank Williams Jr."). Less than the gold answer counts where the question says what is left out ("Chernobyl" of a
power plant), or
where what is left out only describes ("British actor Toby Hemingway") *(ours)*.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.answers.numerals import counted
from workbench.answers.places import regions
from workbench.answers.teams import nicknamed
from workbench.answers.text import MONTHS

_BRACKETS = re.compile(r"\s*[(\[]([^()\[\]]+)[)\]]\s*$")
_APPOSED = re.compile(r"^([^\W\d_][^,]*), (?:an?|the) [^\W\dA-Z_][\w'’ -]*$")
_QUOTED = re.compile(r"^([A-Z][\w'’.-]*(?: [A-Z][\w'’.-]*)*) [\"“'‘(]([A-Z][\w'’-]+)[\"”'’)] ((?:[A-Z][\w'’.-]* ?)+)$")
_SURNAME_FIRST = re.compile(r"^([A-Z][\w'’-]+), ([A-Z][\w'’.-]+(?: [A-Z]\.?)?)$")
_NAME = re.compile(r"^([A-Z][\w'’.-]+(?: [A-Z]\.?)?) ([A-Z][\w'’-]+)$")
_PART_OF = re.compile(
    r"^(?:the )?(?:[A-Z][\w.]* )?(?:state|province|island|town|village|county|country|community|district|municipality) of "
    r"(?:the )?([A-Z].*)$",
    re.I,
)
_DESCRIBED = re.compile(
    r"^(?:(?:[Tt]he|[Aa]n?|[A-Z][a-z]+(?:ish|ese|ian|ean|an|ch|ek|man)|[^\W\dA-Z_][\w'’-]*|\d+(?:st|nd|rd|th)) )*?"
    r"(?P<role>[a-z]{3,}) (?P<name>[A-Z][\w'’.&-]*(?: (?:(?:of|the|de|da|van|von|and) )*[A-Z\d][\w'’.&-]*)*)$"
)
_ROLE = re.compile(r"\w{2,}(?:er|or|ist|ian|ress|man|woman|bacterium)")
_NO_ROLES = frozenset(  # before a name these make it another, or nothing
    "under over upper lower inner outer former latter winter summer never after other another "
    "either whether rather older younger "
    "greater lesser minor major prior superior exterior interior junior senior per mother father brother sister daughter river "
    "water number order power november december october september human roman german man woman".split()
)
_KINDS = frozenset(
    "band group team company film movie song single album novel book play series ship city town "
    "village island river lake planet "
    "moon star species genus element metal gas dog breed comedian rapper magazine newspaper website programme program network "
    "organism chef pope king queen prince princess emperor".split()
)
_EVERY = re.compile(r",? (?:every|each|of every|of each) (?:year|month|week|day)$|,? (?:annually|yearly)$", re.I)
_IN = re.compile(r"^(?:(?:in|at) )?(?:the )?([A-Z][^,]*?) in (?:the )?([A-Z][\w'’., -]*)$")
_LONG_AGO = re.compile(r"^(?:the )?(?:\d+(?:st|nd|rd|th)[ -]century|\d{4}s|present-day|modern-day) ([A-Z].*)$", re.I)
_WHERE = re.compile(r"\bwhere\b|\b(?:what|which) (?:place|city|town|location|base|venue|stadium|building)\b", re.I)
_DATED = re.compile(r"\b(?:year|when|date|how)\b", re.I)
_PERSON = re.compile(r"\bwho(?:m|se)?\b|\b(?:coach|player|actor|author|singer|writer|president|person|man|woman)\b", re.I)
_AMPERSAND, _AND = re.compile(r"\s*&\s*"), re.compile(r"^([^,;/]+?) and ([^,;/]+)$")
_RANGE = re.compile(r"^(?:from |between )?(\d{4})\s?(?:-|–|—| to | until | and )\s?(\d{4}|\d{2})$")
_DECADE = re.compile(r"^(?:in |during )?(?:the )?(?P<exact>19)(?P<ten>[2-9])0'?s$", re.I)
_TENS = dict(zip("23456789", "twenties thirties forties fifties sixties seventies eighties nineties".split(), strict=True))
_CENTURY = re.compile(r"^(?:in |during )?(?:the )?(1[2-9])th century$", re.I)
_HUNDREDS = re.compile(r"^(?:in |during )?(?:the )?(1[1-8])00'?s$", re.I)
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_CLUB = re.compile(r"^(?:FC|F\.C\.|AFC|CF) | (?:FC|F\.C\.|AFC|CF|A\.F\.C\.)$")
_CLUB_ASKED = re.compile(r"\b(?:team|club|who|football|soccer)\b", re.I)


def variants(gold: str, question: str) -> set[str]:
    """Texts that name what a gold answer does, and the gold answer is written in another way than they are."""
    found = {gold}
    for _ in range(2):  # a name without its brackets has further forms
        found |= {other for text in found for rewrite in _REWRITES for other in rewrite(text, question)}
    return {text.strip() for text in found} - {gold, ""}


def _without_brackets(text: str, question: str) -> Iterator[str]:
    if (match := _BRACKETS.search(text)) and match.start() and not (re.search(r"\d", match[1]) and _DATED.search(question)):
        yield text[: match.start()].strip(' "')


def _undescribed(text: str, question: str) -> Iterator[str]:
    """A name without what it is: "Cake" of "American rock band Cake", "Robin" of "Robin, a youth"."""
    if match := _APPOSED.match(text):
        yield match[1]
    match = _DESCRIBED.match(text)
    if match and match["role"] not in _NO_ROLES and (match["role"] in _KINDS or _ROLE.fullmatch(match["role"])):
        yield match["name"]
    if match := _EVERY.search(text):
        yield text[: match.start()]


def _people(text: str, question: str) -> Iterator[str]:
    if match := _QUOTED.match(text):
        yield from (f"{match[1]} {match[3]}", f"{match[2]} {match[3]}")
    if _PERSON.search(question):
        if (match := _SURNAME_FIRST.match(text)) and match[2] not in regions() and match[1] not in regions():
            yield f"{match[2]} {match[1]}"
        if match := _NAME.match(text):
            yield f"{match[2]}, {match[1]}"
    if (plain := text.translate(_UMLAUTS)) != text:
        yield plain


def _places(text: str, question: str) -> Iterator[str]:
    """A place without its kind, its region or its time, and a range of mountains by its other name."""
    if match := re.fullmatch(r"(?:the )?([A-Z]\w{2,})s", text):
        yield f"{match[1].removesuffix('ie') + 'y' if match[1].endswith('ie') else match[1]} Mountains"
    if match := re.fullmatch(r"(?:the )?([A-Z]\w+) Mountains", text):
        yield f"{match[1].removesuffix('y')}ies" if match[1].endswith("y") else f"{match[1]}s"
    if (match := _LONG_AGO.match(text)) and "where" in question.lower():
        yield match[1]
    if match := _PART_OF.match(text):
        yield match[1]
    if (match := _IN.match(text)) and _WHERE.search(question):
        yield match[1]


def _joined(text: str, question: str) -> Iterator[str]:
    """With "and" for "&", and two things in the other order."""
    if "&" in text:
        yield _AMPERSAND.sub(" and ", text)
    if match := _AND.match(text):
        yield from (f"{match[1]} & {match[2]}", f"{match[2]} and {match[1]}")


def _times(text: str, question: str) -> Iterator[str]:
    if match := _RANGE.match(text):
        first, last = match[1], match[2] if len(match[2]) == 4 else match[1][:2] + match[2]
        if first < last:
            yield from (
                f"{first}-{last}",
                *(f"{first} {to} {last}" for to in ("to", "until", "and")),
                f"between {first} and {last}",
            )
    if match := _DECADE.match(text):
        yield from (f"{match['ten']}0s", _TENS[match["ten"]])
    if match := _CENTURY.match(text):
        yield f"{int(match[1]) - 1}00s"
    if match := _HUNDREDS.match(text):
        yield f"{int(match[1]) + 1}th century"
    if text.lower() in MONTHS and len(text) > 4:
        yield from (text[:3], *(["Sept"] if text.lower() == "september" else []))


def _teams(text: str, question: str) -> Iterator[str]:
    if nickname := nicknamed(text):
        yield nickname
    if _CLUB_ASKED.search(question):
        if bare := _CLUB.sub("", text):
            yield bare
        if re.fullmatch(r"[A-Z]\w+(?: [A-Z]\w+)?", text) and re.search(r"\b(?:team|club)\b", question):
            yield from (f"{text} FC", f"FC {text}")


_REWRITES = (_without_brackets, _undescribed, _people, _places, _joined, _times, _teams, counted)
