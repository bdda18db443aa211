"""Sections and sentences: exact to the character, for any text."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.helpers import examples
from workbench.text import (
    answer_sections,
    answer_text,
    final_answer,
    in_answer,
    section_at,
    sections,
    sentences,
    thinking,
)
from workbench.types import Claim, Question, Response


@pytest.mark.parametrize(("text", "expected"), examples("sections"))
def test_sections(text: str, expected: list[list[str]]) -> None:
    assert [[section, text[start:end]] for section, start, end in sections(text)] == expected


def test_section_at() -> None:
    text = "<think>ab</think>c"
    found = sections(text)
    where = ["think" if 7 <= i < 9 else "body" if i == 17 else None for i in range(len(text))]
    assert [section_at(found, i) for i in range(len(text))] == where
    assert section_at(found, 99) is None and section_at((), 0) is None


PIECES = st.lists(
    st.sampled_from(
        [
            *"<think> </think> <answer> </answer> [Structure] [Outline] [Answer]".split(),
            *"\\boxed{ } {".split(),
            *'a B. 1. ! ? … 。 ； - * # > | “ ” " ( ) [1]'.split(),
            " ",
            "\n",
            "\r\n",
            "\n\n",
            "\u2028",
            "```\n",
            "`x. Y`",
            "Dr.",
            "U.S.",
            "3.5",
            "https://a.b/c?d",
            "e.g.",
            "王。",
            "e\u0301",
            "👩‍👧",
        ]
    )
    | st.text(max_size=3)
).map("".join)


@given(PIECES)
def test_sections_and_sentences_are_ordered_disjoint_and_hold_all_words(text: str) -> None:
    at = 0
    for section, start, end in sections(text):
        assert section in ("think", "answer", "body")
        assert at <= start < end <= len(text)
        assert text[start:end].strip()
        at = end
    at, rebuilt = 0, ""
    for start, end in sentences(text):
        piece = text[start:end]
        assert at <= start < end <= len(text)
        assert piece == piece.strip()
        assert any(map(str.isalnum, piece))
        assert any(begin <= start and end <= finish for _, begin, finish in sections(text))
        rebuilt += text[at:start] + piece
        at = end
    assert rebuilt + text[at:] == text


@given(st.text(alphabet="abc .!?\n。A", max_size=60))
def test_sentences_cover_all_letters_and_digits_of_plain_text(text: str) -> None:
    spans = sentences(text)
    gaps = [
        text[a:b]
        for a, b in zip(
            [0, *(end for _, end in spans)],
            [*(start for start, _ in spans), len(text)],
            strict=True,
        )
    ]
    assert not any(map(str.isalnum, "".join(gaps)))


@given(
    st.sampled_from(["Q", "Vetra", "x y"]),
    st.sampled_from(["{}", "<think>t</think>{}", "t</think>{}", "<answer>{}</answer>"]),
)
def test_sections_agree_with_the_final_answer(answer: str, form: str) -> None:
    text = form.format(answer)
    assert final_answer(text) == answer
    section = section_at(sections(text), text.rindex(answer))
    assert section == ("answer" if "answer>" in text else "body")


@example("<think></think>\\boxed{", "<answer>")
@example("<answer>a</answer><think>b</think>c", "")
@given(PIECES, st.sampled_from(["", "<think>\n", "<answer>", "[Outline]"]))
def test_the_answer_text_contains_the_final_answer_and_excludes_the_thinking(
    text: str, prefill: str
) -> None:
    said = answer_text(text, prefill)
    final = final_answer(text, prefill=prefill)
    assert final is None or all(line.strip() in said for line in final.splitlines())
    wanted, held = answer_sections(text, prefill), "".join(thinking(text, prefill).split())
    kept = [text[start:end] for section, start, end in sections(text, prefill) if section in wanted]
    assert all(part.strip() in said for part in kept)
    assert sum(map(len, "".join(kept).split())) + len(held) <= len(text)


ELSEWHERE = "Lomar is old. <answer>It is Vetra.</answer> \\boxed{Kessin}"
ANSWERS = [
    ("<think>Lomar?</think> It is \\boxed{Vetra}, I think.", "It is \\boxed{Vetra}, I think."),
    (ELSEWHERE, "It is Vetra.\nKessin"),
    ("[Outline] Lomar [Answer] Vetra", "Vetra"),
    ("Vetra. [Outline] Lomar", "Vetra."),
    ("<think>Lomar", ""),
    ("Lomar <answer></answer>", ""),
]


@pytest.mark.parametrize(("text", "answer"), ANSWERS)
def test_the_text_of_the_answer(text: str, answer: str) -> None:
    assert answer_text(text) == answer


def test_in_answer_keeps_claims_of_the_answer_and_claims_without_a_position() -> None:
    claims = [
        Claim(0, "thought", "think", 0),
        Claim(1, "beside", "body", 1),
        Claim(2, "said", "answer", 2),
        Claim(3, "lost", "body"),
        Claim(4, "lost in thought", "think"),
    ]
    for text, kept in ((ELSEWHERE, [2, 3]), ("<think>a</think>Lomar is old.", [1, 2, 3])):
        assert [
            claim.id for claim in filter(in_answer(Response("r", Question("q", "?"), text)), claims)
        ] == kept


@pytest.mark.parametrize(("text", "expected"), examples("sentences"))
def test_sentences(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    examples("degenerate_texts"),
)
def test_long_degenerate_texts_are_split(piece: str) -> None:
    """An algorithm slower than linear time would not finish."""
    text = f"{piece * (200_000 // len(piece))}x"
    spans = sentences(text)
    assert spans and spans[-1][1] == len(text)
