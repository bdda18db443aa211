"""The English that `workbench.extract.rules` knows: finite verbs, prepositions, and where
phrases begin *(ours)*.
"""

from __future__ import annotations

import re

TOKEN = re.compile(r"\d[\d,.]*\d|\w+(?:['’.-]\w+)*['’]?|[^\w\s]")
MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
DATE = re.compile(rf"\b(?:\d{{1,2}} )?{MONTH}" r"(?: \d{1,2})?(?:,? \d{4})?\b|\b\d{4}s?\b")

AUXILIARIES = frozenset(
    "is are was were am has have had does do did can could may might must will would shall should"
    " cannot isn't aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't can't couldn't"
    " won't wouldn't".split()
)
COPULAS = frozenset("is are was were became remains remained remain".split())
_PAST = (
    "became began won wrote made took gave went came left grew led held ran rose fell fought died"
    " met saw knew taught thought brought bought built sold told found kept lost paid sent spent"
    " stood understood wore drew flew drove broke spoke chose sang swam hit set put cut beat bore"
    " got said sat shot shook stole struck swore threw underwent undertook withdrew oversaw"
    " overcame forgot hid rode sought slept swept foresaw ate drank felt fled hung laid lay lent"
    " lit meant read rewrote sank split spread quit arose awoke bent blew caught clung cost dealt"
    " dug fed forbade forgave froze hurt knelt rebuilt heard shone shrank sprang stuck strove tore"
    " upheld withheld withstood resold retold retook mistook overthrew outsold overheard"
)
_PRESENT = (
    "plays works lives writes serves holds leads makes takes gives goes comes leaves wins teaches"
    " studies includes contains features covers focuses explores describes depicts tells follows"
    " belongs consists lies stands remains continues represents becomes runs hosts owns appears"
    " performs directs produces competes resides hails enjoys specializes specialises borders flows"
    " stretches dates begins ends connects blends combines offers provides receives uses shows"
    " believes argues claims states says include feature sits deals exists refers means requires"
    " allows helps seeks aims cites draws earns speaks sings manages operates spans measures"
    " contributes publishes attends collaborates presents"
)
PRESENT = frozenset(_PRESENT.split())
NOUNS = frozenset(  # of these, what is as often a noun: "novels, plays and poems"
    "plays works lives leads takes leaves studies features covers stands runs hosts dates ends"
    " blends offers shows claims states uses deals aims draws borders flows stretches means feature"
    " measures spans presents goes".split()
)
VERBS = AUXILIARIES | COPULAS | frozenset(_PAST.split()) | PRESENT
MODALS = frozenset("can could may might must will would shall should cannot".split())
_NO_VERBS = frozenset(
    "need bed red led-in indeed speed seed feed breed weed deed shed hundred united embed aged"
    " sacred famed".split()
)
ADVERBS = frozenset(
    "probably possibly reportedly allegedly apparently perhaps supposedly presumably also then"
    " later eventually subsequently soon still now often always never first finally again currently"
    " once even only just initially originally previously primarily mainly mostly best well widely"
    " highly generally commonly further additionally officially formally briefly quickly recently"
    " ultimately together thereby not ever both either".split()
)
HEDGES = frozenset(
    "probably possibly reportedly allegedly apparently perhaps supposedly presumably almost nearly"
    " maybe purportedly".split()
)
DETERMINERS = frozenset(
    "a an the his her its their my our your this that these those some any many several numerous"
    " various".split()
)
NUMBERS = frozenset("one two three four five six seven eight nine ten".split())
PRONOUNS = frozenset("he she it they".split())
PREPOSITIONS = frozenset(
    "in on at from since during until by with as for against alongside under throughout after"
    " before to of into through about over within between among across near towards toward upon via"
    " including around beyond outside inside behind".split()
)
OPENING = PREPOSITIONS | frozenset(
    "although though while when because if once despite unlike like both also".split()
)
CONJOINING = frozenset("and but ,".split())
ADJUNCTS = frozenset(
    "in on at from since during until by against alongside throughout after before as with"
    " under due".split()
)
# behind a verb
PARTICLES = frozenset(
    "away out off up down over back together him them to that how what so".split()
)
# verbs in "-ed" that need no object: after "was born in Oslo and" they are not passives
STAYING = frozenset(
    "moved returned graduated lived worked served played retired remained continued appeared"
    " participated competed resigned emigrated immigrated settled arrived stayed studied trained"
    " performed married debuted toured collaborated acted passed enrolled migrated traveled"
    " travelled relocated started starred majored died attended joined changed danced rallied"
    " struggled succeeded failed turned escaped learned volunteered specialized specialised coached"
    " lectured practised practiced campaigned converted matriculated excelled resided dropped"
    " signed transferred".split()
)
JUDGED = frozenset(
    "regarded defined considered known recognized recognised described seen remembered named hailed"
    " viewed appointed".split()
)
# nouns that can stand alone in a list of what somebody is; "brave" in "a brave and kind man" cannot
AGENTS = re.compile(
    r"(?:[aei]nt|er|or|eer|ist|ian|man|woman|ess|ete|poet|chef|host|coach|judge|critic|academic|model|nurse|spy|king|queen"
    r"|priest|saint|pilot|jockey|scholar|advocate|expert|linebacker|guard|forward|star|magnate|icon|personality|performer"
    r"|politician|rapper|rabbi|quarterback|comic|activist|back|midfielder|umpire|mathematician|chemist|architect|diplomat)s?$"
)
_INFLECTED = {
    "making": "made", "becoming": "became", "leaving": "left", "winning": "won", "taking": "took", "writing": "wrote",
    "giving": "gave", "leading": "led", "holding": "held", "beginning": "began", "setting": "set", "beating": "beat",
    "bringing": "brought", "building": "built", "teaching": "taught", "going": "went", "coming": "came", "running": "ran",
    "spending": "spent", "selling": "sold", "finding": "found", "losing": "lost", "hitting": "hit", "getting": "got",
    "having": "had", "being": "was", "seeing": "saw", "singing": "sang", "meeting": "met", "drawing": "drew", "paying": "paid",
    "driving": "drove", "riding": "rode", "rising": "rose", "choosing": "chose", "speaking": "spoke", "breaking": "broke",
    "stealing": "stole", "wearing": "wore", "throwing": "threw", "growing": "grew", "knowing": "knew", "flying": "flew",
    "fighting": "fought", "thinking": "thought", "buying": "bought", "catching": "caught", "seeking": "sought",
    "sending": "sent", "keeping": "kept", "sleeping": "slept", "standing": "stood", "telling": "told", "saying": "said",
    "striking": "struck", "sitting": "sat", "falling": "fell", "hiding": "hid", "shaking": "shook", "shooting": "shot",
    "laying": "laid", "using": "used",
    "putting": "put", "cutting": "cut", "reading": "read", "rebuilding": "rebuilt", "overseeing": "oversaw", "lying": "lay",
    "undergoing": "underwent", "undertaking": "undertook", "overcoming": "overcame", "feeling": "felt", "dying": "died",
    "hearing": "heard", "feeding": "fed", "dealing": "dealt", "proving": "proved", "doing": "did", "swimming": "swam",
}  # fmt: skip
_NO_PARTICIPLES = frozenset(
    "including during following according regarding being king spring thing ring evening morning"
    " ranging meaning resulting depending corresponding spanning consisting totaling totalling"
    " concerning pending excluding lasting".split()
)


def is_verb(words: list[str], i: int) -> bool:
    """Whether the word at `i` is a finite verb: a listed one, or one in "-ed" that no determiner
    or adjective leads up to.

    After "and", a word in "-ed" is a verb only before what can be its object ("and inherited
    his", not "and respected man").
    """
    word = words[i]
    before = words[i - 1].lower() if i else ""
    after = words[i + 1] if i + 1 < len(words) else ""
    if _is_reduced(word, words[i - 1] if i else "", after) or (
        word == "do" and before != words[i - 1]
    ):
        return False  # "Ana do Vale"
    if word in VERBS:
        # "the main features of it", "the old shows filled a gap"
        counted = word in NOUNS and (after == "of" or after in VERBS or _is_regular(after))
        return (before not in DETERMINERS | _BEFORE_NOUNS and not counted) or word in AUXILIARIES
    regular = _is_regular(word)
    if before in CONJOINING and regular:
        return not _is_adjective(words, i)
    return regular and before not in DETERMINERS | PREPOSITIONS | _DEGREES


def _is_regular(word: str) -> bool:
    plain = word.removeprefix("co-")
    return (
        len(plain) > 3
        and plain.endswith("ed")
        and plain.islower()
        and "-" not in plain
        and plain not in _NO_VERBS
    )


# verbs that without "was" rather describe the noun before them: "the roles mentioned in it vary"
REDUCED = frozenset(
    "mentioned used provided given located based called named found built written known produced"
    " made associated required described listed designed intended added involved caused taken held"
    " considered charged shown seen".split()
)


def _is_reduced(word: str, before: str, after: str) -> bool:
    """Whether a participle describes the noun before it: "the fee charged by banks", not "he
    charged by the hour".
    """
    helping = (
        AUXILIARIES
        | ADVERBS
        | PRONOUNS
        | {"and", "but", "or", "be", "been", "being", "who", "which", "that"}
    )
    noun = (
        before.islower()
        and before.isalpha()
        and before not in helping
        and not before.endswith("ly")
    )
    if noun and (word in ("nicknamed", "dubbed") or (word.endswith("ed") and after == "by")):
        return True
    follows = after in PREPOSITIONS
    return word in REDUCED and noun and follows


_BEFORE_NOUNS = frozenset(
    "to other most all few both two three four five different such new".split()
)
_DEGREES = frozenset("most more highly very so as too".split())


def _is_adjective(words: list[str], i: int) -> bool:
    """Whether the word in "-ed" behind a conjunction describes the noun behind it: "a brave and
    respected man".
    """
    after = words[i + 1] if i + 1 < len(words) else ""
    if (
        not after.islower()
        or after in DETERMINERS | PREPOSITIONS | PRONOUNS | ADVERBS | PARTICLES
        or after.endswith("ly")
    ):
        return False
    return words[i] not in _ACTIVE


_ACTIVE = frozenset(  # before a bare noun, too, a verb: "and studied law"
    "studied received attended earned obtained gained founded produced directed released published"
    " recorded performed managed coached promoted joined inherited scored signed owned visited"
    " described practised practiced served worked".split()
)


def past(participle: str) -> str | None:
    """The past of a verb in "-ing": "posting" → "posted"; None if the word is no participle."""
    if participle in _INFLECTED:
        return _INFLECTED[participle]
    if (
        len(participle) < 6
        or not participle.endswith("ing")
        or participle in _NO_PARTICIPLES
        or not participle.islower()
    ):
        return None
    stem = participle[:-3]
    return f"{stem}ed"


def blank(text: str) -> str:
    """The text with a letter for every character of its quotations: what looks for words does
    not look into them.
    """
    return re.sub(r"[\"“]([^\"“”]*)[\"”]", lambda quoted: f'"{"X" * len(quoted[1])}"', text)


def article(phrase: str) -> str:
    """The phrase with an indefinite article, unless it has a determiner or is a name."""
    first, *others = phrase.split(" ", 2)
    later = first in ADVERBS and others[0] in DETERMINERS  # "later a director"
    if first in DETERMINERS | NUMBERS or later or not phrase[:1].islower():
        return phrase
    return f"{'an' if phrase[:1] in 'aeiou' else 'a'} {phrase}"
