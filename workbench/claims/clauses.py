"""Split one English sentence into claims (see `workbench.claims.rules`)."""

import re

from workbench.claims.adjuncts import is_world
from workbench.claims.antecedents import NAME
from workbench.claims.english import (
    AUXILIARIES,
    DATE,
    MONTH,
    TOKEN,
    first_verb,
    is_verb,
)
from workbench.claims.examples import works
from workbench.claims.guard import breaks, undivided
from workbench.claims.places import LAND, WHOLE_LAND, places_of
from workbench.claims.reader import Reader
from workbench.text.markup import plain
from workbench.util.patterns import regex


def clauses(sentence: str) -> list[str]:
    """Return the claims of a sentence; if it cannot be split, the whole sentence as one claim."""
    text = _HEDGE.sub("", _clean(sentence), count=1)
    if (
        len(text) > SENTENCE_CHARACTERS
        or _CONDITION.search(text)
        or ",\n" in sentence
        or undivided(text)
    ):
        return [_finish(text)]
    about_works = works(text)
    text, dates = _brackets(text)
    birth, text = _birth(text)
    whole = _LEAD_IN.sub("", text, count=1)
    lead, text = _lead(text)
    if lead is None:
        return [_finish(text), *(_finish(claim) for claim in dates)]
    split = [*Reader().read(text, lead), *birth]
    # "in the film" must not be lost: the claims may hold only there
    lost = is_world(lead) and any(lead.casefold() not in claim.casefold() for claim in split)
    if lost or any(breaks(claim, text) for claim in split):
        split = [whole, *birth]
    drafts = [claim for draft in split for claim in (draft, *places_of(draft))]
    claims = dict.fromkeys(_finish(claim) for claim in [*drafts, *about_works, *dates])
    return [claim for claim in claims if len(claim.split()) > 1] or [_finish(text)]


def _clean(sentence: str) -> str:
    """Return a sentence without markup and outer punctuation, with cleft clauses resolved.

    "It was Bo who won." → "Bo won".
    """
    text = re.sub(
        r"\b[A-Z]{2,}\b",  # "was NOT born"
        lambda word: word[0].lower() if word[0].lower() in _EMPHASISED else word[0],
        plain(sentence),
    )
    text = re.sub(rf"(?<!\()\b(born|died) (?={MONTH} \d)", r"\1 on ", text)
    # "It was in 1911 that she won", "It was Bo who won"
    text = _CLEFT.sub(lambda cleft: f"{cleft[2]} {cleft[1]}", text)
    text = _CLEFT_NAME.sub(r"\1 ", text)
    # "and, in 1984, he won"
    text = re.sub(
        r"\b(and|but), (?=(?:in|on|at|during|after|before|from|by) [^,]+, )", r"\1 ", text
    )
    # the comma in a quotation belongs to the sentence: “Rain,” → “Rain”,
    text = re.sub(r"([,.])([\"”])(?=[\s,.]|$)", r"\2\1", text)
    return re.sub(r"\s+", " ", text).strip(" .!;:,-–—•")


_CLEFT = regex(
    r"^It (?:is|was) ((?:in|on|at|during|from|until|by) [^,]{2,60}?) that (\w[^,;]*?)[ .]*$"
)
_CLEFT_NAME = regex(rf"^It (?:is|was) ({NAME}) (?:who|that|which) (?=[a-z])")
_EMPHASISED = AUXILIARIES | {"not", "never"}


def _finish(claim: str) -> str:
    """Capitalise a claim and end it with a full stop."""
    claim = re.sub(r",?\s*([,.;])(?!\w)", r"\1", re.sub(r"\s+", " ", claim)).strip(" ,;:-–—.。")
    stop = "。" if claim[-1:] >= "\u3040" else "."
    return f"{claim[:1].upper()}{claim[1:]}{stop}" if claim else ""


_LIFE = (
    rf"\((born |b\. )?({DATE.pattern})(?: ?[-–—] ?({DATE.pattern})| ?[-–—]"
    r" ?(present))?\)"
)


def _brackets(text: str) -> tuple[str, list[str]]:
    """Remove parentheses, and return the text and the claims on birth and death in them.

    "Ana Bo (1900–1980) was …" → "Ana Bo was born in 1900", "Ana Bo died in 1980".
    """
    name, *_ = text.split(" (")
    words = TOKEN.findall(name)
    years = re.match(_LIFE, text[len(name) :].strip())
    dates: list[str] = []
    if years and not any(is_verb(words, i) for i in range(len(words))):
        if years[1] or years[3] or years[4]:
            dates.append(f"{name} was {_when('born', years[2])}")
        if years[3]:
            dates.append(f"{name} {_when('died', years[3])}")
    return re.sub(r"\s*\([^()]*\)", "", text) or text, dates


def _birth(text: str) -> tuple[list[str], str]:
    """Split "Born in Vetra, Ana Bo …" into the claims on the birth and "Ana Bo …".

    For another sentence, return [] and the sentence.
    """
    for match in re.finditer(
        r", (?=(he|she|[A-Z][\w'’.-]*(?: [A-Z][\w'’.-]*){0,4}) (\w+))", text[:250]
    ):
        if text.startswith("Born ") and is_verb([match[1], match[2]], 1):
            birth = f"{match[1]} was born {text[5 : match.start()]}"
            rest = text[match.end() :]
            return list(Reader().read(birth, "")), f"{rest[:1].upper()}{rest[1:]}"
    return [], text


def _when(verb: str, date: str) -> str:
    return f"{verb} {'in' if date.isdigit() else 'on'} {date}"


SENTENCE_CHARACTERS = 2000  # characters; a longer sentence is not prose and stays whole
# A hedge of the speaker is removed from the claim; the words and beliefs of other people stay.
_HEDGE = regex(
    r"(?i)^(?:(?:perhaps|possibly|probably|maybe),?|(?:as far as i know|to my knowledge),"
    r"|i'?m not (?:\w+ )?sure,? but|i am not (?:\w+ )?sure,? but)?\s*"
    r"(?:i (?:think|believe|guess|suspect)(?: that)?\s+|(?<=\s))"
)
_CONDITION = regex(
    r"\b(?:[Ii]f|[Uu]nless|[Ww]hether|[Ss]uppose|respectively)\b|^(?:Had|Were|Should|Just as|Just"
    r" like|As if) [a-zA-Z]+ "
)  # conditions and comparisons: the parts are not true alone
_SHORT = 6  # words; a longer introduction is dropped
_LONG = 14  # the same for an introduction of place or time ("In the film, …")
_WITHIN = frozenset("in on at under within".split())
_LEAD_IN = regex(
    r"(?i)^(?:(?:yes|no|yeah|nope|indeed|correct|right|well|actually|contrary to [^,]{3,40})"
    r"[,;:–—]+|(?:please )?(?:note|remember|recall|keep in mind|be aware|it is worth noting) that"
    r"|(?:in addition|as a result|as such|in fact|for example|for instance|on the other"
    r" hand),|(?:however|additionally"
    r"|furthermore|moreover|overall|also|instead(?!"
    r" of)|meanwhile|therefore|thus|and|but|nevertheless|nonetheless|today"
    r"|currently|later|hence"
    r"|eventually|finally|notably|unfortunately|sadly),?|(?:so|then|still|again|first|second|third|lastly|next|besides"
    r"|likewise|yet|plus|otherwise|afterwards?|similarly|interestingly|importantly|remarkably|surprisingly|fortunately|luckily|tragically|ironically|subsequently"
    r"|ultimately|recently|consequently|accordingly|specifically|lastly|secondly|thirdly|firstly|generally|initially),)\s+"
)
_INTRO = regex(
    r"(?i)^((?:in|on|at|during|after|before|since|by|from|throughout|until|following|upon|as|despite"
    r"|with|prior to|along with|when|once|while|although|though|because|under|through|apart from"
    r"|aside from|besides|alongside|between|over|within)\b[^,]*(?:, \d{4})?),\s+(?=\S)"
)
_IN_LAND = (
    # "In Lima, Peru,"; but "In Europe, England, France and Spain …" is a list
    regex(
        rf"^((?:[Ii]n|[Aa]t|[Nn]ear|[Ff]rom) (?!(?:{WHOLE_LAND}),)[A-Z][^,]*(?:,"
        rf" (?:{LAND})){{1,2}}),\s+"
        rf"(?!and\b|or\b|an? [^,]*,|(?:{LAND})(?![\w'’-]))(?=\S)"
    )
)


_CLAUSAL = frozenset(
    "once after before since until as when while although though because despite upon following"
    " with".split()
)


_GENERIC = regex(r"(?i)(?:when|whenever|once|without|until|while)\b")


def _lead(text: str) -> tuple[str | None, str]:
    """Split a sentence into introduction and rest: "In 1998, he won" → ("In 1998", "he won").

    Linking words ("However,") and long introductions, which mostly repeat earlier text, are
    dropped. The introduction is "" if there is none or it was dropped. It is None if the beginning
    of the subject was not recognised.
    """
    text = _LEAD_IN.sub("", text, count=1)
    if re.match(r"[A-Z][a-z]+(?:(?:ly|ed|less|while|wise),| (?:after|before|until|since)) ", text):
        return None, text  # "Officially, he won"
    intro = _IN_LAND.match(text) or _INTRO.match(text)
    words = TOKEN.findall(intro[1]) if intro else []
    if intro and words[0].lower() not in _CLAUSAL and first_verb(words):
        return "", text  # "In Osk he met Ana, …"
    rest = text[intro.end() :] if intro else ""
    if rest[:1].islower() and re.match(
        r"(?!(?:an?|the|his|her|its|their|one|many|some|he|she|it|they)\b)[^,]*,", rest
    ):
        return None, text
    if not intro:
        return "", text
    if intro[1].lower().startswith(("in addition", "apart", "aside", "besides", "alongside")):
        return "", rest
    if _GENERIC.match(intro[1]) and len(intro[1].split()) > _SHORT:
        return None, text  # "When many people who live there vote, the law may pass"
    longest = _LONG if words[0].lower() in _WITHIN else _SHORT
    return (intro[1] if len(intro[1].split()) <= longest else "", rest)
