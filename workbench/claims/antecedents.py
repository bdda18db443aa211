"""Find the antecedent of a relative clause: the noun phrase that "who" or "which" refers to.

`who` and `which` return "" if the antecedent is ambiguous. `workbench.claims.reader` uses them.
"""

import re

from workbench.claims.adjuncts import TEMPORAL
from workbench.claims.english import AGENTS, PREPOSITION, PREPOSITIONS, blank, is_verb, tokens_of
from workbench.util.patterns import regex

NAME = (
    r"[A-Z][\w'’.-]*(?: (?:de |da |del |di |do |dos |la |le |van |von |der |bin"
    r" |al-)*[A-Z][\w'’.-]*)*"
)
_COPULAR = regex(  # a form of "to be" with a noun phrase: "is a painter"
    r"\b(?:is|was|are|were|became|been)\b(?: \w+ly| also| still| now| currently)*"
    r" (?:an?|the|one|his|her|its|\w+'s)\b"
)
_RELATION = regex(
    r"\b(?:son|daughter|child|grandson|granddaughter|wife|husband|widow|brother|sister|father|mother|cousin|nephew|niece"
    r"|uncle|aunt|friend|guardian|student|pupil|assistant|partner|rival|ally|colleague|mentor|descendant|fan|follower|lover"
    r"|heir)s? (?:of|to) (.+)$"
)
_PLAIN = regex(r"[A-Z\"“]|(?:an?|the|his|her|its|their|one|some|many|several|two)\b")
_LONGEST = 12  # words of a phrase
_OF_EVENTS = frozenset(  # ", which led to": "which" may refer to the whole statement
    "allowed made led caused resulted helped meant gave enabled earned brought marked prompted"
    " forced ensured triggered inspired sparked drew left took ended started began means makes"
    " allows helps gives leads causes".split()
)


def who(subject: str, previous: str, link: str) -> str:
    """Return the noun phrase that "who" refers to; "" if it is ambiguous.

    * After a form of "to be", this is the subject: "Ana" in "Ana is a painter who …".
    * After a relation to another person, this is that person: "Bo" in "Ana is the sister of Bo, who
      …".
    * After any other verb, this is the last noun phrase before "who", if it is a person.

    Args:
        subject: the subject of the sentence.
        previous: the text before the relative clause, such as "Ana is the sister of Bo".
        link: the words that begin the clause, such as ", who".
    """
    text = _without_dates(previous)
    if not _COPULAR.search(previous.strip(" ,")):
        phrase = _phrase(previous)
        head = _HEAD.split(phrase)[0]  # a name after a preposition of place is not a person
        person = AGENTS.search(head) or re.search(r"[a-z] [A-Z][\w.'’-]*$", head)
        defines = not link.startswith(",") and not phrase[:1].isupper()  # "the man who fell"
        return phrase if person and not defines else ""
    if related := _RELATION.search(text):
        named = (
            re.search(rf"(?:^|named |called ){NAME}(?=,|$)", related[1])
            if link.startswith(",")
            else None
        )
        return re.sub(r"^(?:named|called) ", "", named[0]) if named else ""
    if _PHRASED.search(text):
        return ""  # "a film about a widow who"
    return subject


_HEAD = regex(rf" (?:{PREPOSITION}|named|called) ")


_PHRASED = regex(rf" {PREPOSITION} (?:an?|the|some|two|three|his|her) [^,]*[a-z]$")


def which(previous: str, verb: str) -> str:
    """Return the noun phrase that "which" refers to; "" if it is ambiguous.

    This is the last noun phrase before "which". It is ambiguous in these cases:

    * The phrase begins with "a" or "an", as in "a remake of Rain, which …".
    * `verb` is a word such as "led": "which" may then mean the whole statement.
    * `verb` is plural ("were"), but the phrase is not.

    Args:
        previous: the text before "which".
        verb: the word after "which".
    """
    if verb in _OF_EVENTS:
        return ""
    phrase = _phrase(previous)
    if re.match(r"an? ", phrase):
        return ""  # "a remake of Rain, which was set in Osk"
    head = re.split(r" (?:of|in|for|at|on|with|from) ", phrase)[0].split(" ")[-1]
    plural = head.islower() and bool(re.search(r"(?<![sui])s$", head))
    return "" if verb in ("have", "are", "were", "do") and not plural else phrase


def _without_dates(text: str) -> str:
    """Remove the dates at the end: "the lab in 1936" → "the lab"."""
    text = text.strip(" ,")
    while dated := re.search(rf"(?i) (?:{TEMPORAL.pattern})$", text):
        text = text[: dated.start()].strip(" ,")
    return text


def _phrase(text: str) -> str:
    """Return the last noun phrase of `text` without dates; "" if its extent is unclear."""
    text = _without_dates(text)
    tokens = tokens_of(text)
    words = [token[0] for token in tokens]
    start = next((i for i in range(len(words) - 1, 0, -1) if _begins(words, i)), 0)
    if not words or words[start - 1] == "by":  # "which" may be the maker or the work
        return ""
    phrase = text[tokens[start].start() :].strip(" ,")
    plain = _PLAIN.match(phrase) and " and " not in blank(phrase)
    return phrase if plain and len(phrase.split()) <= _LONGEST else ""


def _begins(words: list[str], i: int) -> bool:
    """Whether a noun phrase begins at word `i`."""
    before = words[i - 1]
    if before == "of":
        return bool(AGENTS.search(words[i - 2]))
    return before == "," or before.lower() in PREPOSITIONS or is_verb(words, i - 1)
