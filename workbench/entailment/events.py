"""What texts tie their dates and places to, and where a claim ties one to the opposite event
*(ours)*.

    "Opened in 1931, the hall closed in 1978."   1931: opened; 1978: closed; so "The hall opened
    in 1978" is turned round

A rule speaks only of events that are opposite, of birth and death, and of two that one sentence
tells of one thing with a date each, as when something was written and when it was published. Of
all others it keeps silent: "opened" may be said of a new wing, and "completed" of the house.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from workbench.entailment.names import DAYS
from workbench.entailment.reading import DENIALS, SHORTENED, Token

_EVENTS = """
born: born birth birthplace b *|died: died dies death dead killed assassinated executed murdered d †
begin: founded established formed incorporated founding formation inception inaugurated launched began begun started
end: dissolved disbanded abolished demolished defunct dissolution ended ceased stopped folded liquidated discontinued
opened: opened opens opening|closed: closed closes closing closure shut shuts
married: married marries wed marriage|divorced: divorced divorces divorce separated
joined: joined joins joining|left: left leaves departed|appointed: elected appointed crowned
resigned: resigned retired abdicated resignation retirement|built: constructed built
built finished: completed finished|made: written wrote filmed recorded composed shot
released: released published premiered|performed: performed
won: won wins winning|lost: lost loses|sold: sold|graduated: graduated
discovered: discovered invented|acquired: acquired bought purchased
"""
_PHRASES = """
begin: broke out, set up|end: broke up, split up, wound up|closed: shut down|died: passed away|released: came out
appointed: took office, sworn in|resigned: left office, stepped down
"""
_PLAIN = """
died: die|begin: begin start|end: end dissolve disband|opened: open|closed: close shut|married: marry|divorced: divorce
joined: join|left: leave|resigned: resign retire abdicate|released: appear
"""
Names = frozenset[str]


def _table(lines: str, parted: str | None = None) -> dict[str, Names]:
    entries = (entry.split(": ") for entry in lines.strip().replace("\n", "|").split("|"))
    return {
        word.strip(): frozenset(names.split())
        for names, words in entries
        for word in words.split(parted)
    }


EVENTS, PHRASES, PLAIN = _table(_EVENTS), _table(_PHRASES, ","), _table(_PLAIN)
_OPPOSITE = (
    "born died|begin end|opened closed|married divorced|joined left|appointed resigned|begin"
    " closed|opened end"
)
# that are no opposites, but told apart in one sentence
_APART = "made released|made performed|built opened"


def _pairs(pairs: str) -> dict[str, Names]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for one, other in (pair.split() for pair in pairs.split("|")):
        found[one].add(other)
        found[other].add(one)
    return {name: frozenset(others) for name, others in found.items()}


OPPOSITE, APART = (
    _pairs(f"{_OPPOSITE}|begin finished"),
    _pairs(f"{_OPPOSITE}|{_APART}|begin finished"),
)
OFFICE = frozenset("served reigned ruled governed presided chaired".split())
PARTS = frozenset(
    ", ; : ( ) – — and but while then before until after who which where when although though".split()
)
_ENDS = frozenset(". ! ? \n".split(" "))
_JOINTS = frozenset("and but ;".split())
_FRONTS = frozenset("in on at by during since".split())
_PLACES = frozenset("in at near".split())
_UNTIL = frozenset("until till".split())
_SINCE = frozenset("from since".split())
# before a verb's plain form
_MODALS = frozenset("to did would could might must will should cannot".split())
_LIGHT = frozenset(
    "was were is are be been being had has have first officially finally only formally not later"
    " then".split()
)
# before a verb whose subject was told
_UNSAID = frozenset("and but , ; ( – — it he she they which who that then to".split())
_IRREGULAR = frozenset(
    "won lost began became took taken made wrote written built sold bought left met led fell fallen"
    " rose broke broken lit burnt came went gone held gave given found ran drew drawn flew grew"
    " grown saw seen shot struck taught sank sunk hid bore chose chosen drove driven stole stolen"
    " threw thrown sang sung wore overthrown overthrew lent sent spent paid laid put set cut hit".split()
)
Key = tuple[str, ...]


class Tie(NamedTuple):
    """A date or a place, and the events that it may be that of; `verb` is where the one of a
    sure tie stands, else −1.
    """

    key: Key
    events: Names
    verb: int = -1


@dataclass
class Dated:
    """What the texts tie dates and places to."""

    events: defaultdict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))
    # an event and a kind of key that it has
    when: set[tuple[str, str]] = field(default_factory=set)
    # events that are another date's
    apart: defaultdict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))

    def learn(self, sentence: Sequence[Token]) -> None:
        found = list(ties(sentence))
        for tie in found:
            self.events[tie.key] |= tie.events
            self.when |= {(event, tie.key[0]) for event in tie.events}
        self._tell_apart(
            sentence, [tie for tie in found if tie.verb >= 0 and tie.key[0] != "place"]
        )

    def _tell_apart(self, sentence: Sequence[Token], sure: Sequence[Tie]) -> None:
        """Of two events in a row that one sentence tells of one thing, each is not at the
        other's date.
        """
        for kind in ("year", "day"):
            for one, other in pairwise(tie for tie in sure if tie.key[0] == kind):
                if (
                    one.key != other.key
                    and one.verb != other.verb
                    and _is_of_one(sentence, one.verb, other.verb)
                ):
                    self.apart[one.key] |= {
                        event for event in other.events if APART.get(event, Names()) & one.events
                    }
                    self.apart[other.key] |= {
                        event for event in one.events if APART.get(event, Names()) & other.events
                    }

    def elsewhere(self, tie: Tie) -> bool:
        """Whether the evidence puts the opposite at the claim's date, and the claim's event at
        another date. Of birth and death, which happen once, either is enough."""
        key, events, others = tie.key, tie.events, self.events.get(tie.key, set())
        if not others or "" in others | events or events & others:
            return False
        opposite = any(others & OPPOSITE.get(event, Names()) for event in events)
        once = bool(events & {"born", "died"})
        if key[0] == "place":
            return opposite and once
        dated = any((event, key[0]) in self.when for event in events)
        apart = bool(events & self.apart.get(key, set()))
        return apart or ((opposite or dated) if once else (opposite and dated))


def events_at(sentence: Sequence[Token], at: int) -> Names:
    """What a word that looks like a verb of the past says happened, or nothing."""
    word, after = sentence[at].word, sentence[at + 1].word if at + 1 < len(sentence) else ""
    if phrase := PHRASES.get(f"{word} {after}"):
        return phrase
    if word in PLAIN and any(one.word in _MODALS for one in sentence[max(0, at - 2) : at]):
        return PLAIN[word]
    return EVENTS.get(word) or (Names([word]) if is_past(word) else Names())


def is_past(word: str) -> bool:
    irregular = word in _IRREGULAR or (word.startswith("re") and word[2:] in _IRREGULAR)
    return irregular or (word.endswith("ed") and len(word) > 4)


def sentences_of(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    start = 0
    for i, token in enumerate(tokens):
        if (
            token.kind == "mark"
            and token.word in _ENDS
            and not (token.word == "." and i and tokens[i - 1].word in SHORTENED)
        ):
            yield tokens[start:i]
            start = i + 1
    yield tokens[start:]


def ties(sentence: Sequence[Token]) -> Iterator[Tie]:
    """For each date and place of a sentence the events that it may be that of: those in its own
    part of the sentence (before it rather than behind it), else the next one where the part
    begins the sentence, else those around it and "": it is not sure."""
    begins = part_begins(sentence)
    before, after = (
        _nearest(sentence),
        [len(sentence) - 1 - i if i >= 0 else -1 for i in _nearest_behind(sentence)],
    )
    lives, last = _lives(sentence), ""
    for i, token in enumerate(sentence):
        keys = list(keys_of(sentence, i, token)) or _same_year(sentence, i, last)
        last = next((key[1] for key in keys if key[0] == "year"), last)
        for key in keys:
            if i in lives:
                yield Tie(key, Names(lives[i]))
                continue
            places, sure = _verbs(sentence, i, begins, before, after)
            events = {
                event
                for at in places
                for event in events_at(sentence, at) | _office(sentence, at, i)
            }
            yield Tie(key, Names(events if sure else {*events, ""}), places[0] if sure else -1)


def _verbs(
    sentence: Sequence[Token],
    i: int,
    begins: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
) -> tuple[list[int], bool]:
    """Where the verbs of the date or place at `i` stand, and whether that is sure."""
    begin = begins[i]
    own = [at for at in (before[i], after[i]) if at >= 0 and begins[at] == begin][:1]
    if _is_where(sentence, i) and after[i] >= 0:
        return [*own, after[i]], True
    # "his death, on 2 May 1899"
    if not own and before[i] == begin - 1 >= 0 and sentence[begin].word == ",":
        own = [before[i]]
    if not own and after[i] >= 0 and _is_fronted(sentence, begin):
        own = [after[i]]
    return own or [at for at in (before[i], after[i]) if at >= 0], bool(own)


def _is_where(sentence: Sequence[Token], i: int) -> bool:
    """Whether "…, where" follows the place at `i`."""
    return not _is_date(sentence[i]) and "where" in [one.word for one in sentence[i + 1 : i + 3]]


def _office(sentence: Sequence[Token], at: int, i: int) -> Names:
    """ "He served from 1902 until 1910": what the first date and the last one are those of."""
    if sentence[at].word not in OFFICE or not i:
        return Names()
    before = sentence[i - 1].word
    started, ended = before in _SINCE, before in _UNTIL or before in ("to", "-", "–")
    return Names(["appointed"] if started else ["resigned"] if ended else [])


def _same_year(sentence: Sequence[Token], i: int, last: str) -> list[Key]:
    """ "That year", "the same year": the last one that is told."""
    said = sentence[i].word == "year" and i > 0 and sentence[i - 1].word in ("that", "same")
    return [("year", last)] if said and last else []


def _is_of_one(sentence: Sequence[Token], one: int, other: int) -> bool:
    """Whether one of two verbs has no subject of its own: "… was written in 1931 and published
    in 1956".
    """
    return any(_has_no_subject(sentence, at) for at in (one, other))


def _has_no_subject(sentence: Sequence[Token], at: int) -> bool:
    while at and (sentence[at - 1].word in _LIGHT or sentence[at - 1].word.endswith("ly")):
        at -= 1
    return at == 0 or sentence[at - 1].word in _UNSAID


def part_begins(sentence: Sequence[Token]) -> list[int]:
    """For each place where its part of the sentence begins; "… did not open until 1921" is one
    part, and so is "He ruled until 1921"."""
    begin, found, goes_on = 0, [], False
    for i, token in enumerate(sentence):
        goes_on = goes_on or token.word in DENIALS or token.word in OFFICE
        reach = 4 if token.word in _UNTIL else 2
        dated = token.word in PARTS and any(map(_is_date, sentence[i + 1 : i + reach]))
        joined = (goes_on and token.word in _UNTIL) or (
            token.word in ",:" and i > 0 and _is_before_date(sentence, i - 1)
        )
        if token.word in PARTS and not (dated and joined):
            begin, goes_on = i, False
        found.append(begin)
    return found


def _is_before_date(sentence: Sequence[Token], i: int) -> bool:
    """Whether a comma or colon behind the word parts nothing, if a date follows: "on Tuesday, 4
    May 1939", "Born: 1871".
    """
    return sentence[i].word in DAYS or (sentence[i].word in EVENTS and sentence[i + 1].word == ":")


def _is_fronted(sentence: Sequence[Token], begin: int) -> bool:
    """Whether a part of a sentence without an event speaks of the next one: "In 1931, …", "… and
    in 1931 …".
    """
    follows = (
        sentence[begin].word in _JOINTS
        and begin + 1 < len(sentence)
        and sentence[begin + 1].word in _FRONTS
    )
    return begin == 0 or follows


def _nearest(sentence: Sequence[Token]) -> list[int]:
    """For each place the last one before it that has an event, or −1."""
    last, found = -1, []
    for i in range(len(sentence)):
        found.append(last)
        last = i if _is_event(sentence, i) else last
    return found


def _nearest_behind(sentence: Sequence[Token]) -> list[int]:
    """The next one with an event, counted from the end, or −1."""
    last, found = -1, []
    for i in range(len(sentence) - 1, -1, -1):
        found.append(last)
        last = len(sentence) - 1 - i if _is_event(sentence, i) else last
    return found[::-1]


def _is_event(sentence: Sequence[Token], i: int) -> bool:
    token = sentence[i]
    named = token.name and token.word not in EVENTS
    return (
        not named
        and bool(events_at(sentence, i))
        and (len(token.word) > 1 or _is_life(sentence, i))
    )


def _is_life(sentence: Sequence[Token], i: int) -> bool:
    """Whether "b.", "d.", "*" or "†" stands in a parenthesis, where it is a sign of a life."""
    return any(token.word in "(,;" for token in sentence[max(0, i - 2) : i])


def _lives(sentence: Sequence[Token]) -> dict[int, tuple[str, str]]:
    """The two dates of "(1871 – 1939)": when somebody was born and died, or something began and
    ended.
    """
    found: dict[int, tuple[str, str]] = {}
    open_at, last = -1, -1
    for i, token in enumerate(sentence):
        if token.word in ("(", ")"):
            open_at, last = (i if token.word == "(" else -1), -1
        elif open_at >= 0 and _is_date(token):
            if (
                last >= 0
                and i - last < 6
                and any(mark.word in ("-", "–", "—") for mark in sentence[last + 1 : i])
            ):
                found |= {last: ("born", "begin"), i: ("died", "end")}
            last = i
    return found


def _is_date(token: Token) -> bool:
    if token.kind == "cardinal" and token.values and not token.spelt and not token.rounded:
        return 1000 <= token.values[0] < 2200
    return token.kind == "date"


def keys_of(sentence: Sequence[Token], i: int, token: Token) -> Iterator[Key]:
    if token.kind == "date":
        yield ("year", str(token.date[0]))
        if token.date[2]:
            yield ("day", *map(str, token.date))
    elif _is_date(token):
        yield ("year", token.word)
    elif token.name and i and sentence[i - 1].word in _PLACES:
        yield ("place", token.word)
