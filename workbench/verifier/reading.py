"""Convert a claim to the text that the verifier's model compares with the evidence *(ours)*.

The model labels nearly every denial a contradiction. Therefore denials are converted:

* A simple denial ("X was not born in Y"): the denied statement ("X was born in Y") is compared. Its
  p(contradict) is the claim's p(support).
* A denial in a part of a claim ("He was born in Oslo and never married"): the claim itself is
  compared, and a contradiction does not count.
* Any other denial is not compared. Neither are claims in other languages than English.
  `Reading.unread` gives the reason.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from workbench.text.markup import plain
from workbench.util.jsonl import encodable
from workbench.util.patterns import regex
from workbench.verifier.instructions import is_instruction
from workbench.verifier.tokens import Token, tokenize

ENGLISH = frozenset(  # function words, without words of other languages such as "in"
    "the it its with from are were be been she his their they that this who which there against of"
    " and about after before into during when while you your have has how can born won".split()
)
FOREIGN = frozenset(
    "der das und ist wurde ein eine einen einem einer im mit vom zu zum zur dem des auf nicht sich"
    " auch bei nach aus sie le la les une et dans avec qui que il elle aux etait ete el los las una"
    " es por fue del para gli della dello nel nella stato di uma foi em ao het een werd zijn voor"
    " niet te dat och ar ett blev og er af av som na sie byl ve bir yang adalah pada de da du"
    " os nee nacio murio nato nata morto geboren starb hat war von dass heißt".split()
)
PARTICLES = frozenset("de da di du del della der den des von van la le los las el".split())
_FRAME = regex(
    r"(?i)it(?: is|['’]s| was) (?:not (?:true|correct|so|the case|a fact)|untrue|false|incorrect"
    r"|wrong|a (?:\w+ )?(?:myth|lie|misconception|fallacy)) that "
    r"|it (?:is|was)n['’]t (?:true|correct|the case) that "
)
_SIMPLE = regex(
    r"(?i)\b(?:(is|are|was|were|has|have|had|do|does|did|could|would|ca|can|wo|will)"
    r"(?: ?not\b| ?n['’]t\b|['’]t\b)|no(body|thing| one|)\b(?! (?:longer|more|other))"
    r"|never\b) ?"
)
_CONTRACTED = {"ca": "can", "wo": "will"}  # "can't", "won't"
# Does not match "not only", "no doubt" or "No. 5". `_denials` also leaves out names ("Dr. No").
_DENIAL = regex(
    r"(?i)\b(?:not|no(?:body|thing|where|ne)?|never|neither|nor|without|cannot)\b"
    r"(?! (?:only|just|merely|later|earlier|doubt|secret|disputed|denied|less|fewer)\b|\.? ?\d)"
    r"|n['’]t\b"
)
_CALLED_FALSE = regex(
    r"(?i)(?:that|the (?:claim|statement|idea|belief|assertion|notion|rumou?r)"
    r"|.*, (?:which|but (?:it|this|that)))\b.*"
    r"\b(?:false|untrue|incorrect|wrong|not true|a myth|a lie)\W*$"
)
# With these words, a denial may concern only a part of the claim.
_PARTIAL = regex(
    r",(?! [A-Z\d])|[;:]|(?i:\b(?:and|but|because|since|until|till|unless|except|than|although"
    r"|though|while|who|which|that|when|if|only|all|every|each|both|some|most|many|several|few|any)\b)"
)
_TRUTH = regex(r"(?i)\b(?:true|false|untrue|correct|incorrect|wrong|case|myth|lie)\b")
_VALUE = regex(r"\b(?:in|at|on|for|by|as|with|from|to|until) (?:the )?(?:[a-z]+ )?([A-Z]\w+|\d+)")
_COPULA = regex(r" (?:is|are|was|were) ")
# A claim without its end: "The city is located in", "It has about", "Oslo is a town in the"
_UNFINISHED = regex(
    r"^(?:(?!\b(?:is|are|was|were|has|have|had|lies?)\b).)*"  # up to the first verb
    r"\b(?:(?:is|are|was|were|lies?)(?: located| situated| born)?|has|have|had)"
    r"(?: (?:in|at|of|by|from|about|approximately|around|nearly))+$"
    r"|\b(?:city|town|country|capital|population|founded) (?:in|of|by|approximately|around)$"
    r"| (?:a|an|the)$"
)
# "Benin is a country in Benin"
_WITHIN = regex(
    r"(?P<own>[A-Z].*) (?:is|are|was|were) (?:(?!the capital|(?:a|an|the) (?:capital|home)\b)"
    r"(?:a|an|the) (?:[a-z]+ )+)?(?:in|of) (?:the )?(?:city |country |state )?(?P=own)"
)
_SEVERAL = regex(r"[a-z][.!?] ")  # more than one sentence
_QUOTED = regex(r"[\"“][^\"“”]*[\"”]")


class Reading(NamedTuple):
    """The text that the model compares with the evidence to check a claim.

    "Bell was not born in Rome" becomes the text "Bell was born in Rome" with `denied` True. If only
    a part of the claim is a denial, `partial` is True, and a contradiction does not count. If a
    claim must not be compared, `unread` is the reason, such as "language"; otherwise it is "".
    """

    text: str
    denied: bool = False  # the claim says that `text` is false
    partial: bool = False  # a part of the claim denies something: a contradiction does not count
    unread: str = ""  # a key of `REASONS`: why the claim is not compared


def read_plain(claim: str) -> Reading:
    """Remove the markup from a claim, and return the result as a `Reading`.

    The claim may be in any language, and denials are not converted. The field `unread` is
    "circular" for a claim such as "Benin's capital is Benin", "instruction" for a claim that only
    instructs the judge, and "" for other claims.
    """
    text = plain(encodable(claim))
    unread = "instruction" if is_instruction(text) else "circular" if is_circular(text) else ""
    return Reading(text, unread=unread)


def is_circular(text: str) -> bool:
    """Return whether a claim gives its subject as its own value: "Benin's capital is Benin".

    Another example is "Benin is a country in Benin". The model would support such claims, because
    all their words are in the evidence.
    """
    # A policy that was trained against the verifier learned to write many of them. A few are true
    # ("Singapore's capital is Singapore"); the verifier does not check these either.
    if _WITHIN.fullmatch(text.strip(" .!").removeprefix("The ")):
        return True
    text = text.casefold().replace("\u2019", "'").strip(" .!")
    subject, verb, value = _COPULA.sub(" is ", text).rpartition(" is ")
    own = rf"(?:the )?(?:.* of (?:the )?)?{re.escape(value.removeprefix('the '))}(?:'s? .*)?"
    return bool(verb and re.fullmatch(own, subject))


def read_claim(claim: str) -> Reading:
    """Convert a claim to a `Reading` for the shipped model, which needs English without denials."""
    reading = read_plain(claim)
    if not reading.unread:
        english = is_english(tokenize(reading.text))
        unread = "language" if not english else "fragment" if is_fragment(reading.text) else ""
        reading = reading._replace(unread=unread)
    return reading if reading.unread else read_denial(reading.text)


def is_fragment(text: str) -> bool:
    """Return whether a claim is a single word, or lacks its end: "China.", "The city is in."

    The model would support such claims, because all their words are in the evidence.
    """
    text = text.strip(" .!")
    return " " not in text or bool(_UNFINISHED.search(text))


def read_denial(claim: str) -> Reading:
    """Remove the denial from an English claim, and return the result as a `Reading`.

    * "X was not born in Y": the text is "X was born in Y", and `denied` is True.
    * "He was born in Oslo and never married": `partial` is True, and the text is unchanged, because
      only a part of the claim is a denial.
    * Any other denial: `unread` is "denial", and the text is unchanged.
    * No denial: the text is unchanged.
    """
    if _CALLED_FALSE.match(claim):
        return Reading(claim, unread="denial")
    frame = _FRAME.match(claim)
    text = claim[frame.end() :] if frame else claim
    text = text[:1].upper() + text[1:] if frame else text
    # a quoted title denies nothing; its replacement has the same length, which keeps the offsets
    words = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), text)
    denials = _denials(words)
    if not denials:
        return Reading(text, denied=bool(frame))
    part, simple = _PARTIAL.search(words), _SIMPLE.search(words)
    in_part = part and part.start() < denials[0].start()
    if (in_part or _SEVERAL.search(words)) and not (frame or _TRUTH.search(words)):
        return Reading(claim, partial=True)
    if part or len(denials) > 1 or not simple or simple.end() < denials[0].end():
        return Reading(claim, unread="denial")
    if simple[2] is None:
        affirmed = _CONTRACTED.get((simple[1] or "").lower(), simple[1] or "")
    else:  # "nothing": "something"
        affirmed = f"some{simple[2]}"
    text = " ".join(f"{text[: simple.start()]}{affirmed} {text[simple.end() :]}".split())
    return Reading(text[:1].upper() + text[1:], denied=not frame)


def _denials(text: str) -> list[re.Match[str]]:
    """Return the denying words of a text, except in names ("Dr. No", "Never Let Me Go")."""
    return [
        match
        for match in _DENIAL.finditer(text)
        if not (
            match[0].istitle()
            and (match.start() > 0 or text[match.end() : match.end() + 2].strip().isupper())
        )
    ]


def joined_values(claim: str) -> list[str]:
    """Return the names and numbers that follow a preposition in a claim.

    "won in Physics in 1911" → ["Physics", "1911"]
    """
    return list(dict.fromkeys(_VALUE.findall(claim)))


def is_english(tokens: Sequence[Token]) -> bool:
    """Return whether a claim has at least as many English as foreign function words."""
    english = sum(token.word in ENGLISH or token.word.endswith("ed") for token in tokens)
    foreign, in_name = 0, False
    for token, after in pairwise([*tokens, Token("", "", "mark")]):
        # "Das Boot" and "Otto von der Tann" are names
        in_name = token.capital or (in_name and token.word in PARTICLES)
        named = in_name and (after.capital or after.word in PARTICLES)
        foreign += token.word in FOREIGN and not named
    return english >= foreign
