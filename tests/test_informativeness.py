"""Informativeness of claims by rules, worked by hand."""

from __future__ import annotations

import pytest

from workbench.types import Claim
from workbench.verdicts.informativeness import informativeness


def ratings(text: str, question: str, title: str = "") -> list[int]:
    """Ratings of claims; "|" separates the claims of a sentence."""
    claims = [
        Claim(i, claim, sentence=sentence)
        for i, (sentence, claim) in enumerate(
            (number, claim)
            for number, line in enumerate(text.split("\n"))
            for claim in line.split("|")
        )
    ]
    return [*informativeness(claims, question, title).values()]


WHO = "Who was Marie Curie?"
NOBEL = "Marie Curie won the Nobel Prize"


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        # another number about the subject; again; one word of the question; the next sentence; far
        # away; nothing
        (
            "When did the Orrin Bridge open?",
            "The Orrin Bridge opened in 1931.|In 1931 the Orrin Bridge opened.\nTrains cross the"
            " bridge.\nTwo tracks lie there.\n?\n?\nSheep graze nearby.\nIt is.",
            [5, 1, 4, 3, 1, 1, 2, 1],
        ),
        # nested claims: the longest is paid, or what each adds
        (WHO, f"{NOBEL}.|{NOBEL} in Physics.|{NOBEL} in 1903.", [1, 5, 5]),
        (WHO, f"{NOBEL}.|{NOBEL} in Physics.|{NOBEL} in Physics in 1903.", [1, 1, 5]),
        (WHO, f"{NOBEL}.\n{NOBEL} in medicine.\n{NOBEL} in 1955.\n{NOBEL}.", [5, 5, 5, 1]),
        ("Tell me about Mongolia.", "Mongolia is a country.\nMongolia is in Mongolia.", [1, 1]),
        (WHO, "Marie Curie existed.\nMarie Curie was a person.\nMarie Curie was born.", [1] * 3),
        ("When did Marie Curie die?", "Marie Curie died.\nMarie Curie died in 1934.", [1, 5]),
        (WHO, "Marie Curie was not born in Paris.\nMarie Curie was born in Warsaw [1].", [1, 5]),
        (WHO, "Marie Curie was born in Warsaw.\nMarie Curie was truly born in Warsaw [2].", [5, 1]),
        ("Was Marie Curie born in Paris?", "Marie Curie was not born in Paris.", [5]),
    ],
)
def test_informativeness_by_hand(question: str, text: str, expected: list[int]) -> None:
    assert ratings(text, question) == expected


@pytest.mark.parametrize("title", ["", "Marie Curie"])
def test_a_title_that_is_the_answer_is_not_known_before(title: str) -> None:
    text = "Radium was discovered by Marie Curie."
    assert ratings(text, "Who discovered radium?", title) == [5]
    assert ratings("Marie Curie was a person.", "Tell me about Marie Curie.", title) == [1]
