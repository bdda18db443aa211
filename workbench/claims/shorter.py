"""Shorten a predicate: keep only its first phrases, or drop its date.

The attachment of chained phrases is often ambiguous, so a phrase is used only together with all
phrases between it and the verb.
"""

from __future__ import annotations

import re

from workbench.claims.adjuncts import TEMPORAL
from workbench.claims.english import NUMBERS

# Events that happen once: the place holds without the time, and the time without the place.
_EVENTS = frozenset(
    "born died founded established built opened created formed killed assassinated murdered"
    " executed inducted drafted deployed arrested knighted crowned buried baptized graduated"
    " incorporated".split()
)
_COUNTED = re.compile(  # "made three starts in 1993": the count holds only with the date
    rf"\b(?:\d+(?:st|nd|rd|th)?|{'|'.join(sorted(NUMBERS))}|several|many|most|all|each|every|first|last|only)\b"
)
# not "his career", "a name", "the title role"
_PLAIN = re.compile(r"(?!(?:his|her|its|their|a) \S+$)(?!the [a-z ]+$)\S+ ")
_HOSTING = re.compile(
    r"play\w*|h[eo]lds?|ke(?:ep|pt)\w*|spen[dt]s?|stage[sd]?|host(?:s|ed)?|conduct(?:s|ed)?"
)
# "plays its home games" states nothing without a place
_OWN = re.compile(r"(?:his|her|its|their) (?:[a-z-]+ ){0,2}[a-z-]+$")


def spread(verb: str, rest: str, core: str, phrases: list[str], lead: str) -> list[str]:
    """Return the texts that can follow a verb.

    These are the core, the first phrases, and the whole, which binds its values to each other ("the
    prize in Physics in 1911"). Of an event that happens once, the date may replace the place.

    Args:
        rest: the whole text after the verb.
        core: `rest` without its adjuncts (see `workbench.claims.adjuncts`).
        phrases: the adjuncts.
        lead: a date from the introduction of the sentence, or "".
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
