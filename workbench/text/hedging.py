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
    r"(?<!\bthe )(?<!\bhis )(?<!\bher )(?<!\bits )(?<!\btheir )(?<!\ball )(?<!\bof )(?<!\d"
    r" )(?<!military )(?<!\bin )(?<!\ba )(?<!\blast )(?<!\bfree )(?<!\bgood )(?<!\bat )"
    r"\b(?:(?:may|might|will|shall)\b(?! (?:and|of|or|is|was|were|has|in|to|on|the|a)\b)"
    r"(?=,? [^\W\d_A-Z])"
    r"|won['’]t\b|(?:could|would|should|must)(?:n['’]t| not)?(?: \w+ly| also| then)? have [a-z]"
    r"|going to (?:be|become|do|get|have|make|open|play|start|take|win)\b)"
)
_SPACED = regex(
    "|".join(rf"(?<![\w'-])(?:{cues})(?![\w'-])" for lang, cues in CUES.items() if lang != "zh"),
    re.I,
)
_CHINESE = regex(rf"(?<![不尽])(?:{CUES['zh']})(?!性)")
_QUOTED = regex(r"\"[^\"]*\"|“[^“”]*”|«[^«»]*»|「[^「」]*」|„[^„“”]*[“”]")


def hedge(sentence: str) -> str | None:
    """Return the first hedge of a sentence, as written there; None if there is no hedge."""
    plain = re.sub("[‘’ʼ`´]", "'", sentence).strip()
    if plain.isupper():
        plain = plain.lower()
    if not _QUOTED.fullmatch(plain.rstrip(".!")):  # quotations are titles, or other people's words
        plain = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), plain)
    cues = [
        *_MODAL.finditer(plain),
        *_CHINESE.finditer(plain),
        *(cue for cue in _SPACED.finditer(plain) if not _is_name(plain, cue)),
    ]
    return min((match.start(), match[0]) for match in cues)[1] if cues else None


def _is_name(text: str, cue: re.Match[str]) -> bool:
    """Whether a one-word cue is capitalised within a sentence ("the Maybe Man")."""
    word, before = cue[0], text[: cue.start()].rstrip(" '\"“(*_")
    return (
        " " not in word
        and word[0].isupper()
        and before != ""
        and before[-1] not in ".!?:;…-–—。¿¡>,"
    )


def is_hedged(sentence: str) -> bool:
    """Whether a sentence contains a hedge (see `hedge`)."""
    return hedge(sentence) is not None
