"""The topic of a response."""

from __future__ import annotations

import re

from workbench.claims import english
from workbench.types import Response

_PART = r"[^\W\d_a-z][\w.'’-]*"
NAME = re.compile(
    rf"{_PART}(?:\s+(?:(?:de|da|del|di|la|le|van|von|der|den|bin|al|el|of|the|y)\s+)*{_PART})*"
)
_ASKING = frozenset(
    "Who What Whats Where When Which Why How Tell Write Give Describe Explain Is Was Did Does"
    " Please Are Were Do Can Could Should Would Will Has Have Had Generate Create Provide Respond"
    " Compose Construct Design List Name Find Make Suggest Come Rewrite Summarize Summarise"
    " Translate Identify Calculate Compare Recommend Given Using Use Based In On At By For From If"
    " The This That There Output Input Question Answer He She It They His Her Its Their".split()
)


def topic_of(response: Response) -> str:
    """Return the question's first title, else the last name in its text, else the response's first
    name, else "".
    """
    title = re.sub(r"\s*\(.*?\)", "", response.question.title.split(";")[0]).strip()
    if title:
        return title
    named = [
        name
        for name in NAME.findall(response.question.text)
        if name not in _ASKING and len(name) > 1
    ]
    if named:
        # "Who is Ana Bo in NLP?" asks about Ana Bo
        words = [name for name in named if not name.isupper()] or named
        return re.sub(rf"^(?:{'|'.join(_ASKING)})\s+|['’]s$", "", words[-1]).strip(" .")
    first = NAME.match(response.text.strip())
    begun = first[0].split()[0] if first else ""
    return (
        first[0]
        if first
        and " " in first[0]
        and begun not in _ASKING
        and begun.lower() not in english.OPENING
        else ""
    )


_PERSONAL = re.compile(r"\b(?:he|she|his|hers?|him)\b", re.I)


def is_thing(response: Response) -> bool:
    """Whether "it" may refer to the topic: the question names it, and the response has no "he" or
    "she".
    """
    return bool(
        response.question.title or _asked(response.question.text.strip())
    ) and not _PERSONAL.search(response.text)


_TASK = 200  # characters; a question that is longer is a task
_BEGUN = re.compile(r"(?:^|[.?!:\n\"“] ?)\W*$")


def is_unclear(response: Response) -> bool:
    """Whether the question has names but no single topic: "Where is Osk in Lomar?"."""
    text = response.question.text.strip()
    return (
        not response.question.title
        and any(name not in _ASKING for name in NAME.findall(text))
        and not _asked(text)
    )


def _asked(text: str) -> bool:
    """Whether a question names exactly one thing."""
    found = [
        match for match in NAME.finditer(text) if match[0] not in _ASKING and len(match[0]) > 1
    ]
    named = {
        _OF_ASKING.sub("", one[0])
        for one in found
        if " " in one[0] or not _BEGUN.search(text[: one.start()])
    }
    words = {name for name in named if not name.isupper()} or named
    return len(words) == 1 and len(text) < _TASK


_OF_ASKING = re.compile(rf"^(?:{'|'.join(_ASKING)})\s+")
