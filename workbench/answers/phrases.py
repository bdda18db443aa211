"""The phrases by which a text declines to answer, or calls the question invalid, by language
*(ours)*.

"l2" is the invented language of the closed world. A phrase is compared with a whole clause,
without regard to case, diacritics and contractions; "…" stands for any words, and "(a/b)" for
either.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache

from workbench.answers.text import canonical

Find = Callable[[str, int], "re.Match[str] | None"]

_ABSTENTIONS = {
    "en": (
        "I do not know… | do not know… | I did not know… | I would not know… | dunno… | I dunno… |"
        " idk | not known| I (do not/did not) think I (know/can)… | I do not believe I (have/know)…"
        " | I do not know anything…| I know nothing (about/of)… | I have never (heard of/come"
        " across)… | I (never/have not) heard of…| (I am not/not) (sure/certain/confident)… | I am"
        " (unsure/uncertain)… | unsure| unsure (about/of/if/whether/who/what/when/where)… |"
        " uncertain| uncertain (about/of/if/whether/who/what/when/where)…|"
        " (unknown/undetermined/unanswerable/unclear/not clear/not available/not applicable/no"
        " answer/no comment)| …(is/are/was/were/remains) unknown | …(is/are) not known | …is"
        " (unknown/not known) to me| …is (unclear/not clear/uncertain) | (unknown/not known) to me|"
        " it is (not known/unknown) (who/what/when/where/which/whether/why/how)…| (it is"
        " /)(unclear/not clear) (to me/who/what/when/where/which/whether/why/how)…| I have (no"
        " idea/no clue/no memory/no recollection/no record/no knowledge/no information/no data/no"
        " answer)…| (no idea/no clue/not a clue/not the faintest/not the foggiest)… | I do not have"
        " a clue… | have not a clue…| I have not (a clue/the faintest/the foggiest/the"
        " slightest/got a clue)…| (I cannot/cannot)"
        " (answer/say/give/help/identify/name/place/determine/tell/recall/remember)…| I cannot"
        " (provide/confirm/verify/find/be sure/be certain/be of help)…| I can (neither/only"
        " guess/only speculate)…| I could (not say/not tell you/not find/not be sure/only"
        " guess/only speculate)…| I (am/was) (unable/not able) to… | unable to"
        " (answer/determine/find/verify/confirm/say/tell/identify/provide)… | I do not"
        " (recall/remember/recogni(s/z)e)…| I do not have …"
        " (information/knowledge/data/details/answer/access/record/records/recollection/memory)…| I"
        " do not have (any/enough/sufficient/the)… | I do not possess… | I lack…| I have not been"
        " (given/provided/told/trained)… | I (did not find/found no)…| no (relevant /reliable"
        " /further /specific /public /such /available /)information… | no (record/records/mention)"
        " of…| no (/reliable /credible /available"
        " )(source/sources/document/passage/text/article/record)"
        " (mention/mentions/give/gives/state/states/say/says/provide/provides/confirm/confirms/name/names/contain/contains/specify/specifies/indicate/indicates)…|"
        " no such (work/person/record/thing/information/place/event/title/name) …"
        " (found/exists/exist/known/available)…| no"
        " (data/details/result/results/match/answer/answers) (/was /were /is /are"
        " )(found/available/given/provided)…| (not enough/insufficient)"
        " (information/info/context/data/details)… | there is (not enough/insufficient)…| answer"
        " not (found/available/provided/given)… | (information/data) (/is )not"
        " (found/available/provided/given)… | n/a| not"
        " (specified/stated/mentioned/given/provided/disclosed/found/publicly available/recorded)|"
        " not (specified/stated/mentioned/given/provided/disclosed/found/recorded/available)"
        " (in/by/from) (the/any/this/these/my)…| there (is/are) no (answer/mention/definitive/clear"
        " answer/clear consensus/way to)…| there (is/are) no (/reliable /credible /available /known"
        " /public /historical /verifiable"
        " )(sources/records/evidence/details/data/documentation/indication)…| there is no …"
        " (information/mention of/record of)…| (we/historians/scholars/experts/researchers) (do"
        " not/cannot) (know/have/say/tell)…| (historians/scholars/experts/researchers) are (not"
        " sure/unsure/uncertain)…| (no one/nobody) (/really )knows"
        " (for/who/when/where/what/which/how/why)…| (can/could/would) you (/please /kindly"
        " )(provide/give/share/clarify/specify/rephrase/tell me/elaborate)…| please"
        " (provide/give/share/tell) (/me )(/with )(more/additional/further/some/any)… | please"
        " (clarify/specify/rephrase)…| I (/would )need (more/additional/further/to know)… | found"
        " (no/nothing)…| I (have no/found no/have not found any/do not have any) (/verified"
        " /reliable /confirmed /further /specific )(information/details/data/sources/records)…| I"
        " do not (believe/think) (this/that/it) has (/ever )been (made"
        " public/disclosed/published/announced/recorded)…| I do not think there is (enough/any)… |"
        " I have (/also )not been able to… | I (found/know) nothing…| I am (not familiar"
        " with/unfamiliar with/not aware of/unaware of)… | …cannot be"
        " (determined/answered/known/verified/confirmed/established)| …cannot be"
        " (determined/answered/known) (from/with/based on/using/without)…| it is (impossible/not"
        " possible) (to/for me to) (answer/say/tell/know/determine/establish/give/identify/be"
        " sure/be certain/verify/confirm/provide)…| it is (hard/difficult/tough) (to/for me to)"
        " (answer/say/tell/know/determine/be sure/be"
        " certain/give/verify/judge/provide/write/help/offer)… | (hard/difficult/tough) to"
        " (say/tell)…| (/the /these )(/search /provided"
        " )(passages/texts/references/documents/materials/sources/results/articles/excerpts/records)"
        " (do not/did not/never/provide no/contain no/give no/make no)…| (/the /this )(/provided"
        " )(passage/text/context/reference/document/article/source/result/excerpt/information)"
        " (does not/did not/never/provides no/contains no/gives no/makes no)…| the"
        " (provided/given/search/available)"
        " (passages/texts/documents/references/materials/context/text/information/results/sources)"
        " … (do not/does not)…| …(is/are/was/were) not"
        " (mentioned/stated/specified/given/provided/named/listed/included/identified/recorded/described/documented/available/discussed/covered/found/reported)"
        " (in/by/within/from) (the/any/this/these/my)…| …(is/are/was/were) not"
        " (mentioned/stated/specified/given/provided/named/listed/identified/recorded/documented/available/disclosed/public/confirmed/known"
        " to the public/public knowledge/recorded anywhere)| …(has/have) (not/never) been"
        " (disclosed/announced/made"
        " public/revealed/confirmed/released/published/determined/identified/established/recorded/documented)…|"
        " …(was/were/is/are) never (made"
        " public/disclosed/determined/identified/recorded/established/confirmed/revealed)…|"
        " …remains (a mystery/unclear/uncertain/undisclosed/unidentified/unconfirmed) | …(does/do)"
        " not appear in (the/any/these)…| (details/information/records/sources) … (is/are)"
        " (scarce/limited/sparse/lacking)…| it does not (say/specify/mention/state)… | (it is/this"
        " is/is) not (mentioned/stated/specified/given)…| none of (the/these/my) (/search /provided"
        " /given /available )(passages/documents/texts/references/sources/results/articles/above"
        " information/given/provided)…| neither (passage/text/source/document/article)… | neither"
        " of the (passages/texts/sources/documents)…| nothing in the (/provided /given"
        " )(passages/passage/text/texts/context/documents/sources)…| my"
        " (knowledge/training/training data/information) (does not/only/ends/is limited)…|"
        " …(beyond/outside/outside of) (my (knowledge/expertise)/what I know) | (/it /this )is not"
        " something (I/we/that)…| (/it /this )is something I do not… | …(beyond/outside) the scope"
        " of my knowledge| I would rather not (guess/say/answer/speculate/give/name)… | I would"
        " rather say (/that )I do not know… | I do not| I prefer not to (guess/say) | I would (only"
        " /)be (guessing/speculating)…| I (will not/do not want to/do not wish to)"
        " (guess/speculate/answer/mislead/make something up/make up/give a wrong/give you a"
        " wrong/(give/give you/provide/provide you with)"
        " (inaccurate/incorrect/wrong/false/misleading))… | I (refuse/decline/must decline/have to"
        " decline) to…| I (/must /have to /will )abstain… | beats me | (who/no one/nobody) knows |"
        " I wish I knew| (your/anyone's) guess is as good as mine | I am (stumped/at a loss/drawing"
        " a blank)… | I draw a blank…| (it /the name /)escapes me | not that I (know of/am"
        " aware of)"
    ),
    "zh": (
        "(我/)(不知道/不晓得/不清楚/不太清楚/不了解/不太了解/不确定/不太确定/不能确定/不记得/不懂/不认识)…"
        " | (我"
        "/)(无法/不能)(回答/确定/提供/判断/得知/确认/给出/作答/查证/查到/获取/验证/核实/得出/知道/考证/找到/知晓/肯定)…"
        "| (无从得知/无从知晓/无从查证/无从判断/不得而知/难以确定/难以回答)… |"
        " (我/)(说不准/答不上来/回答不了"
        "/想不起来/记不清/拿不准/不敢确定/不敢肯定)… | (很难说/不好说/天知道/鬼知道/谁知道呢)"
        "| (我/)没(有/)听说过… | (我/)没有(足够/足够的/相关/相关的/关于)… | (我/)没有 …"
        " (信息/资料/数据/答案) | (我"
        "/)对 … (不了解/不清楚/一无所知/不太了解) | (信息/资料)不足…"
        "| (我/)缺乏 … (信息/资料/知识)… | (没有人/没人/无人)知道… | (没有/未能/未/没)找到… |"
        " (我/)(查不到"
        "/找不到) … (信息/资料/答案)… | (我/)无法 … (得知/确定/判断/回答)…"
        "| (/在)(文中/原文/文章/材料/资料/公开资料/现有资料/上下文/文本/文本中/搜索结果/段落/文件/来源/史料)(中/)"
        "(没有/未/没)(提到/提及/说明/给出/提供/记载/显示/指出/包含/涉及/写明)…"
        "| (没有/尚无/暂无/缺乏/无)(/任何/足够的/足够/确切的/确切/可靠的/可靠/公开的/公开/相关/相关的/具体/具体的/官方"
        "/准确的/更多)"
        "(资料/信息/数据/记录/记载/史料/答案/报道/证据/说法/来源/消息)…"
        "| 尚(不清楚/不明确/未明确/无定论/未公开/未公布/未确认/不可知/不确定)…"
        "| …(不详/未知/不明/不明确/未公开/未公布/未披露/没有公开/从未公开/没有记载/未有记载/无从考证/无法考证/不为人知)"
        "| (请/请您/请你)(提供/补充/说明/明确/告知)(/更多/具体/详细/相关/一些/您/你)… | 请问(您/你)…"
        "| (您/你/)(能否/可以/能/可否)(/再/给我)(提供/告诉/说明/补充)… |"
        " (没有人/没人/无人)(知晓/清楚/能确定)… | (无人知晓"
        "/不得而知) | (毫无/没有)头绪 "
        "| 我不会 | 无可奉告 | (答案/)(未知/不详/不明/尚不清楚/尚不明确) | 没有答案"
        "| 超出了我的(知识/能力)…"
    ),
    "es": (
        "(/yo )no lo sé… | (/yo )no la sé… | (/yo )no sé | (/yo )no sabría…| (/yo )no sé"
        " (quién/cuál/dónde/cuándo/qué/cómo/si/nada/la"
        " respuesta/exactamente/responder/decirte/decirle)…| (nadie lo/no se/no lo/nunca se)"
        " (sabe/sabrá)… | no (estoy/me siento) (seguro/segura)…| no puedo"
        " (responder/contestar/proporcionar/decir/confirmar/determinar/dar/ofrecer/verificar/asegurar/saber/ayudar)…"
        " | no (podría/sabría) (decir/decirlo/decirte/responder)…| no tengo (/ni /la menor /ni la"
        " menor /ninguna /la más mínima )idea…| no tengo …"
        " (información/respuesta/datos/dato/constancia/conocimiento/certeza/acceso)…| no tengo"
        " (suficiente/esa)… | ni idea… | no conozco…| (lo desconozco/desconozco/se desconoce/lo"
        " ignoro/ignoro)…| (desconocido/desconocida/imposible saberlo/quién sabe/no consta) | …es"
        " (desconocida/desconocido)| no (dispongo de/cuento con)… | no (hay/existe)"
        " (información/suficiente/datos/constancia/ninguna información)…| no (/me /lo"
        " )(acuerdo/recuerdo)… | no se puede (saber/determinar/responder/decir)…| …no se"
        " (conoce/conocen/menciona/mencionan/indica/especifica/precisa/detalla/dice)…| no"
        " (encontré/encuentro/hallé/pude encontrar/he encontrado/he podido/logré encontrar/he"
        " logrado)…| …no (está/están) (disponible/disponibles/claro/clara/documentado/documentada)…"
        " | no queda claro…| …no (es/son) (de dominio"
        " público/pública/público/públicos/públicas/conocida/conocido)…| no me (es/resulta)"
        " posible… | no (sabemos/conocemos)… | nadie (/lo )sabe…| (ninguna/ningún) (/de las"
        " )(fuente/fuentes/documento/texto/pasaje/artículo/resultado)… | ninguno de los…| no"
        " (existe/existen/hay) (/suficiente /suficientes /ninguna /ningún"
        " )(información/informaciones/datos/registro/registros/fuente/fuentes/pruebas/evidencia/constancia)…|"
        " no (consta/aparece/figura) en (el/la/los/las)… | no"
        " (disponible/especificado/especificada/mencionado/indicado/conocido)| sin"
        " (información/datos/respuesta) | (podrías/podría/puedes/puede) (/usted"
        " )(darme/proporcionar/proporcionarme/aclarar/especificar/indicar/dar)… |"
        " (proporcione/proporciona/indique/aclare/dame/deme) (más/mayor)…| (necesito/necesitaría)"
        " (más/saber)… | …nunca (se ha hecho/ha sido/se hizo)"
        " (público/pública/revelado/revelada/confirmado/confirmada)… | (lamento/siento) no poder… |"
        " ignoramos…| (no es posible/es imposible)"
        " (saber/saberlo/decir/decirlo/determinar/determinarlo/responder)…| (no soy capaz/soy"
        " incapaz) de…| (el texto/el pasaje/el contexto/la información proporcionada/el documento)"
        " no…| (los pasajes/los textos/los documentos/los resultados/los artículos/las fuentes)"
        " (/de búsqueda /proporcionados /proporcionadas /disponibles )no… | la información"
        " (/proporcionada /disponible )no permite…| (esta/esa/la) información no está… | no estoy"
        " al tanto… | prefiero no (adivinar/responder)…"
    ),
    "de": (
        "(ich /)weiß (/ich )(/es /das /leider /auch /gar /wirklich )nicht… | das weiß ich (/auch"
        " )nicht…| (ich /)weiß nichts… | (mir /)(nicht bekannt/unbekannt) | …ist (mir"
        " /)(unbekannt/nicht bekannt)| (mir/es) ist … nicht bekannt… | (ich /)bin (mir /)(/da"
        " )(nicht sicher/unsicher)…| (da /ich )bin (ich /)überfragt | keine"
        " (Ahnung/Angabe/Angaben/Antwort/Information/Informationen/Daten)…| keine (/verlässliche"
        " /der /bekannte )(Quelle/Quellen) … (nennt/erwähnt/nennen/gibt/belegt)…| (keiner der/keine"
        " der/keines der) (Texte/Quellen/Dokumente/Abschnitte)…| ich (konnte/kann) …"
        " (keine/keinen/nichts) … (finden/entnehmen/ermitteln/sagen)…| ich (konnte/kann) … nicht"
        " (finden/ermitteln/bestätigen/bestimmen/herausfinden/verifizieren)…| …ist (/weiter )nichts"
        " bekannt… | …ist nicht (verfügbar/überliefert/angegeben/klar/öffentlich)…|"
        " …(wird/werden/wurde/wurden) … (nicht/nie)"
        " (erwähnt/genannt/angegeben/beschrieben/veröffentlicht/öffentlich"
        " gemacht/bekannt/gemacht)| …(wird/werden) nicht (erwähnt/genannt/angegeben)… | …nicht"
        " (beantwortet/bestimmt/ermittelt/festgestellt/geklärt) werden| es gibt … (keine/nicht"
        " genug/nicht genügend/nicht ausreichend/zu wenig) …"
        " (Information/Informationen/Quelle/Quellen/Angaben/Daten/Belege/Hinweise/Aufzeichnungen)…|"
        " mir (sind/ist) … (keine/nichts) … bekannt… | ich habe … nichts … gefunden | ich finde …"
        " (nichts/keine)…| (können/könnten/würden) Sie …"
        " (Kontext/Informationen/genauer/präzisieren/angeben)…| (kannst/könntest) du …"
        " (Kontext/Informationen/genauer/präzisieren/angeben)…| bitte …"
        " (mehr/weitere/genauere/nähere) (Informationen/Kontext/Angaben/Details)…| nicht"
        " (angegeben/verfügbar/genannt/erwähnt/überliefert) | das entzieht sich meiner… | da muss"
        " ich passen| …kann ich (/das /dies /es /dazu /die Frage /diese Frage )nicht"
        " (beantworten/sagen/bestätigen/beurteilen)…| (wir/Historiker/Forscher) wissen … nicht… |"
        " ich möchte keine (falsche/falschen/ungenaue)…| ich verfüge … nicht über…| (ich habe/habe"
        " ich) … (keine/keinen) …"
        " (Ahnung/Idee/Information/Informationen/Kenntnis/Kenntnisse/Angaben/Daten/Antwort/Wissen/Schimmer/Zugriff/Zugang/Hinweise)…"
        " | …geht … nicht hervor| (dazu/darüber/hierzu/davon/hiervon) habe ich … keine… | ich kenne"
        " … nicht| ich kann (das/es/dazu/diese Frage/die Frage/dir/Ihnen/das dir/hierzu/darauf) …"
        " (nicht/keine/nichts) … (beantworten/sagen/helfen/nennen/bestätigen/angeben/geben)… | ich"
        " kann … nicht (beantworten/sagen)| ich kann dazu (nichts/keine)…| (das/es/dies) kann ich …"
        " nicht (/genau /sicher )(beantworten/sagen/bestätigen/beurteilen)…| (/dazu /darüber"
        " /hierzu )liegen mir … keine… | mir (liegen/liegt) … keine…| (das/es) lässt sich … nicht"
        " (sagen/feststellen/bestimmen/beantworten)… | unklar | (das/es) ist (mir /)unklar…|"
        " niemand weiß… | wer weiß | ich kann mich nicht (/daran )erinnern… | ich erinnere mich"
        " nicht… | ich verfüge über keine…| es ist (nicht möglich/unmöglich)…| (der Text/der"
        " Abschnitt/der Kontext/der Artikel/das Dokument/die Quelle)"
        " (enthält/sagt/nennt/erwähnt/liefert/macht/gibt) (/dazu /darüber /hierzu /es /das"
        " )(keine/keinen/nicht/nichts)…| die"
        " (Texte/Abschnitte/Dokumente/Quellen/Ergebnisse/Suchergebnisse/Informationen)"
        " (enthalten/sagen/nennen/erwähnen/liefern/machen/geben) (/dazu /darüber /hierzu /es /das"
        " )(keine/keinen/nicht/nichts)…"
    ),
    "fr": (
        "je (ne /n'en /ne le /)sais (pas/rien)… | je n'en (sais rien/ai aucune)… | je l'ignore… |"
        " j'ignore…| je ne suis pas (sûr/sûre/certain/certaine/en mesure/capable/au courant)… | je"
        " suis incapable de…| je ne saurais… | je ne (connais/dispose/possède/me souviens/me"
        " rappelle/trouve) pas…| je ne peux pas"
        " (répondre/dire/confirmer/fournir/donner/déterminer/vous aider)…| je n'ai (pas/aucune) …"
        " (information/informations/d'information/d'informations/réponse/donnée/données/connaissance/idée)…"
        " | je n'ai pas (la/cette/assez)… | aucune (idée/information)…| (inconnu/inconnue/sans"
        " réponse/qui sait/allez savoir) | …est (inconnue/inconnu) | …m'est (inconnue/inconnu)|"
        " m'est (inconnue/inconnu) | (on ne sait pas/on l'ignore/personne ne sait/nul ne sait)…|"
        " (il est impossible/impossible/il n'est pas possible) de (répondre/le dire/dire/savoir/le"
        " savoir/déterminer/le déterminer)… | il n'y a (pas/aucune) …"
        " (information/informations/d'information/d'informations)…| (le texte/le passage/le"
        " contexte/le document/l'article/la source) (/fourni )ne…| les"
        " (textes/passages/documents/sources/résultats/extraits/articles/informations) (/fournis"
        " /fournies /disponibles )(/de recherche )ne…| …n'est pas"
        " (connu/connue/précisé/précisée/mentionné/mentionnée/indiqué/indiquée/disponible/publique/public/documenté/documentée/accessible/spécifié/spécifiée)(/"
        " du public/ publiquement/ avec certitude)| …n'est pas"
        " (mentionné/mentionnée/précisé/précisée/indiqué/indiquée/donné/donnée) dans…| …n'a"
        " (jamais/pas) été"
        " (rendu/rendue/révélé/révélée/divulgué/divulguée/confirmé/confirmée/communiqué/communiquée)…|"
        " je n'ai (trouvé aucun/trouvé aucune/pas trouvé/pas pu/rien trouvé/pu trouver aucun/pu"
        " trouver aucune/pas accès/pas connaissance/aucune connaissance/jamais entendu)…| je ne"
        " (trouve/dispose) (aucun/aucune/d'aucun/d'aucune/rien)… | je préfère ne pas…| je ne peux"
        " pas (/vous /le /la /te /l')(dire/confirmer/donner/fournir/aider/répondre/vérifier)…| il"
        " n'(existe/y a) (pas/aucun/aucune) …"
        " (information/informations/source/sources/donnée/données/trace/document/documents)…|"
        " (aucune/aucun)"
        " (source/donnée/données/document/documents/texte/passage/résultat/mention/réponse)…| on"
        " (ignore/ne peut pas/ne connaît pas)… | nous (ne savons pas/ignorons/ne connaissons pas)…"
        " | personne ne sait…| on ne sait pas… | (pourriez/pouvez)-vous …"
        " (préciser/donner/fournir/clarifier)… | merci de (fournir/préciser/donner)…|"
        " (pourrais/peux)-tu … (préciser/donner/fournir/clarifier)… | il me (faudrait/faut)"
        " (plus/davantage)…| veuillez (fournir/préciser)… | non"
        " (précisé/précisée/disponible/mentionné/spécifié/communiqué/indiqué)| j'aurais besoin de…"
        " | (cette/l')information (n'est/ne)…"
    ),
    "l2": "mi ne vedu… | mi ne sabo…",
}

_INVALID = {
    "en": (
        "invalid question | (this/it) is an invalid question | …question is (invalid/not valid)"
        "| …false (premise/assumption) | …false (premise/assumption) (of/that)…"
        "| …premise (/of the question /of this question )is (false/wrong/incorrect)"
    ),
    "zh": "无效(/的)问题 | …问题(/是)无效(/的) | …错误的前提… | …前提(/是)错误(/的)",
    "es": "pregunta inválida | …pregunta (no es válida/es inválida) | …premisa (falsa/es falsa)",
    "de": "ungültige Frage | …Frage ist ungültig | …falschen (Annahme/Voraussetzung)",
    "fr": "question invalide | …question est invalide | …prémisse (est /)fausse | …fausse prémisse",
    "l2": "kesto falsa…",
}


ABSTENTIONS = {
    language: tuple(map(str.strip, phrases.split("|")))
    for language, phrases in _ABSTENTIONS.items()
}
INVALID = {
    language: tuple(map(str.strip, phrases.split("|"))) for language, phrases in _INVALID.items()
}


def forms(phrase: str) -> list[str]:
    """A phrase in all its forms: "(a/b) c" is "a c" and "b c"; brackets may hold brackets."""
    if not (inner := re.search(r"\(([^()]*)\)", phrase)):
        return [" ".join(phrase.split())]
    each = (
        f"{phrase[: inner.start()]}{form}{phrase[inner.end() :]}" for form in inner[1].split("/")
    )
    return [whole for form in each for whole in forms(form)]


def finder(phrases: Iterable[str], follow: str) -> Find:
    """What finds the phrase that a clause begins with at a place, in canonical text in small
    letters; `follow` may come after a phrase that ends in "…". Only those phrases are tried that
    can begin with the sign at the place."""
    # by the first sign, "" for any; each compiled when it is first needed
    groups: dict[str, list[str]] = defaultdict(list)
    # those that begin with "…", by whether a Latin script writes them
    scans: dict[bool, list[str]] = {True: [], False: []}
    for phrase in phrases:
        made = _compiled(phrase, follow)
        if phrase.startswith("…"):
            scans[made.isascii()].append(made)
        else:
            for sign in _initials(canonical(phrase.split("…")[0]).strip().lower()):
                groups[sign].append(made)
    latin = _joined([rf"[^,]*?(?<!\w)(?:{'|'.join(scans[True])})"] * bool(scans[True]))
    other = _joined([rf"[^,]*?(?:{'|'.join(scans[False])})"] * bool(scans[False]))
    begins = cache(lambda sign: _joined(groups.get(sign, [])))

    def find(text: str, at: int) -> re.Match[str] | None:
        tried = (begins(text[at : at + 1]), begins(""), latin, None if text.isascii() else other)
        return next((match for form in tried if form and (match := form.match(text, at))), None)

    return find


def _joined(patterns: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(patterns)) if patterns else None


def _initials(part: str) -> set[str]:
    """The signs that a phrase can begin with; "" if that cannot be said."""
    found: set[str] = set()
    while part:
        if part[0] != "(":
            return found | {part[0]}
        depth, end = 1, 1
        while depth and end < len(part):
            depth += (part[end] == "(") - (part[end] == ")")
            end += 1
        forms_of = _options(part[1 : end - 1])
        found |= {sign for form in forms_of if form for sign in _initials(form)}
        if depth or "" in found:
            return {""}
        if "" not in forms_of:
            return found
        part = part[end:].lstrip()
    return {""}


def _options(inner: str) -> list[str]:
    """What stands between the slashes of a bracket, brackets in it left whole."""
    options, depth = [""], 0
    for sign in inner:
        depth += (sign == "(") - (sign == ")")
        if sign == "/" and not depth:
            options.append("")
        else:
            options[-1] += sign
    return options


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
