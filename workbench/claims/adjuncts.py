"""Separate the adjuncts and the introduction of a sentence from its statement.

The rule-based extractor (`workbench.claims.rules`) uses this module.

* An adjunct is a phrase of time, place or manner after the verb, such as "in Osk".
* An introduction is the phrase before the subject, such as "In 1998".

An adjunct may modify the adjunct before it, as in "at a school in Osk". Therefore a claim with the
later adjunct also has the earlier one. Only a date may be without it (see `spread`).
"""

import re
from itertools import pairwise

from workbench.claims.english import (
    ADJUNCTS,
    ADVERBS,
    DATE,
    NUMBERS,
    PREPOSITIONS,
    past,
    tokens_of,
    word_at,
)
from workbench.util.patterns import regex

_TIME = (
    r"(?:the (?:year|summer|spring|autumn|fall|winter|early|late|mid) |early |late |mid-?)?(?:the"
    r" (?=\d{4}s))?"
    rf"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, )?(?:{DATE.pattern})"
)
TEMPORAL = regex(
    rf"(?:in|on|since|during|until|by|before|after|from) {_TIME}(?: (?:AD|BC|BCE|CE))?"
    rf"(?:,? (?:to|until|till|and) (?:{_TIME}|present|the present))?"
    r"|at (?:the )?age (?:of )?\w+|between \d{4} and \d{4}",
    re.I,
)
_NAMED = regex(r"(?:the|his|her|its|their|age|an?|early|late|mid)\b")
_HOLDING = (
    PREPOSITIONS
    | ADVERBS
    | frozenset(
        "known named titled called separate different distinct free apart far years months weeks"
        " days hours year month week day".split()  # "two years after …"
    )
)
_IDIOM = regex(
    r"(?i)(?:as a (?:whole|result)|as (?:his|her|its|their)|as (?:well|part|such)|in (?:general"
    r"|particular|history|order|turn|part|fact|addition|the process|the (?:field|world|history"
    r"|development|fight|context|form|name|face|wake|hope|role|area|areas))|in (?:an?"
    r"|the) (?:\w+ ){0,2}(?:way|manner|style|effort|attempt)|at the (?:time|same time|end"
    r"|beginning)|by the (?:time|end)|with (?:the (?:help|exception|aim|goal|intention)|particular"
    r"|an emphasis|a focus))\b"
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
_RESTRICTED = regex(  # superlatives and parts, which hold only with all phrases after them
    r"\b(?:the|his|her|its|their) (?:\w+ ){0,2}(?:first|only|last|youngest|oldest|most|least|best"
    r"|worst|second|third|[a-z]{2,}est|\w+-most)\b|\b(?:one|some|many|several|two|three|four|half"
    r"|most|both|all|none|each|part|member|members) of\b|\b(?:most|least|mostly|mainly"
    r"|chiefly)\b(?! of)"
)
_DWELLING = regex(
    r"(?:focus|continu|concentrat|cent(?:er|re)|contribut|consist|emphasi|specialis|specializ|remain|help|includ|lived"
    r"|lives|based|came|went|got|fell)\w*"
)
_PARTICIPLES = frozenset(
    "set won held made written built sold known called taught given taken led found born sung drawn"
    " worn shot run".split()
)


def adjuncts(verb: str, rest: str) -> tuple[str, list[str]]:
    """Split the text after a verb into its core and its adjuncts.

    Adjuncts are phrases of time, place or manner at the end of the text. "the prize in Physics in
    1911" → ("the prize", ["in Physics", "in 1911"]). If the split is uncertain, return (`rest`,
    []).

    Args:
        verb: the verb before the text.
        rest: the text after the verb.
    """
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
    pieces = [_ENDING.sub("", rest[a:b].strip(" ,")) for a, b in pairwise([*cuts, len(rest)])]
    if any(
        TEMPORAL.match(piece) and not TEMPORAL.fullmatch(piece) and " and " in piece
        for piece in pieces
    ):
        return rest, []  # "in 1950 and Mira", "in 1960"
    return rest[: cuts[0]].strip(" ,"), pieces


_ENDING = regex(r",? (?:and|or|but)$")


def _begins(rest: str, words: list[str], i: int, at: int) -> bool:
    """Whether an adjunct begins at word `i` of `rest`; `at` is the word's character position."""
    before, after = words[i - 1] if i else "", word_at(words, i + 1)
    return (
        (after[:1].isupper() or after[:1].isdigit() or bool(_NAMED.match(after)))
        and not _IDIOM.match(rest, at)
        and (
            words[i] in ADJUNCTS
            or (not i and words[0] in ("to", "into", "for") and not after[0].isdigit())
        )
        and not (before.endswith("ly") or before in _HOLDING)
    )


def _stop(words: list[str]) -> int:
    """Return the index of the first word that begins a clause, participle or infinitive.

    Phrases after this word modify it, not the verb. Without such a word, the result is the number
    of words.
    """
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


# Events that happen once: the place is true without the time, and the time without the place.
_EVENTS = frozenset(
    "born died founded established built opened created formed killed assassinated murdered"
    " executed inducted drafted deployed arrested knighted crowned buried baptized graduated"
    " incorporated".split()
)
_COUNTED = regex(  # "made three starts in 1993": the count holds only with the date
    rf"\b(?:\d+(?:st|nd|rd|th)?|{'|'.join(sorted(NUMBERS))}|several|many|most|all|each|every|first|last|only)\b"
)
# not "his career", "a name", "the title role"
_PLAIN = regex(r"(?!(?:his|her|its|their|a) \S+$)(?!the [a-z ]+$)\S+ ")
_HOSTING = regex(
    r"play\w*|h[eo]lds?|ke(?:ep|pt)\w*|spen[dt]s?|stage[sd]?|host(?:s|ed)?|conduct(?:s|ed)?"
)
# "plays its home games" states nothing without a place
_OWN = regex(r"(?:his|her|its|their) (?:[a-z-]+ ){0,2}[a-z-]+$")


def spread(verb: str, rest: str, core: str, phrases: list[str], lead: str) -> list[str]:
    """Divide the text after a verb; each returned text makes one claim if put after the verb.

    For "won the Nobel Prize in Physics at Osk in 1911", the texts are:

    * the core: "the Nobel Prize" (a core that says little, such as "the prize", is left out)
    * the core with the first adjunct: "the Nobel Prize in Physics"
    * the core with all adjuncts except the date: "the Nobel Prize in Physics at Osk"
    * the whole text

    If the verb names an event that happens once, place and time are separated: for "founded", "in
    Osk in 1950" → ["in Osk", "in 1950"]. A text with a count ("three starts in 1993") is returned
    whole, because the count may be true only with the date.

    Args:
        verb: the verb before the text.
        rest: the whole text after the verb.
        core: `rest` without its adjuncts.
        phrases: the adjuncts, which are phrases of time, place or manner.
        lead: a date from the beginning of the sentence ("In 1911, …"), or "". It is added at the
            end of the text.
    """
    whole = f"{rest} {lead}".strip()
    dates = [phrase for phrase in [*phrases, lead] if TEMPORAL.fullmatch(phrase)]
    others = [phrase for phrase in phrases if phrase not in dates]
    if not verb or not (dates or phrases) or _COUNTED.search(core):
        return [whole]
    if verb in _EVENTS and not core and len(others) <= 1 and dates:
        return [*others, *dates]
    empty = _HOSTING.fullmatch(verb) and _OWN.match(core)
    pieces = [core] if phrases and _PLAIN.match(core) and not empty else []
    if len(phrases) > 1:
        pieces.append(f"{core} {phrases[0]}".strip())
    if len(dates) == 1 and others:
        pieces.append(" ".join([core, *others]).strip())
    place = all(re.match(r"(?:by|into|from|to|in|on|at) ", one) for one in others)
    once = verb in _EVENTS and len(dates) == 1 and place
    pieces.append(f"{core} {dates[0]}".strip() if once else whole)
    return list(dict.fromkeys(pieces))


_PLACE = regex(
    r"(?:in|at|on|from|near) (?:the )?(?:[A-Z][\w'’.-]*(?:,? (?:(?:of|de|la|del|upon) )*|$))+"
)
_OPEN = regex(r"(?i)(?:until|before|after|since|during|from|between)\b")
_REASON = regex(
    r"(?i)(?:although|though|despite|because|with|along|as|besides|apart|aside|alongside|following|upon|throughout)\b"
)
_WHEN = regex(
    r"(?is)(?:after|before|since|until|during|when|once|while|prior|by|from)\b"
    r"|.*\b(?:ages?|years?|months?|weeks?|days?|decades?|\d{4}s?|\d+|\d+s|century|centuries|seasons?|spring|summer|autumn|winter"
    r"|childhood|youth|life|lifetime|career|teens|twenties|thirties|forties|fifties|sixties|end|beginning|time|times|war)$"
)


def is_free(lead: str) -> bool:
    """Return whether the claims of a sentence stay true without its introduction.

    `lead` is the introduction: the phrase before the subject, or "". The result is True for "", a
    date, a place or a reason. It is False for phrases such as "in the film" or "until 1990".
    """
    dated = TEMPORAL.fullmatch(lead) and not _OPEN.match(lead)
    place = _PLACE.fullmatch(f"{lead[:1].lower()}{lead[1:]}")
    return not lead or bool(dated or place or _REASON.match(lead))


def is_world(lead: str) -> bool:
    """Return whether the introduction of a sentence names a work or situation: "in the film".

    The claims of the sentence may then be true only in this context. `lead` is the introduction:
    the phrase before the subject, or "". The result is False for "", a date, a place, a reason or a
    time such as "until 1990".
    """
    return not is_free(lead) and not _WHEN.match(lead)


def led(claim: str, subject: str, lead: str) -> str:
    """Add the introduction of a sentence to one of its claims, and return the claim.

    The introduction usually goes to the end: "Ana won in 1998". If the claim has a second clause,
    the introduction follows the subject: "Ana, in 1998, said that …". An introduction with "it" or
    "they" goes to the front.

    Args:
        claim: the claim.
        subject: the words with which `claim` begins.
        lead: the introduction, such as "In 1998". If it is "", the claim is unchanged.
    """
    if not lead:
        return claim
    if re.search(r"\b(?:it|they)\b", lead):
        return f"{lead[0].upper()}{lead[1:]}, {claim}"
    lead = f"{lead[0].lower()}{lead[1:]}"
    after = claim[len(subject) :].strip()
    plain = not re.search(
        r",(?! [A-Z])|\b(?:that|which|who|to [a-z]+|because|when|while|after|before)\b", after
    )
    return f"{claim} {lead}" if plain else f"{subject}, {lead}, {after}"


def all_led(claims: list[str], subject: str, lead: str) -> list[str]:
    """Add the introduction of a sentence, such as "In 1998", to the claims that need it.

    If the claims are true without the introduction `lead` (`is_free`), only the first claim gets
    it. Otherwise, every claim that begins with `subject` gets it.
    """
    own = [i for i, claim in enumerate(claims) if claim.startswith(f"{subject} ")]
    under = range(1) if is_free(lead) else own
    return [led(claim, subject, lead) if i in under else claim for i, claim in enumerate(claims)]
