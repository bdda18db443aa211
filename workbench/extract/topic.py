"""What a response is about, and claims that can be understood without it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from workbench.extract import english
from workbench.types import Claim, Response

_PART = r"[^\W\d_a-z][\w.'’-]*"
_NAME = re.compile(rf"{_PART}(?:\s+(?:(?:de|da|del|di|la|le|van|von|der|den|bin|al|el|of|the|y)\s+)*{_PART})*")
_ASKING = frozenset("Who What Where When Which Why How Tell Write Give Describe Explain Is Was Did Does Please".split())


def topic_of(response: Response) -> str:
    """The first title of the question, without what stands in brackets; else the last name in the question's text; else the
    name that the response begins with; else ""."""
    title = re.sub(r"\s*\(.*?\)", "", response.question.title.split(";")[0]).strip()
    if title:
        return title
    named = [name for name in _NAME.findall(response.question.text) if name not in _ASKING]
    if named:
        return re.sub(rf"^(?:{'|'.join(_ASKING)})\s+", "", named[-1]).strip(" .")
    first = _NAME.match(response.text.strip())
    return first[0] if first and " " in first[0] else ""


_PERSONAL = re.compile(r"\b(?:he|she|his|hers?|him)\b", re.I)


def is_thing(response: Response) -> bool:
    """Whether "it" may be taken for the topic: it is named by the question, and nobody is spoken of as "he" or "she"."""
    named = response.question.title or _NAME.search(response.question.text)
    return bool(named) and not _PERSONAL.search(response.text)


def resolve(claims: Sequence[Claim], response: Response) -> list[Claim]:
    """The claims with what their pronoun stands for, where that is the subject ("He", "Her father", "It", "Its").

    That is the question's title. Without one it is the last sentence's subject that it can be: a name for "he" and "she", for
    "it" a name or "The …" that no verb shows to be a person's; and the name in the question where there is none.
    """
    topic, titled = topic_of(response), bool(response.question.title)
    last = {"person": topic, "thing": topic if is_thing(response) else ""}
    begun: int | None = None  # the sentence that the claim before is of
    found = []
    for claim in claims:
        pronoun = _PRONOUN.match(claim.text)
        noun = last["thing" if pronoun[0].startswith("It") else "person"] if pronoun else ""
        if pronoun and noun:
            claim = replace(claim, text=f"{noun}{'' if pronoun[1] else chr(39) + 's'}{claim.text[pronoun.end() :]}")
        elif not titled and claim.sentence != begun and (subject := _subject(claim.text)):
            if not subject.startswith("The "):
                last["person"] = subject
            if not _OF_PEOPLE.search(claim.text):
                last["thing"] = subject
        begun = claim.sentence
        found.append(claim)
    return found


_PRONOUN = re.compile(r"^(?:(He|She|It)|(His|Her|Its))\b")
_SUBJECT = re.compile(rf"^(?:The (?:[^\W\d_][\w'’-]*\s+){{0,3}}[^\W\d_][\w'’-]*|{_NAME.pattern})$")
_NO_SUBJECT = frozenset("There This That These Those Both One Many Some All Each Most They We You I Yes No".split())
_OF_PEOPLE = re.compile(
    r"\b(?:born|died|married|wrote|(?<!was )(?<!is )(?:composed|directed|invented|discovered|studied|taught|said|believed)"
    r"|(?:is|was|became) an? (?:[\w-]+ ){0,3}(?:\w+(?:ist|or|er|ian|ess)|poet|king|queen|chef|president))\b"
)


def _subject(claim: str) -> str:
    """What stands before the first verb of a claim, if that is a name or "The" with a few words."""
    words = list(english.TOKEN.finditer(claim))
    texts = [word[0] for word in words]
    verb = next((i for i in range(1, len(texts)) if english.is_verb(texts, i)), 0)
    said = claim[: words[verb].start()].strip() if verb else ""
    return said if _SUBJECT.match(said) and said.split()[0] not in _NO_SUBJECT else ""


def decontextualise(claim: Claim, topic: str) -> Claim:
    """The claim with the whole name of the topic for "he", "she", "his", "her", "him" and for its last name alone.

    Its place in the response stays. A "her" before a word is taken for a possessive. Without a topic nothing changes.
    """
    if not topic:
        return claim
    text = re.sub(r"\b([Hh]er|[Hh]is)(?=\s+\w)", lambda _: f"{topic}'s", claim.text)
    text = re.sub(r"\b(?:[Hh]e|[Ss]he|[Hh]im|[Hh]er)\b(?!['’])", lambda _: topic, text)
    names = topic.split()
    if len(names) > 1 and len(names[-1]) > 2:
        last, first = re.escape(names[-1]), re.escape(names[-2])
        text = re.sub(rf"(?<![\w'’-])(?<!{first} ){last}(?![\w-])(?!\s+[A-Z])", lambda _: topic, text)
    return replace(claim, text=text)
