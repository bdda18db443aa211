"""Split a sentence into parts with one predicate each (see `workbench.claims.rules`)."""

from dataclasses import dataclass
from itertools import pairwise

from workbench.claims.english import (
    ADVERBS,
    AUXILIARIES,
    CONJOINING,
    DETERMINERS,
    HEDGES,
    MODALS,
    NOUNS,
    PREPOSITIONS,
    PRONOUNS,
    REDUCED,
    STAYING,
    VERBS,
    is_verb,
    past,
    tokens_of,
    word_at,
)
from workbench.util.patterns import regex


@dataclass(frozen=True)
class Part:
    """A part of a sentence with one predicate. The predicate's subject may be in another part.

    Attributes:
        kind: tells what the subject is:

            * "main" (the first part), "clause" (a later one): the subject is in the part itself.
            * "same" ("and won …"), "ing" (", becoming …"): the subject of the sentence.
            * "who", "which", "where": the noun phrase before this relative clause.
            * "more" ("who sang and won …"): the subject of the relative clause before this part.
        text: the part without the conjunction or relative pronoun at its beginning.
        link: the words that begin a relative clause, such as ", who"; "" for other kinds.
    """

    kind: str
    text: str
    link: str


_CONJUNCTIONS = frozenset("and but while although though yet whereas ; — –".split())
_RELATIVES = frozenset("who which where when".split())
_BOUND = frozenset("who which where".split())
_SAYING = regex(  # verbs of reported speech and thought, whose content is not split off
    r"(?:sa(?:id|ys?)|claim(?:s|ed)?|argue[sd]?|allege[sd]?|report(?:s|ed)?|state[sd]?|suggest(?:s|ed)?|den(?:y|ies|ied)"
    r"|thought|thinks?|believe[sd]?|insist(?:s|ed)?|maintain(?:s|ed)?|predict(?:s|ed)?|hope[sd]?|fear(?:s|ed)?|wish(?:es|ed)?"
    r"|announce[sd]?|declare[sd]?|wrote|writes|doubt(?:s|ed)?|deem(?:s|ed)?|assume[sd]?|imagine[sd]?|promise[sd]?|told|tells"
    r"|asked|asks|wondered|according|speculate[sd]?|estimate[sd]?|rumou?red|supposed|considered|expected|intended|planned"
    r"|accuse[sd]?|admit(?:s|ted)?|quote[sd]?|pretend(?:s|ed)?|dream(?:s|ed)?|want(?:s|ed)?|tried|refuse[sd]?|fail(?:s|ed)?)"
)


def parts(text: str) -> list[Part]:
    """Split a sentence into parts with one predicate each; return them in order.

    The rest of the sentence stays in one part after these words:

    * "that"
    * a verb of reported speech, such as "said"
    * a noun that a relative clause defines: "the men" in "the men who fell"
    """
    tokens = tokens_of(text)
    words = [token[0] for token in tokens]
    pieces: list[Part] = []
    start, kind, link, verb, i = 0, "main", "", False, 0
    while i < len(words):
        if words[i] in ("who", "that", "where", "when") and _is_definite(words[start:i]):
            break  # "one of the men who fell": "who fell" defines the men
        if verb and words[i] in ("who", "which") and words[i + 1 : i + 2] == [","]:
            break  # "who, in 1950, won": the verb may come after the insertion
        cut = _cut(words, i, start, kind) if verb else None
        if cut:
            pieces.append(Part(kind, text[tokens[start].start() : tokens[i].start()], link))
            kind, start = cut[0], i + cut[1]
            link = (
                "".join(f"{'' if word == ',' else ' '}{word}" for word in words[i:start])
                if kind in _BOUND
                else ""
            )
            i, verb = start, kind not in ("clause", "where")
            continue
        verb = verb or (i > 0 and is_verb(words, i))
        if words[i] == "that" or (verb and speaks(words, i)):
            break
        i += 1
    if start < len(words):
        pieces.append(Part(kind, text[tokens[start].start() :], link))
    return pieces


def speaks(words: list[str], i: int) -> bool:
    """Return whether the word at index `i` introduces reported speech, a thought or an intention.

    Examples are "said" in "said that he …" and "wanted" in "wanted to …".
    """
    if not _SAYING.fullmatch(words[i]) or i + 1 >= len(words):
        return False
    after = words[i + 1]
    named = after[0].isupper() and _has_subject(words, i + 1)
    return after in PRONOUNS | {"that", "to", ",", ":", '"', "“", "if", "whether"} or named


def _cut(words: list[str], i: int, start: int, kind: str) -> tuple[str, int] | None:
    """Return (kind, number of words to skip) for the part that begins at word `i`.

    The skipped words are a comma, a conjunction or a relative pronoun. Returns None if no part
    begins at word `i`.

    Args:
        start: index of the first word of the current part.
        kind: kind of the current part.
    """
    comma = words[i] == ","
    at = i + comma
    if at + 1 >= len(words):
        return None
    word, following = words[at], words[at + 1]
    if word in _CONJUNCTIONS:
        return _conjoined(words, i, at, start, kind)
    if comma and word in _RELATIVES:
        return word if word in ("who", "which") else "where", 2
    before = words[i - 1]
    complement = (  # "came when", "being where"
        before in PREPOSITIONS | CONJOINING or before.endswith("ing") or is_verb(words, i - 1)
    )
    if not comma and word in ("who", "where", "when") and not complement:
        named = following in PRONOUNS | DETERMINERS or following[:1].isupper()
        return ("who", 1) if word == "who" else ("where", 1) if named else None
    if comma and word in VERBS and is_verb(words, at) and _is_free(words, i, at, start):
        return ("same", 1) if "or" not in words[at:] else None
    # not "agility, dribbling skills, and pace"
    listed = {",", "and", "or"}.intersection(words[at + 1 : at + 3])
    if comma and past(word) and not listed:
        return "ing", 1
    return None


def _is_definite(part: list[str]) -> bool:
    """Whether a relative clause after `part` defines its last noun: "the men who fell"."""
    known = _DEFINITE | {"a", "an"} | PREPOSITIONS
    return next((word for word in part[:-7:-1] if word in known), "") in _DEFINITE


_DEFINITE = frozenset("the those these all any every each other".split())


def _conjoined(words: list[str], i: int, at: int, start: int, kind: str) -> tuple[str, int] | None:
    """Return the same values as `_cut`, for a part that begins with a conjunction.

    `at` is the index of the conjunction: `i`, or `i + 1` if word `i` is a comma.
    """
    comma, first = words[i] == ",", at + 1
    if not comma and words[at] in ("while", "although", "though", "whereas"):
        return None  # "while it lasts"
    if words[i - 1] in PREPOSITIONS or (words[at] == "but" and "not" in words[start:i]):
        return None  # "nominated for but did not win", "not a dream but a plan"
    while first < len(words) - 1 and (words[first] in ADVERBS or words[first].endswith("ly")):
        first += 1
    if (
        # "poorly trained and poorly led troops"
        (
            words[i - 2].endswith("ly")
            and words[i - 1].endswith("ed")
            and words[at + 1].endswith("ly")
        )
        # "is a course built in Osk and listed in 1950"
        or (words[first] in REDUCED and word_at(words, first + 1) in PREPOSITIONS)
    ):
        return None
    length = at + 1 - i
    if kind == "ing" and words[first].islower() and past(words[first]):
        if past(words[i - 1]):
            return None  # "for both acting and writing"
        # "the joy of splashing and playing"
        return ("ing", length)
    if is_verb(words, first):
        # the verb may belong to the clause of an earlier "of which"
        of_which = any(
            a in PREPOSITIONS and b in ("which", "whom") for a, b in pairwise(words[start:i])
        )
        if words[at] == ";" or of_which or not _is_free(words, i, first, start):
            return None
        return ("more" if not comma and kind in (*_BOUND, "more") else "same"), length
    alone = words[at + 1] in PRONOUNS | {"his", "her", "their"}
    if (comma or words[at] != "and" or alone) and _has_subject(words, at + 1):
        return "clause", length
    return None


def _is_free(words: list[str], i: int, first: int, start: int) -> bool:
    """Whether the verb at `first` is independent of an earlier "may", "never" or auxiliary.

    In "may win and lose" it is not: "lose" alone would lack the "may".
    """
    scope, before = words[start:i], words[i - 1]
    transitive = is_verb(words, i - 1) or before.endswith(("ten", "ken", "wn"))
    return (
        words[first] in AUXILIARIES
        or not (
            (transitive and before not in STAYING | AUXILIARIES)  # "has written and arranged songs"
            or (MODALS | HEDGES).intersection(scope)
            or {"never", "neither", "hardly", "to"}.intersection(scope[:4])
            or words[first] in _UNINFLECTED
        )
    )


_UNINFLECTED = frozenset("set put cut hit read spread split quit hurt cost".split())


def _has_subject(words: list[str], start: int) -> bool:
    """Whether a subject of a few words, followed by its verb, begins at word `start`."""
    first = words[start]
    if not (first in PRONOUNS or first in DETERMINERS or first[0].isupper()):
        return False
    for i in range(start + 1, min(start + 9, len(words))):
        if words[i] in (",", "and", ";", "—", "–") or words[i] in _RELATIVES | {"that"}:
            return False  # "and the power of ideas that can change the world"
        after = word_at(words, i + 1)
        if first in ("a", "an") and words[i].endswith("ed") and after in PREPOSITIONS:
            return False  # ", and an engine positioned behind the driver"
        if is_verb(words, i) and words[i] not in NOUNS:
            return True
        if i == start + 1 and first in PRONOUNS:
            return True  # "and it carries"
    return False
