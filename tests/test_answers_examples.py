"""Single answers and refusals of chat models that rules once read wrongly, one by one."""

from __future__ import annotations

import pytest

from workbench.answers import is_abstention, matches

RIGHT = [  # answer, gold answer, question
    ("Great question! The answer is Paris.", "Paris", "What is the capital of France?"),
    ("1. Paris", "Paris", "What is the capital of France?"),
    (
        "Paris. Let me know if you have any other questions!",
        "Paris",
        "What is the capital of France?",
    ),
    ("Sure! The capital of France is Paris.", "Paris", "What is the capital of France?"),
    ("Sure! Paris", "Paris", "What is the capital of France?"),
    ("Paris, France", "Paris", "What is the capital of France?"),
    (
        '"Boot Scootin\' Boogie" was sung by Brooks & Dunn.',
        "Brooks & Dunn",
        'Who sang "Boot Scootin\' Boogie"?',
    ),
    ("It was sung by Brooks & Dunn.", "Brooks & Dunn", 'Who sang "Boot Scootin\' Boogie"?'),
    ("13 March 624 CE", "13 March 624", "When was the Battle of Badr?"),
    (
        "Southend Pier, located in Southend-on-Sea, Essex.",
        "Southend Pier",
        "What is the longest pleasure pier in the world?",
    ),
    ("Lori McKenna, an American singer", "Lori McKenna", "Who wrote it?"),
    ("John Fitzgerald Kennedy", "John F. Kennedy", "Who was president?"),
    ("Sir Alexander Fleming", "Alexander Fleming", "Who discovered it?"),
    ("Bill Gates", "William Gates", "Who founded it?"),
    ("42", "42 episodes", "How many episodes are there?"),
    ("William Shakespear", "William Shakespeare", "Who wrote it?"),
]
WRONG = [
    ("Lyon and Paris are the capital of France.", "Paris", "What is the capital of France?"),
    ("The capital is Lyon, formerly Paris.", "Paris", "What is the capital of France?"),
    ("The capital is Lyon (some say Paris)", "Paris", "What is the capital of France?"),
    ("Paris is Lyon (some say Paris)", "Paris", "What is the capital of France?"),
    ("before 1921", "1921", "When was it?"),
    ("from 1920 to 1921", "1921", "When was it?"),
]
DECLINES = """
The search results do not provide any information about her birthplace.
No reliable sources mention the name of his wife.
It is not publicly known
It is not publicly known who built it.
This information is not available.
N/A
Could you provide more context?
I'm sorry
I'm sorry.
I don't know his name, his age, or his birthplace.
I could not find any letters, diaries, or records that name him.
目前没有公开资料显示他的出生地。
这个问题我无法确定
这个问题我无法确定。
Ich konnte keine Angaben zu ihrem Geburtsort finden.
se desconoce
Se desconoce su lugar de nacimiento.
no encontré
No encontré información sobre ella.
Je n'ai trouvé aucune information sur elle.
Je n'ai trouvé aucune
Son lieu de naissance n'est pas connu du public.
n'est pas connu du public
I have no record of anybody with that name. Without more details, it's difficult for me to provide a complete bio.
Without further context, it is hard for me to write about her.
It's difficult to give an answer without more details. Can you provide any additional information about who she is?
""".strip().splitlines()
ANSWERS = """
The context suggests Paris, although it is not definitive.
The context suggests that she was born in Oslo, but this is not definitive.
The provided search result is not about Toma Ardel. Instead, it is about Dana Imber, a former minister.
Without Oslo, it is difficult to give a complete list of the capitals: it is Bergen.
It is hard to provide more than this: Oslo.
""".strip().splitlines()


@pytest.mark.parametrize(("answer", "gold", "question"), RIGHT)
def test_right_answers_in_the_style_of_chat_models(answer: str, gold: str, question: str) -> None:
    assert matches(answer, [gold], question=question)


@pytest.mark.parametrize(("answer", "gold", "question"), WRONG)
def test_wrong_answers_that_name_the_right_one(answer: str, gold: str, question: str) -> None:
    assert not matches(answer, [gold], question=question)


@pytest.mark.parametrize("text", DECLINES)
def test_refusals_of_chat_models(text: str) -> None:
    assert is_abstention(text)


@pytest.mark.parametrize("text", ANSWERS)
def test_reserve_is_no_refusal(text: str) -> None:
    assert not is_abstention(text)
