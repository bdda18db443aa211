"""English vocabulary and part-of-speech rules for the rule-based extractor *(ours)*."""

import re
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

from workbench.util.patterns import regex

with Path(__file__).with_name("english.toml").open("rb") as _file:
    DATA: dict[str, Any] = tomllib.load(_file)


def words_in(group: str, name: str) -> frozenset[str]:
    """Return the words of the list `name` in the table `group` of `english.toml`."""
    return frozenset(DATA[group][name].split())


_words = partial(words_in, "words")


TOKEN = regex(r"\d[\d,.]*\d|\w+(?:['’.-]\w+)*['’]?|[^\w\s]")
MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
DATE = regex(rf"\b(?:\d{{1,2}} )?{MONTH}" r"(?: \d{1,2})?(?:,? \d{4})?\b|\b\d{4}s?\b")

AUXILIARIES = _words("auxiliaries")
COPULAS = _words("copulas")
_PAST = _words("past")
PRESENT = _words("present")
NOUNS = _words("nouns")
VERBS = AUXILIARIES | COPULAS | _PAST | PRESENT
MODALS = _words("modals")
_NO_VERBS = _words("no_verbs")
ADVERBS = _words("adverbs")
HEDGES = _words("hedges")
DETERMINERS = _words("determiners")
NUMBERS = _words("numbers")
PRONOUNS = _words("pronouns")
PREPOSITIONS = _words("prepositions")
OPENING = _words("opening")
PREPOSITION = f"(?:{'|'.join(sorted(PREPOSITIONS))})"
CONJOINING = frozenset("and but ,".split())
ADJUNCTS = _words("adjuncts")  # prepositions that start an adjunct
PARTICLES = _words("particles")  # "up" in "set up"
# Intransitive verbs in "-ed": after "was born in Oslo and" they are not passives.
STAYING = _words("staying")
JUDGED = _words("judged")
# Nouns for people, which are complete list items; "brave" in "a brave and kind man" is not.
AGENTS = regex(
    r"(?:[aei]nt|er|or|eer|ist|ian|man|woman|ess|ete|poet|chef|host|coach|judge|critic|academic|model|nurse|spy|king|queen"
    r"|priest|saint|pilot|jockey|scholar|advocate|expert|linebacker|guard|forward|star|magnate|icon|personality|performer"
    r"|politician|rapper|rabbi|quarterback|comic|activist|back|midfielder|umpire|mathematician|chemist|architect|diplomat)s?$"
)
_INFLECTED: dict[str, str] = DATA["participles"]
_NO_PARTICIPLES = _words("no_participles")


def is_verb(words: list[str], i: int) -> bool:
    """Return whether the word at index `i` is a finite verb.

    A finite verb is in the list of verbs, or is a regular past form in "-ed". The result is False
    for a noun ("the shows"). It is also False for a participle that modifies a noun ("the fee
    charged by banks", "a kind and respected man").
    """
    word, after = words[i], word_at(words, i + 1)
    previous = words[i - 1] if i else ""
    before = previous.lower()
    if _is_reduced(word, previous, after) or (word == "do" and before != words[i - 1]):
        return False  # "Ana do Vale"
    if word in VERBS:
        # "the main features of it", "the old shows filled a gap"
        counted = word in NOUNS and (
            before[:1].isdigit() or after == "of" or after in VERBS or _is_regular(after)
        )
        return (before not in DETERMINERS | _BEFORE_NOUNS and not counted) or word in AUXILIARIES
    regular = _is_regular(word)
    if before in CONJOINING and regular:
        return not _is_adjective(words, i)
    return regular and before not in DETERMINERS | PREPOSITIONS | _DEGREES


def word_at(words: list[str], i: int) -> str:
    """Return the word at index `i`, or "" after the last word."""
    return words[i] if i < len(words) else ""


def first_verb(words: list[str]) -> int:
    """Return the index of the first finite verb after the first word; 0 if there is none."""
    return next((i for i in range(1, len(words)) if is_verb(words, i)), 0)


def tokens_of(text: str) -> list[re.Match[str]]:
    """Return a regex match for each word and punctuation mark of a text.

    Characters inside quotations are replaced by "X".
    """
    return list(TOKEN.finditer(blank(text)))


def words_of(text: str) -> list[str]:
    """Return the words and punctuation marks of a text.

    Characters inside quotations are replaced by "X".
    """
    return TOKEN.findall(blank(text))


def _is_regular(word: str) -> bool:
    """Whether a word can be the past tense of a regular verb."""
    plain = word.removeprefix("co-")
    return (
        len(plain) > 3
        and plain.endswith("ed")
        and plain.islower()
        and "-" not in plain
        and plain not in _NO_VERBS
    )


# Participles that without "was" modify the noun before them: "the roles mentioned in it vary".
REDUCED = _words("reduced")


def _is_reduced(word: str, before: str, after: str) -> bool:
    """Whether a participle modifies the noun before it.

    "charged" does in "the fee charged by banks", not in "he charged by the hour".
    """
    noun = before.islower() and before.isalpha() and before not in _NO_NOUNS
    if not noun or before.endswith("ly"):
        return False
    named = word in ("nicknamed", "dubbed") or (word.endswith("ed") and after == "by")
    return named or (word in REDUCED and after in PREPOSITIONS)


_NO_NOUNS = AUXILIARIES.union(ADVERBS, PRONOUNS, "and but or be been being who which that".split())


_BEFORE_NOUNS = _words("before_nouns")
_DEGREES = _words("degrees")


def _is_adjective(words: list[str], i: int) -> bool:
    """Whether the "-ed" word after a conjunction is an adjective: "a brave and respected man"."""
    after = word_at(words, i + 1)
    if i > 2 and words[i - 3] in _DEGREES and after[:1].isupper():
        return True  # "the most influential and talented Russian poets"
    return (
        after.islower()
        and after not in DETERMINERS | PREPOSITIONS | PRONOUNS | ADVERBS | PARTICLES
        and not after.endswith("ly")
        and words[i] not in _ACTIVE
    )


_ACTIVE = _words("active")


def past(participle: str) -> str | None:
    """Return the past tense of an "-ing" form ("posting" → "posted"); None for any other word."""
    if participle in _INFLECTED:
        return _INFLECTED[participle]
    regular = len(participle) > 5 and participle.endswith("ing") and participle.islower()
    return f"{participle[:-3]}ed" if regular and participle not in _NO_PARTICIPLES else None


def blank(text: str) -> str:
    """Replace each character inside quotations by "X": 'the "Rain" era' → 'the "XXXX" era'."""
    return re.sub(r"[\"“]([^\"“”]*)[\"”]", lambda quoted: f'"{"X" * len(quoted[1])}"', text)


def article(phrase: str) -> str:
    """Return a phrase with "a" or "an" before it.

    A phrase is unchanged if it has a determiner or number, or is a name.
    """
    first, *others = phrase.split(" ", 2)
    later = first in ADVERBS and others[0] in DETERMINERS  # "later a director"
    if first in DETERMINERS | NUMBERS or later or not phrase[:1].islower():
        return phrase
    return f"{'an' if phrase[:1] in 'aeiou' else 'a'} {phrase}"
