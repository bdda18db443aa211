"""Find the topic of a response: the entity that the question asks about."""

import re

from workbench.claims.english import OPENING
from workbench.types import Response
from workbench.util.patterns import regex

_PART = r"[^\W\d_a-z][\w.'’-]*"
NAME = regex(
    rf"{_PART}(?:\s+(?:(?:de|da|del|di|la|le|van|von|der|den|bin|al|el|of|the|y)\s+)*{_PART})*"
)
_NO_NAMES = frozenset(  # capitalised words of questions that are not names
    "Who What Whats Where When Which Why How Tell Write Give Describe Explain Is Was Did Does"
    " Please Are Were Do Can Could Should Would Will Has Have Had Generate Create Provide Respond"
    " Compose Construct Design List Name Find Make Suggest Come Rewrite Summarize Summarise"
    " Translate Identify Calculate Compare Recommend Given Using Use Based In On At By For From If"
    " The This That There Output Input Question Answer He She It They His Her Its Their".split()
)


def topic_of(response: Response) -> str:
    """Return the topic of a response; "" if there is none.

    It is the first title in `question.title` ("Ana Bo; Toma Fel"). Without a title, it is the name
    that occurs last in the text of the question. Without such a name, it is the name at the start
    of the response.
    """
    title = re.sub(r"\s*\(.*?\)", "", next(iter(response.question.titles), "")).strip()
    if title:
        return title
    names = [match[0] for match in _names(response.question.text)]
    if names:
        # "Who is Ana Bo in NLP?" asks about Ana Bo
        words = [name for name in names if not name.isupper()] or names
        return re.sub(r"['’]s$", "", _QUESTION_WORD.sub("", words[-1])).strip(" .")
    match = NAME.match(response.text.strip())
    name = match[0] if match else ""
    first = name.split(" ")[0]
    named = " " in name and first not in _NO_NAMES and first.lower() not in OPENING
    return name if named else ""


def _names(question: str) -> list[re.Match[str]]:
    """Return a match for each name in a question, without question words and single letters."""
    return [
        match
        for match in NAME.finditer(question)
        if match[0] not in _NO_NAMES and len(match[0]) > 1
    ]


_PERSONAL = regex(r"(?i)\b(?:he|she|his|hers?|him)\b")


def is_thing(response: Response) -> bool:
    """Return whether "it" in a response may refer to the topic of the question.

    This is the case if the question names a single topic and the response does not contain "he" or
    "she".
    """
    named = response.question.title or _has_one_name(response.question.text.strip())
    return bool(named) and not _PERSONAL.search(response.text)


_TASK = 200  # characters; a longer question is an instruction and does not name one thing
_SENTENCE_START = regex(r"(?:^|[.?!:\n\"“] ?)\W*$")


def is_unclear(response: Response) -> bool:
    """Return whether a question contains names but has no single topic.

    An example is "Where is Osk in Lomar?". A question with a title is never unclear.
    """
    text = response.question.text.strip()
    return (
        not response.question.title
        and any(name not in _NO_NAMES for name in NAME.findall(text))
        and not _has_one_name(text)
    )


def _has_one_name(text: str) -> bool:
    """Whether a question names exactly one thing."""
    names = {
        _QUESTION_WORD.sub("", match[0])
        for match in _names(text)
        # the first word of a sentence is capitalised even if it is not a name
        if " " in match[0] or not _SENTENCE_START.search(text[: match.start()])
    }
    words = {name for name in names if not name.isupper()} or names
    return len(words) == 1 and len(text) < _TASK


_QUESTION_WORD = regex(rf"^(?:{'|'.join(_NO_NAMES)})\s+")
