"""Which sentences state something that could be true or false of the world."""

from __future__ import annotations

import re
from functools import lru_cache

from workbench.answers import is_abstention, is_invalid

_QUESTION = re.compile(r"[?？؟][\"'”’»)\]*_\s]*$")
_OPINION = re.compile(  # a judgement of taste or of what ought to be, in the speaker's own name
    r"\b(?:in my (?:humble )?(?:opinion|view)|to my mind|as far as i'?m concerned"
    r"|i(?: (?:personally|really|truly|just|absolutely))* (?:love|like|enjoy|adore|hate|dislike|prefer|admire|recommend"
    r"|hope|find"
    r"|wish)"
    r"|i(?: would|'d) (?:love|like|recommend|suggest|say|argue)|(?:my|our) (?:favou?rite|opinion|view)|we should|you should"
    r"|i am (?:happy|glad|pleased|excited|grateful)|i'm (?:happy|glad|pleased|excited|grateful)"
    r"|en mi opinión|a mi juicio|meiner Meinung nach|meines Erachtens|à mon avis|selon moi)\b"
    r"|我喜欢|我认为应该|在我看来|我觉得.{0,12}(?:好|美"
    r"|棒)",
    re.I,
)
_TASTE = re.compile(  # "It is a wonderful book." with nothing else in it
    r"^(?:this|that|it|he|she|they|these|what|how|the [\w-]+|[A-Z][\w'-]*(?: [A-Z][\w'-]*)*)\s+(?:is|was|are|were)\s+"
    r"(?:(?:a|an|the|one|of|so|very|truly|really|such|most|quite|simply|absolutely)\s+)*"
    r"(?:beautiful|wonderful|amazing|great|greatest|awesome|fantastic|terrible|horrible|awful|boring|interesting|lovely|ugly"
    r"|brilliant|best|worst|excellent|delicious|fascinating|inspiring|remarkable|incredible|good|bad|nice|fun|funny)"
    r"(?:\s+(?:person|man|woman|book|film|movie|song|city|place|thing|idea|story|figure|artist|writer|actor|player))?\s*[.!]*$",
    re.I,
)
_COURTESY = re.compile(  # speech about the answer itself
    r"^(?:sure|certainly|of course|absolutely|hello|hi|thanks|thank you|you're welcome|okay|ok|great question|let me|let's"
    r"|please"
    r"|if you (?:have|need|want|would)|feel free|i hope|hope (?:this|that)|here (?:is|are|'s)|i'll|i will|i can|i would|i'd"
    r"|i apologi[sz]e|(?:i'?m )?sorry|as an ai|is there anything|do you|could you|can you|note that i|wait|hmm|so,? let)\b",
    re.I,
)

_BARE = re.compile(r"^(?:yes|no|yeah|nope|true|false|correct|indeed)$", re.I)  # an answer, and no statement by itself


@lru_cache(4096)
def makes_claims(sentence: str) -> bool:
    """Whether a sentence states a fact: not if it is a question, declines to answer, calls the question invalid, gives an
    opinion, or only speaks about the answer. "I think he was born in Bonn" is a claim, a hedged one.

    Opinions and courtesies are known by their usual words in English, and a few of other languages *(ours)*.
    """
    plain = sentence.replace("’", "'").strip(" *_>\"'“”")
    if not any(map(str.isalpha, plain)) or _QUESTION.search(plain):
        return False
    if _BARE.match(plain.strip(" .!,")) or _COURTESY.match(plain) or _OPINION.search(plain) or _TASTE.match(plain):
        return False
    return not (is_abstention(sentence) or is_invalid(sentence))
