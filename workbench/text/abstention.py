"""Which texts decline to answer, or call the question invalid, and which commit to an answer.

The phrases lie in `abstentions.LANGUAGE.txt`; "l2" is the invented language of the closed world. A
phrase is compared with a whole clause, without regard to case, diacritics and contractions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from workbench.text.kept import kept
from workbench.text.names import lines
from workbench.text.normal_form import STOP, canonical
from workbench.text.sections import final_answer

INVALID_QUESTION = "invalid question"
Find = Callable[[str, int], "re.Match[str] | None"]


def _phrases(invalid: bool) -> Mapping[str, tuple[str, ...]]:
    """The phrases by language; those that call the question invalid are marked with "!"."""
    return {
        language: tuple(
            line.removeprefix("! ")
            for line in lines(f"abstentions.{language}.txt")
            if line.startswith("!") is invalid
        )
        for language in ("en", "zh", "es", "de", "fr", "l2")
    }


ABSTENTIONS, INVALID = _phrases(invalid=False), _phrases(invalid=True)

_HEDGES = (  # without diacritics, as `canonical` leaves them
    "maybe|perhaps|probably|possibly|i think|i believe|i guess|i would say|i would guess|my"
    " guess|my best guess|probablemente|posiblemente|quizas?|tal vez|creo que|pienso que|supongo"
    " que|vielleicht|wahrscheinlich|vermutlich|moglicherweise|ich glaube|ich"
    " denke|peut-etre|probablement|je crois que|je crois|je pense que|je pense"
)
_TURNS = "but|however|though|although|pero|sino|aber|sondern|mais"
_STATES = "(?:it|he|she|that|they|the answer) (?:is|was|are|were|may|might|could)"
_BREAK = re.compile(  # where a new clause begins, beside commas
    rf"{STOP}|:|\s[-–]+\s|—|,\s*(?=only\b)|\s\((?=not\b)|,?\s*\b(?=(?:{_HEDGES}|{_TURNS}|because)\b)"
    rf"|,\s*(?=(?:yet )?{_STATES}\b)|,?(?=但|不过)"
    rf"|,(?=应该|可能|估计|大概|也许|或许"
    rf"|我猜|我觉得|我想|好像|似乎|多半|没准|说不定)",
    re.I,
)
_LEADS = re.compile(  # what may stand before a clause without changing what it says
    rf"(?:(?:{_HEDGES}|{_TURNS}|still|and|so|well|hmm|that|sorry|i am (?:very |so |truly )?sorry|i"
    r" apologi[sz]e|my apologies"
    r"|regrettably|alas|i am afraid|to be honest|i must (?:admit|confess)|i have to (?:say|admit)"
    r"|i (?:will|must|should|can only)(?: just| have to)? say"
    r"|to (?:the best of )?my knowledge|as far as i know|(?:the |my )?(?:final )?answer(?: is)?"
    r"|lo siento|lo lamento|perdon[ae]?|disculp[ae]|por favor|me temo que|por desgracia|la verdad"
    r"|desolee?|je suis desolee?|je regrette|helas"
    r"|als (?:ki|sprachmodell)[\w-]*|leider|(?:es )?tut mir (?:sehr )?leid|entschuldigung|ehrlich"
    r" gesagt|ich furchte"
    r"|bedauerlicherweise"
    r"|la respuesta es|die antwort ist|la reponse est)\b|"
    r"不好意思|(?:根据|基于)[^,]{0,12}?(?:资料|信息|内容|上下文|文本|段落|材料|文章)|"
    r"(?:非常|十分|实在|很)?抱歉|对不起|但是?|不过|很?遗憾的?是?|恐怕"
    r"|我?暂时|我?目前|(?:关于|对于)?(?:这个|这|该|此)问题的?|答案是?|说实话|老实说|[\s,\"()<>*¿¡]+|[-•]"
    r" )+",
    re.I,
)
_ADVERBS = re.compile(
    r"\b(?:really|quite|entirely|completely|totally|absolutely|honestly|frankly|actually|simply|just|exactly|fully|very"
    r"|currently|unfortunately|for certain|100"
    r" percent|explicitly|directly|specifically|definitively|reliably|conclusively"
    r"|officially|accurately|precisely|confidently|readily|offentlich|bislang|bisher|offiziell|publicamente"
    r"|publiquement|for sure|with certainty|at all|yet|at (?:this|the) (?:moment|time)|publicly"
    r"|leider|derzeit|momentan|lamentablemente|desafortunadamente|malheureusement|actualmente|actuellement)\b",
    re.I,
)
_EMPTY = re.compile(  # a reason or a courtesy: commits to nothing beside a phrase that declines
    r"(?:because|since|as(?! of \d)|so|therefore|thanks?|please|you|if|let me|feel free|i (?:would"
    r" )?need|i can|i could"
    r"|i will|i hope|i would rather|i only|based on|according to|given|without|there (?:is|are) no"
    r"|the (?:passages?|text|context)|the (?:provided |given |search"
    r" )?(?:results?|sources?|documents?"
    r"|articles?)\b(?!.*\s(?-i:[A-Z0-9]))"
    r"|not (?:its|his|her|their|the)|i (?:have )?(?:looked|searched|checked)|i would"
    r" (?:tell|love|be (?:happy|glad))"
    r"|i would (?:suggest|recommend|advise) (?:\w+ing|you|that you)|i appreciate|(?:(?:that is"
    r" |what )?an? )?(?:tough"
    r"|good|great|tricky|difficult|interesting) (?:one|question)|als (?:ki|sprachmodell)"
    r"|como (?:modelo|ia|asistente|inteligencia)|en tant|um (?:die|das|diese|dies)|pour"
    r" (?:repondre|vous)"
    r"|para (?:responder|poder)|selon|dapres|segun|laut|it is possible that|it would|there"
    r" (?:may|might|could) be"
    r"|can you|could you"
    r"|who|what|where|when|which|why|how|whether|wer|was|wo|wann|wie|ob|weil|quien|cual|donde|cuando|porque"
    r"|qui|que|ou|quand|parce que)\b|因为|由于|请|关于|对于|作为",
    re.I,
)
_GIVEN = re.compile(
    r"(?:based on|according to|given|as of|selon|dapres|segun|laut)\b[^,]*,", re.I
)  # what comes after the comma counts
_OBJECT = (
    r"(?:\s+(?:about |of |on )?(?:this|that|it|the answer)(?: to (?:this|that|the|your)"
    r" question)?(?=\s*,))?"
)

_CHINESE_ADVERBS = re.compile(
    "(?:并|也|还|都|真的?|确实|其实|实在|完全|根本|暂时|目前|现在)+(?=不|没|无|未)"
)
_GUESS = re.compile(
    "(?:[A-Z0-9][\\w.'-]*\\s*)+|(?!.*[什谁哪怎吗呢么您你请需])[\u4e00-\u9fff]{1,6}"
)  # "Paris?" after a phrase that declines
_NAMED = re.compile(  # such a clause does commit: "since it is in Paris", "the text says Paris"
    rf"\b(?i:{_STATES}) (?!not\b)(?:[a-z]+ ){{0,3}}[A-Z0-9]"
    r"|^(?!.*\b(?:my|I|me|not)\b).*\b(?:is|was|are|were|been|says?|states?|suggests?|indicates?|names?|gives?"
    r"|lists?) (?:[a-z]+ ){0,3}[A-Z0-9]"
)

# a name, or so few words that they may be one
_TRY = re.compile(r"\S\s+[A-Z0-9]|^\W*\w+(?:\W+\w+){0,3}\W*$")

_SORRY = re.compile(  # and nothing else; "Sorry" alone may be the name of a song
    r"\W*(?:I am (?:(?:very|so|truly|really) )?sorry|I apologi[sz]e|My apologies|Lo siento(?:"
    r" mucho)?"
    r"|(?:Es )?[Tt]ut mir (?:sehr )?leid"
    r"|Je suis (?:vraiment )?desolee?|(?:非常|十分|实在|很)?抱歉|对不起)\W*"
)
# what comes behind it may decline
_REASON = re.compile(r"(?:because|since|as|therefore|thus|hence)\s+")

_AROUND = ' ,"()<>*¿¡'
_COMMA = re.compile(r"\s*,")

_GREETING = re.compile(
    r"[\s*\"“¡]*(?:(?:(?:what an? |that is an? |that'?s an? )?(?:great|good|excellent"
    r"|interesting|nice"
    r"|fantastic|wonderful|tricky) question|sure(?: thing)?|certainly|of course|absolutely"
    r"|definitely"
    r"|no problem|happy to help|glad (?:you asked|to help)|thank(?:s| you)(?: (?:so|very) much)?"
    r"(?: for (?:asking|(?:your|the) question))?|i(?:'d| would) be happy to help(?: with that)?"
    r"|hello|hi(?: there)?|okay|ok|here(?: is|'s)(?: the| your)? answer|here you go|claro(?:"
    r" que sí)?"
    r"|por supuesto|buena pregunta|natürlich|gerne|gute frage|bien sûr|bonne question|好的"
    r"|当然(?:可以)?|这是(?:一)?个好问题|好问题|你好|您好)(?:\s*[!,.:\n—–。，！：、][\s*]*|\s+-\s+))+",
    re.I,
)
_FAREWELL = re.compile(
    r"(?<=[.!?\n])[^\S\n]*(?:let (?:me|us) know|feel free|(?:i )?hope|if you|is there"
    r" anything|please"
    r"|do(?:n['’]t| not) hesitate|thank|i(?:'m| am| would be|'d be) (?:happy|glad))\b"
    r"(?-i:(?:[^.!?\nA-Z0-9]|\bI\b)*)(?:[.!?]+|$)",
    re.I,
)
# the only item of a list
_NUMBERED = re.compile(r"\s*(?:[-*•]|\(?1[.)])\s+(?!.*(?:^|\s)(?:[-*•]|\(?2[.)])\s)", re.S)

Clauses = list[tuple[bool, str]]


def _of_all(phrases: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(phrase for each in phrases.values() for phrase in each)


def is_abstention(text: str, extra: Iterable[str] = (), prefill: str = "") -> bool:
    """Whether the final answer of `text` declines to answer and names nothing that could be one.
    `extra` adds phrases written as in `ABSTENTIONS`. No final answer at all is not an
    abstention."""
    answer = final_answer(text, prefill=prefill)
    return answer is not None and declines(answer, tuple(extra))


@kept
def declines(answer: str, extra: tuple[str, ...] = ()) -> bool:
    answer = plainly(answer)
    return not _is_title(answer) and (
        _all_say(answer, _finder((*_of_all(ABSTENTIONS), *extra)))
        or bool(_SORRY.fullmatch(canonical(answer)))
    )


def _is_title(answer: str) -> bool:
    """Whether an answer is written as the title of a work is: "I Don't Know How to Love Him"."""
    words = re.findall(r"[^\W\d_][\w'’]*", answer) if len(answer) < 100 else []
    long = [word for word in words if len(word) > 3]
    return (
        len(words) > 4
        and len(long) > 1
        and all(word[0].isupper() and word[1:].islower() for word in long)
    )


@kept
def commitment(answer: str) -> str:
    """What is left of an answer without its "I am not sure, but": a hedge neither helps nor
    hurts.
    """
    clauses = _clauses(answer, _finder(_of_all(ABSTENTIONS)), reasons=True)
    return (
        ". ".join(clause for found, clause in clauses if not found)
        if any(found for found, _ in clauses)
        else answer
    )


def is_invalid(text: str) -> bool:
    """Whether the final answer of `text` says that the question is invalid, and nothing else."""
    answer = final_answer(text)
    return answer is not None and _all_say(answer, _finder(_of_all(INVALID)))


@kept
def invalid_clauses(answer: str) -> tuple[tuple[bool, str], ...]:
    """The clauses of an answer, with True for those that call the question invalid."""
    return tuple(_clauses(answer, _finder(_of_all(INVALID))))


def _clauses(text: str, phrases: Find, reasons: bool = False) -> Clauses:
    """The clauses that say something: (True, …) for one of the phrases, (False, …) for a
    commitment; with `reasons` also those that commit to nothing by themselves, and may hold one
    more guess."""
    text = canonical(text)
    return list(_saying(text, phrases, reasons)) or [(False, text)]


def _all_say(text: str, phrases: Find) -> bool:
    """Whether every clause that says something is one of the phrases; reads no further than the
    first that is not.
    """
    said = False
    for said, _ in _saying(canonical(text), phrases):
        if not said:
            return False
    return said


def _saying(text: str, phrases: Find, reasons: bool = False) -> Iterator[tuple[bool, str]]:
    start, declined = 0, False
    for match in (*_BREAK.finditer(text), None):
        end = match.start() if match else len(text)
        # A question commits to nothing beside other clauses ("His birthplace? I don't know"), but
        # alone it is a try, and so is a name after what declines ("I don't know, Paris?").
        asked = match is not None and "?" in match[0]
        silent = True
        for found, clause in _classify(text[start:end], phrases):
            if found or not asked or (declined and _GUESS.fullmatch(clause)):
                yield found, clause
                silent = False
            # "I am not sure, but it is a baker?" tries one, however it is put
            elif reasons and declined:
                yield False, clause
                silent = False
            declined = declined or found
        if reasons and silent and _TRY.search(text[start:end]):
            yield False, text[start:end].strip(" ,")
        start = match.end() if match else end


def _classify(clause: str, phrases: Find) -> Clauses:
    clause = _ADVERBS.sub(" ", clause if clause.isascii() else _CHINESE_ADVERBS.sub("", clause))
    core = re.sub(r"\s+", " ", clause).strip(_AROUND)
    small, clauses, at = core.lower(), Clauses(), 0
    while (at := _begin(core, at)) < len(core) and (match := _phrase(small, at, phrases)):
        clauses.append((True, core[at : match.end()]))
        if not (further := _COMMA.match(core, match.end())):
            return clauses
        at = further.end()
    core = core[at:]
    if not core:
        return clauses
    parts = (
        [part for piece in core.split(",") for part in _classify(piece, phrases)]
        if "," in core
        else []
    )
    if any(found for found, _ in parts) or (_GIVEN.match(core) and any(map(_states, parts))):
        return clauses + parts
    return clauses if _EMPTY.match(core) and not _NAMED.search(core) else [*clauses, (False, core)]


def _phrase(small: str, at: int, phrases: Find) -> re.Match[str] | None:
    """The phrase that a clause begins with at `at`, be it behind "since" or "as"."""
    reason = _REASON.match(small, at)
    return phrases(small, at) or (phrases(small, reason.end()) if reason else None)


def _begin(text: str, at: int) -> int:
    """Where a clause begins to say something, from `at` on."""
    return match.end() if (match := _LEADS.match(text, at)) else at


def _states(part: tuple[bool, str]) -> bool:
    """Whether a piece after "According to the text," states something: it does not speak of the
    speaker or the asker.
    """
    return not re.match(r"(?:i|my|we|it is (?:un|not)|more|please)\b", part[1], re.I)


def plainly(answer: str) -> str:
    """An answer without the courtesies around it ("Great question! …") and the sign of a list of
    one item; the whole where nothing else is left."""
    plain = answer
    for courtesy in (_GREETING, _NUMBERED):
        if match := courtesy.match(plain):
            plain = plain[match.end() :]
    plain = _FAREWELL.sub("", plain)
    return plain if any(map(str.isalnum, plain)) else answer


@lru_cache(maxsize=64)
def _finder(phrases: tuple[str, ...]) -> Find:
    """What finds the phrase that a clause begins with at a place, in canonical text in small
    letters."""
    begins = [_compiled(phrase) for phrase in phrases if phrase[0] != "…"]
    inside = [_compiled(phrase) for phrase in phrases if phrase[0] == "…"]
    latin = "|".join(one for one in inside if one.isascii())
    other = "|".join(one for one in inside if not one.isascii())
    scans = [rf"[^,]*?(?<!\w)(?:{latin})"] * bool(latin) + [rf"[^,]*?(?:{other})"] * bool(other)
    return re.compile("|".join([*begins, *scans])).match


def _compiled(phrase: str) -> str:
    """The pattern of a phrase; what may follow one that ends in "…" belongs to it."""
    parts = [canonical(part).strip().lower() for part in phrase.split("…")]
    words = [_alternatives(part) for part in parts if part]
    # A word of a Latin script ends at its last letter; Chinese has no such boundary, but 不确定性,
    # 不懂事 and 不认识的人 are other words.
    latin = words[-1].isascii()
    end = r"\s*(?=,|$)" if parts[-1] else _OBJECT + (r"(?!\w)" if latin else "(?![性事的])")
    return (r"(?!\w)[^,]*?(?<!\w)" if latin else "[^,]*?").join(words) + end


def _alternatives(part: str) -> str:
    """The pattern of "(a/b) c"; brackets that do not match are characters."""
    depth, made = 0, ""
    for sign in part:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            break
        made += {"(": "(?:", ")": ")", "/": "|" if depth else "/"}.get(sign) or re.escape(sign)
    return re.escape(part) if depth else made
