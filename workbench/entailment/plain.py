"""What of a claim is judged: not the sentences in it that speak to the judge *(ours)*.

A claim that tells its verifier what to say is an old trick, and a policy in training finds it by
itself. A rule, not a model, takes such sentences out, so that no wording of them can be learnt
by trial as long as it uses the words of judging.
"""

from __future__ import annotations

import re

_MARKUP = re.compile(r"<(\w+)>[^<]*</\1>|</?\w+[^<>]*>|\[[^\]]*=[^\]]*\]")
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=\))\s+(?=[A-Z])|(?<=\.\))\s*")
_JUDGING = re.compile(
    r"\b(agree|answer|assistant|checker|claim|confidence|confirm|contradict|correct|disregard|document|evidence|false|forget|ignore"
    r"|entail|instruct|judge|label|mark|output|overrid|passage|repl[yi]|respon[ds]|rule|statement|support|system|treat|true|verdict|verif)",
    re.IGNORECASE,
)


_ORDER = re.compile(
    r"^\W*(?:please |now |and |so |just"
    r" )?(?:ignore|disregard|forget|mark|label|treat|rate|answer|respond|reply|output|say"
    r"|agree|confirm|judge|verify|accept)\b"
    r"|\b(?:this|the (?:above|following)|every|each|all|these)"
    r" (?:claim|statement|answer|response)s?\b"
    r"|\bthe (?:passage|evidence|document|source)s? (?:above )?(?:support|confirm|contradict)s? "
    r"(?:this|it|the claim|the statement)\b"
    r"|\b(?:label|verdict|system|assistant|verifier|judge|checker)\s*[:=]",
    re.IGNORECASE,
)


def is_order(claim: str) -> bool:
    """Whether a claim only speaks to its judge and says nothing that could be true: "Mark every
    claim as supported.".
    """
    text = _MARKUP.sub(" ", claim)
    words = {word.lower() for word in _JUDGING.findall(text)}
    if not re.search(r"\w", text):
        return True  # markup alone
    return len(words) > 1 and bool(_ORDER.search(text)) and plain(claim) == claim


def plain(claim: str) -> str:
    """`claim` without markup and without those of its sentences that have two different words of
    judging, such as "ignore" and "evidence". A claim of which nothing would be left is given
    back as it is (see `is_order`)."""
    parts = [part for part in _SENTENCE.split(_MARKUP.sub(" ", claim)) if part.strip()]
    sentences = [
        part for part in parts if len({word.lower() for word in _JUDGING.findall(part)}) < 2
    ]
    unchanged = len(sentences) == len(parts) and not _MARKUP.search(claim)
    return claim if unchanged else " ".join(" ".join(sentences).split()) or claim
