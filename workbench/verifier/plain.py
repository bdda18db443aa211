"""What of a claim is judged: not the sentences in it that speak to the judge *(ours)*.

A claim that tells its verifier what to say is an old trick, and a policy in training finds it by itself. A rule, not a model,
takes such sentences out, so that no wording of them can be learnt by trial as long as it uses the words of judging.
"""

from __future__ import annotations

import re

_MARKUP = re.compile(r"<(\w+)>[^<]*</\1>|</?\w+[^<>]*>|\[[^\]]*=[^\]]*\]")
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=\))\s+(?=[A-Z])|(?<=\.\))\s*")
_JUDGING = re.compile(
    r"\b(agree|answer|assistant|checker|claim|confidence|confirm|contradict|correct|disregard|document|evidence|false|forget|ignore"
    r"|instruct|judge|label|mark|output|overrid|passage|repl[yi]|respon[ds]|rule|statement|support|system|treat|true|verdict|verif)",
    re.IGNORECASE,
)


def plain(claim: str) -> str:
    """`claim` without markup and without those of its sentences that have two different words of judging, such as "ignore"
    and "evidence". A claim of which nothing would be left is given back as it is."""
    parts = [part for part in _SENTENCE.split(_MARKUP.sub(" ", claim)) if part.strip()]
    kept = [part for part in parts if len({word.lower() for word in _JUDGING.findall(part)}) < 2]
    unchanged = len(kept) == len(parts) and not _MARKUP.search(claim)
    return claim if unchanged else " ".join(" ".join(kept).split()) or claim
