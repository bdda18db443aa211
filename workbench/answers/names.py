"""Names: titles, short given names, peoples, and which country or region a place lies in."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from workbench.answers.text import normalise

TITLES = frozenset(
    "sir dame lord lady dr mr ms president prime minister king queen prince princess emperor"
    " empress pope saint st professor prof senator governor general colonel captain lieutenant"
    " sergeant major admiral chancellor justice judge reverend rev chief pilot senior commander"
    " astronaut actor actress singer author".split()
)
DEMONYM = re.compile(
    r"[a-z]+(?:ish|ese|ian|ean|ican|can)|german|french|dutch|greek|swiss|scots|scottish|welsh|czech"
    r"|thai|iraqi|israeli|american"
)
# Families in which two people share a given name and a surname.
_NAMESAKES = frozenset("adams bush bach strauss".split())
_SMALL = frozenset("of the de da la du des der von van".split())


def _lines(file: str) -> Iterator[str]:
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    return (line for line in text.splitlines() if line and not line.startswith("#"))


@cache
def _given_names() -> dict[str, set[str]]:
    """For each given name, the names that it is short for, itself included."""
    names: dict[str, set[str]] = defaultdict(set)
    for line in _lines("nicknames.txt"):
        name, shorts = line.split(": ")
        for short in (name, *shorts.split()):
            names[short].add(name)
    return names


def agree(a: str, b: str) -> bool:
    """Whether two given names may be one person's: the same, an initial, or short for the other."""
    if not (a.isalpha() and b.isalpha()):
        return False
    if 1 in (len(a), len(b)):
        return a[0] == b[0]
    names = _given_names()
    return a == b or not names.get(a, set()).isdisjoint(names.get(b, ()))


def person_end(form: Sequence[str], words: Sequence[str]) -> int:
    """The number of `words` that name the person of `form`: same surname, and given names that
    agree; 0 if they do not. "John Stuart Lennon" may be another person than "John Lennon"."""
    *given, last = form
    at = next((i for i, word in enumerate(words[:6]) if word == last), 0)
    if not (given and at and len(last) > 2 and "".join(form).isalpha()) or _SMALL & {*form}:
        return 0
    gold, found = _initials_apart(given), _initials_apart(words[:at])
    pairs = list(zip(gold, found, strict=False))
    if not all(agree(*pair) for pair in pairs):
        return 0
    if len(gold) == len(found):
        same = len(pairs) > 2 or any(min(map(len, pair)) > 1 for pair in pairs)
    else:
        added = found[len(gold) :]
        known = len(pairs) == 1 and min(map(len, pairs[0])) > 1 and last not in _NAMESAKES
        same = known and all(len(name) == 1 for name in added)
    return (at + 1) * same


def _initials_apart(names: Sequence[str]) -> list[str]:
    """The given names, with the letters of "jrr" as three."""
    return [
        part
        for name in names
        for part in (name if len(name) < 4 and not re.search("[aeiou]", name) else [name])
    ]


@cache
def _places() -> tuple[dict[str, set[str]], set[str], dict[str, set[str]]]:
    """For each place the larger ones around it; the countries and regions; their other names."""
    around: dict[str, set[str]] = defaultdict(set)
    areas: set[str] = set()
    others: dict[str, set[str]] = {}
    for line in _lines("places.txt"):
        head, sign, tail = re.split(" ([:=]) ", line)
        heads, parts = set(head.split(", ")), set(tail.split(", "))
        areas |= heads | (parts if sign == "=" else set())
        for name in heads:
            around[name] |= set()
            others[normalise(name)] = heads
        for part in parts:
            around[part] |= heads
    for _ in range(2):  # a town of England lies in Britain too
        around = {
            name: wholes.union(*(around[whole] for whole in wholes)) - {name}
            for name, wholes in around.items()
        }
    return {normalise(name): wholes for name, wholes in around.items()}, areas, others


def wholes(name: str) -> set[str] | None:
    """The regions that a listed place lies in; None if it is not listed."""
    return _places()[0].get(normalise(name))


def regions() -> set[str]:
    """The names of countries and of their parts."""
    return _places()[1]


def other_names(name: str) -> set[str]:
    """The other names of a country ("USA")."""
    return _places()[2].get(normalise(name), set())


@cache
def _placed() -> re.Pattern[str]:
    names = "|".join(map(re.escape, sorted(regions(), key=len, reverse=True)))
    return re.compile(rf"(?P<inner>[^,.;:()\n]{{1,60}})(?:, | \()(?:in )?(?P<outer>{names})(?![\w’'-])")


def located(text: str) -> str:
    """The text with "Paris in France" for "Paris, France". A place that is put where it does not
    lie, and a country beside another one, keep their comma."""
    for _ in range(3):  # "Chicago, Illinois, USA"
        text = _placed().sub(_in, text)
    return text


def _in(match: re.Match[str]) -> str:
    inner, outer = match["inner"].split(), match["outer"]
    around = (wholes(" ".join(inner[start:])) for start in range(len(inner)))
    found = next((one for one in around if one is not None), {outer})
    return f"{match['inner']} in {outer}" if outer in found else match[0]
