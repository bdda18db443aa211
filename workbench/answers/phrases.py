"""The phrases by which a text declines to answer, or calls the question invalid, by language *(ours)*.

"l2" is the invented language of the closed world. A phrase is compared with a whole clause, without regard to case, diacritics
and contractions; "…" stands for any words, and "(a/b)" for either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from workbench.answers.text import canonical

_ABSTENTIONS = {
    "en": "I do not know… | do not know… | I did not know… | I would not know… | dunno… | I dunno… | idk | not known"
    "| I (do not/did not) think I (know/can)… | I do not believe I (have/know)… | I do not know anything…"
    "| I know nothing (about/of)… | I have never (heard of/come across)… | I (never/have not) heard of…"
    "| (I am not/not) (sure/certain/confident)… | I am (unsure/uncertain)… | unsure"
    "| unsure (about/of/if/whether/who/what/when/where)… | uncertain"
    "| uncertain (about/of/if/whether/who/what/when/where)…"
    "| (unknown/undetermined/unanswerable/unclear/not clear/not available/not applicable/no answer/no comment)"
    "| …(is/are/was/were/remains) unknown | …(is/are) not known | …is (unknown/not known) to me"
    "| …is (unclear/not clear/uncertain) | (unknown/not known) to me"
    "| (it is /)(unclear/not clear) (to me/who/what/when/where/which/whether/why/how)…"
    "| I have (no idea/no clue/no memory/no recollection/no record/no knowledge/no information/no data/no answer)…"
    "| (no idea/no clue/not a clue/not the faintest/not the foggiest)… | I do not have a clue… | have not a clue…"
    "| I have not (a clue/the faintest/the foggiest/the slightest/got a clue)…"
    "| (I cannot/cannot) (answer/say/give/help/identify/name/place/determine/tell/recall/remember)…"
    "| I cannot (provide/confirm/verify/find/be sure/be certain/be of help)…"
    "| I can (neither/only guess/only speculate)…"
    "| I could (not say/not tell you/not find/not be sure/only guess/only speculate)…"
    "| I (am/was) (unable/not able) to… | unable to answer… | I do not (recall/remember/recogni(s/z)e)…"
    "| I do not have … (information/knowledge/data/details/answer/access/record/records/recollection/memory)…"
    "| I do not have (any/enough/sufficient/the)… | I do not possess… | I lack…"
    "| I have not been (given/provided/told/trained)… | I (did not find/found no)…"
    "| no (relevant /reliable /further /specific /public /such /)information… | no (record/records/mention) of…"
    "| (not enough/insufficient) (information/context/data)… | there is (not enough/insufficient)…"
    "| there is no (answer/mention/definitive/clear answer/way to)…"
    "| there is no … (information/mention of/record of)…"
    "| I am (not familiar with/unfamiliar with/not aware of/unaware of)… | …cannot be (determined/answered/known)"
    "| …cannot be (determined/answered/known) (from/with/based on/using/without)…"
    "| it is (impossible/not possible) (to/for me to) (answer/say/tell/know/determine/establish/give/identify/be "
    "sure/be certain/verify/confirm/provide)…"
    "| it is (hard/difficult/tough) (to/for me to) (answer/say/tell/know/determine/be sure/be certain/give/verify/"
    "judge)… | (hard/difficult/tough) to (say/tell)…"
    "| the (passages/texts/references/documents/materials/sources) (do not/provide no/contain no/give no/make no)…"
    "| the (passage/text/context/reference/document/article/source) (does not/provides no/contains no/gives no/makes "
    "no)…"
    "| the provided (passages/texts/documents/references/materials/context/text/information) … (do not/does not)…"
    "| …(is/are/was/were) not (mentioned/stated/specified/given/provided) in (the/any/this)…"
    "| (it is/this is/is) not (mentioned/stated/specified/given)…"
    "| none of the (passages/documents/texts/references/above information/given/provided)…"
    "| my (knowledge/training/training data) does not… | …(beyond/outside/outside of) my (knowledge/expertise)"
    "| …(beyond/outside) the scope of my knowledge | I would rather not (guess/say/answer/speculate)"
    "| I prefer not to (guess/say) | I would (only /)be (guessing/speculating)…"
    "| I (will not/do not want to/do not wish to) (guess/speculate/answer/mislead/make something up/make up/give a "
    "wrong/give you a wrong)… | I (refuse/decline/must decline/have to decline) to…"
    "| I (/must /have to /will )abstain… | beats me | (who/no one/nobody) knows | I wish I knew"
    "| (your/anyone's) guess is as good as mine | I am (stumped/at a loss/drawing a blank)… | I draw a blank…"
    "| (it /the name /)escapes me | not that I (know of/am aware of)",
    "zh": "(我/)(不知道/不晓得/不清楚/不太清楚/不了解/不太了解/不确定/不太确定/不能确定/不记得/不懂/不认识)… | (我"
    "/)(无法/不能)(回答/确定/提供/判断/得知/确认/给出/作答)…"
    "| (无从得知/无从知晓/无从查证/无从判断/不得而知/难以确定/难以回答)… | (我/)(说不准/答不上来/回答不了"
    "/想不起来/记不清/拿不准/不敢确定/不敢肯定)… | (很难说/不好说/天知道/鬼知道/谁知道呢)"
    "| (我/)没(有/)听说过… | (我/)没有(足够/足够的/相关/相关的/关于)… | (我/)没有 … (信息/资料/数据/答案) | (我"
    "/)对 … (不了解/不清楚/一无所知/不太了解) | (信息/资料)不足…"
    "| (我/)缺乏 … (信息/资料/知识)… | (没有人/没人/无人)知道… | (没有/未能/未/没)找到… | (我/)(查不到"
    "/找不到) … (信息/资料/答案)… | (我/)无法 … (得知/确定/判断/回答)…"
    "| (文中/文章/材料/资料/上下文/文本)(中/里/)(没有/并未/未)(提到/提及/说明/给出)… | (毫无/没有)头绪 "
    "| 我不会 | 无可奉告 | (答案/)(未知/不详/不明/尚不清楚/尚不明确) | 没有答案"
    "| 超出了我的(知识/能力)…",
    "es": "(/yo )no lo sé… | (/yo )no la sé… | (/yo )no sé | (/yo )no sabría…"
    "| (/yo )no sé (quién/cuál/dónde/cuándo/qué/cómo/si/nada/la respuesta/exactamente/responder/decirte/decirle)…"
    "| (nadie lo/no se/no lo/nunca se) (sabe/sabrá)… | no (estoy/me siento) (seguro/segura)…"
    "| no puedo (responder/contestar/proporcionar/decir/confirmar/determinar/dar/ofrecer/verificar/asegurar/saber/"
    "ayudar)… | no (podría/sabría) (decir/decirlo/decirte/responder)…"
    "| no tengo (/ni /la menor /ni la menor /ninguna /la más mínima )idea…"
    "| no tengo … (información/respuesta/datos/dato/constancia/conocimiento/certeza/acceso)…"
    "| no tengo (suficiente/esa)… | ni idea… | no conozco…"
    "| (lo desconozco/desconozco/se desconoce/lo ignoro/ignoro)…"
    "| (desconocido/desconocida/imposible saberlo/quién sabe/no consta) | …es (desconocida/desconocido)"
    "| no (dispongo de/cuento con)… | no (hay/existe) (información/suficiente/datos/constancia/ninguna información)…"
    "| no (/me /lo )(acuerdo/recuerdo)… | no se puede (saber/determinar/responder/decir)…"
    "| no se (conoce/menciona/indica)…"
    "| (no es posible/es imposible) (saber/saberlo/decir/decirlo/determinar/determinarlo/responder)…"
    "| (no soy capaz/soy incapaz) de…"
    "| (el texto/el pasaje/el contexto/la información proporcionada/el documento) no…"
    "| (los pasajes/los textos/los documentos) no… | no estoy al tanto… | prefiero no (adivinar/responder)…",
    "de": "(ich /)weiß (/ich )(/es /das /leider /auch /gar /wirklich )nicht… | das weiß ich (/auch )nicht…"
    "| (ich /)weiß nichts… | (mir /)(nicht bekannt/unbekannt) | …ist (mir /)(unbekannt/nicht bekannt)"
    "| (mir/es) ist … nicht bekannt… | (ich /)bin (mir /)(/da )(nicht sicher/unsicher)…"
    "| (da /ich )bin (ich /)überfragt | keine (Ahnung/Angabe/Angaben/Antwort)…"
    "| (ich habe/habe ich) … (keine/keinen) … (Ahnung/Idee/Information/Informationen/Kenntnis/Kenntnisse/Angaben/"
    "Daten/Antwort/Wissen/Schimmer/Zugriff/Zugang/Hinweise)… | …geht … nicht hervor"
    "| (dazu/darüber/hierzu/davon/hiervon) habe ich … keine… | ich kenne … nicht"
    "| ich kann (das/es/dazu/diese Frage/die Frage/dir/Ihnen/das dir/hierzu/darauf) … (nicht/keine/nichts) … "
    "(beantworten/sagen/helfen/nennen/bestätigen/angeben/geben)… | ich kann … nicht (beantworten/sagen)"
    "| ich kann dazu (nichts/keine)…"
    "| (das/es/dies) kann ich … nicht (/genau /sicher )(beantworten/sagen/bestätigen/beurteilen)…"
    "| (/dazu /darüber /hierzu )liegen mir … keine… | mir (liegen/liegt) … keine…"
    "| (das/es) lässt sich … nicht (sagen/feststellen/bestimmen/beantworten)… | unklar | (das/es) ist (mir /)unklar…"
    "| niemand weiß… | wer weiß | ich kann mich nicht (/daran )erinnern… | ich erinnere mich nicht… | ich verfüge über keine…"
    "| es ist (nicht möglich/unmöglich)…"
    "| (der Text/der Abschnitt/der Kontext/das Dokument) (enthält keine/sagt nicht/nennt nicht)…",
    "fr": "je (ne /n'en /ne le /)sais (pas/rien)… | je n'en (sais rien/ai aucune)… | je l'ignore… | j'ignore…"
    "| je ne suis pas (sûr/sûre/certain/certaine/en mesure/capable/au courant)… | je suis incapable de…"
    "| je ne saurais… | je ne (connais/dispose/possède/me souviens/me rappelle/trouve) pas…"
    "| je ne peux pas (répondre/dire/confirmer/fournir/donner/déterminer/vous aider)…"
    "| je n'ai (pas/aucune) … (information/informations/d'information/d'informations/réponse/donnée/données/"
    "connaissance/idée)… | je n'ai pas (la/cette/assez)… | aucune (idée/information)…"
    "| (inconnu/inconnue/sans réponse/qui sait/allez savoir) | …est (inconnue/inconnu) | …m'est (inconnue/inconnu)"
    "| m'est (inconnue/inconnu) | (on ne sait pas/on l'ignore/personne ne sait/nul ne sait)…"
    "| (il est impossible/impossible/il n'est pas possible) de (répondre/le dire/dire/savoir/le savoir/déterminer/le "
    "déterminer)… | il n'y a (pas/aucune) … (information/informations/d'information/d'informations)…"
    "| (le texte/le passage/le contexte/le document) ne… | (les textes/les passages/les documents) ne…"
    "| …n'est pas (connu/connue/précisé/précisée/mentionné/mentionnée)",
    "l2": "mi ne vedu… | mi ne sabo…",
}

_INVALID = {
    "en": "invalid question | (this/it) is an invalid question | …question is (invalid/not valid)"
    "| …false (premise/assumption) | …false (premise/assumption) (of/that)…"
    "| …premise (/of the question /of this question )is (false/wrong/incorrect)",
    "zh": "无效(/的)问题 | …问题(/是)无效(/的) | …错误的前提… | …前提(/是)错误(/的)",
    "es": "pregunta inválida | …pregunta (no es válida/es inválida) | …premisa (falsa/es falsa)",
    "de": "ungültige Frage | …Frage ist ungültig | …falschen (Annahme/Voraussetzung)",
    "fr": "question invalide | …question est invalide | …prémisse (est /)fausse | …fausse prémisse",
    "l2": "kesto falsa…",
}


ABSTENTIONS = {language: tuple(map(str.strip, phrases.split("|"))) for language, phrases in _ABSTENTIONS.items()}
INVALID = {language: tuple(map(str.strip, phrases.split("|"))) for language, phrases in _INVALID.items()}


def forms(phrase: str) -> list[str]:
    """A phrase in all its forms: "(a/b) c" is "a c" and "b c"; brackets may hold brackets."""
    if not (inner := re.search(r"\(([^()]*)\)", phrase)):
        return [" ".join(phrase.split())]
    each = (f"{phrase[: inner.start()]}{form}{phrase[inner.end() :]}" for form in inner[1].split("/"))
    return [whole for form in each for whole in forms(form)]


def pattern(phrases: Iterable[str], follow: str) -> re.Pattern[str]:
    """One pattern, for canonical text in small letters, that matches where a clause begins with one of the phrases; `follow`
    may come after one that ends in "…"."""
    made = {phrase: _compiled(phrase, follow) for phrase in phrases}
    first = [form for phrase, form in made.items() if not phrase.startswith("…")]
    latin = [form for phrase, form in made.items() if phrase.startswith("…") and form.isascii()]
    others = [form for phrase, form in made.items() if phrase.startswith("…") and not form.isascii()]
    scans = [rf"[^,]*?(?<!\w)(?:{'|'.join(latin)})"] * bool(latin) + [rf"[^,]*?(?:{'|'.join(others)})"] * bool(others)
    return re.compile("|".join([*first, *scans]))


def _compiled(phrase: str, follow: str) -> str:
    parts = [canonical(part).strip().lower() for part in phrase.split("…")]
    words = [_alternatives(part) for part in parts if part]
    # A word of a Latin script ends at its last letter; Chinese has no such boundary.
    latin = words[-1].isascii()
    end = (
        r"\s*(?=,|$)" if parts[-1] else follow + (r"(?!\w)" if latin else "(?![性事的])")
    )  # not in 不确定性, 不懂事, 不认识的人
    return (r"(?!\w)[^,]*?(?<!\w)" if latin else "[^,]*?").join(words) + end


def _alternatives(part: str) -> str:
    depth, made = 0, ""
    for sign in part:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return re.escape(part)
        made += {"(": "(?:", ")": ")", "/": "|" if depth else "/"}.get(sign) or re.escape(sign)
    return re.escape(part) if depth else made  # brackets that do not match are characters
