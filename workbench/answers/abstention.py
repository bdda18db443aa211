"""Which texts decline to answer, or call the question invalid, and which commit to an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from workbench.answers.text import STOP, canonical, final_answer

INVALID_QUESTION = "invalid question"

# Phrases that say "no answer", by language; "l2" is the invented language of the closed world. They are compared with a
# whole clause, without regard to case, diacritics and contractions; "…" stands for any words.
ABSTENTIONS: dict[str, tuple[str, ...]] = {
    language: tuple(phrase.strip() for phrase in phrases.split("|"))
    for language, phrases in {
        "en": "I do not know… | do not know… | I did not know… | dunno… | idk | not known"
        "| I have never heard of… | I am not sure… | not sure… | I am unsure… | unsure… | I am not certain…"
        "| not certain | I am uncertain… | uncertain | unknown | …is unknown | …are unknown | …was unknown"
        "| …remains unknown | …is not known | …is unknown to me | …is unclear | …is uncertain"
        "| I have no idea… | no idea… | I have no clue… | no clue | I cannot answer… | cannot answer…"
        "| I cannot say… | cannot say | I cannot tell… | I cannot determine… | I cannot recall…"
        "| I cannot remember… | I cannot provide… | I cannot confirm… | I cannot verify… | I cannot find…"
        "| I could not find… | I cannot give… | I cannot identify… | I cannot help… | I am unable to…"
        "| unable to answer… | I am not able to… | I do not recall… | I do not remember…"
        "| I have no information… | I do not have information… | I do not have any… | no information…"
        "| I do not have enough… | I do not have sufficient… | I do not have access… | I do not have the…"
        "| I have no record… | I do not have knowledge… | I do not have an answer… | I have no knowledge…"
        "| I have no answer… | I lack… | not enough information… | insufficient information…"
        "| there is not enough… | there is insufficient… | there is no information…"
        "| there is no way to know… | I am not familiar with… | I am not aware of… | I am unfamiliar with…"
        "| I am unaware of… | …cannot be determined… | …cannot be answered… | …cannot be known"
        "| it is impossible to… | the passages do not… | the passage does not… | the text does not…"
        "| the context does not… | the references do not… | the documents do not… | the provided…do not…"
        "| the provided…does not… | …beyond my knowledge | …outside my knowledge | I would rather not guess"
        "| I prefer not to guess | I could not say… | I could not tell you… | I cannot be sure… | I cannot be certain…"
        "| I can neither… | I do not have a clue… | have not a clue… | beats me | who knows | no one knows | nobody knows"
        "| I dunno… | not known to me | …is not known to me | unclear | not clear | undetermined | unanswerable"
        "| not available | not applicable | no answer | there is no answer… | there is no definitive… "
        "| there is no clear answer…"
        "| I do not think I know… | I do not think I can… | I do not believe I have… | I do not believe I know…"
        "| I do not possess… | I do not know anything… | I know nothing about… | I know nothing of… | I would be guessing…"
        "| I would only be guessing… | I will not guess… | I do not want to guess… | I refuse to… | I decline to…"
        "| I must decline… | I have to decline… | I won't answer… | I will not answer… | I abstain… | I must abstain…"
        "| I have to abstain… | hard to say… | difficult to say… | it is hard to… | it is difficult to… | I cannot be of help…"
        "| none of the passages… | none of the documents… | none of the above information… | none of the given…"
        "| none of the provided… | my knowledge does not… | my training data does not… | …outside of my knowledge"
        "| …beyond the scope of my knowledge | …outside the scope of my knowledge",
        "zh": "我不知道… | 不知道… | 我不确定… | 不确定… | 我不清楚… | 不清楚… | 我不太清楚… | 我不了解…"
        "| 我不认识… | 我无法回答… | 无法回答… | 我无法确定… | 无法确定… | 我没有…信息 | 没有足够…"
        "| 信息不足… | 未知 | 答案未知 | 我不太确定… | 不太确定… | 无法提供… | 我无法提供… | 我没有相关… | 没有相关…"
        "| 没有关于… | 我没有关于… | 没有…信息 | 没有…资料 | 不详 | 没有人知道… | 没人知道… | 无可奉告 | 我不会"
        "| 无法得知… | 无从得知… | 无法判断… | 我无法判断… | 无从知晓… | 我不记得… | 不记得… | 我不懂… | 难以确定…",
        "es": "no lo sé… | no sé | yo no sé… | no sé quién… | no sé cuál… | no sé dónde… | no sé cuándo…"
        "| no sé qué… | no estoy seguro… | no estoy segura… | no puedo responder… | no tengo información…"
        "| no tengo suficiente… | no tengo idea… | ni idea | no conozco… | desconozco… | lo desconozco"
        "| se desconoce… | desconocido | desconocida | …es desconocida | …es desconocido | no tengo esa… | no tengo ni idea…"
        "| no dispongo de… | no sabría… | no sabría decirlo | no sabría decirte… | no se sabe… | no hay información…"
        "| no hay suficiente… | no puedo contestar… | no puedo proporcionar… | no puedo decir… | no puedo confirmar…"
        "| no puedo determinar… | no recuerdo… | no lo recuerdo… | yo no lo sé… | nadie lo sabe | no tengo la respuesta…",
        "de": "ich weiß nicht… | ich weiß es nicht… | ich weiß das nicht… | das weiß ich nicht… | weiß nicht…"
        "| nicht bekannt | ich bin nicht sicher… | ich bin mir nicht sicher… | keine Ahnung…"
        "| ich habe keine… | ich kenne…nicht | ich kann…nicht beantworten | ich kann…nicht sagen"
        "| unbekannt | …ist unbekannt | weiß ich nicht… | weiß ich das nicht… | ich bin mir da nicht sicher… "
        "| dazu habe ich keine…"
        "| mir liegen keine… | mir liegt keine… | …ist mir nicht bekannt | …ist nicht bekannt | mir ist nicht bekannt…"
        "| ich kann…nichts sagen… | ich kann dazu nichts… | keine Angabe… | keine Angaben… | niemand weiß… | weiß nicht…"
        "| ich kann mich nicht erinnern… | ich verfüge über keine… | es ist nicht bekannt…",
        "fr": "je ne sais pas… | je sais pas… | je ne le sais pas… | je ne suis pas sûr… | je ne suis pas sûre…"
        "| j'ignore… | je ne suis pas certain… | je ne connais pas… | je ne peux pas répondre…"
        "| je ne peux pas dire… | aucune idée… | je n'ai pas assez… | je n'ai aucune idée…"
        "| je n'ai pas d'information… | je n'ai pas d'informations… | inconnu | inconnue | …est inconnue | …est inconnu "
        "| je l'ignore…"
        "| on ne sait pas… | on l'ignore… | je n'ai pas la… | je n'ai pas cette… | je ne dispose pas… | je n'en sais rien…"
        "| je n'en ai aucune… | je ne suis pas en mesure… | aucune information… | je ne peux pas confirmer… | je ne saurais…"
        "| je ne me souviens pas… | personne ne sait… | nul ne sait… | je ne peux pas fournir…",
        "l2": "mi ne vedu… | mi ne sabo…",
    }.items()
}

INVALID: dict[str, tuple[str, ...]] = {
    language: tuple(phrase.strip() for phrase in phrases.split("|"))
    for language, phrases in {
        "en": "invalid question | this is an invalid question | it is an invalid question | …question is invalid"
        "| …question is not valid | …false premise | …false premise of… | …false assumption"
        "| …premise is false | …premise of the question is false | …premise of this question is false"
        "| …premise is wrong",
        "zh": "无效问题 | 无效的问题 | …问题无效 | …错误的前提… | …前提错误 | …前提是错误的",
        "es": "pregunta inválida | …pregunta no es válida | …premisa falsa",
        "de": "ungültige Frage | …Frage ist ungültig | …falschen Annahme | …falschen Voraussetzung",
        "fr": "question invalide | …question est invalide | …prémisse fausse | …fausse prémisse",
        "l2": "kesto falsa…",
    }.items()
}

_HEDGES = (  # without diacritics, as `canonical` leaves them
    "maybe|perhaps|probably|possibly|i think|i believe|i guess|i would say|i would guess|my guess|my best guess"
    "|probablemente|posiblemente|quizas?|tal vez|creo que|pienso que|supongo que|vielleicht|wahrscheinlich|vermutlich"
    "|moglicherweise|ich glaube|ich denke|peut-etre|probablement|je crois que|je crois|je pense que|je pense"
)
_TURNS = "but|however|though|although|pero|aber|mais"
_STATES = "(?:it|he|she|that|they|the answer) (?:is|was|are|were|may|might|could)"
_BREAK = re.compile(  # where a new clause begins, beside commas
    rf"{STOP}|:|\s[-–]+\s|—|,?\s*\b(?=(?:{_HEDGES}|{_TURNS}|because)\b)|,\s*(?={_STATES}\b)|,?(?=但|不过)|,(?=应该|可能|估计|大概|也许|或许"
    rf"|我猜|我觉得|我想)",
    re.I,
)
_LEADS = re.compile(  # what may stand before a clause without changing what it says
    rf"(?:(?:{_HEDGES}|{_TURNS}|still|and|so|well|hmm|that|sorry|i am (?:very |so )?sorry|i apologi[sz]e|i am afraid"
    r"|to be honest|i must admit|i have to (?:say|admit)|(?:the |my )?(?:final )?answer(?: is)?"
    r"|lo siento|desole|leider|es tut mir leid|la respuesta es|die antwort ist|la reponse est)\b|"
    r"很?抱歉|对不起|但是?|不过|很?遗憾的?是?|恐怕"
    r"|我?暂时|我?目前|这个问题|关于这个问题|答案是?|说实话|老实说|[\s,\"()<>*]+)+",
    re.I,
)
_ADVERBS = re.compile(
    r"\b(?:really|quite|entirely|completely|totally|absolutely|honestly|frankly|actually|simply|just|exactly|fully|very"
    r"|currently|unfortunately|for certain|for sure|with certainty|at all|yet|at (?:this|the) (?:moment|time)|publicly"
    r"|leider|derzeit|momentan|lamentablemente|desafortunadamente|malheureusement|actualmente|actuellement)\b",
    re.I,
)
_EMPTY = re.compile(  # a reason or a courtesy: commits to nothing beside a phrase that declines
    r"(?:because|since|as|so|therefore|thanks?|please|you|if|let me|feel free|i (?:would )?need|i can|i could"
    r"|i will|i hope|i would rather|i only|based on|according to|given|without|there (?:is|are) no"
    r"|the (?:passages?|text|context)"
    r"|who|what|where|when|which|why|how|whether|wer|was|wo|wann|wie|ob|weil|quien|cual|donde|cuando|porque"
    r"|qui|que|ou|quand|parce que)\b|因为|由于|请",
    re.I,
)
_OBJECT = r"(?:\s+(?:about |of |on )?(?:this|that|it|the answer)(?: to (?:this|that|the|your) question)?(?=\s*,))?"

Clauses = list[tuple[bool, str]]


def is_abstention(text: str, extra: Iterable[str] = ()) -> bool:
    """Whether the final answer of `text` declines to answer and names nothing that could be one. `extra` adds phrases
    written as in `ABSTENTIONS`. No final answer at all is not an abstention."""
    answer = final_answer(text)
    return answer is not None and declines(answer, tuple(extra))


def declines(answer: str, extra: tuple[str, ...] = ()) -> bool:
    return not _is_title(answer) and _all_say(answer, _abstaining(extra))


def _is_title(answer: str) -> bool:
    """Whether an answer is written as the title of a work is: "I Don't Know How to Love Him"."""
    words = re.findall(r"[^\W\d_][\w'’]*", answer) if len(answer) < 100 else []
    long = [word for word in words if len(word) > 3]
    return len(words) > 4 and len(long) > 1 and all(word[0].isupper() and word[1:].islower() for word in long)


def commitment(answer: str) -> str:
    """What is left of an answer without its "I am not sure, but": a hedge neither helps nor hurts."""
    clauses = _clauses(answer, _abstaining(()))
    return ". ".join(clause for found, clause in clauses if not found) if any(found for found, _ in clauses) else answer


def is_invalid(text: str) -> bool:
    """Whether the final answer of `text` says that the question is invalid, and nothing else."""
    answer = final_answer(text)
    return answer is not None and _all_say(answer, _invalid())


def invalid_clauses(answer: str) -> Clauses:
    """The clauses of an answer, with True for those that call the question invalid."""
    return _clauses(answer, _invalid())


def _clauses(text: str, phrases: re.Pattern[str]) -> Clauses:
    """The clauses that say something: (True, …) for one of the phrases, (False, …) for a commitment."""
    text = canonical(text)
    return list(_saying(text, phrases)) or [(False, text)]


def _all_say(text: str, phrases: re.Pattern[str]) -> bool:
    """Whether every clause that says something is one of the phrases; reads no further than the first that is not."""
    said = False
    for said, _ in _saying(canonical(text), phrases):
        if not said:
            return False
    return said


def _saying(text: str, phrases: re.Pattern[str]) -> Iterator[tuple[bool, str]]:
    start = 0
    for match in (*_BREAK.finditer(text), None):
        end = match.start() if match else len(text)
        # A question commits to nothing beside other clauses ("His birthplace? I don't know"), but alone it is a try.
        asked = match is not None and "?" in match[0]
        yield from (pair for pair in _classify(text[start:end], phrases) if pair[0] or not asked)
        start = match.end() if match else end


def _classify(clause: str, phrases: re.Pattern[str]) -> Clauses:
    core = re.sub(r"\s+", " ", _ADVERBS.sub(" ", clause)).strip()
    core = (core[match.end() :] if (match := _LEADS.match(core)) else core).strip(' ,"()<>*')
    if not core:
        return []
    if match := phrases.match(core):
        rest = core[match.end() :].strip()
        return [(True, core), *(_classify(rest[1:], phrases) if rest.startswith(",") else [])]
    parts = [part for piece in core.split(",") for part in _classify(piece, phrases)] if "," in core else []
    if any(found for found, _ in parts):
        return parts
    return [] if _EMPTY.match(core) else [(False, core)]


@lru_cache(maxsize=64)
def _abstaining(extra: tuple[str, ...]) -> re.Pattern[str]:
    return _compile([*(phrase for phrases in ABSTENTIONS.values() for phrase in phrases), *extra])


@lru_cache(maxsize=1)
def _invalid() -> re.Pattern[str]:
    return _compile([phrase for phrases in INVALID.values() for phrase in phrases])


def _compile(phrases: list[str]) -> re.Pattern[str]:
    """One pattern for phrases in which "…" stands for any words of the same clause."""
    return re.compile("|".join(map(_phrase, phrases)), re.I)


def _phrase(phrase: str) -> str:
    parts = [canonical(part).strip() for part in phrase.split("…")]
    words = [re.escape(part) for part in parts if part]
    # A word of a Latin script ends at its last letter; Chinese has no such boundary.
    before = ("" if parts[0] else "[^,]*?") + (r"(?<!\w)" if next(filter(None, parts)).isascii() else "")
    after = r"\s*(?=,|$)" if parts[-1] else _OBJECT + (r"(?!\w)" if list(filter(None, parts))[-1].isascii() else "")
    return before + "[^,]*?".join(words) + after
