"""Who did what to whom, and what happened when: a claim that turns round what its evidence says *(ours)*.

A small model reads "Google acquired YouTube" in "YouTube acquired Google", and a year of birth in one of death. Two rules find
the clearest of these: a date or a place that the evidence ties to the opposite event, and a verb with its two names exchanged.
Both are meant to keep silent unless the evidence itself says the opposite.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from workbench.answers.text import MONTHS
from workbench.entailment.names import PRONOUNS, SMALL
from workbench.entailment.reading import Token

REACH = 25  # words on either side of a verb in which its names are looked for
MOST = 4  # statements of one claim that are looked at
_EVENTS = """
born: born birth birthplace b *|died: died dies death dead killed assassinated executed murdered d †
begin: founded established formed incorporated founding formation inception inaugurated launched began begun started
end: dissolved disbanded abolished demolished defunct dissolution ended ceased stopped
opened: opened opens opening|closed: closed closes closing closure
married: married marries wed marriage|divorced: divorced divorces divorce separated
joined: joined joins joining|left: left leaves departed|appointed: elected appointed crowned
resigned: resigned retired abdicated resignation retirement|built: completed built constructed finished
released: released published premiered|won: won wins winning|lost: lost loses
discovered: discovered invented|acquired: acquired bought purchased|sold: sold|graduated: graduated
"""
EVENTS = {
    word: name
    for name, words in (entry.split(": ") for entry in _EVENTS.strip().replace("\n", "|").split("|"))
    for word in words.split()
}
_OPPOSITE = "born died|begin end|opened closed|married divorced|joined left|appointed resigned"
_PAIRS = [pair.split() for pair in f"{_OPPOSITE}|begin closed|opened end".split("|")]
OPPOSITE: dict[str, frozenset[str]] = {
    event: frozenset(one for pair in _PAIRS if event in pair for one in pair if one != event)
    for pair in _PAIRS
    for event in pair
}
_PARTS = frozenset(", ; : ( ) – — and but while then before after until who which where when although though".split())
_ENDS = frozenset(". ! ? \n".split(" "))
_JOINTS = frozenset("and but ;".split())
_FRONTS = frozenset("in on at by during since".split())
_PLACES = frozenset("in at near".split())

_DEEDS = """
acquire: acquire acquires acquired acquiring buy buys bought buying purchase purchases purchased purchasing
defeat: defeat defeats defeated defeating beat beats beaten beating overcame overcome outplayed
succeed: succeed succeeds succeeded succeeding replace replaces replaced replacing|precede: precedes preceded preceding
kill: kills killed killing murdered murders assassinated shot stabbed slain slew|found: founds founded established
write: wrote written writes authored|direct: directed directs|compose: composed composes|paint: painted paints
invade: invaded invades|conquer: conquered conquers|hire: hired hires|sue: sued sues|teach: taught teaches tutored mentored
influence: influenced influences inspired inspires|capture: captured captures|attack: attacked attacks|own: owns owned
appoint: appointed appoints nominated nominates|employ: employs employed|rescue: rescued rescues saved
overtake: overtook overtakes surpassed surpasses outsold|orbit: orbits orbited orbiting|discover: discovered discovers
"""
DEEDS = {
    word: name
    for name, words in (entry.split(": ") for entry in _DEEDS.strip().replace("\n", "|").split("|"))
    for word in words.split()
}
_ABOUT = frozenset("of for on to about in by with that".split())
_BEHIND = frozenset("in at on during from for to with as".split())  # what follows is no object
_NAMELESS = SMALL | PRONOUNS | frozenset(MONTHS)
_AND = frozenset("and the &".split())
_BE = frozenset("was were is are be been being got gets".split())
_KIN = frozenset("father mother son daughter teacher student capital subsidiary parent successor predecessor owner".split())
_MUTUAL = frozenset(
    "married met played faced fought joined merged dated divorced shared resembled befriended debated named".split()
)
_ONCE = frozenset(
    "write direct compose paint found discover invented kill".split()
)  # done by one, or by those who are named together
_IRREGULAR = frozenset(
    "won lost began became took taken made wrote written built sold bought left met led fell fallen rose broke broken "
    "lit burnt came went gone held gave given found ran drew drawn flew grew grown saw seen shot struck taught sank "
    "sunk hid bore chose chosen drove driven stole stolen threw thrown sang sung wore overthrown overthrew lent sent "
    "spent paid laid put set cut hit".split()
)
Key = tuple[str, ...]


@dataclass(frozen=True)
class Deed:
    """A verb, and the words of the names beside it that are its subject and its object, whichever way round it is said;
    `around` are all names that may be so, some words further."""

    name: str
    by: frozenset[str]
    to: frozenset[str]
    around: tuple[frozenset[str], frozenset[str]]
    made: bool = False  # "NAME was VERB by …", with nothing between: all who did it are told
    years: frozenset[str] = frozenset()  # of its sentence


@dataclass
class Told:
    """What the texts tie dates and places to, and who does what to whom."""

    events: defaultdict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))
    when: defaultdict[tuple[str, str], set[Key]] = field(default_factory=lambda: defaultdict(set))  # by event and kind of key
    deeds: defaultdict[str, list[Deed]] = field(default_factory=lambda: defaultdict(list))
    words: set[str] = field(default_factory=set)


def told(texts: Iterable[Sequence[Token]]) -> Told:
    found = Told()
    for tokens in texts:
        found.words.update(token.word for token in tokens)
        for sentence in _sentences(tokens):
            for key, events in ties(sentence):
                found.events[key] |= events
                for event in events:
                    found.when[event, key[0]].add(key)
            for deed in dated(sentence):
                found.deeds[deed.name].append(deed)
    return found


def _verb(word: str) -> str:
    """What a word that looks like a verb of the past says happened, or nothing."""
    irregular = word in _IRREGULAR or (word.startswith("re") and word[2:] in _IRREGULAR)
    return EVENTS.get(word) or (word if irregular or (word.endswith("ed") and len(word) > 4) else "")


def turned(claim: Sequence[Token], evidence: Told) -> list[str]:
    """What of `claim` the evidence says the other way round, in words."""
    sentences = list(_sentences(claim))
    tied = ((key, events) for sentence in sentences for key, events in ties(sentence))
    done = islice((deed for sentence in sentences for deed in dated(sentence)), MOST)
    found = ["-".join(key[1:]) for key, events in tied if _is_tied_elsewhere(key, events, evidence)]
    return found + [deed.name for deed in done if _is_reversed(deed, evidence)]


def _is_tied_elsewhere(key: Key, events: set[str], evidence: Told) -> bool:
    """Whether the evidence puts the opposite at the claim's date, and the claim's event at another date. Of birth and death,
    which happen once, either is enough."""
    others = evidence.events.get(key, set())
    if not others or "" in others | events or events & others:
        return False
    opposite = any(others & OPPOSITE.get(event, frozenset()) for event in events)
    once = bool(events & {"born", "died"})
    if key[0] == "place":
        return opposite and once
    elsewhere = any((event, key[0]) in evidence.when for event in events)
    return (opposite or elsewhere) if once else (opposite and elsewhere)


def _sentences(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    start = 0
    for i, token in enumerate(tokens):
        if token.kind == "mark" and token.word in _ENDS:
            yield tokens[start:i]
            start = i + 1
    yield tokens[start:]


def ties(sentence: Sequence[Token]) -> Iterator[tuple[Key, set[str]]]:
    """For each date and place of a sentence the events that it may be that of: those in its own part of the sentence (before
    it rather than behind it), else the next one where the part begins the sentence, else those around it and "": it is not
    sure."""
    begins = _part_begins(sentence)
    before, after = _nearest(sentence), [len(sentence) - 1 - i if i >= 0 else -1 for i in _nearest(sentence[::-1])][::-1]
    lives = _lives(sentence)
    for i, token in enumerate(sentence):
        for key in _keys(sentence, i, token):
            own = [at for at in (before[i], after[i]) if at >= 0 and begins[at] == begins[i]][:1]
            fronted = [after[i]] if after[i] >= 0 and _is_fronted(sentence, begins[i]) else []
            places = own or fronted or [at for at in (before[i], after[i]) if at >= 0]
            unsure = set() if own or fronted else {""}
            yield key, set(lives.get(i, ())) or {_verb(sentence[at].word) for at in places} | unsure


def _part_begins(sentence: Sequence[Token]) -> list[int]:
    """For each place where its part of the sentence begins."""
    begin, found = 0, []
    for i, token in enumerate(sentence):
        begin = i if token.word in _PARTS else begin
        found.append(begin)
    return found


def _is_fronted(sentence: Sequence[Token], begin: int) -> bool:
    """Whether a part of a sentence without an event speaks of the next one: "In 1931, …", "… and in 1931 …"."""
    follows = sentence[begin].word in _JOINTS and begin + 1 < len(sentence) and sentence[begin + 1].word in _FRONTS
    return begin == 0 or follows


def _nearest(sentence: Sequence[Token]) -> list[int]:
    """For each place the last one before it that has an event, or −1."""
    last, found = -1, []
    for i, token in enumerate(sentence):
        found.append(last)
        if (not token.name or token.word in EVENTS) and _verb(token.word) and (len(token.word) > 1 or _is_life(sentence, i)):
            last = i
    return found


def _is_life(sentence: Sequence[Token], i: int) -> bool:
    """Whether "b.", "d.", "*" or "†" stands in a parenthesis, where it is a sign of a life."""
    return any(token.word in "(,;" for token in sentence[max(0, i - 2) : i])


def _lives(sentence: Sequence[Token]) -> dict[int, tuple[str, str]]:
    """The two dates of "(1871 – 1939)": when somebody was born and died, or something began and ended."""
    found: dict[int, tuple[str, str]] = {}
    open_at, last = -1, -1
    for i, token in enumerate(sentence):
        if token.word in ("(", ")"):
            open_at, last = (i if token.word == "(" else -1), -1
        elif open_at >= 0 and _is_date(token):
            if last >= 0 and i - last < 6 and any(mark.word in ("-", "–", "—") for mark in sentence[last + 1 : i]):
                found |= {last: ("born", "begin"), i: ("died", "end")}
            last = i
    return found


def _is_date(token: Token) -> bool:
    if token.kind == "cardinal" and token.values and not token.spelt and not token.rounded:
        return 1000 <= token.values[0] < 2200
    return token.kind == "date"


def _keys(sentence: Sequence[Token], i: int, token: Token) -> Iterator[Key]:
    if token.kind == "date":
        yield ("year", str(token.date[0]))
        if token.date[2]:
            yield ("day", *map(str, token.date))
    elif _is_date(token):
        yield ("year", token.word)
    elif token.name and i and sentence[i - 1].word in _PLACES:
        yield ("place", token.word)


def dated(sentence: Sequence[Token]) -> Iterator[Deed]:
    years = frozenset(key[1] for i, token in enumerate(sentence) for key in _keys(sentence, i, token) if key[0] == "year")
    return (replace(deed, years=years) for deed in deeds(sentence))


def deeds(sentence: Sequence[Token]) -> Iterator[Deed]:
    """The statements of a sentence of the form NAME VERB NAME, NAME was VERB by NAME, NAME is GREATER than NAME."""
    for i, token in enumerate(sentence):
        before, after = sentence[max(0, i - REACH) : i], sentence[i + 1 : i + 1 + REACH]
        following = after[0].word if after else ""
        if name := "" if token.name else deed_of(token.word, following):
            yield from _done(name, before, after)
        elif token.word in ("lost", "loses", "losing"):
            if (to := _behind("to", after)) is not None:
                yield _deed("defeat", before, after[to:], passive=True)
        elif token.word in ("won", "wins", "winning"):
            against = _behind("against", after, REACH) or _behind("over", after, REACH)
            yield _deed("defeat", before, after[against:]) if against else _deed("win", before, ())
        elif token.word == "than" and i:
            yield _deed(f"{sentence[i - 1].word} than", before, after)
        elif token.word in _KIN and following == "of":
            yield _deed(f"{token.word} of", before, after[1:])


def _done(name: str, before: Sequence[Token], after: Sequence[Token]) -> Iterator[Deed]:
    by = _behind("by", after)
    if (name == "succeed" and after[:1] and after[0].word == "in") or (by is None and _is_passive(before)):
        return
    passive = by is not None
    if name == "precede":
        name, passive = "succeed", not passive
    yield _deed(name, before, after[by or 0 :], passive)


def _behind(word: str, after: Sequence[Token], reach: int = 6) -> int | None:
    """Where what follows `word` begins, if a name follows it soon and none (but of its object, with a longer reach) is before
    it: "acquired in 2006 by Google", not "beat Germany by two goals"."""
    place = next((n + 1 for n, token in enumerate(after[:reach]) if token.word == word), None)
    if place is None or not _names(after[place : place + 5]) or (reach < REACH and _names(after[:place])):
        return None
    return place


def deed_of(word: str, after: str = "") -> str:
    """The name of what a verb says is done, or nothing."""
    if after == "over" and word in ("took", "taken", "takes"):
        return "acquire"
    if word in ("won", "lost"):  # a match, or against somebody
        return ""
    return DEEDS.get(word) or (_verb(word) and word not in _MUTUAL and word) or ""


def _is_passive(before: Sequence[Token]) -> bool:
    return any(token.word in _BE for token in before[-2:])


def _deed(name: str, before: Sequence[Token], after: Sequence[Token], passive: bool = False) -> Deed:
    begin = next((n for n in range(len(before), 0, -1) if before[n - 1].word in _PARTS), 0)
    near, wide = (_names(before[begin:]), _names(_listed(after))), (_names(before), _names(after))
    made = passive and not any(token.word in _ABOUT and not before[n - 1].name for n, token in enumerate(before) if n)
    return Deed(name, *near[::-1], wide[::-1], made) if passive else Deed(name, *near, wide)


def _listed(after: Sequence[Token]) -> Sequence[Token]:
    """The first name and those that are listed with it: "Ann Oder, Per Lund and the Smiths"."""
    for n, token in enumerate(after):
        listed = (
            token.word in (",", "and", "&", "the") and n + 1 < len(after) and (after[n + 1].name or after[n + 1].word in _AND)
        )
        if not listed and (token.word in _PARTS or token.word in _BEHIND):
            return after[:n]
    return after


def _names(tokens: Sequence[Token]) -> frozenset[str]:
    return frozenset(token.word for token in tokens if token.name and len(token.word) > 1 and token.word not in _NAMELESS)


def _is_reversed(deed: Deed, evidence: Told) -> bool:
    """Whether the evidence has the claim's two names at this verb, always the other way round."""
    said = [one for one in evidence.deeds.get(deed.name, ()) if not (deed.years and one.years) or deed.years & one.years]
    by, to = deed.by - deed.to, deed.to - deed.by
    if not by:
        return False
    if deed.name == "win":  # "Germany won the final", of those who lost it
        matches = [*evidence.deeds.get("win", ()), *evidence.deeds.get("defeat", ())]
        return any(by & one.to for one in matches) and not any(by & one.around[0] for one in matches)
    if not to:
        return False
    every = evidence.deeds.get(deed.name, ())
    if any(by & one.around[0] and to & one.around[1] for one in every):
        return False
    if deed.name in _ONCE and by <= evidence.words and not any(by & (one.around[0] | one.around[1]) for one in every):
        return any(one.made and one.by and to <= one.to for one in every)
    return any(_is_opposite(by, to, one, evidence) for one in said)


def _is_opposite(by: frozenset[str], to: frozenset[str], said: Deed, evidence: Told) -> bool:
    """Whether subject and object are exchanged; where one of them has no name there ("it was bought by …"), it is that of the
    texts."""
    if by & said.to:
        return bool(to & said.by or (not said.by and to & evidence.words))
    return bool(to & said.by and not said.to and by & evidence.words and not by & said.around[0])
