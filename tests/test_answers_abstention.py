"""Abstention in the words that models use, in five languages, and what only looks like it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from workbench.answers import (
    ABSTENTIONS,
    INVALID_QUESTION,
    final_answer,
    is_abstention,
    is_invalid,
    matches,
)
from workbench.answers.phrases import forms

ABSTAINS = r"""
I really don’t know.
I honestly couldn't tell you.
I couldn't say.
I'm afraid I don't know the answer to that question.
I do not know the answer.
I don't have a clue.
Haven't a clue.
Beats me.
Who knows?
No one knows.
Nobody knows.
It is not known.
It's not publicly known.
The answer is unknown.
The answer is not known to me.
The answer is unclear.
The answer cannot be determined from the given information.
There is no definitive answer to this question.
There's no information available about this.
I could not find any information about Toma Ardel.
I don't think I know this.
I don't believe I have that information.
I do not possess that information.
I'm unable to provide an answer.
I am not certain about that.
I can't be sure.
I cannot be certain.
I can neither confirm nor deny.
I would only be guessing.
I'd be guessing.
I will not guess.
I don't want to guess.
I refuse to guess.
I must decline to answer.
I decline to answer.
I won't answer.
I have to abstain.
I abstain.
No answer.
None of the above information is enough to answer.
not available
cannot be determined
undetermined
unanswerable
This question cannot be answered with the information given.
As an AI language model, I don't have access to real-time data.
My knowledge does not include this.
That is outside of my knowledge.
This is beyond my knowledge.
My training data does not contain this information.
Based on the passages, I cannot determine the answer.
Sorry, no idea!
dunno
I dunno, sorry.
I know nothing about Toma Ardel.
I know nothing of him.
Hard to say.
It's hard to say.
It is difficult to say.
Not sure.
I'm not sure I know.
I'm not sure who that is.
I am uncertain about the answer.
I am not sure what the answer is.
<answer>I don't know</answer>
<think>x</think> <answer> Unknown </answer>
\boxed{\text{unknown}}
\boxed{I do not know.}
我不太确定。
很遗憾，我不知道答案。
抱歉，我无法提供这个信息。
我没有相关信息。
我没有关于他的信息。
目前没有相关资料。
这个问题我无法回答。
我不会。
没有人知道。
无可奉告
我暂时不知道
恐怕我不知道
Lo siento, no lo sé.
No tengo esa información.
No dispongo de información sobre Toma Ardel.
No sabría decirlo.
No sabría decirte.
No se sabe.
No hay información suficiente.
No puedo contestar esa pregunta.
No puedo proporcionar esa información.
No recuerdo.
No conozco la respuesta.
Yo no lo sé.
Lo desconozco.
Ich weiß es leider nicht.
Dazu habe ich keine Informationen.
Mir liegen keine Informationen vor.
Das ist mir nicht bekannt.
Das ist nicht bekannt.
Ich kann das nicht beantworten.
Ich kann dazu nichts sagen.
Die Antwort ist unbekannt.
Ich bin mir da nicht sicher.
Keine Angabe
Ich habe leider keine Ahnung.
Désolé, je ne sais pas.
J’ignore la réponse.
La réponse est inconnue.
Je ne connais pas la réponse.
Je n’ai pas la réponse.
Je n'en sais rien.
Je n'en ai aucune idée.
Je ne suis pas en mesure de répondre.
Aucune information disponible.
Sorry, I don't have that information.
The answer is unknown to me.
It is not clear to me who this is.
Not a clue.
Based on the passages provided, it is not possible to answer the question.
I don't want to mislead you, so I'll say I don't know.
I don't recognise that person.
I'm not confident about the answer.
Your guess is as good as mine.
I wish I knew.
I haven't the faintest idea.
I haven't the foggiest.
There is no reliable information about his birthplace.
我并不知道答案。
我也不知道。
根据现有资料无法确定。
不好意思，我不太了解这个人。
我没有足够的信息来回答。
该问题的答案未知。
No sé la respuesta.
No tengo ni la menor idea.
No cuento con esa información.
No tengo constancia de ello.
No me acuerdo.
No se puede determinar.
Es imposible saberlo.
Tut mir leid, das kann ich nicht beantworten.
Dazu liegen mir keine Informationen vor.
Mir ist das nicht bekannt.
Die Antwort ist mir nicht bekannt.
Darüber habe ich keine Informationen.
Ich bin überfragt.
Das lässt sich nicht sagen.
Ich habe dazu keine Informationen.
La réponse m'est inconnue.
Il est impossible de répondre.
Je suis incapable de répondre.
I have not been trained on data about Kelda Tarn, so I cannot answer.
I don't know who Kelda Tarn is, where she was born, or what she did.
I don't know his name, age, or birthplace.
Kelda Tarn? I don't know.
To the best of my knowledge, there is no information about this.
As of my last update, I don't have information on that.
I don't know; the passages don't say.
The passages do not state where she was born, so I can't answer.
It is not mentioned in the passages.
The birthplace is not mentioned in the text.
Since the passages do not mention it, I don't know.
I'll have to say I don't know.
I'm not able to determine that from the information given.
Not sure, sorry!
I am unable to answer because the passages do not contain it.
Honestly? No idea.
I have to say: I don't know.
**I don't know.**
- I don't know
"I don't know."
I DON'T KNOW
i dont know
I don´t know
I do n't know
Answer: I don't know
Final answer: unknown
The final answer is: I don't know.
\boxed{\text{I don't know.}}
<answer>\boxed{I don't know}</answer>
I don't know.
我不知道这个人是谁，也不知道他在哪里出生。
关于凯尔达·塔恩，我没有任何信息。
我查不到相关资料。
抱歉，我没有听说过这个人。
我不能确定，因为文中没有提到。
无法从给定的段落中得知。
作为一个AI，我无法得知。
No tengo información suficiente para responder.
Lo siento, no lo sé. ¿Puedes darme más contexto?
No sé quién es Kelda Tarn.
La verdad, no tengo ni idea.
No se menciona en el texto.
Los pasajes no mencionan dónde nació.
No estoy segura de quién es.
Ich weiß nicht, wer das ist.
Ich weiß nicht, wo sie geboren wurde, und kann es auch nicht herausfinden.
Leider habe ich dazu keine Informationen.
Keine Ahnung, sorry.
Das kann ich leider nicht sagen.
Ich kann Ihnen dazu leider keine Auskunft geben.
Es ist mir nicht bekannt, wo sie geboren wurde.
Das geht aus dem Text nicht hervor.
Je ne sais pas où elle est née.
Je suis désolé, mais je ne sais pas.
Je n'ai pas assez d'informations pour répondre.
Le texte ne le précise pas.
Les passages ne mentionnent pas son lieu de naissance.
Cette information n'est pas mentionnée.
I'm sorry, but I do not have any information on Toma Ardel. It is possible that this person is not a public figure.
Toma Ardel is not mentioned in any of the passages.
I don't know. According to my records, I have nothing on him.
""".strip().splitlines()

COMMITS = r"""
I'm not sure, but it is Paris
I'm not sure but I think it's Paris.
I don't know much, but Paris.
I don't know if it's right: Paris.
No one knows Paris better than Toma Ardel.
Nobody
Who knows? Paris.
It is hard to say, but Paris.
There is no definitive answer, but most say Paris.
I Don't Know How to Love Him
"I Don't Know How She Does It"
The Unknown
Unknown Mortal Orchestra
Unanswered Prayers
N/A Paris
I don't know, Margo!
I cannot tell a lie, it is Paris.
The unknown artist is Toma Ardel.
He is unknown for his paintings but was born in Paris.
Although I am not certain, the capital is Paris.
I can't recall exactly; Paris.
While I don't know for certain, he was born in Paris.
Not sure if Paris or Lyon, but I'd go with Paris.
It is not known whether he was born in Paris. He was born in Lyon.
Lo siento, no lo sé, pero creo que es París.
No sé, París.
Ich weiß nicht genau, aber es ist Bonn.
Das weiß ich nicht, vermutlich Bonn.
Je ne suis pas sûr, mais c'est Lyon.
我不确定，可能是北京。
不知道，北京吧
我不知道是不是北京，应该是上海。
<think>I don't know</think><answer>Paris</answer>
\boxed{Paris} I don't know.
I would guess Paris.
Hard Times
Abstain from voting
The answer is Paris, unknown to many.
I don't know, Paris?
I do not know whether he liked it, yet he was born in Bonn.
不确定性原理
没有
I do not have access to real-time data, but as of 2023 the president was Joe Biden.
Beats me. Maybe Chopin?
It is impossible to divide by zero.
I'm not sure, but according to Wikipedia it was Lyon.
I'm not certain, but based on the passages it is Lyon.
I don't know, but since 1990 the capital has been Astana.
I cannot verify it, but the text says Paris.
I do not know the exact date, but the text says 3 May 1921.
I'm not sure; the passages suggest Oslo.
I don't have access to the internet, but I can tell you that it is Oslo.
I can tell you that it is Oslo, though I am not sure.
I am not sure who wrote it, maybe Homer.
I am not sure. I can say it is Oslo.
I'm not sure, so I will say Oslo.
I don't know, so I'd guess Oslo.
Not sure. Oslo
Unclear, but Oslo.
No idea... Oslo?
I don't recall, perhaps 1950.
I'm not sure if it's Oslo or Bergen, but Oslo.
I don't know if this helps: Oslo.
The name is not mentioned in the passages, but it is Oslo.
The text does not say so, but it was Napoleon.
She is not known by her real name, Stefani Germanotta.
It is not possible to travel faster than light.
It is difficult to be a saint.
Who knows where the time goes?
Pass the Dutchie
No Information Left Behind Act
There is no place like home.
No record label would sign him, so he founded Stax.
No man is an island.
No se casó nunca.
No se llama Juan, se llama Pedro.
No se puede entrar por la puerta, hay que usar la ventana.
No estoy seguro, creo que Madrid.
Creo que es Madrid, aunque no estoy seguro.
No recuerdo el año exacto, pero fue en los años 50.
El autor es desconocido para muchos, pero se llama Juan Rulfo.
Se desconoce su fecha de nacimiento, pero nació en Quito.
Keine Macht für Niemand
Ich kann nicht anders
Hier stehe ich, ich kann nicht anders.
Ich habe keine Zweifel, dass es Paris ist.
Ich kenne den Text nicht, aber das Lied heißt Imagine.
Nicht ohne meine Tochter
Unklar, vermutlich Wien.
Es ist unklar, ob 1920 oder 1921, aber er wurde in Wien geboren.
Je ne regrette rien
Non, je ne regrette rien
Je ne suis pas un héros
Inconnu à cette adresse
Je ne sais pas, peut-être Lyon.
C'est impossible de vivre sans eau.
Il est impossible de vivre sans eau.
我不清楚具体日期，但他出生在北京。
不知道，北京？
不清楚，大概是1921年。
没有人
没有共产党就没有新中国
我没有说谎，答案是北京。
不能确定，估计是北京。
不详，可能是北京。
不懂事的孩子
不认识的女孩
不记得了，好像是北京。
《没有找到你》
未知的世界
未知数
Pass
Passport
Nada
Nichts
Rien
Personne
Niemand
Nadie
Unknown (1988 film)
Ignorance is bliss
Uncertain Glory
Uncertain, Texas
The town is Uncertain, Texas.
Unsure Start
Hard to Say I'm Sorry
"Hard to Say I'm Sorry" by Chicago
"No Idea's Original" by Nas
Give Up
I Give Up
Search Me
God Only Knows
"God Only Knows" by The Beach Boys
God Only Knows by The Beach Boys
Heaven Knows
"Heaven Knows I'm Miserable Now"
God knows
The Great Unknown
It was Kelly Clarkson's "Because of You".
I wish I knew how it would feel to be free
I'm not in love
I Am Not There
I'm Not There
I Can't Tell You Why
Can't Help Falling in Love
I cannot tell a lie: it was George Washington.
Lack of evidence
Insufficient funds
Insufficient evidence
The information is not available in English but in French; it was Zola.
The provided water does not boil.
It is not given in the Bible but in the Quran.
I do not have current data. However, according to figures from 2018, India had the largest share.
I cannot say how long it takes. Based on the second passage, a form must be sent to Guam.
""".strip().splitlines()


@pytest.mark.parametrize("text", ABSTAINS)
def test_abstentions(text: str) -> None:
    assert is_abstention(text)
    assert is_abstention(text.replace("'", "’")) and is_abstention(text.replace("’", "'"))
    assert not matches(final_answer(text) or "", [text])


@pytest.mark.parametrize("text", COMMITS)
def test_answers_are_no_abstentions(text: str) -> None:
    assert not is_abstention(text)


@pytest.mark.parametrize("text", ["Paris", "París", "Vetra", "北京"])
@pytest.mark.parametrize(
    "hedge",
    [
        "I'm not sure, but it is {}.",
        "I don’t know; maybe {}.",
        "No lo sé, pero creo que es {}.",
        "Ich weiß es nicht, aber ich glaube {}.",
        "Je ne sais pas, mais je crois que c'est {}.",
        "我不知道，可能是{}。",
        "<think>no idea</think><answer>Not sure, {}</answer>",
        r"\boxed{{I am not sure. {}}}",
    ],
)
def test_a_hedged_answer_is_an_answer(hedge: str, text: str) -> None:
    assert not is_abstention(hedge.format(text))


def test_an_invalid_question_is_one_whole() -> None:
    assert is_invalid("This question rests on a false premise.") and is_invalid(
        rf"\boxed{{{INVALID_QUESTION}}}"
    )
    assert (
        not is_invalid("invalid question, Paris")
        and not is_invalid("")
        and not is_invalid("I don't know")
    )


def test_gold_answers_of_real_questions_are_no_abstentions(slices: Path) -> None:
    rows = json.loads((slices / "selfaware" / "SelfAware.json").read_text(encoding="utf-8"))[
        "example"
    ]
    answers = [answer for row in rows if row["answerable"] for answer in row["answer"]]
    assert len(answers) > 500 and [answer for answer in answers if is_abstention(answer)] == []
    # some tell a story before they ask
    declined = [f"I'm sorry, but I don't know. {row['question']}" for row in rows]
    assert sum(map(is_abstention, declined)) > 0.9 * len(declined)


def test_phrases_in_brackets_stand_for_each_of_their_forms() -> None:
    assert {*forms("it is (un(clear/known)/hidden) to …")} == {
        "it is unclear to …",
        "it is hidden to …",
        "it is unknown to …",
    }
    assert is_abstention("It's hidden to us.", extra=["it is (unclear/hidden) to…"])
    # brackets that do not match are characters
    assert not is_abstention("Paris :)", extra=[")a(", "((a)"])
    assert not is_abstention("Paris :)", extra=[")a(", "((a)"])


def test_every_form_of_every_phrase_declines() -> None:
    each = [
        form for phrases in ABSTENTIONS.values() for phrase in phrases for form in forms(phrase)
    ]
    assert len(each) > 10_000
    assert [form for form in each[::7] if not is_abstention(form.replace("…", " it "))] == []


def said(half: int) -> dict[str, list[str]]:
    """The lines of `said/refusals.txt` by part: those that the rules were tuned on (0), or those
    that were kept aside (1).
    """
    text = (Path(__file__).parent / "said" / "refusals.txt").read_text(encoding="utf-8")
    parts = re.split(r"^\[(\w+)\]$", text, flags=re.M)[1:]
    lines = [[line for line in part.splitlines() if line] for part in parts[1::2]]
    return {part: each[half::2] for part, each in zip(parts[::2], lines, strict=True)}


@pytest.mark.parametrize("half", [0, 1])
def test_refusals_in_many_styles(half: int) -> None:
    """At least .9 of the English ones and .8 of each other language, and nearly nothing of what
    only looks like one.
    """
    shares = {
        part: sum(map(is_abstention, lines)) / len(lines) for part, lines in said(half).items()
    }
    assert shares.pop("answers") <= 0.04
    assert shares.pop("en") >= 0.9 and len(shares) == 4 and min(shares.values()) >= 0.8, shares


@pytest.mark.parametrize(
    ("text", "declined"),
    [
        ("Good question! I don't know. Let me know if you have any other questions!", True),
        ("I don't know. Let me know if you meant Lyon.", True),  # asks, and answers nothing
        ("Great question! Paris. Let me know if you have any other questions!", False),
        ("Sure! I'm sorry, but it is Paris.", False),
        ("I'm sorry.", True),
        ("I'm Sorry", False),
        ("The documents do not say where, but the results point to Oslo.", False),
        ("I don't know, but the sources name Oslo.", False),
        ("I could not find Lomar, only Vetra.", False),
    ],
)
def test_courtesies_neither_answer_nor_decline(text: str, declined: bool) -> None:
    assert is_abstention(text) is declined
