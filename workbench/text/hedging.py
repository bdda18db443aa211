"""Detect hedged sentences, whose claims get hedged labels (RLFH, arXiv 2406.12221, table 9).

A hedge is the author's own doubt about the statement: "he may have won", "I think",
"reportedly". So are a prediction and what did not happen: "he will win", "he could have won". The
following are not hedges: names, months and nouns with the same spelling ("May 1912", "might and
magic"), quotations, and the beliefs of other people ("She thinks that…").

Limits: a permission ("you may enter") counts as a hedge, and so does a reported possibility ("He
said he might run"). The lists of cues are ours; "l2" is the closed world's invented language.
"""

from __future__ import annotations

import re

# Regular expressions, by language.
CUES: dict[str, str] = {
    "en": (
        "maybe|perhaps|probably|possibly|presumably|supposedly|allegedly|reportedly|apparently"
        "|seemingly|arguably|purportedly|conceivably|(?<!the most )likely(?! candidates?\\b)"
        "|unlikely|rumou?red|i think|i believe|i guess|i suspect|i assume|i suppose|i'd guess"
        "|i would guess|i'd say|i would say|i seem to recall|i recall|my (?:best )?guess"
        "|if i remember|if i recall|if i'm not mistaken|if i am not mistaken|as far as i know"
        "|if memory serves|my understanding is|it'?s my understanding|legend has it"
        "|there'?s a (?:good )?chance|i'?m (?:fairly|pretty|almost|reasonably|quite|99%) (?:sure"
        "|certain)|i am (?:fairly|pretty|almost|reasonably) (?:sure|certain)|i'?m not (?:100"
        "|a hundred) ?%? ?(?:percent )?(?:sure|certain)|to my knowledge|to the best of my knowledge"
        "|i'm not (?:\\w+ )?(?:sure|certain|positive)|i am not (?:\\w+ )?(?:sure|certain|positive)"
        "|not entirely (?:sure|clear|certain)|not (?:sure|certain) (?:if|whether|but)|i'm unsure"
        "|i am unsure|it is (?:unclear|possible|uncertain|believed|thought|said|rumou?red|likely"
        "|probable|unlikely)|it's (?:unclear|possible|uncertain|believed|thought|said|likely"
        "|probable|unlikely)|(?:is|are|was|were) (?:\\w+ )?(?:believed|thought|said|reported"
        "|rumou?red|alleged|presumed|assumed|expected|predicted|projected|slated) to"
        "|it (?:seems|appears)(?=,| (?:that|as|likely"
        "|to (?:be|have)|he|she|they|there|it)\\b)|(?:seems?|seemed|appears?|appeared) to (?:be"
        "|have)|there is a chance|some (?:say|sources|believe)|according to some|sources (?:say"
        "|suggest)|may or may not|could be|could have been"
    ),
    "es": (
        "quizá|quizás|tal vez|a lo mejor|probablemente|posiblemente|puede que|podría|podrían|pudo"
        " haber|creo que|pienso que|supongo que|me parece que|al parecer|parece (?:ser )?que|si no"
        " recuerdo mal|si mal no recuerdo|supuestamente|presuntamente|se cree que|se dice"
        " que|seguramente|es posible que|es probable que|no estoy segur[oa]|debe de"
    ),
    "de": (
        "vielleicht|möglicherweise|wahrscheinlich|vermutlich|eventuell|angeblich|anscheinend|mutmaßlich|(?<!sich"
        " )wohl|könnte|könnten|dürfte|dürften|ich glaube|ich denke|ich vermute|ich nehme"
        " an|so(?:weit|viel) ich weiß|meines wissens|wenn ich mich (?:recht|richtig) erinnere|es"
        " scheint|scheint .{1,40}zu sein|es ist möglich|nicht sicher|soll .{1,60}(?:sein|haben)"
    ),
    "fr": (
        "peut-être|probablement|possiblement|sans"
        " doute|vraisemblablement|apparemment|prétendument|je crois|je pense|je suppose|si je me"
        " souviens bien|si ma mémoire est bonne|sauf erreur|il me semble|il semble|semble(?:rait)?"
        " (?:être|avoir)|il se peut|il est (?:possible|probable)|pourrai(?:t|ent)|aurait|serait|à"
        " ma connaissance|on dit que|pas (?:tout à fait )?sûre?|paraît-il"
    ),
    "zh": (
        "可能|也许|或许|大概|据说|据传|据称|据报道|传闻|似乎|好像|恐怕|我认为|我觉得|我猜|估计(?![值量])|应该是|不确定|不太确定|说不定|想必"
    ),
    "l2": "forse|pove",
}
# "may be", "might have won", "will win", "could have won"; not "with might and main" or "5 may"
_MODAL = re.compile(
    r"(?<!\bthe )(?<!\bhis )(?<!\bher )(?<!\bits )(?<!\btheir )(?<!\ball )(?<!\bof )(?<!\d"
    r" )(?<!military )(?<!\bin )(?<!\ba )(?<!\blast )(?<!\bfree )(?<!\bgood )(?<!\bat )"
    r"\b(?:(?:may|might|will|shall)\b(?! (?:and|of|or|is|was|were|has|in|to|on|the|a)\b)"
    r"(?=,? [^\W\d_A-Z])"
    r"|won['’]t\b|(?:could|would|should|must)(?:n['’]t| not)?(?: \w+ly| also| then)? have [a-z]"
    r"|going to (?:be|become|do|get|have|make|open|play|start|take|win)\b)"
)
_SPACED = re.compile(
    "|".join(rf"(?<![\w'-])(?:{cues})(?![\w'-])" for lang, cues in CUES.items() if lang != "zh"),
    re.I,
)
_CHINESE = re.compile(rf"(?<![不尽])(?:{CUES['zh']})(?!性)")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^“”]*”|«[^«»]*»|「[^「」]*」|„[^„“”]*[“”]")


def hedge(sentence: str) -> str | None:
    """The first hedge of a sentence, as written there; None if the sentence is not hedged."""
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
    """Whether a sentence is hedged."""
    return hedge(sentence) is not None
