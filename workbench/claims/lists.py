"""Split a list in a sentence into items, if each item is true alone.

The rule-based extractor (`workbench.claims.rules`) uses this module.
"""

import re

from workbench.claims.english import (
    AGENTS,
    DETERMINERS,
    PREPOSITION,
    PREPOSITIONS,
    TOKEN,
    article,
    blank,
)
from workbench.claims.places import CONTINENTS, COUNTRIES, REGIONS
from workbench.util.patterns import regex

_CAPITALS = r"[A-Z][\w'’.-]*+(?: [A-Z][\w'’.-]*+)*+"
_WHOLE = regex(  # phrases that are not divided at their separators
    r"[\"“][^\"“”]*[\"”]|\band/or\b|\b(?:Jammu and Kashmir|Bosnia and Herzegovina|Trinidad and"
    r" Tobago|Antigua and Barbuda"
    r"|Newfoundland and Labrador|Turks and Caicos|Tyne and Wear|Match of the Day)\b"
    # "Minister of Agriculture, Fisheries and Food"
    rf"|\b[A-Z][\w'’-]*+ (?:of|for) (?:the )?{_CAPITALS}(?:, {_CAPITALS})*+,? and {_CAPITALS}(?!"
    r" (?:of|for)\b)"
)
_JOINED = regex(r",? (?:and|as well as) |, ")
_LAST = regex(r",? (?:and|as well as) ")
_OWN = regex(r"[A-Z\"“]|(?:an?|the|his|her|its|their|several|many|one)\b")
_SHARED = regex(r"(?:an?|the|his|her|its|their)\s+")
_CLAUSE = regex(r"\b(?:that|which|who|whom|whose|where|when|because|if)\b")
TOGETHER = regex(  # words after which a list holds only as a whole
    r"\b(?:between|among|blend|blends|mix|mixture|combination|union|merger|fusion|collaboration"
    r"|pair|duo|trio|balance|contrast|comparison|sum|average|cross|hybrid|most|least|both of|either"
    r"|neither|intersection|relationship|marriage|war|interplay|alternat\w+|divided|consists? of"
    r"|composed of|comprised of|made up of)\b"
)
_ADJECTIVE = regex(r"[\w-]+(?:ic|al|ive|ous|ful|less|ary|ed|ing|ern|ant|ent|able|ible|ish)$")
_PLACES = COUNTRIES | REGIONS | CONTINENTS
_LONGEST = 7  # words of an item


def items(text: str, people: bool = False) -> list[str]:
    """Split a list at commas and "and": "A, B, and C" → ["A", "B", "C"].

    Returns [text] if the text is not a list, or has "or". Quotations, names and offices ("Minister
    of Art and Sport") are not split.

    Args:
        people: whether the items are people. If False, two names joined by "and" are not split,
            because they may be one title, such as "War and Peace".
    """
    masked = mask(text.strip(" ,"))
    last = list(_LAST.finditer(masked))
    whole = [unmask(masked)]
    if not last or " or " in masked or _CLAUSE.search(masked, 0, last[-1].start()):
        return whole
    # a comma in the last item does not split it: "Balliol College, Oxford"
    head, joining, tail = masked[: last[-1].start()], last[-1][0], masked[last[-1].end() :]
    if len(last) > 1 and "," not in head + joining:
        return whole  # "health and education to empowerment and equality"
    stripped = (piece.strip(" ,") for piece in [*head.split(", "), tail])
    pieces = _with_nouns(list(filter(None, stripped)))
    if (
        any(map(_OWNING.match, pieces[1:]))  # "the Ards and Osk Council's system"
        or any(len(piece.split()) > _LONGEST for piece in pieces)
        or (not people and _is_one_name(pieces))
        or any(map(_NO_SUCH.search, pieces[:-1]))
    ):
        return whole
    return [unmask(piece) for piece in pieces]


_OWNING = regex(rf"{_CAPITALS}(?:(?<=['’]s)|(?<=s['’])) [a-z]")


def _with_nouns(pieces: list[str]) -> list[str]:
    """Join adjectives with their noun: ["kind", "caring nature"] → ["kind and caring nature"]."""
    joined: list[str] = []
    for piece in reversed(pieces):
        bare = _SHARED.sub("", piece, count=1)
        after = joined[0] if joined else ""
        word = " " not in bare and bare.islower() and not bare.endswith("s")
        phrase = " " in after and after[0].islower() and not _OWN.match(after)
        if word and phrase and not AGENTS.search(bare):
            joined[0] = f"{piece} and {after}"
        else:
            joined.insert(0, piece)
    return joined


# Qualifiers that may apply to all items: "a fake doctor and lawyer".
_NO_SUCH = regex(
    r"\b(?:fake|so-called|aspiring|acting(?! (?:career|debut|roles?|skills|work))|former|would-be"
    r"|failed|fictional|fictitious|honorary|alleged|self-(?:proclaimed|styled|described)|purported"
    r"|supposed|suspected|pretend(?:ed)?|mock|imaginary|potential|prospective|false|bogus"
    r"|unsuccessful|ex-) ?(?!(?:of|for|in|as|to|by|with|at|on)\b)[\w\"“]"
)


def alternatives(text: str) -> bool:
    """Return whether the text has "A or B" outside a quotation."""
    return " or " in mask(text)


def _is_one_name(pieces: list[str]) -> bool:
    """Whether two capitalised words may be one name: "Marks and Spencer", "War and Peace"."""
    # "The Moon and Sixpence"
    first = re.sub(r"^the " if " " in pieces[-1] else r"^[Tt]he ", "", pieces[0])
    if len(pieces) == 2 and re.match(r"[A-Z][\w'’-]* [a-z]", pieces[1]):
        return True  # "the 1959 Rodgers and Hammerstein musical"
    if len(pieces) != 2 or " " in first or not pieces[1][:1].isupper():
        return False
    return not all(piece in _PLACES for piece in pieces)


def listed(text: str, people: bool = False) -> list[str]:
    """Return one text for each item of a list, with the words before the list repeated.

    "as an actor and singer" → ["as an actor", "as a singer"]. Returns [text] if the list cannot be
    split.

    Args:
        people: whether the items are people. If False, two names joined by "and" are not split,
            because they may be one title, such as "War and Peace".
    """
    masked = mask(text)
    separator = _JOINED.search(masked)
    if (
        not separator
        or " or " in masked
        or TOGETHER.search(masked)
        or ":" in blank(text)
        or _UNDIVIDED.search(masked)
    ):
        return [text]
    words = list(TOKEN.finditer(masked, 0, separator.start()))
    last = next((i for i in range(len(words) - 2, -1, -1) if words[i][0] in PREPOSITIONS), None)
    start = words[last + 1].start() if last is not None else 0
    before, after = (words[last][0], words[last + 1][0]) if last is not None else (" ", "")
    # "to make quick and sound choices"
    infinitive = before == "to" and after.islower() and after not in DETERMINERS
    if _CLAUSE.search(masked, 0, start) or infinitive or _COLLECTED.search(masked, 0, start):
        return [text]
    opening = re.compile(r"both ").match(masked, start)
    first, *others = items(masked[opening.end() if opening else start :], people)
    if (
        not others
        or not _are_alike(first, others)
        or any(f" {before} " in item for item in others)
        or not _are_closed(first, others, words, last)
    ):
        return [text]
    outer = masked[: words[last].start()] if last is not None else ""
    return [
        unmask(masked[:start]) + first,
        *(_like(first, item, unmask(masked[:start]), unmask(outer)) for item in others),
    ]


_BEHIND = regex(rf"(?<![A-Z])\b(?!of (?:the )?[A-Z])(?:{PREPOSITION}|to|than) ")
_NAMED = regex(
    r"[A-Z\d\"“]|(?:an?|the|other|two|three|four|(?:his|her|its) \w+|[a-z]+ [a-z]+s) (?:[a-z]+"
    r" )?[A-Z\"“]"
)
_COMPLETE = regex(
    r"(?:an?|his|her|its|their|several|many|numerous|various|some)\b"
)  # "several songs", but not "the history"
_MORE = regex(r"(?:(?:many|several|some|various|all) )?others?\b")


def _are_closed(
    first: str, others: list[str], words: list[re.Match[str]], last: int | None
) -> bool:
    """Whether it is clear which item each phrase of a list belongs to.

    False for "the history and culture of Osk": "of Osk" may modify one item or both.

    Args:
        words: the words before the first separator.
        last: index in `words` of the preposition before the list, if there is one.
    """
    if _LED.match(others[0]):
        return not any(word[0] in PREPOSITIONS for word in words[:last])
    *inner, end = (first, *others)
    if re.search("[a-z] [A-Z]", end) and (not re.search("[A-Z]", first)):
        return False  # "the inventor and manufacturer Bo Ardel"
    if any(_BEHIND.search(item) for item in inner):
        return all(_BEHIND.search(item) for item in (first, *others))  # each item has a phrase
    agents = AGENTS.search(first)
    own = re.match(r"(?:an?|the|his|her|its|their) [a-z -]+ of ", end) and not first.startswith(
        "the "
    )
    if _BEHIND.search(end) and not (own or _COMPLETE.match(first) or agents):
        return False
    named = [bool(_NAMED.match(item)) for item in (first, *others) if not _MORE.match(item)]
    return all(named) or not any(named[1:])


_UNDIVIDED = regex(
    r"\b(?:including|such as|namely|ranging|, (?:first|then|later|once)\b|and (?:later|then"
    r"|subsequently|eventually|afterwards|possibly|probably|perhaps)\b| [-–—] |from \w+ to|(?:over"
    r"|about|around|nearly|under|almost) \d|both (?:as|for|in|by|on|at|to|with|from) )"
)


_SUM = (
    r"(?:\d[\d,.]*|two|three|four|five|six|seven|eight|nine|ten|several|many|numerous|various"
    r"|most|all)"
)
# "three goals for A and B", "with goals from A and B": the number counts all items together.
_COLLECTED = regex(
    rf"\b(?:{_SUM} (?:[\w-]+ ){{0,3}}|with (?:[a-z-]+ )?)[a-z-]+(?<![sui])s "
    rf"(?:(?:[\w'’-]+ ){{0,6}}){PREPOSITION} (?:the |an? )?$"
)


def _like(first: str, item: str, opening: str, outer: str) -> str:
    """Return an item with the words before the list and the article of the first item.

    "singer" → "as a singer", if the first item is "an actor" and `opening` is "as ". An item with
    its own preposition follows `outer`, the words before the list's preposition.
    """
    if _LED.match(item):
        return outer + item  # "in magazines and on television"
    shared = _SHARED.match(first)
    prefix = shared[0] if shared else ""
    if prefix.strip() in ("a", "an"):
        return opening + article(item)
    return opening + (item if _OWN.match(item) else prefix + item)


_LED = regex(f"{PREPOSITION} ")


def _is_headless(first: str, other: str) -> bool:
    """Whether the first item may lack its noun: "edible marine and freshwater fishes"."""
    if not first.islower():
        return False
    first_plural, other_plural = (
        re.search(r"(?<![sui])s$", item.split(" of ")[0].split(" in ")[0])
        for item in (first, other)
    )
    adjective = " " in other and _ADJECTIVE.match(first.split()[-1])
    return bool((other_plural and not first_plural and not _SHARED.match(first)) or adjective)


_TITLES = (
    r"(?:Ambassador|Chair\w*|President|Director|Secretary|Professor|Minister|Member|Head|Chief"
    r"|Governor|Captain|Editor|Founder|Leader|Chancellor|Mayor|Dean|Fellow|Provost|Commander"
    r"|Senator|Master|Doctor|Bachelor|General)"
)


def _are_alike(first: str, others: list[str]) -> bool:
    """Whether the items can form one list: names with names, and no verbs or clauses."""

    def some(pattern: str) -> bool:
        return any(re.match(pattern, item) for item in others)

    bare = re.match(r"[a-z]", first) and not _OWN.match(first)
    prepositions = {bool(_LED.match(item)) for item in others}
    return not (
        first[0].isdigit()
        or (bare and some(r"the [a-z]+ of "))  # "progress in art and the presence of money"
        or len(prepositions) > 1
        or (len(others) == 1 and _is_headless(first, others[0]))
        or some(r"\w+ed\b")
        or some(rf"[A-Z].*{_TITLES}$")  # "to the Fund and Press Secretary"
        or any(item.split()[0].endswith("ing") and " " in item for item in (first, *others))
        or (some(_THEIRS) and not re.match(_THEIRS, first))
        # "the Kashmiri language and literature"
        or (re.match(r"(?:the|its|their|his|her) \S+ ", first) and some(r"\S+$"))
        or some(r"[a-z]+ (?:them|him|us|it|you)\b")  # "on their seats and inspire them"
    )


_THEIRS = r"(?:his|her|their|its) "


def mask(text: str) -> str:
    """Replace commas, "and" and "or" inside names and quotations by control characters.

    Names and quotations are therefore not split at these separators. `unmask` restores the text.
    """
    return _WHOLE.sub(lambda one: _replace(one[0], _SEPARATORS), text)


def unmask(text: str) -> str:
    """Restore the separators that `mask` replaced."""
    return _replace(text, {code: separator for separator, code in _SEPARATORS.items()})


_SEPARATORS = {" and ": "\0", ", ": "\1", "and/or": "\2", " or ": "\3"}


def _replace(text: str, others: dict[str, str]) -> str:
    for old, new in others.items():
        text = text.replace(old, new)
    return text
