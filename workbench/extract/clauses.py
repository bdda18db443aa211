"""One English sentence into the parts that state something on their own, by rules (see `workbench.extract.rules`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from workbench.extract import english
from workbench.extract.predicates import predicate


def clauses(sentence: str) -> list[str]:
    """The claims of one sentence, in the order of their words; the sentence itself where it cannot be divided."""
    text = _HEDGE.sub("", _clean(sentence), count=1)
    if len(text) > LONGEST:
        return [_finish(text)]
    text, aside = _brackets(text)
    lead, text = _lead(text)
    drafts = list(_Reader().read(text, lead)) + aside
    claims = dict.fromkeys(_finish(claim) for claim in drafts)
    return [claim for claim in claims if len(claim.split()) > 1] or [_finish(text)]


def _clean(sentence: str) -> str:
    text = re.sub(r"\[\d+\]|[*_`#]+", "", sentence)
    return re.sub(r"\s+", " ", text).strip(" .!;:,-–—•")


def _finish(claim: str) -> str:
    claim = re.sub(r"\s+([,.;])", r"\1", re.sub(r"\s+", " ", claim)).strip(" ,;:-–—.。")
    stop = "。" if claim[-1:] >= "\u3040" else "."
    return f"{claim[:1].upper()}{claim[1:]}{stop}" if claim else ""


def _brackets(text: str) -> tuple[str, list[str]]:
    """The sentence without what stands in brackets, and the claims of brackets with its subject's dates."""
    aside: list[str] = []
    name, *_ = text.split(" (")
    words = english.TOKEN.findall(name)
    years = re.match(rf"\((born )?({english.DATE.pattern})(?: ?[-–—] ?({english.DATE.pattern}))?\)", text[len(name) :].strip())
    if years and (years[1] or years[3]) and not any(english.is_verb(words, i) for i in range(len(words))):
        aside = [f"{name} was {_when('born', years[2])}"] + ([f"{name} {_when('died', years[3])}"] if years[3] else [])
    return re.sub(r"\s*\([^()]*\)", "", text), aside


def _when(verb: str, date: str) -> str:
    return f"{verb} {'in' if date.isdigit() else 'on'} {date}"


LONGEST = 2000  # characters; what is longer is no sentence of prose
_HEDGE = re.compile(  # a hedge of the whole sentence is no part of the claim
    r"^(?:(?:perhaps|possibly|probably|maybe|apparently|reportedly|allegedly),?|(?:as far as i know|to my knowledge),"
    r"|i'?m not (?:\w+ )?sure,? but|i am not (?:\w+ )?sure,? but)?\s*(?:(?:i (?:think|believe|guess|suspect)|it is (?:possible"
    r"|likely|believed|thought|said))(?: that)?\s+|(?<=\s))",
    re.I,
)
_SHORT = 6  # words; a longer introduction is left out
_LEAD_IN = re.compile(
    r"^(?:(?:yes|no|yeah|nope|indeed|correct|right|well|actually)[,;:–—]+"
    r"|(?:in addition|as a result|in fact|for example|for instance|on the other hand),|(?:however|additionally"
    r"|furthermore|moreover|overall|also|instead|meanwhile|therefore|thus|and|but|nevertheless|today|currently|later"
    r"|eventually|finally|notably"
    r"|unfortunately|sadly),?)\s+",
    re.I,
)
_INTRO = re.compile(
    r"^((?:in|on|at|during|after|before|since|by|from|throughout|until|following|upon|as|despite|with|prior to|along with"
    r"|when|while|although|though|because|under|through)\b[^,]*(?:, \d{4})?),\s+(?=\S)",
    re.I,
)


def _lead(text: str) -> tuple[str, str]:
    """What stands before the subject ("In 1998,"), and the rest; words that only link sentences are dropped, and so is what is
    long: it mostly repeats what was said ("In addition to his work on metal detectors,")."""
    text = _LEAD_IN.sub("", text, count=1)
    intro = _INTRO.match(text)
    if not intro:
        return "", text
    if intro[1].lower().startswith("in addition"):
        return "", text[intro.end() :]
    return (intro[1] if len(intro[1].split()) <= _SHORT else ""), text[intro.end() :]


@dataclass
class _Part:
    kind: str  # "main", "same" (subject), "clause" (its own), "who", "which", "where", "ing" or "passive"
    text: str


_CONJUNCTIONS = frozenset("and but while although though yet whereas ; — –".split())
_RELATIVES = frozenset("who which where when whose".split())
_PASSIVES = frozenset(
    "known born titled called named based located founded published directed written composed released".split()
)


def _parts(text: str) -> list[_Part]:
    """A sentence cut before each further predicate and clause."""
    tokens = list(english.TOKEN.finditer(text))
    words = [token[0] for token in tokens]
    parts: list[_Part] = []
    begun, kind, verb, i = 0, "main", False, 0
    while i < len(words):
        cut = _cut(words, i) if verb else None
        if cut:
            parts.append(_Part(kind, text[tokens[begun].start() : tokens[i].start()]))
            kind, begun = cut[0], i + cut[1]
            i, verb = begun, kind != "clause"
            continue
        verb = verb or (i > 0 and english.is_verb(words, i))
        i += 1
    if begun < len(words):
        parts.append(_Part(kind, text[tokens[begun].start() :]))
    return parts


def _cut(words: list[str], i: int) -> tuple[str, int] | None:
    """Whether a new part begins at word `i`: its kind, and how many words stand before it."""
    comma = words[i] == ","
    at = i + comma
    if at >= len(words):
        return None
    word = words[at]
    if word in _CONJUNCTIONS and at + 1 < len(words):
        first = at + 1
        while first < len(words) - 1 and words[first] in english.ADVERBS:
            first += 1
        if english.is_verb(words, first) and words[first - 1] not in english.DETERMINERS:
            return "same", at + 1 - i
        alone = words[at + 1] in english.PRONOUNS | {"his", "her", "their"}
        if (comma or word != "and" or alone) and _has_subject(words, at + 1):
            return "clause", at + 1 - i
        return None
    following = words[at + 1] if at + 1 < len(words) else ""
    if comma and word in _RELATIVES:
        return word if word in ("who", "which") else "where", 2
    if not comma and word in ("who", "where", "when") and words[i - 1] not in english.PREPOSITIONS:
        named = following in english.PRONOUNS | english.DETERMINERS or following[:1].isupper()
        return ("who", 1) if word == "who" and not named else ("where", 1) if named and word != "who" else None
    if comma and word in english.VERBS:
        return "same", 1
    if comma and word in _PASSIVES:
        return "passive", 1
    if comma and english.past(word) and following not in (",", "and", "or"):
        return "ing", 1
    return None


def _has_subject(words: list[str], start: int) -> bool:
    """Whether a subject of a few words and its verb begin at `start`."""
    first = words[start]
    if not (first in english.PRONOUNS or first in english.DETERMINERS or first[0].isupper()):
        return False
    for i in range(start + 1, min(start + 8, len(words))):
        if words[i] in (",", "and"):
            return False
        if english.is_verb(words, i) or (i == start + 1 and first in english.PRONOUNS):  # "and it carries"
            return True
    return False


class _Reader:
    """Reads the parts of one sentence in order; a part without a subject has that of the part before it."""

    def __init__(self) -> None:
        self.subject = ""

    def read(self, text: str, lead: str) -> Iterator[str]:
        parts = _parts(text)
        previous = ""
        for number, part in enumerate(parts):
            yield from self._read(part, previous, lead if number == 0 else "")
            previous = part.text

    def _read(self, part: _Part, previous: str, lead: str) -> Iterator[str]:
        text = part.text.strip(" ,;")
        words = english.TOKEN.findall(text)
        if part.kind == "ing":
            yield from predicate(self.subject, f"{english.past(words[0])}{text[len(words[0]) :]}")
        elif part.kind == "passive":
            yield from predicate(_antecedent(previous) if words[0] != "born" else self.subject, f"was {text}")
        elif part.kind == "same":
            yield from predicate(self.subject, text)
        elif part.kind in ("who", "which"):
            copular = re.search(r"\b(?:is|was|became)\b", previous)
            subject = self.subject if part.kind == "who" and copular else _antecedent(previous)
            yield from predicate(subject, text)
        else:
            yield from self._clause(text, words, lead)

    def _clause(self, text: str, words: list[str], lead: str) -> Iterator[str]:
        verb = next((i for i in range(1, len(words)) if english.is_verb(words, i)), None)
        if verb is None:
            yield text
            return
        while verb > 1 and words[verb - 1] in english.ADVERBS:
            verb -= 1
        start = list(english.TOKEN.finditer(text))[verb].start()
        subject, aside = _apposition(text[:start].strip(" ,"))
        self.subject = subject
        if aside:
            yield f"{self.subject} {'was' if ' was ' in f' {text} ' else 'is'} {aside}"
        yield from predicate(self.subject, text[start:], lead)


def _apposition(subject: str) -> tuple[str, str]:
    """ "Toma, a painter" → ("Toma", "a painter")."""
    match = re.fullmatch(r"([A-Z][^,]*), ((?:an?|the|one of)\b.*)", subject)
    return (match[1], match[2]) if match else (subject, "")


def _antecedent(text: str) -> str:
    """The noun phrase that a relative clause after `text` is about: its last name, or what follows its last preposition."""
    text = text.strip(" ,")
    words = english.TOKEN.findall(text)
    for i in range(len(words) - 1, 0, -1):
        if words[i - 1].lower() in english.PREPOSITIONS - {"of"} or english.is_verb(words, i - 1):
            return text[list(english.TOKEN.finditer(text))[i].start() :]
    return text
