"""Claims of examples: "films such as A and B" (see `workbench.claims.rules`)."""

from __future__ import annotations

import re

from workbench.claims import english
from workbench.claims.lists import TOGETHER, items, listed

_EXAMPLES = re.compile(r"(?P<comma>,?) (?:including|such as|like|namely) (?=[A-Z\"“\d]|[a-z])")
COUNTED = re.compile(
    r"\b(?:two|three|four|five|six|several)(?: [\w-]+){0,3}s(?P<comma>[,:]) (?=[A-Z\"“])"
)  # "two albums, A and B"
_MANY = (
    r"(?:several|numerous|many|various|multiple|some|other|two|three|four|five|over \w+|more"
    r" than \w+"
    r"|(?:dozens|scores|hundreds|thousands) of"
    r"|an? (?:\w+ )?(?:number|range|variety|host|series|selection|string|collection) of)"
)
_PHRASE = re.compile(
    rf"(?:^|\bto (?!(?:the|an?|his|her|their|its|{_MANY})\b)[a-z]+"
    rf" |\b(?:{'|'.join(english.PREPOSITIONS)}) "
    rf")(?=(?P<many>{_MANY}\b)?)"
)
_PLURAL = re.compile(r"(?<!ou)(?<![sui])s$|^(?:people|men|women|children|series)$")
_OTHERS = re.compile(
    r",? (?:among (?:many )?others|and (?:many |several )?(?:others|more)|etc\.?)$"
)
_OFFICE = {
    "positions": "the position of ",
    "posts": "the post of ",
    "roles": "the role of ",
    "titles": "the title of ",
}
_WORKS = re.compile(
    r"((?:television |tv |radio |video |feature |documentary |stage |musical"
    r" )?(?:film|movie|show|novel|book|album"
    r"|song|single"
    r"|game|play|magazine|newspaper|musical))s$",
    re.I,
)


def examples(verb: str, rest: str) -> list[str]:
    """Return the text without its examples and the text with each example instead; [] if there are
    none.

    "several films such as A" → "several films", "A". If the category is ambiguous, the text
    stays whole.
    """
    found = _EXAMPLES.search(rest) or (
        None if verb in ("has", "had", "have") else COUNTED.search(rest)
    )
    if not found:
        return []
    before, after = rest[: found.start("comma")], _without_others(rest[found.end() :])
    if (
        _unsure(before)
        or TOGETHER.search(before)
        or (verb in ("has", "have", "had") and not found["comma"])
    ):
        return []  # "has side effects such as fever" does not have fever
    phrase = _phrase(before, bool(found["comma"]) or "including" in found[0])
    if phrase is None or _EXAMPLES.search(after):
        return []
    start = phrase[0]
    own = items(after, not _TITLED.search(before))
    each = (
        own
        if all(re.match(r"[A-Z\"“\d]|(?:an?|the|his|her|its|their)\b", item) for item in own)
        else listed(after)
    )
    if all(re.match(r"[a-z]", item) for item in own) and not any(
        re.search(r" (?:of|for|in|on|with|from|to) ", one) for one in own
    ):
        each = own  # "politics, human rights and crime"
    held = re.search(r"\b(positions|posts|roles|titles)\b", before[start:])
    office = _OFFICE[held[1]] if held else ""
    return [before, *(f"{before[:start]}{office}{item}" for item in each)]


_TITLED = re.compile(
    r"\b(?:films?|movies?|books?|novels?|plays?|operas?|songs?|series|shows?|stories|works)\b"
)


def _without_others(after: str) -> str:
    """Remove "among others" and "and many more" and restore the final "and"."""
    named = _OTHERS.sub("", after)
    comma = named.rfind(", ")
    return (
        named
        if named == after or comma < 0 or " and " in named[comma:]
        else f"{named[:comma]} and {named[comma + 2 :]}"
    )


def _unsure(before: str) -> bool:
    return bool(
        re.search(
            r"(?:^| )(?!during|including|being|king|ring|wing|thing|spring|string)\w{2,}ing\b"
            r"|\b(?:that|which|who|whose|where|when|because|to \w+ing)\b",
            before,
        )
    )


def _phrase(before: str, comma: bool) -> tuple[int, str] | None:
    """Return the start and the text of the category phrase, or None."""
    starts: list[tuple[int, bool]] = []  # where the phrases begin, and whether they say "several"
    inside = 0
    for match in _PHRASE.finditer(before):
        if match.start() >= inside and before[match.end() :]:
            starts.append((match.end(), bool(match["many"])))
            inside = match.end("many") if match["many"] else inside
    if not starts:
        return None
    ends = [*(start for start, _ in starts[1:]), len(before) + 1]
    named = [
        re.sub(rf" (?:{'|'.join(english.PREPOSITIONS)}) $", "", before[a:b]).strip()
        for (a, _), b in zip(starts, ends, strict=True)
    ]
    plural = [bool(name and _PLURAL.search(name.split()[-1])) for name in named]
    phrases = [
        (start, name, many, one)
        for (start, many), name, one in zip(starts, named, plural, strict=True)
    ]
    prizes = [(start, name) for start, name, *_ in phrases if _PRIZES.search(name)]
    several = [(start, name) for start, name, many, _ in phrases if many]
    others = [(start, name) for start, name, _, one in phrases if one]
    return next((found[-1] for found in (prizes, several, others) if found), None)


_PRIZES = re.compile(r"(?:awards|hono[u]?rs|prizes|accolades|medals|nominations|distinctions)$")


def works(text: str) -> list[str]:
    """Return claims about named works: "films such as A (1954)" → A is a film, A was released in
    1954.
    """
    return [*_kinds(_BRACKETS.sub("", text)), *_titled(text), *_years(text)]


_BRACKETS = re.compile(r"\s*\([^()]*\)")


def _kinds(text: str) -> list[str]:
    found = _EXAMPLES.search(text) or COUNTED.search(text)
    before = text[: found.start("comma")] if found else ""
    phrase = _phrase(before, bool(found["comma"]) or "including" in found[0]) if found else None
    kind = _WORKS.search(phrase[1]) if phrase else None
    if (
        not found
        or not kind
        or re.search(r" (?:and|or) (?:\w+ )?$", before[: before.find(kind[0])])
    ):
        return []  # of "songs and albums, including A" it is not said which A is
    until = re.search(
        r"(?:, | and"
        rf" )(?:{'|'.join(english.PRONOUNS)}|which|who|where|\w+ed|was|is|for|both|before)\b| for"
        r" which",
        text[found.end() :],
    )
    if any(quoted.count(", ") > 1 for quoted in re.findall(r"[\"“]([^\"“”]*)[\"”]", text)):
        return []  # a quotation of more than one title
    named = items(
        _without_others(
            re.sub(r" in \d{4}\b", "", text[found.end() :][: until.start() if until else None])
        )
    )
    names = [
        item
        for item in named
        if re.fullmatch(r"[\"“][^\"”]*[\"”]|(?!.* (?:and|or|as|who|on|for) )[A-Z][^,\"“”]*", item)
    ]
    return (
        [f"{item} is {english.article(kind[1].lower()).replace('tv ', 'TV ')}" for item in names]
        if len(names) == len(named)
        else []
    )


_SINGLE = re.compile(
    r"\b(?:(?P<year>(?:1[89]|20)\d\d) )?(?P<kind>(?:television |tv |video |reality |feature"
    r" |documentary |TV |variety )*"
    r"(?:film|movie|novel|album|song|single|show|series|magazine|newspaper|game|EP))(?:"
    r" (?:called|titled|named|entitled))?,? "
    r"(?P<name>[\"“][^\"”]+[\"”]|[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*(?=$|,| \())"
)


_PLURAL_KIND = re.compile(
    rf"\b(?P<kind>{_WORKS.pattern[1:-3]})s (?P<names>[\"“][^\"”]+[\"”](?:(?:, and|,| and)"
    r" [\"“][^\"”]+[\"”])+)",
    re.I,
)


def _titled(text: str) -> list[str]:
    """Return the claims of "the 1917 film “A”": A is a film, and its year."""
    found = []
    for match in _PLURAL_KIND.finditer(text):
        found += [
            f"{name} is {english.article(match['kind'].lower())}"
            for name in re.findall(r"[\"“][^\"”]+[\"”]", match["names"])
        ]
    for match in _SINGLE.finditer(text):
        found.append(
            f"{match['name']} is {'an' if match['kind'][0] in 'aeioE' else 'a'} {match['kind']}"
        )
        if match["year"] and re.search(r"film|movie|album|song|single|game|EP", match["kind"]):
            found.append(f"{match['name']} was released in {match['year']}")
    return found


_KIND = re.compile(r"\b(?:(films?|movies?|albums?|songs?|singles?|musicals?)|(?:book|novel)s?)\b")
_DATED = re.compile(
    r"(?:\),? (?:and )?|(?:such"
    r" as|including|like|namely|film|movie|album|song|single|book|novel|series|in|by|for"
    r"|films|movies|albums|songs|novels|books|musicals) |: )"
    r"(?P<name>[\"“][^\"”]+[\"”]|[A-Z0-9][\w'’:.-]*(?:"
    r" (?:[A-Z0-9][\w'’:.-]*|of|the|a|an|to|in|with|on|for|at|from|vs|&))*)"
    r" \((?P<year>(?:1[89]|20)\d\d)\)"
)


def _years(text: str) -> list[str]:
    found = []
    end = 0
    while match := _DATED.search(text, end):
        end = match.end() - 1  # the next one may begin at the bracket
        kinds = list(_KIND.finditer(text, 0, match.start("name")))
        if kinds:  # not "Flame" of "Drowning in Flame (1974)"
            found.append(f"{match['name']} was released in {match['year']}")
    return found
