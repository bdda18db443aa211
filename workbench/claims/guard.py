"""Reject claims that do not follow from their sentence (see `workbench.claims.rules`)."""

from itertools import pairwise, takewhile

from workbench.claims.english import (
    AUXILIARIES,
    PREPOSITIONS,
    VERBS,
    blank,
    first_verb,
    words_of,
)
from workbench.util.patterns import regex

_NOT_ANY = regex(
    r"(?i)(?:Neither|Nor|None|Nobody|Few|Not|Hardly|Scarcely|Only|Nothing|No one|Never|Rarely"
    r"|Seldom)\b"
)
_QUOTED = regex(  # direct speech
    r"\b(?:said|says|wrote|writes|stated|states|remarked|noted|commented|claimed|recalled|declared)\b[^\"“]{0,80}[,:]"
    r" [\"“]"
)
_EXCEPTED = regex(
    r"\b(?:except|excepting|excluding|not including|with the exception of|provided that|as long"
    r" as|in case)\b"
    r"|, (?:which|but (?:it|this|that)) (?:is|was) "
    r"(?:false|untrue|incorrect|wrong|not true|a (?:\w+ )?(?:lie|myth))\b"
    # parentheses are dropped, so they may not restrict the statement
    r"|\((?!not to be)[^()]*\b(?:not|only|without|unless|mostly|partly|until)\b"
)


def undivided(sentence: str) -> bool:
    """Whether a sentence must not be split into claims.

    Such a sentence has a negated subject, an exception, direct speech, or an unclosed quotation or
    parenthesis.
    """
    unclosed = sentence.count('"') % 2 == 1 or sentence.count("(") != sentence.count(")")
    negated = _NOT_ANY.match(sentence)
    return bool(unclosed or negated or _EXCEPTED.search(sentence) or _QUOTED.search(sentence))


_UNFINISHED = AUXILIARIES | frozenset(
    "a an the my our your and or but of for to with from at as into by than be been being not most"
    " very made making having using including such".split()
)


def breaks(claim: str, sentence: str) -> bool:
    """Whether a claim is malformed or differs in meaning from its sentence.

    Such a claim has no subject or verb, is unfinished, is a run-on, or lacks a denial or doubt that
    the sentence has.
    """
    words = words_of(claim.strip(" ,;."))
    return bool(
        words[0] in VERBS
        or words[-1] in _UNFINISHED
        or _ADVERB_LAST.search(claim)
        or _PLURAL.match(claim)
        or _is_bare(words)
        or _RUN_ON.search(blank(claim))
        or _loses(words, sentence)
    )


# "was, ironically", ", ranging"
_ADVERB_LAST = regex(r"(?:,| was| is| were| are) [a-z]+ly\W*$|, [a-z]+ing\W*$")
_PLURAL = regex(  # a singular subject with a plural verb: another subject is missing
    r"(?:(?!They|We|You|People|Police)[A-Z][\w.'’-]*[^s\W](?: [A-Z][\w.'’-]*[^s\W])*"
    r"|(?:The|A|An) (?:[\w-]+ )?[\w-]+[^s\W]) (?:were|are|have)\b"
)
_RUN_ON = regex(
    r", (?:he|she|they|it) (?:is|was|has|had|are|were|became|began|\w+ed)\b|[\d,] (?:he|she|they"
    r"|it) [a-z]+(?:ed|ew|on|as|an|ok|ad)\b(?<!\bon)|\b\d{4} (?:he|she|they|it) "
)
_DOUBTS = frozenset(
    "not never no neither nor hardly barely rarely seldom without may might could would should must"
    " almost nearly reportedly allegedly supposedly possibly probably perhaps apparently"
    " purportedly presumably unless cannot failed refused".split()
)


def _is_bare(words: list[str]) -> bool:
    """Whether the verb is a participle without "was": "Rain directed by Bo", "Rain set in Osk"."""
    verb = first_verb(words)
    after = words[verb + 1 :]
    if verb and words[verb].endswith("ed") and after[:1] == ["by"]:
        return True
    if not verb or words[verb] not in _DONE | _CALLED or not after:
        return False
    if after[0] in ("to", "as"):
        return True
    object_ = after[0] not in PREPOSITIONS
    return not object_ and (words[verb] in ("set", "held", "built", "sold") or "by" in after[:8])


_CALLED = frozenset(
    "shortened abbreviated referred stylized stylised spelled romanized translated rendered"
    " known".split()
)
_DONE = frozenset(
    "set made written produced directed published built held sung composed designed created"
    " developed identified performed broadcast recorded released painted located shot filmed based"
    " founded edited".split()
)
_ENDS = frozenset(", ; : and but".split())


def _loses(words: list[str], sentence: str) -> bool:
    """Whether a claim drops a denial or doubt: "Bo won a prize" from "Bo never won a prize"."""
    original, pairs = words_of(sentence), {*pairwise(words)}
    for i, word in enumerate(original):
        if word in _DOUBTS and word not in words:
            scope = takewhile(lambda other: other not in _ENDS, original[i + 1 : i + 5])
            if not pairs.isdisjoint(pairwise(scope)):
                return True
    return False
