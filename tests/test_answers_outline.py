"""Parsing of planned answers: structure, outline and citations."""

import pytest

from tests.helpers import examples
from workbench.text.outline import Outline, Point, citations, read_outline, read_plan, uncited
from workbench.text.sections import outlined

WHOLE = (
    "[Structure] comparison [Outline] 1. Ada Lo [2] 2. Bo Di [Answer] Ada Lo is a baker. In"
    " comparison, Bo Di is a poet."
)


def test_a_planned_answer_is_read_into_its_parts():
    read = read_outline(WHOLE)
    assert read == Outline(
        "comparison",
        (Point("Ada Lo", 2), Point("Bo Di")),
        "Ada Lo is a baker. In comparison, Bo Di is a poet.",
    )
    for text in (
        "[Structure] a [Outline] 1. Born in 1923. 2. Dead [Answer] b",
        "[Structure]a\n[Outline]\n1) Born in 1923.\n2) Dead\n[Answer]b",
    ):
        assert read_outline(text) == Outline("a", (Point("Born in 1923."), Point("Dead")), "b")


@pytest.mark.parametrize("text", examples("no_outlines"))
def test_texts_that_are_not_planned_answers(text):
    assert read_outline(text) is None


@pytest.mark.parametrize(
    ("outline", "read"),
    examples("outlines"),
)
def test_outlined_needs_no_numbers_and_read_outline_does(outline, read):
    text = f"[Structure] comparison [Outline] {outline} [Answer] Ada Lo is a baker."
    assert outlined(text) is bool(outline) and (read_outline(text) is not None) is read


def test_read_plan_keeps_the_text_as_written():
    assert read_plan(WHOLE) == ("comparison", ("Ada Lo [2]", "Bo Di"))
    assert read_plan(
        "[Structure] parallel\n[Outline]\n- Ada Lo [2]\n\n- Bo Di\n[Answer] Text."
    ) == ("parallel", ("- Ada Lo [2]", "- Bo Di"))
    assert read_plan(WHOLE + " [Answer] Again.") is None
    assert read_plan("Ada Lo is a baker.") is None
    assert read_plan("") is None


def test_citations_are_read_and_removed():
    text = "Ada [2] is a baker [3][12]. Born [x], [] and (1)."
    assert citations(text) == [2, 3, 12] and citations("") == []
    assert uncited(text) == "Ada     is a baker        . Born [x], [] and (1)."


@pytest.mark.parametrize(("cited", "numbers"), examples("citations"))
def test_every_citation_format_is_read(cited, numbers):
    text = f"Ada {cited}."
    assert citations(text) == numbers and len(uncited(text)) == len(text)
    assert (uncited(text).split() == ["Ada", "."]) is (bool(numbers) and cited != "[[2]]")
    assert citations(f"[{'9' * 5000}]") == [999999999]


def test_unclosed_brackets_are_read_in_linear_time():
    for piece in ("[", "[1", "[1,", "1 ", "1-", "1 - ", "  "):
        assert citations("[1" + piece * 100_000) == [] and citations("[1]" + piece * 100_000) == [1]


def test_a_long_text_is_read_in_linear_time():
    for piece in ("[Structure] ", "[Outline] ", "[Answer] ", "1. ", "[2] ", "a ", " "):
        assert read_outline(piece * 20_000) is None
        assert read_outline("[Structure] " + piece * 20_000) is None
    read = read_outline(f"[Structure] a [Outline] 1. b [{'1' * 5000}] [Answer] c")
    assert read is not None and read.points[0].source is None
