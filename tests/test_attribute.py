"""Attribution of claims to characters and of events to tokens."""

import math
import random
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import examples
from workbench.credit.attribute import (
    coverage,
    find_sentence,
    is_placed,
    locate,
    match,
    place,
    strip_end,
    tokens_between,
)
from workbench.pipeline import rescore
from workbench.types import Claim, Event, Feedback, Question, Response, Reward

QUESTION = Question("q", "?")
LETTERS = st.text(alphabet="ab c.é中👍", max_size=12)


def response(text: str, cuts: list[int] | None = None, finish: str = "stop") -> Response:
    """Split `text` into tokens at `cuts` (default: one per character), and add an end-of-sequence
    token if it is not truncated.
    """
    borders = [0, *(cuts if cuts is not None else range(1, len(text))), len(text)]
    offsets = list(pairwise(borders)) if text else []
    if finish == "stop":
        offsets.append((len(text), len(text)))
    return Response(
        "r",
        QUESTION,
        text,
        token_ids=tuple(range(len(offsets))),
        offsets=tuple(offsets),
        finish=finish,
    )


@pytest.mark.parametrize(("claim", "sentence", "matched"), examples("matches"))
def test_match(claim: str, sentence: str, matched: str) -> None:
    found = match(claim, sentence)
    assert found is not None
    assert sentence[found[0] : found[1]] == matched


@pytest.mark.parametrize(
    ("claim", "sentence", "wanted"),
    [
        ("Ana Bo was born in Oslo.", "ANA BO WAS BORN IN OSLO.", (0, 23, 1.0)),
        ("ANA BO WAS BORN IN OSLO", "then Ana Bo was born in Oslo!", (5, 28, 1.0)),
        # "ß" and "İ" have longer forms without case: the positions stay those of the sentence
        ("Zoë lives in Weiß.", "İn 1900, ZOË LIVES IN WEIß.", (9, 26, 1.0)),
        # an exact quotation comes before an earlier one in another case
        ("Ana paints", "ANA PAINTS or Ana paints", (14, 24, 1.0)),
    ],
)
def test_match_ignores_case_except_in_exact_quotations(
    claim: str, sentence: str, wanted: tuple[int, int, float]
) -> None:
    assert match(claim, sentence) == wanted


def test_match_without_common_characters_is_none() -> None:
    assert match("abc", "xyz") is None
    assert match("", "xyz") is None
    assert match("abc", "") is None


def plain_length(claim: str, sentence: str) -> int:
    """The length of the longest common subsequence, by dynamic programming."""
    row = [0] * (len(claim) + 1)
    for letter in sentence:
        before, row = row, [0]
        for position, other in enumerate(claim):
            row.append(
                before[position] + 1 if letter == other else max(before[position + 1], row[-1])
            )
    return row[-1]


def plain_end(claim: str, sentence: str) -> int:
    """The end of the shortest prefix of `sentence` with an equally long subsequence."""
    lengths = [plain_length(claim, sentence[:end]) for end in range(len(sentence) + 1)]
    return lengths.index(lengths[-1])


@settings(max_examples=300)
@given(LETTERS, LETTERS)
def test_match_agrees_with_a_reference_implementation(claim: str, sentence: str) -> None:
    found = match(claim, sentence)
    wanted = plain_end(strip_end(claim), sentence)
    if found is None:
        assert wanted == 0
        return
    start, end, _ = found
    assert end == wanted
    length = plain_length(strip_end(claim), sentence)
    assert plain_length(strip_end(claim), sentence[start:end]) == length
    pair = sentence[start - 1 : start + 1] if start else ""
    assert not (pair.isascii() and pair.isalnum())
    latest = next(
        s for s in range(end, -1, -1) if plain_length(strip_end(claim), sentence[s:end]) == length
    )
    assert start <= latest and sentence[start:latest].isalnum() is (start < latest)


@pytest.mark.parametrize(("claim", "sentence", "found", "words"), examples("coverage"))
def test_coverage_counts_words_in_order(claim: str, sentence: str, found: int, words: int) -> None:
    assert coverage(claim, sentence) == pytest.approx(found / words)


def test_quoted_sentence() -> None:
    text = "One two three. Four five six. One two three."
    assert find_sentence(text, "One two three.") == (0, 14, 1.0)
    assert find_sentence(text, "One two three.", after=14) == (30, 44, 1.0)
    # "Four " and " six." are equally long: the first counts
    assert find_sentence(text, "Four FIVE six.") == (15, 20, 5 / 14)
    assert find_sentence(text, "ZZZ") is None
    assert find_sentence(text, "  ") is None


@settings(max_examples=200)
@given(st.text(alphabet="abc", min_size=1, max_size=9), st.text(alphabet="abc", max_size=15))
def test_the_longest_common_substring(quote: str, text: str) -> None:
    pieces = {quote[i:j] for i in range(len(quote)) for j in range(i + 1, len(quote) + 1)}
    longest = max((len(piece) for piece in pieces if piece in text), default=0)
    found = find_sentence(text, quote)
    assert (found[1] - found[0] if found else 0) == longest
    assert found is None or text[found[0] : found[1]] in pieces


def test_claims_are_matched_to_sentences() -> None:
    text = "Ada Lind is a painter. She was born in Oslo in 1921."
    sentences = [(0, 22), (23, 52)]
    painter, born, alien = locate(
        text,
        sentences,
        [
            Claim(0, "Ada Lind is a painter."),
            Claim(1, "Ada Lind was born in Oslo."),
            Claim(2, "Grasshoppers sing."),
        ],
    )
    assert (painter.sentence, painter.span, painter.coverage) == (0, (0, 21), 1.0)
    assert born.sentence == 1 and born.end == text.index("Oslo") + 4
    assert born.coverage == pytest.approx(4 / 6, abs=1e-4)
    assert (alien.sentence, alien.span, alien.end, alien.coverage) == (None, None, None, 0.0)
    assert [is_placed(claim) for claim in (painter, born, alien)] == [True, True, False]


def test_a_located_claim_is_unchanged() -> None:
    claim = Claim(0, "anything", sentence=0, span=(1, 3), end=3, coverage=1.0)
    assert locate("abcdef", [(0, 6)], [claim]) == (claim,)


def test_repeated_sentences_and_claims_are_matched_in_order() -> None:
    text = "Ada paints. Ada paints. Ada paints and Ada paints."
    sentences = [(0, 11), (12, 23), (24, 50)]
    claims = [Claim(number, "Ada paints.") for number in range(4)]
    assert [claim.sentence for claim in locate(text, sentences, claims)] == [0, 1, 2, 2]
    assert [claim.span for claim in locate(text, sentences, claims)] == [
        (0, 10),
        (12, 22),
        (24, 34),
        (39, 49),
    ]
    one = locate(
        text, sentences, [Claim(0, "Ada paints.", sentence=2), Claim(1, "Ada paints.", sentence=2)]
    )
    assert [claim.span for claim in one] == [(24, 34), (39, 49)]


def test_events_fall_on_the_token_with_their_last_character() -> None:
    found = response("Oslo, 1921.", cuts=[4, 5, 8])  # Oslo | , |  19 | 21. | end
    events = [
        Event("truth", 1.0, 4),
        Event("truth", -2.0, 10),
        Event("info", 0.5, 11),
        Event("general", 0.25),
    ]
    assert place(found, events) == (1.0, 0.0, 0.0, -1.5, 0.25)


def test_the_end_of_a_truncated_response_is_its_last_token() -> None:
    assert place(response("Oslo", cuts=[2], finish="length"), [Event("outcome", 1.0)]) == (0.0, 1.0)
    assert place(response("", finish="stop"), [Event("outcome", -1.0)]) == (-1.0,)
    assert place(response("", finish="length"), [Event("outcome", -1.0)]) == ()


def test_a_token_without_a_character_has_no_share_in_a_span() -> None:
    """Such a token can be the first byte of an emoji that the next token completes."""
    found = Response("r", Question("q", "?"), "ab", offsets=((0, 1), (1, 1), (1, 2), (2, 2)))
    assert place(found, [Event("truth", 1.0, 2, start=0)]) == (0.5, 0.0, 0.5, 0.0)
    assert place(found, [Event("truth", 1.0, start=0)]) == pytest.approx((1 / 3, 0.0, 1 / 3, 1 / 3))


def test_an_event_with_a_span_is_divided_among_its_tokens() -> None:
    found = response("Oslo, 1921.", cuts=[4, 5, 8])
    for start, end, shares in (
        (2, 5, (0.5, 0.5, 0.0, 0.0, 0.0)),
        (4, 8, (0.0, 0.5, 0.5, 0.0, 0.0)),
        (10, None, (0.0, 0.0, 0.0, 0.5, 0.5)),
    ):
        assert place(found, [Event("truth", 1.0, end, start=start)]) == shares


def test_a_token_on_the_border_of_two_spans_belongs_to_both() -> None:
    """The tokens of "A is. B" are "A is", ". B" and the end: the full stop shares a token with
    the next sentence.
    """
    offsets = ((0, 4), (4, 7), (7, 7))
    assert tokens_between(offsets, 0, 5) == (0, 1) and tokens_between(offsets, 6, 7) == (1,)
    assert tokens_between(offsets, 0, None) == (0, 1, 2) and tokens_between(offsets, None, 4) == (
        0,
    )


@settings(max_examples=200)
@given(st.data())
def test_token_rewards_sum_to_the_events(data: st.DataObject) -> None:
    text = data.draw(st.text(alphabet="ab é́中👍\r\n", max_size=20))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    found = response(text, cuts, data.draw(st.sampled_from(["stop", "length"])))
    ends = st.none() | st.integers(1, max(1, len(text)))
    starts = st.none() | st.integers(0, 20)
    events = [
        Event("x", value, end, start=start and min(start, (end or len(text)) - 1))
        for value, end, start in data.draw(st.lists(st.tuples(st.floats(-3, 3), ends, starts)))
    ]
    tokens = place(found, events)
    assert len(tokens) == len(found.offsets)
    if found.offsets:
        total = math.fsum(event.value for event in events)
        assert math.fsum(tokens) == pytest.approx(total, abs=1e-9)
    assert place(found, random.Random(0).sample(events, len(events))) == pytest.approx(tokens)


def test_rescoring_places_events_and_puts_rewards_without_events_at_the_end() -> None:
    events = (Event("x", 1.0, 1), Event("y", 0.5))
    rewards = {"a": Reward(1.5, events=events), "b": Reward(None), "own": Reward(2.5)}
    paid = rescore(
        Feedback(response("Oslo", cuts=[2])),
        {name: partial(lambda reward, _: reward, reward) for name, reward in rewards.items()},
    )
    found = {name: reward.tokens for name, reward in paid.rewards.items()}
    assert found == {"a": (1.0, 0.0, 0.5), "b": (), "own": (0.0, 0.0, 2.5)}


@settings(max_examples=200)
@given(st.text(alphabet="ab .中", max_size=30), st.text(alphabet="ab c.中", max_size=12))
def test_a_claim_is_matched_to_the_sentence_that_covers_it_best(text: str, claim: str) -> None:
    sentences = [(start, min(start + 7, len(text))) for start in range(0, len(text), 7)]
    [found] = locate(text, sentences, [Claim(0, claim)])
    shares = [coverage(strip_end(claim), text[begin:end]) for begin, end in sentences]
    assert (found.sentence is None) == (not any(shares))
    assert found.sentence is None or shares[found.sentence] == max(shares)


def test_ties_in_coverage_go_to_the_sentence_with_the_end_of_the_claim() -> None:
    text = "The Eiffel Tower stands in Paris. It was built in 1889. It was built in 1889."
    sentences = [(0, 33), (34, 55), (56, 77)]
    claim = "The Eiffel Tower was built in 1889."
    found = locate(
        text, sentences, [Claim(0, claim), Claim(1, claim), Claim(2, "The Eiffel Tower")]
    )
    assert [one.sentence for one in found] == [1, 2, 0]


@pytest.mark.parametrize(
    ("text", "claim", "title", "sentence"),
    [
        ("Ana Bo was born in Oslo. She died in Oslo.", "Ana Bo died in Oslo.", "Ana Bo", 1),
        (
            "Marie Curie was a Polish physicist. She was also a chemist.",
            "Marie Curie was a chemist.",
            "Marie Curie",
            1,
        ),
        # of two subjects, both names are left out
        ("Ana Bo met Toma Fel. He died in Oslo.", "Toma Fel died in Oslo.", "Ana Bo; Toma Fel", 1),
        # the subject decides between sentences with the same other words
        ("Ana Bo paints. Toma Fel paints.", "Ana Bo paints.", "Ana Bo", 0),
        # a quotation stays where it is
        ("Ana Bo died. She died in Oslo, in 1921.", "Ana Bo died.", "Ana Bo", 0),
        # only the subject is shared
        ("It rains. Ana Bo was born.", "Ana Bo sings.", "Ana Bo", 1),
        ("It rains.", "Ana Bo sings.", "Ana Bo", None),
    ],
)
def test_the_subject_of_the_question_does_not_choose_the_sentence(
    text: str, claim: str, title: str, sentence: int | None
) -> None:
    cut = text.index(". ") + 1 if ". " in text else len(text)
    spans = [(0, cut), (cut + 1, len(text))][: 1 + (cut < len(text))]
    titles = Question("q", "?", title=title).titles
    assert locate(text, spans, [Claim(0, claim)], titles)[0].sentence == sentence
