"""Which names of a claim its evidence does not have *(ours)*.

A name is missing where none of its words occurs, in whatever form: an acronym or its words, a
country or its people, initials, a short given name. Of a person's name the surname alone is
enough, unless the evidence only knows others who bear it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from workbench.answers.names import DEMONYM, TITLES, agree, regions
from workbench.answers.text import MONTHS
from workbench.entailment.reading import Token

SMALL = frozenset("of the and for in on to de la du des der von van al el bin a an at".split())
# Words of other languages that no English sentence has but in names.
FOREIGN = frozenset(
    "der das und ist wurde ein eine einen einem einer im mit vom zu zum zur dem des auf nicht sich"
    " auch bei nach aus sie le la les une et dans avec qui que il elle aux etait ete el los las una"
    " es por fue del para gli della dello nel nella stato di uma foi em ao het een werd zijn voor"
    " niet te dat och ar ett blev og er af av som na sie byl ve bir yang adalah pada de da du os".split()
)
# these stand between two names as well
_INSIDE = SMALL - frozenset("and for in on to a an at".split())
PRONOUNS = frozenset("it he she they his her its their this that these there".split())
DAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
_ALIKE = """
american us usa america states|british britain uk english england scottish scotland welsh wales kingdom|french france
dutch netherlands holland|spanish spain|german germany|swiss switzerland|danish denmark|greek greece|polish poland pole
swedish sweden|finnish finland|turkish turkey|irish ireland|soviet ussr russia russian|chinese china prc|czech czechia bohemian
christian christianity|jew jewish judaism|islam islamic muslim moslem|nyc york|la angeles|oscar oscars academy|wwi wwii war
"""
ALIKE: dict[str, frozenset[str]] = {
    word: frozenset(group.split())
    for group in _ALIKE.strip().replace("\n", "|").split("|")
    for word in group.split()
}
MANY = 20  # bearers of a surname, of whom any may be meant
STEM = 4  # letters that a country and its people share


@dataclass
class Names:
    """What the texts name, and every word that they use."""

    words: set[str] = field(default_factory=set)
    stems: set[str] = field(default_factory=set)  # of words with a capital
    acronyms: set[str] = field(default_factory=set)  # that the names' first letters make
    # a surname's given names
    before: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    # a given name's surnames
    after: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    located: bool = False  # a country, a part of one or its people is named
    # a text begins with "It", "Released", "The film": whom it is about it need not name
    unnamed: bool = False


def names_of(texts: Iterable[Sequence[Token]]) -> Names:
    found = Names()
    for tokens in texts:
        found.words.update(token.word for token in tokens)
        found.stems.update(token.word[:STEM] for token in tokens if token.name)
        found.located = found.located or any(
            token.name and _is_region(token.word) for token in tokens
        )
        found.unnamed = found.unnamed or _begins_unnamed(tokens)
        for run in runs(tokens, starts=True):
            _learn(found, run)
    return found


def _learn(found: Names, run: Sequence[Token]) -> None:
    words = [token.word for token in run if token.word not in SMALL]
    for i, word in enumerate(words):
        letters = [other[0] for other in words[i : i + 7]]
        found.acronyms.update("".join(letters[:size]) for size in range(1, 8))
        found.before[word].update(words[max(0, i - 3) : i])
        found.after[word].update(words[i + 1 : i + 2])


def runs(tokens: Sequence[Token], starts: bool) -> Iterator[list[Token]]:
    """Names: words with a capital in a row, and small words between them. A word that begins a
    sentence is one if `starts`, or if a word with a capital follows and it is no usual
    beginning."""
    run: list[Token] = []
    for i, token in enumerate(tokens):
        first = i == 0 or tokens[i - 1].word in '.!?:\n"“('
        begins = (
            first
            and not starts
            and (token.word in _STARTERS or not (i + 1 < len(tokens) and tokens[i + 1].name))
        )
        inside = (
            run
            and token.word in (SMALL if starts else _INSIDE)
            and i + 1 < len(tokens)
            and tokens[i + 1].name
        )
        if inside or (token.name and not begins):
            run.append(token)
        elif run:
            yield run
            run = []
    if run:
        yield run


_STARTERS = frozenset(
    "the a an in on at by for from to with as after before during since until while when where who"
    " what which he she it they we his her its their this that these those there some many most"
    " both each one two several other another all no not only".split()
)


def _begins_unnamed(tokens: Sequence[Token]) -> bool:
    first = [token for token in tokens[:12] if token.kind != "mark"][:2]
    return bool(first) and (
        first[0].word in PRONOUNS
        or first[0].word.endswith("ed")
        or (first[0].word == "the" and len(first) > 1 and not first[1].name)
    )


@cache
def _regions() -> frozenset[str]:
    return frozenset(
        word for name in regions() for word in name.casefold().split() if word not in SMALL
    )


def _is_region(word: str) -> bool:
    return word in _regions() or word in ALIKE or bool(DEMONYM.fullmatch(word))


def unnamed(claim: Sequence[Token], evidence: Names) -> list[str]:
    """The names of `claim`, as it writes them, that are not found in the evidence. Of a text
    that is written in capitals no name is known."""
    words = [token for token in claim if token.kind == "word"]
    if 2 * sum(token.name for token in words) > max(4, len(words)) + 2:
        return []
    subject = claim[:1] if claim and claim[0].word != "the" else claim[1:2]
    return [
        " ".join(token.shown for token in run)
        for run in runs(claim, starts=False)
        if _is_missing(run, evidence) and not (evidence.unnamed and run[0] in subject)
    ]


def _is_missing(run: Sequence[Token], evidence: Names) -> bool:
    words = [token.word for token in run if not _is_passed_over(token)]
    letters = "".join(word[0] for word in words)
    if not words or (len(letters) > 1 and letters in evidence.words):
        return False
    told = [_is_told(word, evidence) for word in words]
    if not any(told):
        return evidence.located or not all(map(_is_region, words))
    return len(words) == 2 and _is_other(words[0], words[1], told, evidence)


def _is_passed_over(token: Token) -> bool:
    """Titles, small words, days and months; and "TV", "USD", "TX", which may be short for any
    word.
    """
    word = token.word
    return (
        len(word) < 2
        or word == "no"
        or word in SMALL
        or word in FOREIGN
        or word in TITLES
        or word in DAYS
        or word in MONTHS
        or (len(word) < 4 and token.shown.isupper())
    )


def _is_told(word: str, evidence: Names) -> bool:
    stem = word.removesuffix("s")
    return (
        word in evidence.words
        or stem in evidence.words
        or f"{word}s" in evidence.words
        or (len(word) > STEM - 1 and word[:STEM] in evidence.stems)
        or (1 < len(word) < 8 and word in evidence.acronyms)
        or not ALIKE.get(word, frozenset()).isdisjoint(evidence.words)
    )


def _is_other(given: str, surname: str, told: Sequence[bool], evidence: Names) -> bool:
    """Whether the evidence knows the surname of others alone, or the given name."""
    if told[1] and not told[0]:
        bearers = evidence.before.get(surname, set()) - TITLES
        return 0 < len(bearers) < MANY and not any(_may_be(given, other) for other in bearers)
    return told[0] and not told[1] and bool(evidence.after.get(given))


def _may_be(given: str, other: str) -> bool:
    """Whether two given names may be one person's: initials, short names, and "Alan" of "Allan"."""
    initials = [
        name[:1] if len(name) < 4 and set(name).isdisjoint("aeiouy") else name
        for name in (given, other)
    ]
    return agree(*initials) or (given[:2] == other[:2] and given[-1] == other[-1])
