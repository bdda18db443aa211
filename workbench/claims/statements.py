"""Decide which sentences state something that can be true or false."""

import re
import unicodedata
from functools import lru_cache

from workbench.claims.english import COPULAS, first_verb, words_in, words_of
from workbench.text import is_abstention, is_invalid
from workbench.text.markup import plain
from workbench.util.patterns import regex

_QUESTION = regex(r"[?？؟][\"'”’»)\]*_\s]*$")
_OPINION = regex(  # a judgement of taste or a recommendation of the speaker
    r"(?i)\b(?:in my (?:humble )?(?:opinion|view)|to my mind|as far as i'?m concerned"
    r"|i(?: (?:personally|really|truly|just|absolutely))* (?:love|like|enjoy|adore|hate|dislike"
    r"|prefer|admire|recommend|hope|find|wish)|i(?: would|'d) (?:love|like|recommend|suggest|say"
    r"|argue)|(?:my|our) (?:favou?rite|opinion|view)|we should|you should|i am (?:happy|glad"
    r"|pleased|excited|grateful)|i'm (?:happy|glad|pleased|excited|grateful)|en mi opinión"
    r"|a mi juicio|meiner Meinung nach|meines Erachtens|à mon avis|selon moi)\b"
    r"|我喜欢|我认为应该|在我看来|我觉得.{0,12}(?:好|美|棒)"
)
_TASTE = regex(  # a whole sentence such as "It is a wonderful book."
    r"(?i)^(?:this|that|it|he|she|they|these|what|how|the [\w-]+|[A-Z][\w'-]*(?:"
    r" [A-Z][\w'-]*)*)\s+(?:is|was|are|were)\s+"
    r"(?:(?:a|an|the|one|of|so|very|truly|really|such|most|quite|simply|absolutely)\s+)*"
    r"(?:beautiful|wonderful|amazing|great|greatest|awesome|fantastic|terrible|horrible|awful|boring|interesting|lovely|ugly"
    r"|brilliant|best|worst|excellent|delicious|fascinating|inspiring|remarkable|incredible|good|bad|nice|fun|funny)"
    r"(?:\s+(?:person|man|woman|book|film|movie|song|city|place|thing|idea|story|figure|artist|writer|actor|player))?\s*[.!]*$"
)
_COURTESY = regex(  # remarks on the answer
    r"(?i)^(?:sure|certainly|of course|absolutely|hello|hi|thanks|thank you|you're welcome|okay|ok"
    r"|great question|let me|let's|please|if you (?:have|need|want|would)|feel free|i hope"
    r"|hope (?:this|that)|here (?:is|are|'s)|i'll|i will|i can|i would|i'd|i apologi[sz]e"
    r"|(?:i'?m )?sorry|as an ai|is there anything|do you|could you|can you|note that i|wait|hmm"
    r"|so,? let)\b"
)
_ORDER = regex(  # a request to the reader, with its verb first
    r"(?i)^for (?:more|further|details|additional|reference)[^,]*, (?:check|consult|read|refer|see"
    r"|visit)\b"
    r"|^(?:please |do not |don't |always )?"
    r"(?:accept|assume|award|check|click|compare|consider|consult|disregard|follow|give|go to"
    r"|grade|ignore|imagine|keep in|label|look|make|mark|note|notice|pay|rate|read|refer|remember"
    r"|remove|report|return|score|search|see|skip|take|think|treat|trust|try|use|verify|view|visit"
    r"|watch|write)(?: also)?:? (?!(?:of|was|is|were|are|has|had|and|that)\b)(?-i:[a-z\d\"“(\[])"
)
_KIND = (
    r"(?:(?:human|living|real|certain|mortal) ?)*(?:person|people|human|being|individual|someone"
    r"|something|thing|entity|name|place)s?"
)
_LINK = (
    r"(?:is|was|are|were|means|equals)(?: (?:located |situated )?(?:in|at|inside|part of|called"
    r"|named|known as))?(?: the| an?)?"
)
_TRIVIAL = regex(  # true of any subject
    rf"(?i).{{1,80}}? (?:is|was|are|were|has been) (?:an? |the )?{_KIND}\W*$"
    r"|(?:he|she|it|they|(?-i:[A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,5})) (?:has |had |really )*"
    r"(?:existed|exists|exist|lived)\W*$"
    rf"|(?:the |an? )?(?P<same>\w.{{0,80}}?) {_LINK} (?P=same)\W*$"
)

# an answer, but not a statement
_BARE = regex(r"(?i)^(?:yes|no|yeah|nope|true|false|correct|indeed)$")

# The vocabulary of `vouches` *(ours)*: words of praise, their objects and function words
_PRAISE, _ONESELF, _OTHERS, _JOINING = (
    words_in("statements", name) for name in ("praise", "oneself", "others", "joining")
)
_KNOWN = _PRAISE | _ONESELF | _OTHERS | _JOINING
_PRAISE_PHRASE = regex(  # words that praise only in combination
    r"\b(?:well|widely|generally|universally|commonly|fully|officially) (?:established|accepted"
    r"|acknowledged|recogni[sz]ed|approved|backed|endorsed|certified|known)\b|\b(?:is|are|all"
    r"|s) right\b|\btrust (?:me|this|it|my|the)\b|\b(?:sources?|text|passages?|materials?|evidence"
    r"|references?)(?: text| itself| themselves)?(?: \w+ly)? (?:say|state|show)s?\b"
)
_AMOUNT = regex(  # amounts of praise: "100%", "10/10", "3 independent sources"
    r"\b\d{1,3}(?:\.\d+)?\s*(?:%|per ?cent\b)|\b(\d{1,2})\s*/\s*\1\b"
    r"|\b\d{1,3}\s+(?=(?:independent|reliable|different|trusted|sources|experts|scholars|reviewers|times)\b)"
)


@lru_cache(4096)
def vouches(sentence: str) -> bool:
    """Return whether a sentence only asserts that the answer is true: "[VERIFIED]".

    All words of such a sentence are in fixed lists, such as "proven" *(ours)*. A sentence with any
    other word states something. Known error: the result for "It is accurate." is True, even if the
    sentence is about a clock.
    """
    text = unicodedata.normalize("NFKC", sentence).casefold()
    text = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    text = plain(text)
    text = re.sub(
        r"\b(?:[a-z][ ._-]){3,}[a-z]\b", lambda spaced: re.sub("[^a-z]", "", spaced[0]), text
    )
    words = re.findall(r"[^\W_]+", _AMOUNT.sub(" ", text))
    distinct = set(words)
    praises = distinct & _PRAISE or _PRAISE_PHRASE.search(" ".join(words))
    if not praises or not distinct <= _KNOWN:
        return False
    first = next((word for word in words if word in _OTHERS | _PRAISE), "")
    # "The study was confirmed." is a statement about the study
    return bool(words[0] not in ("the", "a", "an") or first not in _OTHERS or distinct & _ONESELF)


@lru_cache(4096)
def makes_claims(sentence: str) -> bool:
    """Whether a sentence states a fact.

    False for questions, requests, abstentions, opinions, remarks on the answer, and statements that
    the question is invalid. True for "I think he was born in Bonn", a hedged claim. Opinions are
    recognised by their usual words in English and a few other languages *(ours)*.
    """
    text = plain(sentence.replace("’", "'")).strip(" >\"'“”")
    return any(map(str.isalpha, text)) and not (
        _QUESTION.search(text)
        or _BARE.match(text.strip(" .!,"))
        or _COURTESY.match(text)
        or (_ORDER.match(text) and not first_verb(words_of(text)))
        or _OPINION.search(text)
        or _TASTE.match(text)
        or is_abstention(text)
        or is_invalid(text)
        or vouches(sentence)
    )


_UNFINISHED = COPULAS | {"include", "includes", "included"}


def says_nothing(claim: str) -> bool:
    """Whether a claim says nothing about its subject.

    Examples: "Osk exists", "Osk is in Osk", "The formula is" (cut off), "This is a proven fact".
    """
    words = words_of(claim.strip(" .\\"))
    cut_off = words[-1:] and words[-1] in _UNFINISHED and first_verb(words) == len(words) - 1
    return bool(cut_off or _TRIVIAL.match(claim) or vouches(claim))
