"""What chat models say around an answer and mean nothing by: "Great question! …", "… Let me know
if you have more questions."

A courtesy before the answer is a fixed form; one after it begins as one and has no word outside
those of courtesies: a sentence that names something ("Let me know if you meant Lyon.") stays,
for it may be one more guess *(the lists are ours)*.
"""

from __future__ import annotations

import re

_LONGEST = 300  # characters at the end that may be courtesies

_GREETINGS = (
    r"(?:what an? |that is an? |that'?s an?"
    r" )?(?:great|good|excellent|interesting|nice|fantastic|wonderful|tricky) question"
    r"|sure(?: thing)?|certainly|of course|absolutely|definitely|no problem|happy to help|glad"
    r" (?:you asked|to help)"
    r"|thank(?:s| you)(?: (?:so|very) much)?(?: for (?:asking|(?:your|the) question))?"
    r"|i(?:'d| would) be happy to help(?: with that)?|hello|hi(?: there)?|okay|ok"
    r"|here(?: is|'s)(?: the| your)? answer|here you go|claro(?: que sí)?|por supuesto|buena"
    r" pregunta"
    r"|natürlich|gerne|gute frage|bien sûr|bonne"
    r" question|好的|当然(?:可以)?|这是(?:一)?个好问题|好问题|你好|您好"
)
_BEFORE = re.compile(
    rf"[\s*\"“¡]*(?:(?:{_GREETINGS})(?:\s*[!,.:\n—–。，！：、][\s*]*|\s+-\s+))+", re.I
)
# the only item of a list
_NUMBERED = re.compile(r"\s*(?:[-*•]|\(?1[.)])\s+(?!.*(?:^|\s)(?:[-*•]|\(?2[.)])\s)", re.S)

_SIGN = re.compile(r"[.!?,:\n—–。，！：、)]")
_PARTS = re.compile(r"^\s*[-*•]|\s-\s|[.!?]\s*[^\w\s]")
_LAST = re.compile(r"\W*\w")
_STOP = re.compile(r"[.!?\n。！？][\s*)\"”]*")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_FIXED = re.compile(
    r"\blet (?:me|us) know\b|\bdo(?:n['’]t| not)"
    r" hesitate\b|希望(?:这|我的回答)?对(?:你|您)?有(?:所)?帮助",
    re.I,
)
_OPENINGS = frozenset(
    "please feel if is hope i do would happy glad can may have thank thanks anything i'm you're"
    " want need".split()
)
_POLITE = _OPENINGS | frozenset(
    "a about additional again all am an and any are as ask asking assist assistance at be"
    " clarification could curious details dive deeper else explore for free further great good"
    " happily have help helped helpful helps here i'd in information interested into it learn like"
    " luck me more much nice of on one or other out question questions reach s so specific subject"
    " that the there things this to topic topics us very welcome will with wonderful you you'd your"
    " yours".split()
)


def plainly(answer: str) -> str:
    """An answer without the courtesies around it, and without the sign of a list of one item;
    the whole where nothing else is said."""
    if not _has_parts(answer):
        return answer
    said = answer[match.end() :] if (match := _BEFORE.match(answer)) else answer
    said = said[: _end(said)]
    if match := _NUMBERED.match(said):
        said = said[match.end() :]
    return said if any(map(str.isalnum, said)) else answer


def _has_parts(answer: str) -> bool:
    """Whether more than one thing may be said: a sign with a word somewhere after it, or a mark
    of a list.
    """
    last = _LAST.match(answer[::-1])  # backwards, so that a long row of signs is read once
    return bool(
        (last and _SIGN.search(answer, 0, len(answer) - last.end())) or _PARTS.search(answer)
    )


def _end(said: str) -> int:
    """Where the courtesies at the end of a text begin."""
    first = max(0, len(said) - _LONGEST)
    cut = len(said)
    for stop in reversed(list(_STOP.finditer(said, first))):
        if not _is_polite(said[stop.end() : cut]):
            break
        cut = stop.end()
    return cut


def _is_polite(sentence: str) -> bool:
    rest, fixed = _FIXED.subn(" ", sentence)
    words = [word.replace("’", "'") for word in _WORD.findall(rest.lower())]
    if not words:
        return bool(fixed) or not re.search(r"[(){}\[\]\\]", sentence)
    return (bool(fixed) or (len(words) > 2 and words[0] in _OPENINGS)) and _POLITE.issuperset(words)
