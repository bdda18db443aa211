"""Split off phrases of time, place and manner after a verb (see `workbench.claims.rules`)."""

from __future__ import annotations

import re

from workbench.claims.english import (
    ADJUNCTS,
    ADVERBS,
    DATE,
    PREPOSITIONS,
    past,
    tokens_of,
    word_at,
)

_TIME = (
    r"(?:the (?:year|summer|spring|autumn|fall|winter|early|late|mid) |early |late |mid-?)?(?:the"
    r" (?=\d{4}s))?"
    rf"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, )?(?:{DATE.pattern})"
)
TEMPORAL = re.compile(
    rf"(?:in|on|since|during|until|by|before|after|from) {_TIME}(?: (?:AD|BC|BCE|CE))?"
    rf"(?:,? (?:to|until|till|and) (?:{_TIME}|present|the present))?"
    r"|at (?:the )?age (?:of )?\w+|between \d{4} and \d{4}",
    re.I,
)
_NAMED = re.compile(r"(?:the|his|her|its|their|age|an?|early|late|mid)\b")
_HOLDING = (
    PREPOSITIONS
    | ADVERBS
    | frozenset(
        "known named titled called separate different distinct free apart far years months weeks"
        " days hours year month week day".split()  # "two years after …"
    )
)
_IDIOM = re.compile(
    r"(?:as a (?:whole|result)|as (?:his|her|its|their)|as (?:well|part|such)|in (?:general"
    r"|particular|history|order|turn|part|fact|addition|the process|the (?:field|world|history"
    r"|development|fight|context|form|name|face|wake|hope|role|area|areas))|in (?:an?"
    r"|the) (?:\w+ ){0,2}(?:way|manner|style|effort|attempt)|at the (?:time|same time|end"
    r"|beginning)|by the (?:time|end)|with (?:the (?:help|exception|aim|goal|intention)|particular"
    r"|an emphasis|a focus))\b",
    re.I,
)
_SPANNING = frozenset(
    "ranging spanning lasting resulting consisting depending corresponding totaling"
    " totalling".split()
)
_STOPS = frozenset(
    "that which who whom whose where when while because if whether so than due despite".split()
)
# Phrases after "until his death" belong to the death.
_TAKES_REST = frozenset("until before after since".split())
_RESTRICTED = re.compile(  # superlatives and parts, which hold only with all phrases after them
    r"\b(?:the|his|her|its|their) (?:\w+ ){0,2}(?:first|only|last|youngest|oldest|most|least|best"
    r"|worst|second|third|[a-z]{2,}est|\w+-most)\b|\b(?:one|some|many|several|two|three|four|half"
    r"|most|both|all|none|each|part|member|members) of\b|\b(?:most|least|mostly|mainly"
    r"|chiefly)\b(?! of)"
)
_DWELLING = re.compile(
    r"(?:focus|continu|concentrat|cent(?:er|re)|contribut|consist|emphasi|specialis|specializ|remain|help|includ|lived"
    r"|lives|based|came|went|got|fell)\w*"
)
_PARTICIPLES = frozenset(
    "set won held made written built sold known called taught given taken led found born sung drawn"
    " worn shot run".split()
)


def adjuncts(verb: str, rest: str) -> tuple[str, list[str]]:
    """Return the core of a predicate and the phrases after it that can follow the verb alone."""
    tokens = tokens_of(rest)
    words = [token[0] for token in tokens]
    if ":" in words or _DWELLING.fullmatch(verb):
        return rest, []
    cuts: list[int] = []  # the starts of the phrases
    for i in range(_stop(words)):
        here = tokens[i].start()
        if not _begins(rest, words, i, here):
            continue
        if words[i] == "with" and i and words[i - 1] == ",":
            break  # "the flag, with 15 stars"
        if words[i] == "under":
            continue  # "against the army under Bo's command"
        if _RESTRICTED.search(rest, 0, here):
            break
        cuts.append(here)
        if words[i] in _TAKES_REST:
            break
    if not cuts:
        return rest, []
    pieces = [
        _ENDING.sub("", rest[a:b].strip(" ,"))
        for a, b in zip(cuts, [*cuts[1:], len(rest)], strict=True)
    ]
    if any(
        TEMPORAL.match(piece) and not TEMPORAL.fullmatch(piece) and " and " in piece
        for piece in pieces
    ):
        return rest, []  # "in 1950 and Mira", "in 1960"
    return rest[: cuts[0]].strip(" ,"), pieces


_ENDING = re.compile(r",? (?:and|or|but)$")


def _begins(rest: str, words: list[str], i: int, at: int) -> bool:
    """Whether an adjunct begins at word `i`, which is at character `at`."""
    if i + 1 >= len(words) or _IDIOM.match(rest, at):
        return False
    if words[i] not in ADJUNCTS and not (
        i == 0 and words[0] in ("to", "into", "for") and not words[1][0].isdigit()
    ):
        return False
    if i and (words[i - 1].endswith("ly") or words[i - 1] in _HOLDING):
        return False
    after = words[i + 1]
    return after[0].isupper() or after[0].isdigit() or bool(_NAMED.match(after))


def _stop(words: list[str]) -> int:
    """Return the index of the first clause, participle or infinitive, which owns later phrases."""
    for i, word in enumerate(words):
        after = word_at(words, i + 1)
        if (
            word in _STOPS
            or word in _SPANNING
            or (word == "," and after in ("a", "an", "the"))
            or (i and past(word))
        ):
            return i
        infinitive = after.islower() and (not after.endswith("s"))
        if word == "to" and infinitive:
            return i
        participle = word in _PARTICIPLES or (word.endswith("ed") and word.islower())
        if i and participle and after in PREPOSITIONS | ADVERBS:
            return i
    return len(words)
