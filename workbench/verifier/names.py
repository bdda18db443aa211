"""Find names of a claim that its evidence does not mention *(ours)*.

A name is missing if the evidence has none of its words in any form. Acronyms are forms of a name,
and the name of a people is a form of its country. For a person, it is enough if the evidence has
the surname, unless the surname occurs only with other given names.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from workbench.text.normal_form import MONTHS
from workbench.verifier.tokens import Token

SMALL = frozenset("of the and for in on to de la du des der von van al el bin a an at".split())
INSIDE = SMALL - frozenset("and for in on to a an at".split())  # small words inside a claim's name
PRONOUNS = frozenset("it he she they his her its their this that these there".split())
IGNORED = SMALL | frozenset(MONTHS)
IGNORED |= frozenset("monday tuesday wednesday thursday friday saturday sunday no".split())
IGNORED |= frozenset("mr mrs ms dr sir lord lady king queen president prime minister".split())
_ALIKE = """
american us usa america states|british britain uk english england scottish scotland welsh wales
kingdom|french france|dutch netherlands holland|spanish spain|german germany|swiss switzerland|
danish denmark|greek greece|polish poland pole|swedish sweden|finnish finland|turkish turkey|
irish ireland|soviet ussr russia russian|chinese china prc|czech czechia bohemian|
christian christianity|jew jewish judaism|islam islamic muslim moslem|nyc york|la angeles|
oscar oscars academy|wwi wwii war
"""
ALIKE = {
    word: frozenset(group.split())
    for group in " ".join(_ALIKE.split()).split("|")
    for word in group.split()
}
MOST_BEARERS = 20  # from this many people of one surname on, the claim may mean any of them
STEM = 4  # letters shared by a country and its people ("Lomar", "Lomarian")


@dataclass
class Names:
    """The words of the evidence, and other forms of the names in it, such as acronyms."""

    words: set[str] = field(default_factory=set)
    stems: set[str] = field(default_factory=set)  # first `STEM` letters of capitalised words
    acronyms: set[str] = field(default_factory=set)  # first letters of the words of names
    # word of a name -> words of its names up to three places before it, and directly after it
    before: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    after: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    has_country: bool = False  # the evidence names a country or a people
    open_subject: bool = False  # a text does not name its subject: "It", "Released", "The film"


def names_of(texts: Iterable[Sequence[Token]]) -> Names:
    """Return the names and words of the evidence. Each of `texts` is a list of tokens."""
    names = Names()
    for tokens in texts:
        names.words.update(token.word for token in tokens)
        capitals = {token.word for token in tokens if token.capital}
        names.stems.update(word[:STEM] for word in capitals)
        names.has_country |= not capitals.isdisjoint(ALIKE)
        names.open_subject |= _begins_without_name(tokens)
        for run in _runs(tokens, starts=True):
            words = [token.word for token in run if token.word not in SMALL]
            for i, word in enumerate(words):
                letters = "".join(other[0] for other in words[i : i + 7])
                names.acronyms.update(letters[:size] for size in range(2, 8))
                names.before[word].update(words[max(0, i - 3) : i])
                names.after[word].update(words[i + 1 : i + 2])
    return names


def _runs(tokens: Sequence[Token], starts: bool) -> Iterator[list[Token]]:
    """Yield names: consecutive capitalised words with the small words between them.

    The first word of a sentence belongs to a name if a capitalised word follows, or if `starts` is
    True.
    """
    run: list[Token] = []
    for i, token in enumerate(tokens):
        follows = i + 1 < len(tokens) and tokens[i + 1].capital
        begins = i == 0 or tokens[i - 1].word in '.!?:\n"“('
        inside = run and follows and token.word in (SMALL if starts else INSIDE)
        if inside or (token.capital and (starts or follows or not begins)):
            run.append(token)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _begins_without_name(tokens: Sequence[Token]) -> bool:
    first = [token for token in tokens[:12] if token.kind != "mark"][:2]
    return bool(first) and (
        first[0].word in PRONOUNS
        or first[0].word.endswith("ed")
        or (first[0].word == "the" and len(first) > 1 and not first[1].capital)
    )


def missing_names(claim: Sequence[Token], evidence: Names) -> list[str]:
    """Return the names of `claim`, as written, that the evidence does not mention.

    Return [] for a claim whose words are mostly capitalised, because its names cannot be found.
    """
    words = [token for token in claim if token.kind == "word"]
    if 2 * sum(token.capital for token in words) > max(4, len(words)) + 2:
        return []
    subject = claim[:1] if claim and claim[0].word != "the" else claim[1:2]
    return [
        " ".join(token.text for token in run)
        for run in _runs(claim, starts=False)
        if _is_missing(run, evidence) and not (evidence.open_subject and run[0] in subject)
    ]


def _is_missing(run: Sequence[Token], evidence: Names) -> bool:
    words = [
        token.word
        for token in run
        if token.word not in IGNORED
        and len(token.word) > 1
        and not (len(token.word) < 4 and token.text.isupper())  # "TV" may abbreviate any words
    ]
    letters = "".join(word[0] for word in words)
    if not words or (len(letters) > 1 and letters in evidence.words):
        return False
    known = [_is_known(word, evidence) for word in words]
    if not any(known):
        return evidence.has_country or not all(word in ALIKE for word in words)
    return len(words) == 2 and _is_other_person(words[0], words[1], known, evidence)


def _is_known(word: str, evidence: Names) -> bool:
    return (
        not evidence.words.isdisjoint({word, word.removesuffix("s"), f"{word}s"})
        or (len(word) >= STEM and word[:STEM] in evidence.stems)
        or word in evidence.acronyms
        or not ALIKE.get(word, frozenset()).isdisjoint(evidence.words)
    )


def _is_other_person(given: str, surname: str, known: Sequence[bool], evidence: Names) -> bool:
    """Return whether the evidence names only other people with this surname or this given name.

    Args:
        known: two values: whether the evidence has the given name, and whether it has the surname.
    """
    if known[1] and not known[0]:
        bearers = evidence.before.get(surname, set()) - IGNORED
        return 0 < len(bearers) < MOST_BEARERS and all(given[0] != other[0] for other in bearers)
    return known[0] and not known[1] and bool(evidence.after.get(given))
