"""The English that `workbench.extract.rules` knows: finite verbs, prepositions, and where phrases begin *(ours)*."""

from __future__ import annotations

import re

TOKEN = re.compile(r"\d[\d,.]*\d|\w+(?:['’.-]\w+)*['’]?|[^\w\s]")
DATE = re.compile(
    r"\b(?:\d{1,2} )?(?:January|February|March|April|May|June|July|August|September|October|November|December)"
    r"(?: \d{1,2})?(?:,? \d{4})?\b|\b\d{4}s?\b"
)

AUXILIARIES = frozenset(
    "is are was were am has have had does do did can could may might must will would shall should cannot isn't aren't wasn't "
    "weren't hasn't haven't hadn't doesn't don't didn't can't couldn't won't wouldn't".split()
)
COPULAS = frozenset("is are was were became remains remained remain".split())
_PAST = (
    "became began won wrote made took gave went came left grew led held ran rose fell fought died met saw knew taught thought "
    "brought bought built sold told found kept lost paid sent spent stood understood wore drew flew drove broke spoke chose "
    "sang "
    "swam hit set put cut beat bore got said sat shot shook stole struck swore threw underwent undertook withdrew oversaw "
    "overcame "
    "forgot hid rode sought slept swept foresaw ate drank felt fled hung laid lay lent lit meant read rewrote sank split "
    "spread quit"
)
_PRESENT = (
    "plays works lives writes serves holds leads makes takes gives goes comes leaves wins teaches studies includes contains "
    "features "
    "covers focuses explores describes depicts tells follows covers belongs consists lies stands remains continues represents "
    "becomes runs hosts owns appears performs directs produces competes resides hails enjoys specializes specialises borders "
    "flows "
    "stretches dates begins ends connects blends combines offers provides receives uses shows believes argues claims states "
    "says "
    "include feature sits deals exists refers means requires allows helps seeks aims cites draws earns"
)
VERBS = AUXILIARIES | COPULAS | frozenset(_PAST.split()) | frozenset(_PRESENT.split())
_NO_VERBS = frozenset(
    "need bed red led-in indeed speed seed feed breed weed deed shed hundred united embed aged sacred".split()
)
ADVERBS = frozenset(
    "probably possibly reportedly allegedly apparently perhaps supposedly presumably also then later eventually subsequently "
    "soon still now often always never first finally again currently once even only "
    "just "
    "initially originally previously primarily mainly mostly best well widely highly generally commonly further additionally "
    "officially formally briefly quickly recently ultimately together thereby not ever both either".split()
)
DETERMINERS = frozenset(
    "a an the his her its their my our your this that these those some any many several numerous various".split()
)
PRONOUNS = frozenset("he she it they".split())
PREPOSITIONS = frozenset(
    "in on at from since during until by with as for against alongside under throughout after before to of into through about "
    "over within between among across near towards toward upon via including".split()
)
CONJOINING = frozenset("and but ,".split())
ADJUNCTS = frozenset("in on at from since during until by against alongside throughout after before as with under due".split())
JUDGED = frozenset(
    "regarded considered known recognized recognised described seen remembered named hailed viewed appointed".split()
)
AGENTS = re.compile(  # nouns that can stand alone in a list of what somebody is; "brave" in "a brave and kind man" cannot
    r"(?:[aei]nt|er|or|eer|ist|ian|man|woman|ess|ete|poet|chef|host|coach|judge|critic|academic|model|nurse|spy|king|queen"
    r"|priest"
    r"|saint|pilot|jockey|scholar|advocate|expert|linebacker|guard|forward|star|magnate|icon)s?$"
)
_INFLECTED = {
    "making": "made", "becoming": "became", "leaving": "left", "winning": "won", "taking": "took", "writing": "wrote",
    "giving": "gave", "leading": "led", "holding": "held", "beginning": "began", "setting": "set", "beating": "beat",
    "bringing": "brought", "building": "built", "teaching": "taught", "going": "went", "coming": "came", "running": "ran",
    "spending": "spent", "selling": "sold", "finding": "found", "losing": "lost", "hitting": "hit", "getting": "got",
    "having": "had", "being": "was", "seeing": "saw", "singing": "sang", "meeting": "met", "drawing": "drew", "paying": "paid",
}  # fmt: skip
_NO_PARTICIPLES = frozenset(
    "including during following according regarding being king spring thing ring evening morning".split()
)


def is_verb(words: list[str], i: int) -> bool:
    """Whether the word at `i` is a finite verb: a listed one, or one in "-ed" that no determiner or adjective leads up to.

    After "and", a word in "-ed" is a verb only before what can be its object ("and inherited his", not "and respected man").
    """
    word = words[i]
    before = words[i - 1].lower() if i else ""
    if word in VERBS:
        return before not in DETERMINERS | {"to"} or word in AUXILIARIES
    regular = len(word) > 3 and word.endswith("ed") and word.islower() and "-" not in word and word not in _NO_VERBS
    if before in CONJOINING and regular:
        after = words[i + 1] if i + 1 < len(words) else ""
        return not after.islower() or after in DETERMINERS | PREPOSITIONS | PRONOUNS | ADVERBS | {"him", "them"}
    return regular and before not in DETERMINERS | PREPOSITIONS | {"most", "more", "highly"}


def past(participle: str) -> str | None:
    """The past of a verb in "-ing": "posting" → "posted"; None if the word is no participle."""
    if participle in _INFLECTED:
        return _INFLECTED[participle]
    if len(participle) < 6 or not participle.endswith("ing") or participle in _NO_PARTICIPLES or not participle.islower():
        return None
    stem = participle[:-3]
    if re.search(r"[^aeiou]y$", stem):
        return f"{stem[:-1]}ied"
    return f"{stem}ed"


def article(phrase: str) -> str:
    """The phrase with an indefinite article, unless it has a determiner or is a name."""
    if phrase.split(" ", 1)[0] in DETERMINERS | {"one"} or phrase[:1].isupper():
        return phrase
    return f"{'an' if phrase[:1] in 'aeiou' else 'a'} {phrase}"
