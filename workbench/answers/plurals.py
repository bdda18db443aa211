"""The plural and the singular of a noun, by the rules of English and of the Latin and Greek words in it *(ours)*."""

from __future__ import annotations

import re

_IRREGULAR = """
man: men|woman: women|child: children|foot: feet|tooth: teeth|goose: geese|mouse: mice|louse: lice|ox: oxen|person: people
leaf: leaves|wolf: wolves|half: halves|calf: calves|knife: knives|life: lives|wife: wives|loaf: loaves|shelf: shelves
thief: thieves|elf: elves|die: dice|genus: genera|corpus: corpora|opus: opera|criterion: criteria|phenomenon: phenomena
"""
_PAIRS = [tuple(entry.split(": ")) for entry in re.split(r"[|\n]", _IRREGULAR.strip())]
_PLURALS, _SINGULARS = dict(_PAIRS), {many: one for one, many in _PAIRS}
_ENDINGS = (  # of one and of many, and how long the rest is at least
    ("ion", "ia", 5),
    ("um", "a", 4),
    ("us", "i", 3),
    ("ra", "rae", 3),
    ("va", "vae", 3),
    ("la", "lae", 4),
    ("sis", "ses", 2),
    ("xis", "xes", 1),
    ("ix", "ices", 3),
    ("ex", "ices", 3),
)
_NO_PLURAL = frozenset(  # with or without their "s" they are something else
    "new news arm arms good goods custom customs mean means glass glasses force forces physic "
    "physics wood woods pant pants cloth "
    "clothes series species mars texas paris athens wales honour honours short shorts brief briefs".split()
)


def other_number(word: str) -> set[str]:
    """The plural of a singular and the singular of a plural, as far as a word may be either."""
    if len(word) < 3 or not (word.isascii() and word.isalpha()) or word in _NO_PLURAL:
        return set()
    if word in _PLURALS or word in _SINGULARS:
        return {_PLURALS.get(word) or _SINGULARS[word]}
    return ({*_many(word)} | {*_one(word)}) - _NO_PLURAL


def _many(word: str) -> set[str]:
    made = {word[: -len(one)] + many for one, many, rest in _ENDINGS if word.endswith(one) and len(word) >= rest + len(one)}
    if word.endswith("y") and word[-2] not in "aeiou":
        return made | {f"{word[:-1]}ies"}
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return made | {f"{word}es"}
    return made | {f"{word}s"} | ({f"{word}es"} if word.endswith("o") else set())


def _one(word: str) -> set[str]:
    made = {word[: -len(many)] + one for one, many, rest in _ENDINGS if word.endswith(many) and len(word) >= rest + len(many)}
    if word.endswith("ies") and len(word) > 4:
        made.add(f"{word[:-3]}y")
    if word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")) and len(word) > 4:
        made.add(word[:-2])
    if word.endswith("s") and word[-2] not in "sui" and len(word) > 3:
        made.add(word[:-1])
    return made
