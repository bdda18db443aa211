"""Decide which claims need the introduction of their sentence ("In 1998,", "In the film,")."""

from __future__ import annotations

import re

from workbench.claims.adjuncts import TEMPORAL

_PLACE = re.compile(
    r"(?:in|at|on|from|near) (?:the )?(?:[A-Z][\w'’.-]*(?:,? (?:(?:of|de|la|del|upon) )*|$))+"
)
_OPEN = re.compile(r"(?:until|before|after|since|during|from|between)\b", re.I)
_REASON = re.compile(
    r"(?:although|though|despite|because|with|along|as|besides|apart|aside|alongside|following|upon|throughout)\b",
    re.I,
)
_TIME = re.compile(
    r"(?:after|before|since|until|during|when|once|while|prior|by|from)\b"
    r"|.*\b(?:ages?|years?|months?|weeks?|days?|decades?|\d{4}s?|\d+|\d+s|century|centuries|seasons?|spring|summer|autumn|winter"
    r"|childhood|youth|life|lifetime|career|teens|twenties|thirties|forties|fifties|sixties|end|beginning|time|times|war)$",
    re.I | re.S,
)


def is_free(lead: str) -> bool:
    """Whether claims hold without the introduction.

    They do for a date, a place or a reason, but not for "in the film" or "until 1990".
    """
    dated = TEMPORAL.fullmatch(lead) and not _OPEN.match(lead)
    place = _PLACE.fullmatch(f"{lead[:1].lower()}{lead[1:]}")
    return not lead or bool(dated or place or _REASON.match(lead))


def is_world(lead: str) -> bool:
    """Whether the introduction may restrict the whole sentence ("in the film")."""
    return not is_free(lead) and not _TIME.match(lead)


def led(claim: str, subject: str, lead: str) -> str:
    """Add the introduction to a claim.

    It goes to the end, or after the subject if a clause at the end would absorb it.
    """
    if not lead:
        return claim
    if re.search(r"\b(?:it|they)\b", lead):
        return f"{lead[0].upper()}{lead[1:]}, {claim[:1]}{claim[1:]}"
    lead = f"{lead[0].lower()}{lead[1:]}"
    after = claim[len(subject) :].strip()
    plain = not re.search(
        r",(?! [A-Z])|\b(?:that|which|who|to [a-z]+|because|when|while|after|before)\b", after
    )
    return f"{claim} {lead}" if plain else f"{subject}, {lead}, {after}"


def all_led(claims: list[str], subject: str, lead: str) -> list[str]:
    """Add the introduction to the claims: only to the first if the others hold without it."""
    own = [i for i, claim in enumerate(claims) if claim.startswith(f"{subject} ")]
    under = range(1) if is_free(lead) else own
    return [led(claim, subject, lead) if i in under else claim for i, claim in enumerate(claims)]
