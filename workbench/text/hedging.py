"""Detect hedged sentences, whose claims get hedged labels (RLFH, arXiv 2406.12221, table 9).

A hedge is the author's own doubt about the statement: "he may have won", "I think",
"reportedly". Predictions ("he will win") and unreal events ("he could have won") count as hedges,
too. The following are not hedges: names, months and nouns with the same spelling ("May 1912",
"might and magic"), quotations, and the beliefs of other people ("She thinks that…").

Limits: a permission ("you may enter") counts as a hedge, and so does a reported possibility ("He
said he might run"). The cues in `hedges.txt` are ours.
"""

import re

from workbench.text.names import groups
from workbench.util.patterns import regex

CUES = groups("hedges.txt")
# "may be", "might have won", "will win", "could have won"; not "with might and main" or "5 may"
_MODAL = regex(
    r"\b(?=[mwscg])"  # a cheap first test: most words start with another letter
    r"(?<!\bthe )(?<!\bhis )(?<!\bher )(?<!\bits )(?<!\btheir )(?<!\ball )(?<!\bof )(?<!\d"
    r" )(?<!military )(?<!\bin )(?<!\ba )(?<!\blast )(?<!\bfree )(?<!\bgood )(?<!\bat )"
    r"(?:(?:may|might|will|shall)\b(?! (?:and|of|or|is|was|were|has|in|to|on|the|a)\b)"
    r"(?=,? [^\W\d_A-Z])"
    r"|won['’]t\b|(?:could|would|should|must)(?:n['’]t| not)?(?: \w+ly| also| then)? have [a-z]"
    r"|going to (?:be|become|do|get|have|make|open|play|start|take|win)\b)"
)
_SPACED = regex(  # of text in lower case, which is much faster than ignoring the case
    rf"(?<![\w'-])(?:{'|'.join(cues for lang, cues in CUES.items() if lang != 'zh')})(?![\w'-])"
)
# to the letters that `re.I` treats as equal; each remains one character
_SINGLE = str.maketrans("İıſ", "iis")
_CHINESE = regex(rf"(?<![不尽])(?:{CUES['zh']})(?!性)")
_QUOTED = regex(r"\"[^\"]*\"|“[^“”]*”|«[^«»]*»|「[^「」]*」|„[^„“”]*[“”]")


def hedge(sentence: str) -> str | None:
    """Return the first hedge of a sentence, as written there; None if there is no hedge."""
    plain = re.sub("[‘’ʼ`´]", "'", sentence).strip()
    if plain.isupper():
        plain = plain.lower()
    if not _QUOTED.fullmatch(plain.rstrip(".!")):  # quotations are titles, or other people's words
        plain = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), plain)
    lower = plain.translate(_SINGLE).lower()
    spans = [
        *(cue.span() for cue in _MODAL.finditer(plain)),
        *(cue.span() for cue in _CHINESE.finditer(plain)),
        *(cue.span() for cue in _SPACED.finditer(lower) if not _is_name(plain, *cue.span())),
    ]
    return plain[slice(*min(spans))] if spans else None


def _is_name(text: str, start: int, end: int) -> bool:
    """Whether a one-word cue is capitalised within a sentence ("the Maybe Man")."""
    word, before = text[start:end], text[:start].rstrip(" '\"“(*_")
    return (
        " " not in word
        and word[0].isupper()
        and before != ""
        and before[-1] not in ".!?:;…-–—。¿¡>,"
    )


def is_hedged(sentence: str) -> bool:
    """Whether a sentence contains a hedge (see `hedge`)."""
    return hedge(sentence) is not None
