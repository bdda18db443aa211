"""Which words name the same as a gold answer, though they are not its words: initials, titles,
short names, acronyms, spelling.

Only what names nobody else counts. Surnames and given names alone do not; neither do "Jr." and
the numbers of kings, and middle names that are told in one of two names alone count where the
question asks for a person, and the name is not one of a family that used it twice ("John Adams"
is not "John Quincy Adams").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

Form = tuple[str, ...]  # the words of a gold answer, in their canonical form

TITLES = frozenset(
    "sir dame lord lady dr mr ms president prime minister king queen prince princess emperor"
    " empress pope saint st professor prof senator governor general colonel captain lieutenant"
    " sergeant major admiral chancellor justice judge reverend rev chief pilot senior commander"
    " astronaut actor actress singer author".split()
)
_ROYAL = frozenset("sir dame dr king queen prince princess emperor empress pope president".split())
_ORDER = re.compile("[ivx]+|jr|sr|junior|senior|[0-9].*")
KINDS = frozenset(
    "river rivers desert mountain mountains ocean sea lake island islands street bridge station"
    " park tower valley bay strait canal peninsula crude ship class city town village county"
    " province film movie novel book song album band team series show award prize university"
    " college company virus disease element metal gas acid language currency planet star".split()
)  # what a thing is, which may stand behind its name
_SMALL = frozenset("of and for in on to de la du des der von".split())
_NAMESAKES = frozenset("adams bush bach strauss".split())
_NICKNAMES = """
william: bill billy will willie liam|robert: bob bobby rob robbie bert|richard: dick rick ricky rich
james: jim jimmy jamie|john: johnny jack|thomas: tom tommy|edward: ed eddie ted teddy ned|michael: mike mick mickey
joseph: joe joey|charles: charlie chuck chas|daniel: dan danny|david: dave davy|samuel: sam sammy|benjamin: ben benny
matthew: matt|andrew: andy drew|anthony: tony|christopher: chris kit|nicholas: nick nicky|alexander: alex alec sandy
stephen: steve|steven: steve|gregory: greg|jeffrey: jeff|kenneth: ken kenny|lawrence: larry|timothy: tim
ronald: ron ronnie|donald: don donnie|raymond: ray|theodore: ted teddy theo|frederick: fred freddie
francis: frank frankie|albert: al bert|alfred: al fred alf|walter: walt wally|henry: harry hank|harold: harry hal
leonard: leo len lenny|patrick: pat paddy|peter: pete|philip: phil|phillip: phil|gerald: gerry jerry|eugene: gene
abraham: abe|elizabeth: liz lizzie beth betty eliza|margaret: maggie meg peggy|katherine: kate katie kathy
catherine: kate katie cathy|patricia: pat patty patti tricia|susan: sue susie|deborah: debbie deb|jennifer: jen jenny
jessica: jess jessie|rebecca: becky|barbara: barb|victoria: vicky|alexandra: alex sandra|samantha: sam
dorothy: dot dottie|frances: fran|judith: judy|pamela: pam|cynthia: cindy|christina: tina chris|antonio: tony
"""
_SHORT = {  # given names by the ones that they are short for
    name: frozenset(shorts.split())
    for name, shorts in (entry.split(": ") for entry in re.split(r"[|\n]", _NICKNAMES.strip()))
}
_LONG = {
    short: frozenset(name for name, shorts in _SHORT.items() if short in shorts)
    for each in _SHORT.values()
    for short in each
}
_PERSON = re.compile(
    r"\bwho(?:m|se)?\b|\b(?:name|author|actor|actress|singer|writer|director|president|founder|inventor|composer|painter|artist"
    r"|player|person|man|woman|king|queen|scientist|poet|drummer|husband|wife|father|mother|brother|sister)s?\b",
    re.I,
)
_ORGANISED = re.compile(  # who has an acronym
    r"\b(?:organi[sz]ation|agency|agencies|union|bureau|corporation|association|administration|league|party|institut\w+|company"
    r"|council|committee|commission|federation|foundation|department|ministry|society|congress|states|republic|network"
    r"|broadcaster|service|services|treaty|group|band|alliance|bank|fund|academy|university|acronym|abbreviat\w+|stands?)\b",
    re.I,
)
_YEAR_ASKED = re.compile(r"\b(?:what|which) year\b|\byear of\b|\bhow long\b", re.I)
_DAY_ASKED = re.compile(r"\b(?:days?|months?|dates?|dated|when)\b", re.I)
# "which river", "the longest river"; not "through which state does the river flow"
_KIND_ASKED = re.compile(
    r"\b(?:which|what|name)(?: (?:is|was|are|were))?(?: (?:the|a|an))?(?: name of(?: the)?)?"
    r"((?:"
    r" (?!(?:is|was|are|were|do|does|did|has|have|had|can|could|of|in|on|at|by|from|to|for|with|the|a|an|and|or)\b)"
    r"[\w'’-]+){1,4})",
    re.I,
)
_DATE = re.compile(r"(\d{4})-\d\d(?:-\d\d)?")
_COUNTED = re.compile(
    r"\bhow (?:many|much|long|far|old|tall|high|deep|wide|big|large|fast|heavy)\b", re.I
)
_PREPOSITIONS = frozenset("in on at as by from since during".split())
_SAME_COUNTRY = [
    [tuple(name.split()) for name in names.split("|")]
    for names in (
        "united states|united states of america|us|usa|america",
        "united kingdom|uk|great britain",
        "czech republic|czechia",
    )
]
_MEASURES = """
m: metre metres meter meters|km: kilometre kilometres kilometer kilometers
cm: centimetre centimetres centimeter centimeters|mi: mile miles|ft: foot feet|in: inch inches
kg: kilogram kilograms kilogramme kilogrammes|g: gram grams|lb: lbs pound pounds|°c: celsius c|°f: fahrenheit f
l: litre litres liter liters|s: sec second seconds|min: minute minutes|h: hour hours hr hrs|day: days|week: weeks
month: months|year: years
"""
_UNITS = {
    name: unit
    for unit, names in (entry.split(": ") for entry in re.split(r"[|\n]", _MEASURES.strip()))
    for name in names.split()
}


def asks_for_person(question: str) -> bool:
    return bool(_PERSON.search(question))


def kinds_asked(question: str) -> frozenset[str]:
    """What a question says that it asks for: "river" of "Which river …", the first kind behind
    "which" or "what".
    """
    asked = (match[1].lower().split() for match in _KIND_ASKED.finditer(question))
    places = (
        (words, next((i for i, word in enumerate(words) if word in KINDS), None)) for words in asked
    )
    return frozenset(
        words[i]
        for words, i in places
        if i is not None and not KINDS.intersection(words[i + 1 : i + 2])
    )


def titled_alike(form: Form, titles: frozenset[str]) -> bool:
    """Whether titles in front of a name may be those of a gold answer: more or fewer, but no
    other ones in their place.
    """
    own = TITLES.intersection(form)
    return not own or own <= titles or titles <= own


def further_forms(form: Form, question: str, named: bool) -> set[Form]:
    """Other names of what a gold answer names: without its title, as an acronym, a date's year
    where the year is asked for, and of what is written small its plural or singular."""
    if len(form) == 1 and (date := _DATE.fullmatch(form[0])):
        return (
            {(date[1],)}
            if _YEAR_ASKED.search(question) and not _DAY_ASKED.search(question)
            else set()
        )
    rest = form[1:] if len(form) > 1 and form[0] in _PREPOSITIONS else form
    while len(rest) > 1 and rest[0] in TITLES:
        rest = rest[1:]
    titled = len(rest) < len(form) and (
        len(rest) > 1 or (form[-2] in _ROYAL and asks_for_person(question))
    )
    found = (
        {rest} if (titled and named) or (rest[0] != form[0] and form[0] in _PREPOSITIONS) else set()
    )
    found |= set(_countries(form)) | _quantities(form, question)
    organised = _ORGANISED.search(f"{question} {' '.join(form)}") and not asks_for_person(question)
    if (
        named
        and organised
        and len(letters := "".join(word[0] for word in form if word not in _SMALL)) > 2
        and letters.isalpha()
    ):
        found.add((letters,))
    if not named:
        found |= {(*form[:-1], other) for other in _plurals(form[-1])}
    return found


def _countries(form: Form) -> Iterator[Form]:
    """A country's other names."""
    for names in _SAME_COUNTRY:
        if form in names:
            yield from names


def _quantities(form: Form, question: str) -> set[Form]:
    """A number of something with other names of its unit, and alone where the question asks how
    many.
    """
    numbers = [word for word in form if word[0].isdigit()]
    if len(numbers) != 1 or len(form) > 4:
        return set()
    found = {
        tuple(word if name != other else short for word in form)
        for name in form
        for short, other in _unit_pairs(name)
    }
    return found | ({(numbers[0],)} if _COUNTED.search(question) else set())


def _unit_pairs(name: str) -> list[tuple[str, str]]:
    return (
        [(other, name) for other in (*_UNITS, unit(name)) if unit(other) == unit(name) != other]
        if name in _UNITS
        else []
    )


def _plurals(word: str) -> set[str]:
    if len(word) < 5 or not word.isalpha():
        return set()
    made = {f"{word}s"} | ({word[:-1]} if word.endswith("s") and word[-2] not in "su" else set())
    for ending, other in (("ia", "ion"), ("ion", "ia"), ("y", "ies"), ("ies", "y")):
        made |= {word.removesuffix(ending) + other} if word.endswith(ending) else set()
    return made


def unit(word: str) -> str:
    """One name of a unit: "km" of "kilometers"."""
    return _UNITS.get(word, word)


def is_unit(word: str) -> bool:
    return word in _UNITS or word in _UNITS.values()


def spelt_alike(wanted: Form, words: Sequence[str]) -> bool:
    """Whether two names differ in one letter of their last word, a long one, which is left out,
    doubled or out of its place: never a changed one ("Iceland", "Ireland") nor the last
    ("Dominica", "Dominican"), and never in a name of one word or a given name, where a letter
    makes another ("Alexandra", "Alexandria")."""
    if len(wanted) != len(words) or len(wanted) < 2 or list(wanted[:-1]) != list(words[:-1]):
        return False
    wrong = [(a, b) for a, b in zip(wanted, words, strict=True) if a != b]
    if len(wrong) != 1:
        return False
    [(a, b)] = wrong
    return min(len(a), len(b)) >= 8 and (a + b).isalpha() and _one_edit(*sorted((a, b), key=len))


def resembles(form: Form, words: set[str]) -> bool:
    """Whether one of the words is the acronym of a gold answer, one letter from a word of it, or
    a date in its year.
    """
    letters = "".join(word[0] for word in form if word not in _SMALL)
    long = [word for word in form if len(word) > 4 and word.isalpha()]
    near = (
        _one_edit(*sorted((a, b), key=len))
        for a in long
        for b in words
        if abs(len(a) - len(b)) < 2 and a != b
    )
    years = {date[1] for word in form if (date := _DATE.fullmatch(word))}
    return (
        (len(letters) > 2 and letters in words)
        or any(near)
        or not years.isdisjoint(word[:4] for word in words)
    )


def _one_edit(short: str, long: str) -> bool:
    place = next(
        (i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short)
    )
    if len(long) - len(short) == 1:
        return (
            place > 0
            and short[place:] == long[place + 1 :]
            and (place < len(short) or long[-1] == "e")
        )
    swapped = (
        short[:place] + short[place + 1 : place + 2] + short[place : place + 1] + short[place + 2 :]
    )
    return len(long) == len(short) and swapped == long and 0 < place < len(short) - 2


def name_end(words: Sequence[str], form: Form, person: bool) -> int | None:
    """How many of `words` are the same person's name as the gold one, by initials, middle names
    and short given names.
    """
    *gold, last = form
    if (
        not gold
        or len(last) < 3
        or not "".join(form).isalpha()
        or _ORDER.fullmatch(last)
        or _SMALL.intersection(form)
    ):
        return None
    size = next((i for i, word in enumerate(words[:6]) if word == last), 0)
    return (
        size + 1 if size and _one_person(_given(gold), _given(words[:size]), last, person) else None
    )


def _given(names: Sequence[str]) -> list[str]:
    """Given names, with the letters of "jrr" apart."""
    return [
        part
        for name in names
        for part in (name if len(name) <= 3 and not re.search("[aeiou]", name) else [name])
    ]


def _one_person(gold: list[str], said: list[str], last: str, person: bool) -> bool:
    pairs = list(zip(gold, said, strict=False))
    if not all(agree(a, b) for a, b in pairs):
        return False
    if len(gold) != len(said):
        longer = max(gold, said, key=len)
        # "John Stuart Lennon" may be another
        if len(said) > len(gold) and any(len(name) > 1 for name in said[1:]):
            return False
        return (
            len({*longer, last}) == len(longer) + 1
            and person
            and min(len(gold), len(said)) == 1
            and min(map(len, pairs[0])) > 1
            and last not in _NAMESAKES
        )
    # more than "J. K." of "Jessica Karen"
    return len(pairs) > 2 or any(min(map(len, pair)) > 1 for pair in pairs)


def agree(a: str, b: str) -> bool:
    """Whether two given names may be one person's: the same, an initial, or short for the other."""
    if not (a.isalpha() and b.isalpha()):
        return False
    if 1 in (len(a), len(b)):
        return a[0] == b[0]
    return (
        a == b
        or a in _LONG.get(b, ())
        or b in _LONG.get(a, ())
        or bool(_LONG.get(a, frozenset()) & _LONG.get(b, frozenset()))
    )
