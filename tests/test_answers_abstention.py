"""Abstention in the words that models use, in five languages, and what only looks like it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.answers import INVALID_QUESTION, final_answer, is_abstention, is_invalid, matches

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
I'd rather not guess.
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
idk
IDK.
dunno
I dunno, sorry.
I know nothing about Toma Ardel.
I know nothing of him.
Hard to say.
It's hard to say.
It is difficult to say.
Not sure.
Unsure
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
不详
答案不详。
没有人知道。
无可奉告
我暂时不知道
恐怕我不知道
Lo siento, no lo sé.
No tengo esa información.
No dispongo de información sobre Toma Ardel.
No sabría decirlo.
No sabría decirte.
La respuesta es desconocida.
No se sabe.
No hay información suficiente.
No puedo contestar esa pregunta.
No puedo proporcionar esa información.
No recuerdo.
No conozco la respuesta.
Yo no lo sé.
Lo desconozco.
Das weiß ich leider nicht.
Ich weiß es leider nicht.
Leider weiß ich das nicht.
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
Je l'ignore.
J’ignore la réponse.
La réponse est inconnue.
On ne sait pas.
Je ne connais pas la réponse.
Je n’ai pas la réponse.
Je ne dispose pas de cette information.
Je n'en sais rien.
Je n'en ai aucune idée.
Je ne peux pas répondre à cette question.
Je ne suis pas en mesure de répondre.
Aucune information disponible.
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
    assert is_invalid("This question rests on a false premise.") and is_invalid(rf"\boxed{{{INVALID_QUESTION}}}")
    assert not is_invalid("invalid question, Paris") and not is_invalid("") and not is_invalid("I don't know")


def test_gold_answers_of_real_questions_are_no_abstentions(slices: Path) -> None:
    rows = json.loads((slices / "selfaware" / "SelfAware.json").read_text(encoding="utf-8"))["example"]
    answers = [answer for row in rows if row["answerable"] for answer in row["answer"]]
    assert len(answers) > 500 and [answer for answer in answers if is_abstention(answer)] == []
    declined = [f"I'm sorry, but I don't know. {row['question']}" for row in rows]  # some tell a story before they ask
    assert sum(map(is_abstention, declined)) > 0.9 * len(declined)
