"""Informativeness of claims by rules, worked by hand."""

import pytest

from tests.helpers import examples
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


@pytest.mark.parametrize(("question", "text", "expected"), examples("informativeness"))
def test_informativeness_by_hand(question: str, text: str, expected: list[int]) -> None:
    assert ratings(text, question) == expected


@pytest.mark.parametrize("title", ["", "Marie Curie"])
def test_a_title_that_is_the_answer_counts_as_information(title: str) -> None:
    assert ratings("Radium was discovered by Marie Curie.", "Who discovered radium?", title) == [5]
    assert ratings("Marie Curie was a person.", "Tell me about Marie Curie.", title) == [1]
