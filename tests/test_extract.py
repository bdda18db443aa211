"""Which sentences make claims."""

from __future__ import annotations

import pytest

from workbench.extract import makes_claims


@pytest.mark.parametrize(
    ("sentence", "states"),
    [
        ("Toma was born in Vetra.", True),
        ("I think he was born in Vetra.", True),
        ("I'm not sure, but it is Vetra.", True),
        ("他出生于北京。", True),
        ("The question was settled in 1912.", True),
        ("It was the best known of his works.", True),
        ("Was he born in Vetra?", False),
        ("“Was he born there?”", False),
        ("他是谁？", False),
        ("I don’t know.", False),
        ("我不知道。", False),
        ("This question rests on a false premise.", False),
        ("In my opinion, he is the greatest.", False),
        ("I really love this book.", False),
        ("It is a wonderful book.", False),
        ("Sure! Here is a biography.", False),
        ("Let me know if you need more.", False),
        ("I hope this helps!", False),
        ("---", False),
    ],
)
def test_what_makes_claims(sentence: str, states: bool) -> None:
    assert makes_claims(sentence) is states
