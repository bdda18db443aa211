"""Shorten a predicate: keep only its first phrases, or drop its date.

The attachment of chained phrases is often ambiguous, so a phrase is used only together with all
phrases between it and the verb. The core with one date is safe.
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

    These are the whole, the first phrases, and the core with and without its date.

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
    pieces.append(
        f"{core} {dates[0]}".strip() if len(dates) == 1 and _is_free(verb, core, others) else whole
    )
    return list(dict.fromkeys(pieces))


def _is_free(verb: str, core: str, others: list[str]) -> bool:
    """Whether the date belongs to the core, so that the phrases between may be dropped."""
    if not (core or verb in _EVENTS):
        return False
    if re.fullmatch("the [a-z ]+", core):
        return False  # "the title role in Rain in 1937"
    own = re.match(r"(?:his|her|its|their) ", core)  # "his career as an actor in 1990"
    after = "by|into|from|to|" if verb in _EVENTS else "as|with|" if own else ""
    return all(re.match(rf"(?:{after}in|at|on) ", one) for one in others)


_DONE = r"built|made|set|written|held|sung|led|run"
_OF_OTHERS = (
    r"known|won|separate|different|distinct|similar|free|apart|independent|close|famous"
    r"|responsible|native|typical"
)
_HEAD = re.compile(
    r"((?:as )?(?:an?|several|numerous|many|various) (?:(?!of\b)[a-z-]+ ){0,3}?"
    rf"(?!of\b|\w+(?:ly|ed)\b|lot|number|few|little|(?:{_DONE}|{_OF_OTHERS})\b)[a-z-]+)"
    rf" (?:(?:[a-z]+ed|{_DONE}) )?"
    r"(?:for|in|on|at|from|with|by|about|against|during|throughout|under)"
    r" (?:(?:the|an?|his|her|its|their)\b|[A-Z\d])"
)


def head(phrase: str) -> str:
    """Return the first noun phrase ("a column for the Lume" → "a column"), or ""."""
    match = _HEAD.match(phrase)
    return match[1] if match else ""
