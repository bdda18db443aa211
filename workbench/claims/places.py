"""Extract implied claims on places and nationalities: "Lima, Peru", "a Brazilian footballer"."""

import re
from itertools import pairwise

from workbench.claims.english import AGENTS, DATA, article
from workbench.util.patterns import regex

COUNTRIES = frozenset(DATA["places"]["countries"])
# Parts of countries; "Georgia" counts as a region.
REGIONS = frozenset(DATA["places"]["regions"])
CONTINENTS = frozenset(DATA["places"]["continents"])
_NATION = "|".join(DATA["places"]["nations"])
# Words before a nationality: "a former Brazilian footballer", but not "a song by American singer".
_BEFORE = (
    r"(?:former|retired|late|young|well|noted|renowned|prominent|professional"
    r"|[a-z-]+(?:al|ive|ous|ful|ic|ary|ing)|[a-z]\w+-\w+)"
)
_PEOPLE = regex(rf"(?P<people>(?:{_NATION})(?:[-–](?:{_NATION}))*) (?P<what>[a-z].*)")
# Words between a nationality and a profession; the person still has the nationality.
_KIND_OF = regex(
    r"(?:film|television|tv|radio|stage|theatre|theater|voice|rock|pop|folk|jazz|opera|soul|hip-hop|fashion|soccer|baseball"
    r"|basketball|tennis|cricket|rugby|golf|hockey|badminton|volleyball|handball|softball|swimming|wrestling|cycling"
    r"|racing|skating|table|ice|chess|track|field|and|football|rights|human|war|children's|stand-up"
    r"|computer|mixed|martial|arts|video|game|screen|character|comic|sports|sport|news|beauty|singer|record|music|dance"
    r"|\w+(?:[ai]c|al|ive|ous|ing|ed|ary|ern|-winning|-selling|-born))"
)
_TEACHING = regex(
    r"(?:teacher|tutor|professor|instructor|lecturer|scholar|translator|speaker|student|major"
    r"|football)s?\b"
)


def people_of(phrase: str) -> tuple[str, str] | None:
    """Split the nationality off the description of a person.

    "a former Brazilian footballer" → ("Brazilian", "a former footballer"). The result is None if
    the description has no nationality, or if it may not be that of the person: an English teacher
    may teach English.
    """
    match = re.fullmatch(rf"(an?|one) ((?:{_BEFORE} ){{0,3}})(.+)", phrase)
    people = match and _PEOPLE.match(match[3])
    if not match or not people:
        return None
    noun = people["what"]
    words = re.match(
        r"[\w'’-]+(?: [\w'’-]+)*",
        re.split(r",| (?:of|in|for|at|with|to|on|by|that|as|from|and)\b", noun)[0],
    )
    if not words or _TEACHING.search(words[0]):
        return None
    *kinds, head = words[0].split()
    if not AGENTS.search(head) or not all(_KIND_OF.fullmatch(kind) for kind in kinds):
        return None
    return people["people"], article(f"{match[2]}{noun}")


_CAPITAL = r"[^\W\d_a-z][\w'’.-]*"
_RUN = rf"(?:{_CAPITAL} (?:(?:de|del|la|le|los|las|of|upon|on|sur|di|da|do) )*){{0,5}}{_CAPITAL}"
LAND = "|".join(sorted(map(re.escape, COUNTRIES | REGIONS), key=len, reverse=True))
WHOLE_LAND = "|".join(sorted(map(re.escape, COUNTRIES | CONTINENTS)))
_WITHIN = regex(
    rf"\b(?:in|at|from|to|near|called|named|(?:city|town|village|state|province|district|county|suburb|region)"
    rf" of) "
    rf"(?P<first>{_RUN}),"
    rf" (?P<all>(?:(?:{LAND}|{_RUN}), )?(?:{LAND}))(?![\w'’-]|,? (?:and|or) [A-Z]|, [A-Z]|/)"
)


def places_of(claim: str) -> list[str]:
    """Return claims that one place is in another: "in Lima, Peru" → ["Lima is in Peru."].

    Returns [] for a list of places, such as "in Peru, Chile".
    """
    claims = []
    for match in _WITHIN.finditer(claim):
        chain = [match["first"], *match["all"].split(", ")]
        levels = [  # an unknown place lies in the next one
            1 if name in REGIONS else 2 if name in COUNTRIES else at - len(chain)
            for at, name in enumerate(chain)
        ]
        if levels == sorted({*levels}):
            claims += [f"{inner} is in {outer}." for inner, outer in pairwise(chain)]
    return claims
