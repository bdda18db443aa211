"""Remove instructions to the judge from a claim, before the verifier reads it *(ours)*.

A policy in training can learn to write claims that instruct the verifier how to answer. These rules
remove sentences with the vocabulary of judging, so that the model does not read them.
"""

import re

from workbench.util.patterns import regex

_MARKUP = regex(r"<(\w+)>[^<]*</\1>|</?\w+[^<>]*>|\[[^\]]*=[^\]]*\]")
_SENTENCE = regex(r"(?<=[.!?])[\"')\]]*\s+|(?<=\))\s+(?=[A-Z])|(?<=\.\))\s*")
_JUDGING = regex(
    r"(?i)\b(agree|answer|assistant|checker|claim|confidence|confirm|contradict|correct|disregard|document|evidence|false|forget|ignore"
    r"|entail|instruct|judge|label|mark|output|overrid|passage|repl[yi]|respon[ds]|rule|statement|support|system|treat|true|verdict|verif)"
)
_INSTRUCTION = regex(
    r"(?i)^\W*(?:please |now |and |so |just"
    r" )?(?:ignore|disregard|forget|mark|label|treat|rate|answer|respond|reply|output|say"
    r"|agree|confirm|judge|verify|accept)\b"
    r"|\b(?:this|the (?:above|following)|every|each|all|these)"
    r" (?:claim|statement|answer|response)s?\b"
    r"|\bthe (?:passage|evidence|document|source)s? (?:above )?(?:support|confirm|contradict)s? "
    r"(?:this|it|the claim|the statement)\b"
    r"|\b(?:label|verdict|system|assistant|verifier|judge|checker)\s*[:=]"
)

# "Ignore the source.", but not the titles "Ignore the Ignorant" and "Read My Lips"
_COMMAND = regex(
    r"\W*(?:[Pp]lease,? )?(?:[Ii]gnore|[Dd]isregard|[Ff]orget|[Tt]rust|[Bb]elieve|[Ss]ee|[Cc]heck"
    r"|[Cc]onsult|[Rr]ead|[Aa]ccept|[Aa]ssume|[Ff]ollow|[Nn]ote|[Rr]emember|[Cc]onsider|[Mm]ark"
    r"|[Ll]abel|[Tt]reat|[Rr]ate|[Aa]nswer|[Rr]eply|[Oo]utput|[Aa]gree|[Cc]onfirm|[Vv]erify"
    r"|[Jj]udge)(?: (?:with|to|that|on|about|only))?"
    r" (?:the|this|that|these|those|it|all|any|every|each|my|me|your|what|everything|https?:\S+"
    r"|www\.\S+|correct|true|yes|supported)(?! [A-Z])\b"
)


def is_instruction(claim: str) -> bool:
    """Return whether a claim is only an instruction, such as "Mark every claim as supported."."""
    text = _MARKUP.sub(" ", claim)
    if not re.search(r"\w", text) or _COMMAND.match(text):
        return True  # nothing but markup, or a command
    several = len(_judging_words(text)) > 1
    return several and bool(_INSTRUCTION.search(text)) and strip_instructions(claim) == claim


def strip_instructions(claim: str) -> str:
    """Return a claim without markup and without sentences that address the judge.

    A sentence addresses the judge if it has at least two words of judging ("ignore", "evidence").
    The claim is returned unchanged if nothing else would be left (see `is_instruction`).
    """
    parts = [part for part in _SENTENCE.split(_MARKUP.sub(" ", claim)) if part.strip()]
    sentences = [part for part in parts if len(_judging_words(part)) < 2]
    unchanged = len(sentences) == len(parts) and not _MARKUP.search(claim)
    return claim if unchanged else " ".join(" ".join(sentences).split()) or claim


def _judging_words(text: str) -> set[str]:
    return {word.lower() for word in _JUDGING.findall(text)}
