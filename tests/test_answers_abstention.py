"""Abstentions in five languages, and texts that only look like abstentions."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import EXAMPLES, examples, read_json
from workbench.text import INVALID_QUESTION, final_answer, is_abstention, is_invalid, matches
from workbench.text.abstention import ABSTENTIONS


def parts(name: str) -> dict[str, list[str]]:
    """Read a file of examples as heading -> lines."""
    found = re.split(r"^\[(\w+)\]$", (EXAMPLES / name).read_text(encoding="utf-8"), flags=re.M)[1:]
    bodies = ([line for line in body.splitlines() if line] for body in found[1::2])
    return dict(zip(found[::2], bodies, strict=True))


def test_examples_of_abstentions_and_of_answers() -> None:
    found = parts("abstentions.txt")
    written = {text.replace("'", "’") for text in found["declines"]}
    assert [text for text in (*found["declines"], *written) if not is_abstention(text)] == []
    assert [text for text in (*found["commits"], "", "  ") if is_abstention(text)] == []
    assert not any(matches(final_answer(text) or "", [text]) for text in found["declines"])


@pytest.mark.parametrize("half", [0, 1])
def test_refusals_in_many_styles(half: int) -> None:
    """At least 90 % of English refusals and 80 % in each other language are found, and at most
    4 % of answers. The rules were tuned on the first half only."""
    found = {part: lines[half::2] for part, lines in parts("refusals.txt").items()}
    shares = {part: sum(map(is_abstention, lines)) / len(lines) for part, lines in found.items()}
    assert shares.pop("answers") <= 0.04
    assert shares.pop("en") >= 0.9 and len(shares) == 4 and min(shares.values()) >= 0.8, shares


def test_gold_answers_of_real_questions_are_not_abstentions(slices: Path) -> None:
    rows = read_json(slices / "selfaware" / "SelfAware.json")["example"]
    answers = [answer for row in rows if row["answerable"] for answer in row["answer"]]
    assert len(answers) > 500 and [answer for answer in answers if is_abstention(answer)] == []
    # some questions begin with a story
    declined = [f"I'm sorry, but I don't know. {row['question']}" for row in rows]
    assert sum(map(is_abstention, declined)) > 0.9 * len(declined)


@given(
    st.sampled_from(ABSTENTIONS),
    st.sampled_from([str.upper, str.lower, str.capitalize]),
    st.sampled_from(["{}", "{}.", "{}!!", ' "{}" ', r"\boxed{{{}}}", "<think>x</think>{}"]),
)
def test_every_phrase_declines_in_any_case_and_box(phrase, change, form) -> None:
    while inner := re.search(r"\(([^()]*)\)", phrase):  # the first form of "(a/b)"
        phrase = phrase.replace(inner[0], inner[1].split("/")[0], 1)
    phrase = phrase.removesuffix("…").replace("…", " it ")
    assert is_abstention(form.format(change(phrase)))


@pytest.mark.parametrize("text", ["Paris", "París", "Vetra", "北京"])
@pytest.mark.parametrize(
    "hedge",
    [
        "I'm not sure, but it is {}.",
        "No lo sé, pero creo que es {}.",
        "Ich weiß es nicht, aber ich glaube {}.",
        "Je ne sais pas, mais je crois que c'est {}.",
        "我不知道，可能是{}。",
        "<think>no idea</think><answer>Not sure, {}</answer>",
    ],
)
def test_a_hedged_answer_is_not_an_abstention(hedge: str, text: str) -> None:
    assert not is_abstention(hedge.format(text))


def test_invalid_question_must_be_the_whole_answer() -> None:
    assert is_invalid("This question rests on a false premise.")
    assert is_invalid(rf"\boxed{{{INVALID_QUESTION}}}")
    assert not any(map(is_invalid, ("invalid question, Paris", "", "I don't know")))


@pytest.mark.parametrize(("text", "declined"), examples("courtesies"))
def test_courtesies_neither_answer_nor_decline(text: str, declined: bool) -> None:
    assert is_abstention(text) is declined
