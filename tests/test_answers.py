"""Final answers, abstention and matching, on hand-made cases, on generated ones and on
human-labelled answers.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.answers import INVALID_QUESTION, final_answer, is_abstention, matches, normalise


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Vetra", "Vetra"),
        (r"<think>Lomar?</think> \boxed{Vetra}", "Vetra"),
        (r"\boxed{Lomar}, no: \boxed{Vetra}", "Vetra"),
        (r"\boxed{\text{Vetra} {and} \frac{1}{2}}", r"\text{Vetra} {and} \frac{1}{2}"),
        (r"\boxed{a set \{1, 2\}}", r"a set \{1, 2\}"),
        (r"\boxed{Vetra} and then \boxed{Lom", "Vetra"),
        (r"\boxed {Vetra}", "Vetra"),
        (r"<think>\boxed{Lomar}</think> Vetra", "Vetra"),
        (r"<think>x</think><answer>the box: \boxed{Vetra}</answer>", "Vetra"),
        ("<think>x</think><answer> Vetra </answer>", "Vetra"),
        ("<answer>Vetra", "Vetra"),
        ("<answer>Lomar</answer><answer>Vetra</answer> done", "Vetra"),
        ("reasoning that the prompt opened</think>Vetra", "Vetra"),
        ("<THINK>x</THINK>\n<Answer>Vetra</Answer>", "Vetra"),
        (r"<think>\boxed{Vetra}", None),
        ("<think>a</think>Vetra<think>b", None),
        ("<think>x</think>  ", None),
        (r"\boxed{ }", None),
        ("<answer></answer>", None),
        ("", None),
    ],
)
def test_final_answer(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer


def test_a_required_box_accepts_nothing_else() -> None:
    assert final_answer("<answer>Vetra</answer>", require_box=True) is None
    assert final_answer(r"<think>x</think>\boxed{Vetra}", require_box=True) == "Vetra"
    assert final_answer(r"\boxed{Vetra", require_box=True) is None


ABSTAINS = r"""
I don't know
I don’t know
I DON'T   KNOW!!
i dont know
I do not know.
**I don't know**
"I don't know."
I am not sure.
I'm not completely sure about this.
unknown
The answer is unknown.
It is unknown.
His birthplace is unknown.
I cannot answer
Sorry, I can't answer that.
As an AI, I cannot answer this.
I have no information about X
I have no information about Toma Ardel.
not enough information
I'm sorry, but I don't have enough information to answer this question accurately.
Unfortunately, I do not know the answer to this question.
I guess I don't know.
Answer: I don't know
I don't know, because the passages do not say.
I don't know. I would need more information.
His birthplace? I don't know.
I'm not sure whether it is Vetra, Lomar or Kessin.
I do not know who Toma Ardel is.
I do not know who Toma Ardel, the painter, is.
I do not know who J. K. Rowling is.
I do not know Toma Ardel.
I have never heard of Toma Ardel.
It is impossible to say.
\boxed{I don't know}
<think>It may be Vetra.</think> \boxed{\text{I don’t know}}
<think>Vetra?</think><answer>I don't know.</answer>
我不知道。
对不起，我不知道他是谁。
无法确定
No lo sé.
no sé
NO ESTOY SEGURO.
Ich weiß nicht, wer das ist.
Ich kann diese Frage nicht beantworten.
Keine Ahnung.
Je ne sais pas.
Je n'ai pas d'information sur Toma Ardel.
Mi ne vedu.
mi ne sabo
Mi ne vedu ke ta Toma Ardel.
""".strip().splitlines()

COMMITS = r"""
Vetra
Vetra?
I know that it is Vetra.
I don't know. Vetra
Vetra. I don't know.
I don't know, Vetra
I don't know: Vetra
I'm not sure, but it is Paris
I'm not sure, Paris
I'm not sure about it, Paris.
I'm not sure. Maybe Paris.
I don't know for certain, but I think Paris
I do not know it is probably Paris
I can't say for sure; my best guess is Paris.
Don't know what to say? Paris
The Unknown Soldier
Unknown Pleasures
The Tomb of the Unknown Soldier is in Paris, his name is unknown.
I am sure.
no
invalid question
我不知道，但我觉得是北京。
Je ne sais pas, mais je pense que c'est Paris.
Ich weiß nicht, aber vielleicht Paris.
Mi ne vedu. Vetra.
<think>I don't know.</think> Vetra
<think>I don't know
\boxed{}
""".strip().splitlines()


@pytest.mark.parametrize("text", ABSTAINS)
def test_abstentions(text: str) -> None:
    assert is_abstention(text)


@pytest.mark.parametrize("text", [*COMMITS, "", "  "])
def test_answers_are_no_abstentions(text: str) -> None:
    assert not is_abstention(text)


def test_extra_phrases() -> None:
    assert not is_abstention("Zu neska.")
    assert is_abstention("Zu neska.", ["zu neska"])
    assert is_abstention("Zu neska ko Toma.", ["zu neska…"])
    assert not is_abstention("Zu neska ko Toma.", ["zu neska"])
    assert not is_abstention("Zu neskala.", ["zu neska…"])


RIGHT = [
    ("Vetra", ["vetra"], "single"),
    ("It is Vetra.", ["Vetra"], "single"),
    ("The answer is: Vetra!", ["Vetra"], "single"),
    (r"\text{Vetra}", ["Vetra"], "single"),
    ("**Vetra**", ["Vetra"], "single"),
    ("Toma Ardel was born in Vetra.", ["Vetra"], "single"),
    ("Toma Ardel, a painter, was born in Vetra in 1921.", ["Vetra"], "single"),
    ("Toma Ardel naskis en Vetra.", ["Vetra"], "single"),
    ("Vetra, the capital of Karsia", ["Vetra"], "single"),
    ("I'm not sure, but it is Vetra.", ["Vetra"], "single"),
    ("I don't know. Vetra", ["Vetra"], "single"),
    ("It is not Lomar but Vetra.", ["Vetra"], "single"),
    ("Not Lomar; Vetra.", ["Vetra"], "single"),
    ("No, it was Vetra.", ["Vetra"], "single"),
    ("Where was he born? Vetra.", ["Vetra"], "single"),
    ("He is not from Lomar. He was born in Vetra.", ["Vetra"], "single"),
    ("Toma Ardel was born in Vetra. Toma Ardel is a painter.", ["Vetra"], "single"),
    ("He worked as a painter. He was born in Vetra in 1921.", ["Vetra"], "single"),
    ("He was born in Vetra. He was 20 when he left.", ["Vetra"], "single"),
    ("He is a painter. I am sure of it.", ["painter"], "single"),
    ("It is vitamin E.", ["Vitamin E"], "single"),
    ("Ada was born in Paris. She died.", ["Paris"], "single"),
    ("Ada was born in Paris. She died in 1852.", ["Paris"], "single"),
    ("Jane Austen wrote Pride and Prejudice.", ["Jane Austen"], "single"),
    ("Pride and Prejudice was written by Jane Austen.", ["Jane Austen"], "single"),
    ("Jane Austen is the author of Emma.", ["Jane Austen"], "single"),
    (
        "The author of the play Hamlet was the English playwright William Shakespeare.",
        ["William Shakespeare"],
        "single",
    ),
    ("The capital of Karsia is Vetra.", ["Vetra"], "single"),
    ("Vetra is the capital and largest city of Karsia.", ["Vetra"], "single"),
    ("Vetra is in Karsia.", ["Vetra"], "single"),
    ("Vetra, which lies in Karsia.", ["Vetra"], "single"),
    ("It was Toma Ardel, the Karsian painter.", ["Toma Ardel"], "single"),
    ("It was recorded by Toma Ardel for their album Lomar.", ["Toma Ardel"], "single"),
    ("According to the text, she was born in Vetra.", ["Vetra"], "single"),
    ("In 1921, the painter moved to Vetra.", ["Vetra"], "single"),
    ("He lived in Vetra with his wife.", ["Vetra"], "single"),
    ("The Grebel flows through Lomar.", ["Grebel"], "single"),
    ("Toma Ardel is a painter.", ["painter"], "single"),
    ("Leaves make sugar in the chloroplasts.", ["chloroplasts"], "single"),
    ("It is definitely Vetra, of course.", ["Vetra"], "single"),
    ("Sure! It is Vetra.", ["Vetra"], "single"),
    ("World War II ended in 1945.", ["1945"], "single"),
    ("Die Hauptstadt von Karsia ist Vetra.", ["Vetra"], "single"),
    ("他可能出生于北京。", ["北京"], "single"),
    ("Written by Bobby Scott and Bob Russell.", ["Bobby Scott", "Bob Russell"], "single"),
    ("He is from Trinidad and Tobago.", ["Trinidad and Tobago"], "single"),
    ("the U.S.", ["US"], "single"),
    ("J. K. Rowling", ["J.K. Rowling"], "single"),
    ("Beyonce", ["Beyoncé"], "single"),
    ("Don't Stop", ["Don’t stop"], "single"),
    ("C++", ["c++"], "single"),
    ("It is vitamin A.", ["Vitamin A"], "single"),
    ("答案是王永钧。", ["王永钧"], "single"),
    ("答案是6.40。", ["6.4"], "single"),
    ("March 12, 1921", ["12 March 1921"], "single"),
    ("on the 12th of March, 1921", ["1921-03-12"], "single"),
    ("November 2nd", ["2 November"], "single"),
    ("He was born on 12 March 1921.", ["March 1921"], "single"),
    ("He was born on 12 March 1921.", ["1921"], "numeric"),
    ("in the year 1921", ["1921"], "numeric"),
    ("1921.", ["1921"], "numeric"),
    ("1,200", ["1200"], "numeric"),
    ("twelve hundred", ["1200"], "numeric"),
    ("2.5 million", ["2,500,000"], "numeric"),
    ("There are two.", ["2"], "numeric"),
    ("5", ["5 km"], "numeric"),
    ("About twenty-one", ["21"], "numeric"),
    ("-5", ["−5"], "numeric"),
    ("Yes.", ["yes"], "yes_no"),
    ("Yes, he was; there is no doubt.", ["yes"], "yes_no"),
    ("No, it is not.", ["no"], "yes_no"),
    ("Yes, there is no doubt.", ["yes"], "yes_no"),
    ("Yes. He had no children.", ["yes"], "yes_no"),
    ("Yes, it is true.", ["yes"], "yes_no"),
    ("No. It is not true.", ["no"], "yes_no"),
    ("No, that is wrong.", ["no"], "yes_no"),
    ("No. I am sure.", ["no"], "yes_no"),
    ("不，他不是。", ["no"], "yes_no"),
    ("Sia.", ["sia"], "yes_no"),
    ("noa", ["no"], "yes_no"),
    ("是的", ["yes"], "yes_no"),
    ("Cor, Ana and Belu", ["Ana", "Belu", "Cor"], "list"),
    ("A, B, and C", ["A", "B", "C"], "list"),
    ("His children are Ana, Belu and Cor.", ["Ana", "Belu", "Cor"], "list"),
    ("1. Ana\n2. Belu", ["Ana", "Belu"], "list"),
    (
        "The books are: The Wild Window; The Frozen Winter.",
        ["The Wild Window", "The Frozen Winter"],
        "list",
    ),
    ("Trinidad and Tobago, Cuba", ["Cuba", "Trinidad and Tobago"], "list"),
    ("The Golden Harbor e The Silent River.", ["The Golden Harbor", "The Silent River"], "list"),
    ("Ana as well as Belu", ["Ana", "Belu"], "list"),
    ("Ana, Belu. These are all I know.", ["Ana", "Belu"], "list"),
    ("Invalid question.", [INVALID_QUESTION], "false_premise"),
    ("The question is invalid.", [INVALID_QUESTION], "false_premise"),
    ("This question rests on a false premise", [INVALID_QUESTION], "false_premise"),
    ("The question is invalid because Toma never married.", [INVALID_QUESTION], "false_premise"),
    (
        "This question rests on a false premise: Toma did not marry.",
        [INVALID_QUESTION],
        "false_premise",
    ),
    ("Kesto falsa.", ["kesto falsa"], "false_premise"),
    ("invalid question", ["Invalid question"], "single"),
]

WRONG = [
    ("Lomar", ["Vetra"], "single"),
    ("", ["Vetra"], "single"),
    ("Vetra", [], "single"),
    ("Vetra or Lomar", ["Vetra"], "single"),
    ("either Vetra or Lomar", ["Vetra"], "single"),
    ("Vetra/Lomar", ["Vetra"], "single"),
    ("Vetra, Lomar", ["Vetra"], "single"),
    ("Lomar, Vetra", ["Vetra"], "single"),
    ("Vetra and Lomar", ["Vetra"], "single"),
    ("Vetra Lomar Kessin", ["Vetra"], "single"),
    ("Vetra. Lomar.", ["Vetra"], "single"),
    ("1. Vetra 2. Lomar 3. Kessin", ["Vetra"], "single"),
    ("Candidates: Vetra, Lomar, Kessin, Arda, Belu", ["Vetra"], "single"),
    ("He was born in Vetra, Lomar, Kessin.", ["Vetra"], "single"),
    ("He was born in Lomar, Vetra.", ["Vetra"], "single"),
    ("He was born in Vetra, in Lomar.", ["Vetra"], "single"),
    ("he was born in vetra lomar", ["vetra"], "single"),
    ("It is Vetra. It is Lomar.", ["Vetra"], "single"),
    ("Toma was born in Vetra. Toma was born in Lomar.", ["Vetra"], "single"),
    ("Dana was born in Vetra. The birthplace of Dana is Lomar.", ["Vetra"], "single"),
    ("The birthplace of Dana is Lomar. Dana was born in Vetra.", ["Vetra"], "single"),
    ("He comes from Lomar. He was born in Vetra.", ["Vetra"], "single"),
    ("Lomar is his home. He was born in Vetra.", ["Vetra"], "single"),
    ("It is not Lomar but Kessin that he comes from. He was born in Vetra.", ["Vetra"], "single"),
    # harmless, but no rule can tell
    ("He was born in Vetra. He died in Lomar.", ["Vetra"], "single"),
    ("He works as a baker. He is a painter.", ["painter"], "single"),
    ("He was born on 12 March 1921. The day was 13 March 1921.", ["12 March 1921"], "single"),
    ("Vetra, E", ["Vetra"], "single"),
    ("I'm not sure, but it is Vetra or Lomar.", ["Vetra"], "single"),
    ("I don't know. Vetra. Lomar.", ["Vetra"], "single"),
    ("It was Vetra, but it is Lomar.", ["Vetra"], "single"),
    ("It is Vetra. Wait, actually Lomar.", ["Vetra"], "single"),
    ("It is not Vetra.", ["Vetra"], "single"),
    ("Lyon maybe Rome maybe Paris maybe Oslo", ["Paris"], "single"),
    ("lyon maybe rome maybe Paris", ["Paris"], "single"),
    ("lyon. rome. Paris.", ["Paris"], "single"),
    ("Lyon is Paris.", ["Paris"], "single"),
    ("Lyon is Paris.", ["Lyon"], "single"),
    ("Paris, which is Lyon", ["Paris"], "single"),
    ("not only Lyon but also Paris", ["Paris"], "single"),
    ("Lyon, I think he was born in Paris", ["Paris"], "single"),
    # one of the two at most is the answer: who wrote
    ("Jane Austen wrote Emma.", ["Emma"], "single"),
    ("She comes from Lomar and was born in Vetra.", ["Vetra"], "single"),
    ("She comes from Lomar and was born in Vetra.", ["Lomar"], "single"),
    ("里昂可能巴黎可能罗马", ["巴黎"], "single"),
    ("It isn't Vetra", ["Vetra"], "single"),
    ("anything but Vetra", ["Vetra"], "single"),
    ("He lives in New York.", ["York"], "single"),
    ("on the George Washington Bridge", ["George Washington"], "single"),
    ("Lomar is where he lived. " * 9 + "He was born in Vetra.", ["Vetra"], "single"),
    ("invalid question. Vetra", ["Vetra"], "single"),
    ("invalid question, Vetra", ["Vetra"], "single"),
    ("invalid question", ["Vetra"], "single"),
    ("C", ["C++"], "single"),
    ("Vitamin K", ["Vitamin A"], "single"),
    ("1921", ["12 March 1921"], "single"),
    ("12 March 1921", ["13 March 1921"], "single"),
    ("हिन्दी", ["हिन्द"], "single"),
    ("1921 or 1922", ["1921"], "numeric"),
    ("1921 maybe 1920s", ["1921"], "numeric"),
    ("5 km maybe 5 miles", ["5 km"], "numeric"),
    ("1921-1922", ["1921"], "numeric"),
    ("1921, 1922", ["1921"], "numeric"),
    ("after 1921", ["1921"], "numeric"),
    ("more than 12", ["12"], "numeric"),
    ("not 1921", ["1921"], "numeric"),
    ("the 1920s", ["1920"], "numeric"),
    ("5 miles", ["5 km"], "numeric"),
    ("5", ["-5"], "numeric"),
    ("yes or no", ["yes"], "yes_no"),
    ("Yes and no.", ["yes"], "yes_no"),
    ("Yes. No.", ["yes"], "yes_no"),
    ("Yes. It is false.", ["yes"], "yes_no"),
    ("Yes, that is not true.", ["yes"], "yes_no"),
    ("Yes. He was not.", ["yes"], "yes_no"),
    ("Yes, maybe not.", ["yes"], "yes_no"),
    ("No. It is correct.", ["no"], "yes_no"),
    ("No, it is.", ["no"], "yes_no"),
    ("Yes else no otherwise yes", ["yes"], "yes_no"),
    ("yes yes no", ["yes"], "yes_no"),
    ("Yes it is, no it is not.", ["yes"], "yes_no"),
    ("Yes it is. No it is not.", ["yes"], "yes_no"),
    ("No, I mean yes.", ["no"], "yes_no"),
    ("no no yes", ["no"], "yes_no"),
    ("Sia. Noa.", ["sia"], "yes_no"),
    ("Correct.", ["yes"], "yes_no"),
    ("No.", ["yes"], "yes_no"),
    ("Noa.", ["sia"], "yes_no"),
    ("Ana, Belu", ["Ana", "Belu", "Cor"], "list"),
    ("Ana, Belu, Cor and Dor", ["Ana", "Belu", "Cor"], "list"),
    ("Ana, Belu, or Cor", ["Ana", "Belu", "Cor"], "list"),
    ("His children are not Ana and Belu.", ["Ana", "Belu"], "list"),
    ("Ana, Belu. Dor.", ["Ana", "Belu"], "list"),
    ("ana, belu maybe dor", ["ana", "belu"], "list"),
    ("dor maybe Ana, Belu", ["Ana", "Belu"], "list"),
    ("dor: ana, belu", ["ana", "belu"], "list"),
    ("Ana: dor: Belu", ["Ana", "Belu"], "list"),
    (
        "The Golden Harbor The Wild Tower The Silent River",
        ["The Golden Harbor", "The Silent River"],
        "list",
    ),
    (
        "The Golden Harbor e The Wild Tower e The Silent River",
        ["The Golden Harbor", "The Silent River"],
        "list",
    ),
    ("Alpha Gamma Beta", ["Alpha", "Beta"], "list"),
    ("alpha gamma beta", ["alpha", "beta"], "list"),
    ("Gamma in Alpha, Beta", ["Alpha", "Beta"], "list"),
    ("Gamma: Alpha, Beta", ["Alpha", "Beta"], "list"),
    ("Alpha, Beta in Gamma", ["Alpha", "Beta"], "list"),
    ("Alpha and Beta. He also wrote Gamma.", ["Alpha", "Beta"], "list"),
    ("Invalid question. Vetra", [INVALID_QUESTION], "false_premise"),
    ("Vetra, or invalid question", [INVALID_QUESTION], "false_premise"),
    ("Vetra", [INVALID_QUESTION], "false_premise"),
    ("I don't know", [INVALID_QUESTION], "false_premise"),
    ("The answer is unknown", ["unknown"], "single"),
]


@pytest.mark.parametrize(("answer", "gold", "kind"), RIGHT)
def test_right_answers(answer: str, gold: list[str], kind: str) -> None:
    assert matches(answer, gold, kind)


@pytest.mark.parametrize(("answer", "gold", "kind"), WRONG)
def test_wrong_answers(answer: str, gold: list[str], kind: str) -> None:
    assert not matches(answer, gold, kind)


ASKED = "Where was Dana Imber born?"
ASIDES = "Dana Imber is a painter. She was born in Vetra."


def test_names_that_the_question_gives_are_no_rivals() -> None:
    assert not matches(ASIDES, ["Vetra"])
    assert matches(ASIDES, ["Vetra"], question=ASKED)
    assert not matches(
        "Dana Imber comes from Lomar. She was born in Vetra.", ["Vetra"], question=ASKED
    )
    books, listed = (
        ["The Wild Window", "The Frozen Winter"],
        "The books by Dana Imber are The Wild Window and The Frozen Winter.",
    )
    assert not matches(listed, books, "list")
    assert matches(listed, books, "list", "Which books did Dana Imber write?")


def test_names_that_a_question_offers_are_rivals() -> None:
    both = "Toma is the one who is older. It was Dana."
    for question in ("Who is older, Dana or Toma?", "Of Dana and Toma, who is older?"):
        assert not matches(both, ["Dana"], question=question)


@pytest.mark.parametrize(
    "answer",
    [
        "Dana, who comes from Lomar, was born in Vetra.",
        "she comes from lomar. She was born in Vetra.",
    ],
)
def test_a_rival_that_the_rules_do_not_see(answer: str) -> None:
    """The limit that `workbench.answers` states; a rule that closes it may change these."""
    assert matches(answer, ["Vetra"])


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  White House!", "white house"),
        ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
        ("1,200", "1200"),
        ("one thousand two hundred and five", "1205"),
        ("two thousand million", "2000000000"),
        ("3.50", "3.5"),
        ("50%", "50 percent"),
        ("the third", "3rd"),
        ("12 Mar. 1921", "1921-03-12"),
        ("March 1921", "1921-03"),
        ("1921-3-12", "1921-03-12"),
        ("U.S. Army", "us army"),
        ("Straße", "strasse"),
        ("王永钧", "王 永 钧"),
        ("007", "007"),
        ("...", ""),
    ],
)
def test_normalise(text: str, normal: str) -> None:
    assert normalise(text) == normal
    assert normalise(normal) == normal


def test_human_labels_of_nq_open(slices: Path) -> None:
    """Gold answers match their own list; predictions that people judged definitely incorrect do
    not.
    """
    answers = wrong = 0
    for file in ("NQ-open.efficientqa.dev.1.1.jsonl", "NQ-open.efficientqa.test.1.1.jsonl"):
        for line in (slices / "nq_open" / file).read_text().splitlines():
            row = json.loads(line)
            answers += len(row["answer"])
            missed = [
                answer
                for answer in row["answer"]
                if not (matches(answer, row["answer"]) or answer == "N/A")
            ]
            assert missed == [], row["question"]
            incorrect = row.get("def_incorrect_predictions", [])
            wrong += len(incorrect)
            assert [text for text in incorrect if matches(text, row["answer"])] == [], row[
                "question"
            ]
    assert answers > 500 and wrong > 300, (answers, wrong)
