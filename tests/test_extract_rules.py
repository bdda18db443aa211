"""Claims extracted by rules, on hand-written sentences."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import examples, table
from workbench.claims import rules
from workbench.claims.clauses import clauses
from workbench.claims.pronouns import resolve
from workbench.credit.attribute import is_placed
from workbench.text import sentences
from workbench.types import Claim, Claims, Question, Response

TOPIC = "Toma Ardel"


def test_clauses() -> None:
    for sentence, expected in table("divided"):
        response = Response("r", Question("q", "?", title=TOPIC), sentence)
        claims = [Claim(n, claim, sentence=0) for n, claim in enumerate(clauses(sentence))]
        assert [claim.text for claim in resolve(claims, response)] == expected.split(" | ")


@pytest.mark.parametrize("piece", [" and wrote a book in Osk", " and won the prize"])
@pytest.mark.parametrize("begun", ["He met those who sang in Osk", "She met people who left Osk"])
def test_claims_do_not_grow_with_the_square_of_their_sentence(begun: str, piece: str) -> None:
    sentence = begun + 60 * piece
    claims = clauses(sentence)
    assert claims[-1] == f"{sentence}." and len("".join(claims)) < 2 * len(sentence)
    assert clauses(begun + piece)[-1] == f"{begun}{piece}."


def extract(text: str, title: str = TOPIC) -> Claims:
    return rules()([Response("r", Question("q", "?", title=title), text)])[0]


def test_claims_have_section_sentence_and_span() -> None:
    text = (
        "<think>He was born in Vetra in 1921.</think><answer>I don't know. Who is he? He"
        " won.</answer>"
    )
    found = extract(text)
    assert [
        (c.id, c.text, c.section, c.sentence, text[slice(*c.span)] if c.span else "")
        for c in found.claims
    ] == [
        (0, "Toma Ardel was born in Vetra.", "think", 0, "He was born in Vetra"),
        (1, "Toma Ardel was born in 1921.", "think", 0, "He was born in Vetra in 1921"),
        (2, "Toma Ardel won.", "answer", 3, "He won"),
    ]
    assert found.verdicts == () and found.error is None and found.cost.calls == 0


def test_the_topic_comes_from_the_title_the_question_or_the_response() -> None:
    for question in (
        Question("q", "?", title="Toma Ardel (painter)"),
        Question("q", "Tell me a bio of Toma Ardel."),
    ):
        assert rules()([Response("r", question, "He won.")])[0].claims[0].text == "Toma Ardel won."
    assert [c.text for c in extract("Toma Ardel is a baker. He won.", "").claims] == [
        "Toma Ardel is a baker.",
        "Toma Ardel won.",
    ]
    assert [c.text for c in extract("nobody knows him. He won.", "").claims][-1] == "He won."


def test_unambiguous_pronouns_are_replaced() -> None:
    for title, question, text, expected in table("pronouns"):
        claims = rules()([Response("r", Question("q", question, title=title), text)])[0].claims
        assert claims[-1].text == expected and claims[0].text != "Yes.", text


@pytest.mark.parametrize(("text", "expected"), examples("signs"))
def test_punctuation_within_a_title_does_not_end_a_sentence(
    text: str, expected: list[list[int | str]]
) -> None:
    found = extract(text)
    assert [[claim.sentence, claim.text] for claim in found.claims] == expected
    assert found.sentences == sentences(text)


def test_plans_and_headings_make_no_claims() -> None:
    text = "[Outline] He won. [Answer]\n## Career\n| year | prize |\n|---|---|\nHe lost."
    assert [c.text for c in extract(text).claims] == ["Toma Ardel lost."]


@pytest.mark.parametrize(("title", "text", "expected"), table("forms"))
def test_text_formats(title: str, text: str, expected: str) -> None:
    text = text.replace("\\n", "\n").replace("\\t", "\t")
    found = extract(text, title)
    assert [claim.text for claim in found.claims] == list(filter(None, expected.split(" | ")))
    assert found.sentences == sentences(text)
    for claim in found.claims:
        begin, end = found.sentences[claim.sentence or 0]
        assert claim.span and begin <= claim.span[0] < claim.span[1] and is_placed(claim)
        assert claim.span[1] <= max(end, text.find("\n", begin)) or text[begin] == "|"


@settings(max_examples=100)
@given(
    st.lists(
        st.sampled_from(
            'He was born in Vetra , and who won a the "prize" (1920–1999) ; including Lomar , known'
            " for 12 . is".split()
        )
    )
)
def test_any_words_give_claims_within_their_sentences(words: list[str]) -> None:
    found = extract(" ".join(words))
    for claim in found.claims:
        assert claim.text and claim.sentence is not None
        begin, end = found.sentences[claim.sentence]
        assert claim.span is None or begin <= claim.span[0] < claim.span[1] <= end


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["and he was ", "Aa", "A, ", "(", "in 1920 ", ", who was", '" and "', "in a "]
)
def test_long_degenerate_sentences_are_read(piece: str) -> None:
    assert extract(piece * (20_000 // len(piece)) + " x").claims
    assert clauses(piece * (1900 // len(piece)) + " x")
