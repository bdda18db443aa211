"""Final answers and matching, on the examples of `tests/examples` and on generated texts."""

import json
import string
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.human.answers import examples as human_examples
from tests.helpers import EXAMPLES, examples
from workbench.text import DOUBT, final_answer, is_abstention, matches, normalise, probability


@pytest.mark.parametrize(("text", "answer"), examples("final_answers"))
def test_final_answer(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer


def test_a_required_box_accepts_nothing_else() -> None:
    assert final_answer("<answer>Vetra</answer>", require_box=True) is None
    assert final_answer(r"<think>x</think>\boxed{Vetra}", require_box=True) == "Vetra"
    assert final_answer(r"\boxed{Vetra", require_box=True) is None


def matching_examples() -> list[tuple[bool, str]]:
    right, wrong = (EXAMPLES / "matching.txt").read_text(encoding="utf-8").split("\n\n[wrong]\n")
    return [(True, line) for line in right.splitlines()[2:]] + [
        (False, line) for line in wrong.splitlines()
    ]


@pytest.mark.parametrize("right", [True, False])
def test_examples_of_right_and_wrong_answers(right: bool) -> None:
    """No wrong answer is accepted, and at most 3 % of right answers are refused."""
    parts = [line.split(" | ") for label, line in matching_examples() if label is right]
    failed = [
        " | ".join(part)
        for part in parts
        if matches(part[3].replace("\\n", "\n"), part[2].split(" / "), part[0], part[1]) != right
    ]
    assert len(parts) > 150 and len(failed) <= 0.03 * len(parts) * right, failed


@pytest.mark.parametrize("answer", ["Pa\u00adris", "Pa\u200bris", "A: Paris\nReason: not Rome"])
def test_invisible_characters_and_reasons_are_ignored(answer: str) -> None:
    assert matches(answer, ["Paris"])


@pytest.mark.parametrize("half", [0, 1])
def test_answers_in_the_styles_of_chat_models(half: int) -> None:
    """At least 65 % of right answers are accepted; 97 % of accepted answers are right."""
    judged = [
        (one.right, matches(one.answer, one.gold, one.kind, one.question))
        for one in human_examples(half)
    ]
    rights = [found for right, found in judged if right]
    accepted = [right for right, found in judged if found]
    assert len(rights) >= 100 and len(judged) >= 190
    assert sum(rights) / len(rights) >= 0.65 and sum(accepted) / len(accepted) >= 0.97


@pytest.mark.parametrize("gold", [", ,", "(, )", ", Paris", "., 1"])
def test_a_gold_answer_of_separators_does_not_match_a_list(gold: str) -> None:
    assert not matches("Lomar, Vetra and so on", [gold])


def test_nothing_matches_without_a_gold_answer() -> None:
    assert not matches("Vetra", [])


def test_the_question_decides_which_names_are_competing_answers() -> None:
    answer, asked = "Dana Imber is a painter. She was born in Vetra.", "Where was Dana Imber born?"
    assert not matches(answer, ["Vetra"]) and matches(answer, ["Vetra"], question=asked)
    rival = "Dana Imber comes from Lomar. She was born in Vetra."
    assert not matches(rival, ["Vetra"], question=asked)
    both = "Toma is the one who is older. It was Dana."
    for question in ("Who is older, Dana or Toma?", "Of Dana and Toma, who is older?"):
        assert not matches(both, ["Dana"], question=question)


def test_only_the_first_statement_of_a_list_of_statements_counts() -> None:
    """A list of guesses scores no more than its first guess."""
    text, asked = (
        "He was born in Vetra. He died in Lomar. He lived in Kessin.",
        "Where was he born?",
    )
    found = [
        place for place in ("Vetra", "Lomar", "Kessin") if matches(text, [place], question=asked)
    ]
    assert found == ["Vetra"]


def test_probability_falls_with_doubt() -> None:
    capital = "What is the capital of France?"

    def p(answer: str) -> float:
        return probability(answer, ["Paris"], question=capital)

    assert p("Paris") > p("The capital of France is Paris.") > DOUBT[1]
    assert all(
        DOUBT[0] <= p(text) <= DOUBT[1] for text in ("Paris or Lyon", "Lyon rather than Paris")
    )
    assert all(p(text) < DOUBT[0] for text in ("Lyon", "I don't know", ""))
    yes_no = [probability(text, ["yes"], "yes_no") for text in ("No.", "Yes and no.", "Yes.")]
    assert yes_no == sorted(yes_no) and yes_no[0] < DOUBT[0] <= yes_no[1] <= DOUBT[1] < yes_no[2]


@pytest.mark.parametrize(("text", "normal"), examples("normalised"))
def test_normalise(text: str, normal: str) -> None:
    assert normalise(text) == normal and normalise(normal) == normal


@pytest.mark.slow
def test_human_labels_of_nq_open(slices: Path) -> None:
    """Gold answers match their own list; predictions that people judged definitely incorrect do
    not."""
    answers = wrong = 0
    for file in ("NQ-open.efficientqa.dev.1.1.jsonl", "NQ-open.efficientqa.test.1.1.jsonl"):
        for line in (slices / "nq_open" / file).read_text().splitlines():
            row = json.loads(line)
            golds = [answer for answer in row["answer"] if answer != "N/A"]
            assert all(matches(answer, row["answer"]) for answer in golds), row["question"]
            incorrect = row.get("def_incorrect_predictions", [])
            assert not any(matches(text, row["answer"]) for text in incorrect), row["question"]
            answers, wrong = answers + len(golds), wrong + len(incorrect)
    assert answers > 500 and wrong > 300, (answers, wrong)


NAMES = st.text(string.ascii_lowercase, min_size=4, max_size=9).map(lambda name: f"Z{name}")


@pytest.mark.slow
@given(
    NAMES,
    st.sampled_from([str.upper, str.lower, str.title]),
    st.sampled_from(["{}.", '"{}"', " {} !", "**{}**", "({})"]),
)
def test_case_and_punctuation_change_nothing(
    name: str, change: Callable[[str], str], form: str
) -> None:
    text = form.format(change(name))
    assert normalise(text) == normalise(name) and matches(text, [name]) and not is_abstention(text)


@given(
    st.text(), st.text(), st.sampled_from(["single", "numeric", "yes_no", "list", "false_premise"])
)
def test_an_abstention_is_never_right(answer: str, gold: str, kind: str) -> None:
    assert not (is_abstention(answer) and matches(final_answer(answer) or "", [gold], kind))
