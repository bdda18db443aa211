"""Who did what to whom, and what happened when: a claim that turns round what its evidence says
*(ours)*.

A small model reads "Google acquired YouTube" in "YouTube acquired Google", and a year of birth
in one of death. Two rules find the clearest of these: a date or a place that the evidence ties
to the opposite event, and a verb with its two names exchanged. Both are meant to keep silent
unless the evidence itself says the opposite.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from workbench.answers.names import TITLES
from workbench.answers.text import MONTHS
from workbench.entailment.events import (
    EVENTS,
    PARTS,
    Dated,
    is_past,
    keys_of,
    part_begins,
    sentences_of,
    ties,
)
from workbench.entailment.names import PRONOUNS, SMALL
from workbench.entailment.reading import Token

REACH = 25  # words on either side of a verb in which its names are looked for
MOST = 4  # statements of one claim that are looked at
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
_NAMELESS = SMALL | PRONOUNS | TITLES | frozenset(MONTHS)
_AND = frozenset("and the &".split())
_BE = frozenset("was were is are be been being got gets".split())
_NOUNS = {  # "the acquisition of NAME by NAME"
    "defeat": "defeat", "murder": "kill", "assassination": "kill", "killing": "kill", "acquisition": "acquire",
    "purchase": "acquire", "takeover": "acquire", "conquest": "conquer", "invasion": "invade", "capture": "capture",
}  # fmt: skip
_KIN = {
    word: f"{word} of"
    for word in "father mother son daughter capital subsidiary parent student".split()
} | {
    "successor": "succeed",
    "teacher": "teach",
    "owner": "own",
    "founder": "found",
    "author": "write",
    "killer": "kill",
    "murderer": "kill",
    "assassin": "kill",
}
_KIN_TURNED = {"predecessor": "succeed", "pupil": "teach"}  # "NAME was the predecessor of NAME"
_MUTUAL = frozenset(
    "married met played faced fought joined merged dated divorced shared resembled befriended"
    " debated named".split()
)
_ONCE = frozenset(
    "write direct compose paint found discover invented kill".split()
)  # done by one, or by those who are named together
_ARTICLES = frozenset("the a an".split())
# behind names: there may be more who did it
_WITH = frozenset("with together alongside along plus & or".split())
_ACTS = frozenset("starring featuring".split())
_CREDITS = frozenset(
    "co cofounder cofounders founder founders author authors writer writers creator creators"
    " inventor inventors discoverer discoverers composer director killer killers".split()
)
_WRITTEN = frozenset(
    "script screenplay music lyrics libretto text words story photography translation cover".split()
)
_LIGHT = frozenset(
    "was were is are be been being had has have itself himself herself first also later".split()
)
_RELATIVE = frozenset(", ( which who that".split())
_SUBJECTS = frozenset("it he she they".split())


@dataclass(frozen=True)
class Deed:
    """A verb, and the words of the names beside it that are its subject and its object,
    whichever way round it is said; `around` are all names that may be so, some words further."""

    name: str
    by: frozenset[str]
    to: frozenset[str]
    around: tuple[frozenset[str], frozenset[str]]
    made: bool = False  # "NAME was VERB by NAME.", "NAME VERB NAME.": all who did it are told
    years: frozenset[str] = frozenset()  # of its sentence


@dataclass
class Told:
    """What the texts tie dates and places to, and who does what to whom."""

    dated: Dated = field(default_factory=Dated)
    deeds: defaultdict[str, list[Deed]] = field(default_factory=lambda: defaultdict(list))
    words: set[str] = field(default_factory=set)
    # names that a noun says did something: "a novel by NAME", "co-founder"
    credited: set[str] = field(default_factory=set)
    writers: set[str] = field(default_factory=set)  # and "a script by NAME", who did not direct it


def told(texts: Iterable[Sequence[Token]]) -> Told:
    found = Told()
    for tokens in texts:
        found.words.update(token.word for token in tokens)
        for sentence in sentences_of(tokens):
            found.dated.learn(sentence)
            _credit(found, sentence)
            for deed in dated(sentence):
                found.deeds[deed.name].append(deed)
    return found


def _credit(found: Told, sentence: Sequence[Token]) -> None:
    """Learns the names that a noun says did something: "a novel by NAME", "its co-founder NAME"."""
    if not _CREDITS.isdisjoint(token.word for token in sentence):
        found.credited |= _names(sentence)
    for i, token in enumerate(sentence):
        before = [one.word for one in sentence[max(0, i - 5) : i]] if token.word == "by" else ()
        if before and not any(map(is_past, before)):
            found.credited |= (
                _names(sentence[i + 1 : i + 6]) if _WRITTEN.isdisjoint(before) else frozenset()
            )
            found.writers |= _names(sentence[i + 1 : i + 6])


def turned(claim: Sequence[Token], evidence: Told) -> list[str]:
    """What of `claim` the evidence says the other way round, in words."""
    sentences = list(sentences_of(claim))
    done = islice((deed for sentence in sentences for deed in dated(sentence)), MOST)
    tied = (tie for sentence in sentences for tie in ties(sentence))
    found = ["-".join(tie.key[1:]) for tie in tied if evidence.dated.elsewhere(tie)]
    return found + [deed.name for deed in done if _is_reversed(deed, evidence)]


def dated(sentence: Sequence[Token]) -> Iterator[Deed]:
    """Its statements, with the years of the verb's part of the sentence, or else of the whole
    sentence.
    """
    begins = part_begins(sentence)
    told = [
        (begins[i], key[1])
        for i, one in enumerate(sentence)
        for key in keys_of(sentence, i, one)
        if key[0] == "year"
    ]
    every = frozenset(year for _, year in told)
    own: defaultdict[int, set[str]] = defaultdict(set)
    for begin, year in told:
        own[begin].add(year)
    return (
        replace(deed, years=frozenset(own.get(begins[i], ())) or every)
        for i, deed in deeds(sentence)
    )


def deeds(sentence: Sequence[Token]) -> Iterator[tuple[int, Deed]]:
    """The statements of a sentence of the form NAME VERB NAME, NAME was VERB by NAME, NAME is
    GREATER than NAME, and where their verbs are."""
    for i, token in enumerate(sentence):
        before, after = sentence[max(0, i - REACH) : i], sentence[i + 1 : i + 1 + REACH]
        yield from ((i, deed) for deed in _deeds_at(token, before, after))


def _deeds_at(token: Token, before: Sequence[Token], after: Sequence[Token]) -> Iterator[Deed]:
    following = after[0].word if after else ""
    if following == "of" and (
        token.word in _NOUNS or token.word in _KIN or token.word in _KIN_TURNED
    ):
        yield from _of(token.word, before, after[1:])
    elif name := (
        "" if token.name and (before or following != "by") else deed_of(token.word, following)
    ):
        yield from _done(name, before, after)
    elif token.word in ("lost", "loses", "losing"):
        if (to := _behind("to", after)) is not None:
            yield _deed("defeat", before, after[to:], passive=True)
    elif token.word in ("won", "wins", "winning"):
        against = _behind("against", after, REACH) or _behind("over", after, REACH)
        yield _deed("defeat", before, after[against:]) if against else _deed("win", before, ())
    elif token.word == "than" and before:
        yield _deed(f"{before[-1].word} than", before, after)


def _of(word: str, before: Sequence[Token], after: Sequence[Token]) -> Iterator[Deed]:
    """ "The acquisition of NAME by NAME", "NAME's murder of NAME", "NAME was the successor of
    NAME".
    """
    if word not in _NOUNS:
        yield _deed(_KIN.get(word) or _KIN_TURNED[word], before, after, passive=word in _KIN_TURNED)
        return
    by = next((n for n, token in enumerate(after[:8]) if token.word == "by"), None)
    if by is not None:
        yield _deed(_NOUNS[word], after[:by], after[by + 1 :], passive=True)
    elif before and (
        before[-1].name
        or (before[-1].word in _ARTICLES and before[-2:-1] and before[-2].word == "completed")
    ):
        yield _deed(_NOUNS[word], before, after)


def _done(name: str, before: Sequence[Token], after: Sequence[Token]) -> Iterator[Deed]:
    by = _behind("by", after)
    by = _behind_place(after) if by is None and _is_passive(before) else by
    if (name == "succeed" and after[:1] and after[0].word == "in") or (
        by is None and _is_passive(before)
    ):
        return
    # a noun: "the defeat"
    if name in ("defeat", "acquire") and before and before[-1].word in _ARTICLES:
        return
    passive = by is not None
    if name == "precede":
        name, passive = "succeed", not passive
    yield _deed(name, before, after[by or 0 :], passive)


def _behind(word: str, after: Sequence[Token], reach: int = 6) -> int | None:
    """Where what follows `word` begins, if a name follows it soon and none (but of its object,
    with a longer reach) is before it: "acquired in 2006 by Google", not "beat Germany by two
    goals"."""
    place = next((n + 1 for n, token in enumerate(after[:reach]) if token.word == word), None)
    if (
        place is None
        or not _names(after[place : place + 5])
        or (reach < REACH and _names(after[:place]))
    ):
        return None
    return place


def _behind_place(after: Sequence[Token]) -> int | None:
    """The same behind a place: "killed in a barn near Duval by NAME"."""
    place = next((n + 1 for n, token in enumerate(after[:12]) if token.word == "by"), None)
    if (
        place is None
        or after[0].word not in ("in", "at", "near")
        or not _names(after[place : place + 5])
    ):
        return None
    return None if any(token.word in PARTS for token in after[:place]) else place


def deed_of(word: str, after: str = "") -> str:
    """The name of what a verb says is done, or nothing."""
    if after == "over" and word in ("took", "taken", "takes"):
        return "acquire"
    if word in ("won", "lost"):  # a match, or against somebody
        return ""
    return DEEDS.get(word) or (
        word if (word in EVENTS or is_past(word)) and word not in _MUTUAL else ""
    )


def _is_passive(before: Sequence[Token]) -> bool:
    return any(token.word in _BE for token in before[-2:])


def _deed(
    name: str, before: Sequence[Token], after: Sequence[Token], passive: bool = False
) -> Deed:
    begin = next((n for n in range(len(before), 0, -1) if before[n - 1].word in PARTS), 0)
    subject = (
        before[begin:] if _names(before[begin:]) else _leading(before, begin) or _antecedent(before)
    )
    every, after = after, after[: _next_agent(after)] if passive else after
    listed = _listed(after[: _fronted_end(after)] if passive and not before else after)
    near, wide = (_names(subject), _names(listed)), (_names(before), _names(after))
    if passive and not before:  # "Directed by NAME, NAME …"
        near = (_names(every[len(listed) :]), near[1])
    made = _is_whole(every, len(listed)) and (
        _has_agents(before, begin) if not passive else _has_object(before[begin:])
    )
    made = made and (passive or _begins_named(after))
    return Deed(name, *near[::-1], wide[::-1], made) if passive else Deed(name, *near, wide, made)


def _has_object(before: Sequence[Token]) -> bool:
    return not any(
        token.word in _ABOUT and not before[n - 1].name for n, token in enumerate(before) if n
    )


def _has_agents(before: Sequence[Token], begin: int) -> bool:
    """Whether nothing but names stands in front of a verb, and they are all of their list."""
    own = before[begin:]
    first = next((n for n in range(len(own)) if own[n].name), len(own))
    alone = begin == 0 or before[begin - 1].word not in ("and", ",", "but")
    return (
        alone and first < len(own) and all(token.name for token in own[first:]) and _has_object(own)
    )


def _begins_named(after: Sequence[Token]) -> bool:
    start = 1 if after[:1] and after[0].word in _ARTICLES else 0
    return bool(after[start : start + 1]) and after[start].name


def _antecedent(before: Sequence[Token]) -> Sequence[Token]:
    """The name that "…, which was acquired" and "…, acquired by …" are said of: it is right in
    front of the comma.
    """
    end = len(before)
    while end and (before[end - 1].word in _LIGHT or before[end - 1].word in _RELATIVE):
        end -= 1
    if end == len(before) or before[end].word not in _RELATIVE:
        return ()
    start = end
    while start and before[start - 1].name:
        start -= 1
    return before[start:end]


def _leading(before: Sequence[Token], begin: int) -> Sequence[Token]:
    """The name that begins "NAME, home of the singer NAME, was founded by …"."""
    start = 1 if before[:1] and before[0].word in _ARTICLES else 0
    bare = (
        0 < begin < len(before)
        and before[begin - 1].word == ","
        and all(token.word in _LIGHT for token in before[begin:])
    )
    end = next((n for n in range(start, len(before)) if not before[n].name), len(before))
    return (
        before[start:end]
        if bare and end < len(before) and before[end].word == "," and len(before) < REACH
        else ()
    )


def _next_agent(after: Sequence[Token]) -> int:
    """Where another verb's agent begins, behind "written by NAME": "and translated by NAME",
    "starring NAME".
    """
    agents = (
        n
        for n, one in enumerate(after)
        if one.word in _ACTS
        or (one.word == "by" and n and after[n - 1].word not in ("and", "or", ",", "&"))
    )
    return next(agents, len(after))


def _fronted_end(after: Sequence[Token]) -> int:
    """Where the names end that a sentence begins with ("Directed by NAME, NAME opened in May"),
    if they are no list.
    """
    comma = next((n for n, one in enumerate(after) if one.word == ","), len(after))
    verb = next(
        (n for n, one in enumerate(after[comma:], comma) if one.word in _BE or is_past(one.word)),
        len(after),
    )
    return len(after) if any(one.word in ("and", "&") for one in after[comma:verb]) else comma


def _is_whole(after: Sequence[Token], end: int) -> bool:
    """Whether no more who did it may follow a list of names: "with NAME", "and her brother"."""
    rest = [token.word for token in after[end : end + 2]]
    more = rest[:1] == ["and"] and not (
        rest[1:] and (is_past(rest[1]) or rest[1] in _BE | _SUBJECTS | _ACTS)
    )
    return not more and _WITH.isdisjoint(rest)


def _listed(after: Sequence[Token]) -> Sequence[Token]:
    """The first name and those that are listed with it: "Ann Oder, Per Lund and the Smiths"."""
    for n, token in enumerate(after):
        listed = (
            token.word in (",", "and", "&", "the")
            and n + 1 < len(after)
            and (after[n + 1].name or after[n + 1].word in _AND)
        )
        if not listed and (token.word in PARTS or token.word in _BEHIND):
            return after[:n]
    return after


def _names(tokens: Sequence[Token]) -> frozenset[str]:
    return frozenset(
        token.word
        for token in tokens
        if token.name and len(token.word) > 1 and token.word not in _NAMELESS
    )


def _is_reversed(deed: Deed, evidence: Told) -> bool:
    """Whether the evidence has the claim's two names at this verb, always the other way round."""
    said = [
        one
        for one in evidence.deeds.get(deed.name, ())
        if not (deed.years and one.years) or deed.years & one.years
    ]
    by, to = deed.by - deed.to, deed.to - deed.by
    if not by:
        return False
    if deed.name == "win":  # "Germany won the final", of those who lost it
        matches = [*evidence.deeds.get("win", ()), *evidence.deeds.get("defeat", ())]
        return any(by & one.to for one in matches) and not any(
            by & one.around[0] for one in matches
        )
    if not to:
        return False
    every = evidence.deeds.get(deed.name, ())
    credited = evidence.credited | (
        evidence.writers if deed.name in ("write", "compose") else set()
    )
    if (
        deed.name in _ONCE
        and by <= evidence.words
        and by.isdisjoint(credited)
        and _is_by_others(by, to, every)
    ):
        return True
    if any(by & one.around[0] and to & one.around[1] for one in every):
        return False
    return any(_is_opposite(by, to, one, evidence) for one in said)


def _is_by_others(by: frozenset[str], to: frozenset[str], every: Sequence[Deed]) -> bool:
    """Whether all who did something are told, and none is of these; nor may they be in another
    statement.
    """
    whole = [one for one in every if one.made and one.by and to <= one.to]
    rest = (
        one.around[0] | one.around[1] for one in every if not (one.made and one.by and to <= one.to)
    )
    return bool(whole) and not any(by & names for names in (*(one.by for one in whole), *rest))


def _is_opposite(by: frozenset[str], to: frozenset[str], said: Deed, evidence: Told) -> bool:
    """Whether subject and object are exchanged; where one of them has no name there ("it was
    bought by …"), it is that of the texts."""
    if by & said.to:
        return bool(to & said.by or (not said.by and to & evidence.words))
    return bool(to & said.by and not said.to and by & evidence.words and not by & said.around[0])
