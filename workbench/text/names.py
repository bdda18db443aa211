"""Data on names: titles, short given names, demonyms, and the regions in which places lie."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from workbench.text.normal_form import normalise
from workbench.util.patterns import regex

TITLES = frozenset(
    "sir dame lord lady dr mr ms president prime minister king queen prince princess emperor"
    " empress pope saint st professor prof senator governor general colonel captain lieutenant"
    " sergeant major admiral chancellor justice judge reverend rev chief pilot senior commander"
    " astronaut actor actress singer author".split()
)
DEMONYM = regex(
    r"[a-z]+(?:ish|ese|ian|ean|ican|can)|german|french|dutch|greek|swiss|scots|scottish|welsh|czech"
    r"|thai|iraqi|israeli|american"
)
# Surnames that relatives with the same given name share; particles inside a name.
_NAMESAKES = frozenset("adams bush bach strauss of the de da la du des der von van".split())


def lines(file: str) -> Iterator[str]:
    """Return the lines of a data file of this package, without comments and empty lines."""
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    return (line for line in text.splitlines() if line and not line.startswith("#"))


def groups(file: str) -> dict[str, str]:
    """Read a data file of this package that has `[heading]` lines.

    Returns a dict from each heading to the lines below it, joined by "|".
    """
    alternations: dict[str, str] = {}
    for line in lines(file):
        if line.startswith("["):
            heading = line.strip("[]")
        else:
            others = alternations.get(heading)
            alternations[heading] = f"{others}|{line}" if others else line
    return alternations


@cache
def _given_names() -> dict[str, set[str]]:
    """Return, for each given name, the full names that it may stand for: "bill" → {"william"}."""
    names: dict[str, set[str]] = defaultdict(set)
    for line in lines("nicknames.txt"):
        name, shorts = line.split(": ")
        for short in (name, *shorts.split()):
            names[short].add(name)
    return names


def agree(a: str, b: str) -> bool:
    """Whether two given names may belong to one person: "william" agrees with "w" and "bill"."""
    if 1 in (len(a), len(b)):
        return a[:1] == b[:1] and a.isalpha() and b.isalpha()
    names = _given_names()
    return a == b or not names.get(a, set()).isdisjoint(names.get(b, ()))


def person_end(form: Sequence[str], words: Sequence[str]) -> int:
    """Return the number of words at the start of `words` that name the person `form`.

    `form=["william", "jones"]`, `words=["bill", "jones", "won"]` → 2. The surnames must be equal
    and the given names must agree (see `agree`). The result is 0 if `words` do not start with such
    a name, or may name another person: "John Stuart Lennon" may not be "John Lennon".

    Args:
        form: the words of the person's name in the gold answer.
        words: words of the answer.
    """
    at = next((i for i, word in enumerate(words) if word == form[-1]), 0)
    if not at or len(form[-1]) < 3 or not "".join(form).isalpha() or _NAMESAKES & {*form}:
        return 0
    gold, names = _split_initials(form[:-1]), _split_initials(words[:at])
    pairs = list(zip(gold, names, strict=False))
    certain = len(pairs) > 2 or any(min(map(len, pair)) > 1 for pair in pairs)
    if len(gold) != len(names):
        added = max(names[len(gold) :], key=len, default="")
        certain = len(pairs) == 1 and certain and len(added) < 2
    return (at + 1) * (certain and all(agree(*pair) for pair in pairs))


def _split_initials(names: Sequence[str]) -> list[str]:
    """Split joined initials in given names: ["jrr"] → ["j", "r", "r"]."""
    initials = (len(name) < 4 and not re.search("[aeiou]", name) for name in names)
    return [
        part
        for name, apart in zip(names, initials, strict=True)
        for part in (name if apart else [name])
    ]


@cache
def _regions() -> tuple[dict[str, set[str]], set[str], re.Pattern[str]]:
    """Return the places in each region, all places, and a regex of "PLACE in REGION".

    The places are normalised (`normalise`). The keys, which are the names of regions, are not.
    """
    regions: dict[str, set[str]] = defaultdict(set)
    for line in lines("places.txt"):
        heads, sign, tail = re.split(" ([:=]) ", line)
        for region in tail.split(", ") if sign == "=" else ():
            regions[region]  # a region without places of its own
        for head in heads.split(", "):
            regions[head] |= {*tail.split(", ")}
    for _ in range(2):  # a town in England lies in Britain too
        for places in regions.values():
            places |= {inner for place in {*places} & {*regions} for inner in regions[place]}
    names = "|".join(map(re.escape, sorted(regions, key=len, reverse=True)))
    pattern = re.compile(
        rf"(?P<inner>[^,.;:()\n]{{1,60}})(?P<link>, | \(|,? (?:\w+ed )?in |\. It is (?:\w+ed )?in )"
        rf"(?P<outer>{names})(?![\w’'-])"
    )
    inside = {name: {*map(normalise, places)} for name, places in regions.items()}
    return inside, {*map(normalise, regions)}.union(*inside.values()), pattern


def located(text: str) -> str:
    """Write "in" or "or" between a place and the region that follows it in a text.

    * "Paris, France" → "Paris in France": one answer, because France contains Paris. "in" is also
      written after a place that is not in the list of places.
    * "Paris in Texas" → "Paris or Texas": two candidates, because Paris is not listed as a place
      in Texas. Without the word "in", as in "Paris, Texas", the text is not changed.
    """
    for _ in range(3):  # "Chicago, Illinois, USA"
        text = _regions()[2].sub(_relation, text)
    return text


def _relation(match: re.Match[str]) -> str:
    (regions, known, _), words = _regions(), match["inner"].split()
    names = [normalise(" ".join(words[start:])) for start in range(len(words))]
    place = next((name for name in names if name in known), None)
    if place is None or place in regions[match["outer"]]:
        return f"{match['inner']} in {match['outer']}"
    return f"{match['inner']} or {match['outer']}" if "in " in match["link"] else match[0]
