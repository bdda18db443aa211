"""Extract claims about examples: "films such as A and B" (see `workbench.claims.rules`)."""

import re
from itertools import pairwise

from workbench.claims.english import PREPOSITION, PRONOUNS, article
from workbench.claims.lists import TOGETHER, items
from workbench.util.patterns import regex

_EXAMPLES = regex(r"(?P<comma>,?) (?:including|such as|like|namely) (?=[A-Z\"“\d]|[a-z])")
COUNTED = regex(
    r"\b(?:two|three|four|five|six|several)(?: [\w-]+){0,3}s(?P<comma>[,:]) (?=[A-Z\"“])"
)  # "two albums, A and B"
_MANY = (
    r"(?:several|numerous|many|various|multiple|some|other|two|three|four|five|over \w+"
    r"|more than \w+|(?:dozens|scores|hundreds|thousands) of|an? (?:\w+ )?(?:number|range|variety"
    r"|host|series|selection|string|collection) of)"
)
_PHRASE = regex(
    rf"(?:^|\bto (?!(?:the|an?|his|her|their|its|{_MANY})\b)[a-z]+"
    rf" |\b{PREPOSITION} "
    rf")(?=(?P<many>{_MANY}\b)?)"
)
_PLURAL = regex(r"(?<!ou)(?<![sui])s$|^(?:people|men|women|children|series)$")
_OTHERS = regex(r",? (?:among (?:many )?others|and (?:many |several )?(?:others|more)|etc\.?)$")
_WORKS = regex(
    r"((?:television |tv |radio |video |feature |documentary |stage |musical )?(?:film|movie|show"
    r"|novel|book|album|song|single|game|play|magazine|newspaper|musical))s$",
    re.I,
)


def examples(verb: str, rest: str) -> list[str]:
    """Return a text without its examples, then one text for each example.

    `examples("acted", "in several films such as A and B")` returns ["in several films", "in A",
    "in B"]. The result is [] if there are no examples, or if it is unclear which phrase they
    illustrate.

    Args:
        verb: the verb before the text, or "". It is not part of the results. After "has", a comma
            must precede the examples: "has side effects such as fever" gives [].
        rest: the text.
    """
    has = verb in ("has", "have", "had")
    match = _EXAMPLES.search(rest) or (None if has else COUNTED.search(rest))
    if not match or (has and not match["comma"]):
        return []  # "has side effects such as fever" does not mean "has fever"
    before, after = rest[: match.start("comma")], _without_others(rest[match.end() :])
    if _AMBIGUOUS.search(before) or TOGETHER.search(before):
        return []
    phrase = _phrase(before)
    if phrase is None or _EXAMPLES.search(after):
        return []
    own = items(after, not _TITLED.search(before))
    return [before, *(f"{before[: phrase[0]]}{item}" for item in own)]


_TITLED = regex(
    r"\b(?:films?|movies?|books?|novels?|plays?|operas?|songs?|series|shows?|stories|works)\b"
)


def _without_others(after: str) -> str:
    """Remove "among others" or "and many more": "A, B, among others" → "A and B"."""
    text = _OTHERS.sub("", after)
    comma = text.rfind(", ")
    if text == after or comma < 0 or " and " in text[comma:]:
        return text
    return f"{text[:comma]} and {text[comma + 2 :]}"


_AMBIGUOUS = regex(  # examples after these words may belong to another phrase
    r"(?:^| )(?!during|including|being|king|ring|wing|thing|spring|string)\w{2,}ing\b"
    r"|\b(?:that|which|who|whose|where|when|because|to \w+ing)\b"
)


def _phrase(before: str) -> tuple[int, str] | None:
    """Return the start and the text of the phrase that the examples belong to ("several films").

    It is a plural or begins with a word such as "several". Returns None if there is no such phrase.
    """
    starts: list[tuple[int, bool]] = []  # starts of phrases; whether one has "several" or the like
    inside = 0
    for match in _PHRASE.finditer(before):
        if match.start() >= inside and before[match.end() :]:
            starts.append((match.end(), bool(match["many"])))
            inside = match.end("many") if match["many"] else inside
    phrases = [
        (start, re.sub(rf" {PREPOSITION} $", "", before[start:end]).strip(), many)
        for (start, many), (end, _) in pairwise([*starts, (len(before) + 1, False)])
    ]
    prizes = [(start, text) for start, text, _ in phrases if _PRIZES.search(text)]
    several = [(start, text) for start, text, many in phrases if many]
    plural = [(start, text) for start, text, _ in phrases if _PLURAL.search(text.split(" ")[-1])]
    return next((group[-1] for group in (prizes, several, plural) if group), None)


_PRIZES = regex(r"(?:awards|hono[u]?rs|prizes|accolades|medals|nominations|distinctions)$")


def works(text: str) -> list[str]:
    """Return the claims about works (films, books, songs, …) that a sentence implies.

    "films such as A (1954)" → "A is a film", "A was released in 1954".
    """
    return [*_kinds(re.sub(r"\s*\([^()]*\)", "", text)), *_titled(text), *_years(text)]


def _kinds(text: str) -> list[str]:
    """Return the claims that "films such as A and B" implies: "A is a film", "B is a film"."""
    match = _EXAMPLES.search(text) or COUNTED.search(text)
    if not match:
        return []
    before = text[: match.start("comma")]
    phrase = _phrase(before)
    kind = _WORKS.search(phrase[1]) if phrase else None
    if not kind or re.search(r" (?:and|or) (?:\w+ )?$", before[: before.find(kind[0])]):
        return []  # A has no single kind in "songs and albums, including A"
    until = re.search(
        r"(?:, | and"
        rf" )(?:{'|'.join(PRONOUNS)}|which|who|where|\w+ed|was|is|for|both|before)\b| for"
        r" which",
        text[match.end() :],
    )
    if any(quoted.count(", ") > 1 for quoted in re.findall(r"[\"“]([^\"“”]*)[\"”]", text)):
        return []  # a quotation of more than one title
    titles = text[match.end() :][: until.start() if until else None]
    names = items(_without_others(re.sub(r" in \d{4}\b", "", titles)))
    title = r"[\"“][^\"”]*[\"”]|(?!.* (?:and|or|as|who|on|for) )[A-Z][^,\"“”]*"
    if not all(re.fullmatch(title, name) for name in names):
        return []
    noun = article(kind[1].lower()).replace("tv ", "TV ")
    return [f"{name} is {noun}" for name in names]


_SINGLE = regex(
    r"\b(?:(?P<year>(?:1[89]|20)\d\d) )?(?P<kind>(?:television |tv |video |reality |feature "
    r"|documentary |TV |variety )*(?:film|movie|novel|album|song|single|show|series|magazine"
    r"|newspaper|game|EP))(?: (?:called|titled|named|entitled))?,? (?P<name>[\"“][^\"”]+[\"”]"
    r"|[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*(?=$|,| \())"
)


_PLURAL_KIND = regex(
    rf"(?i)\b(?P<kind>{_WORKS.pattern[1:-3]})s (?P<names>[\"“][^\"”]+[\"”](?:(?:, and|,| and)"
    r" [\"“][^\"”]+[\"”])+)"
)


def _titled(text: str) -> list[str]:
    """Return the claims that "the 1917 film “A”" implies: "“A” is a film", and the release year."""
    claims = []
    for match in _PLURAL_KIND.finditer(text):
        noun = article(match["kind"].lower())
        names = re.findall(r"[\"“][^\"”]+[\"”]", match["names"])
        claims += [f"{name} is {noun}" for name in names]
    for match in _SINGLE.finditer(text):
        name, kind = match["name"], match["kind"]
        claims.append(f"{name} is {'an' if kind[0] in 'aeioE' else 'a'} {kind}")
        if match["year"] and re.search(r"film|movie|album|song|single|game|EP", kind):
            claims.append(f"{name} was released in {match['year']}")
    return claims


_KIND = regex(r"\b(?:(films?|movies?|albums?|songs?|singles?|musicals?)|(?:book|novel)s?)\b")
_DATED = regex(
    r"(?:\),? (?:and )?|(?:such as|including|like|namely|film|movie|album|song|single|book|novel"
    r"|series|in|by|for|films|movies|albums|songs|novels|books|musicals) "
    r"|: )(?P<name>[\"“][^\"”]+[\"”]|[A-Z0-9][\w'’:.-]*(?: (?:[A-Z0-9][\w'’:.-]*|of|the|a|an|to|in"
    r"|with|on|for|at|from|vs|&))*) \((?P<year>(?:1[89]|20)\d\d)\)"
)


def _years(text: str) -> list[str]:
    """Return the claims on release years that "the films A (1954) and B (1960)" implies."""
    claims, end = [], 0
    while match := _DATED.search(text, end):
        end = match.end() - 1  # the next match may begin at the closing parenthesis
        # not for "Flame" in "Drowning in Flame (1974)"
        if _KIND.search(text, 0, match.start("name")):
            claims.append(f"{match['name']} was released in {match['year']}")
    return claims
