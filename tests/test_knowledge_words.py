"""Passages, titles and search among given passages, without an index."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.helpers import examples
from workbench.retrieval.in_memory import from_passages
from workbench.retrieval.words import known_titles, split_page, title_key, word_starts
from workbench.types import Passage

SENTENCE = st.lists(
    st.sampled_from("alpha beta gamma delta 北京 3.5 Mr. U.S. naïve".split()),
    min_size=1,
    max_size=9,
)
PROSE = st.lists(SENTENCE.map(lambda words: " ".join(words).capitalize() + "."), max_size=12).map(
    " ".join
)


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(st.one_of(PROSE, st.text(max_size=300)), st.integers(1, 12))
@example("x" * 1000, 3)
@example("他说：你好。" * 30, 5)
def test_passages_hold_the_whole_page_within_the_budget(text: str, words: int) -> None:
    pieces = split_page(text, words)
    assert squeezed("".join(pieces)) == squeezed(text)
    assert all(piece == piece.strip() and 1 <= len(word_starts(piece)) <= words for piece in pieces)


@given(st.integers(3, 9), st.lists(st.integers(1, 12), min_size=1, max_size=15))
def test_sentences_stay_whole_unless_they_are_over_the_budget(
    words: int, lengths: list[int]
) -> None:
    sentences = [" ".join([f"S{i}", *["word"] * (n - 1)]) + "." for i, n in enumerate(lengths)]
    pieces = split_page(" ".join(sentences), words)
    for sentence, length in zip(sentences, lengths, strict=True):
        assert (sum(sentence in piece for piece in pieces) == 1) == (length <= words)


@pytest.mark.parametrize(("one", "other"), examples("titles"))
def test_titles_match_without_case_width_space_and_punctuation(one: str, other: str) -> None:
    assert title_key(one) == title_key(other)


def test_a_title_may_contain_the_separator_of_titles() -> None:
    known = {title_key(title) for title in ("Alpha", "Beta; or the Second", "Gamma")}
    assert known_titles("beta; or the Second", known) == ["beta; or the Second"]
    assert known_titles("alpha; none;Gamma;alpha", known) == ["alpha", "Gamma"]
    assert known_titles("none;;  ;", known | {""}) == []


PASSAGES = [
    Passage("0", "Ada", "Ada wrote notes."),
    Passage("1", "Bob", "Bob wrote a long book about the river and the sea."),
    Passage("2", "Ada", "She lived in London."),
]


def test_bm25_worked_by_hand() -> None:
    lengths = [4, 12, 5]  # the title counts: ada ada wrote note
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    by_hand = [idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * lengths[i] / 7)) for i in (0, 1)]
    found = from_passages(PASSAGES).search(["wrote wrote"], 5)[0]
    assert [passage.id for passage in found] == ["0", "1"]
    assert [passage.score for passage in found] == pytest.approx(by_hand)


def test_given_passages_are_limited_by_title_and_keep_their_order_on_ties() -> None:
    search = from_passages(PASSAGES).search
    inside, absent, everywhere, nothing = search(
        ["river London", "river", "river", "zebra"], 5, ["ADA;Nobody", "Nobody", "", None]
    )
    assert [passage.id for passage in inside] == ["2", "0"]
    assert inside[1].score == 0
    assert absent == [] and nothing == []
    assert [passage.id for passage in everywhere] == ["1"]
    assert [passage.id for passage in search(["zebra"], 5, ["Ada"])[0]] == ["0", "2"]
    assert from_passages([]).search(["a"], 3) == [[]]
