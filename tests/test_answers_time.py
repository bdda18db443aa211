"""Every reader of a response takes time in proportion to its length, whatever it is made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from time import process_time

import pytest

from workbench.claims import judged, makes_claims, rules
from workbench.claims import world as world_claims
from workbench.text import (
    answer_text,
    final_answer,
    hedge,
    is_abstention,
    is_invalid,
    matches,
    normalise,
    sections,
    sentences,
    thinking,
    well_formed,
)
from workbench.text.normal_form import canonical
from workbench.text.sections import opened
from workbench.types import Question, Reply, Response
from workbench.world import load_world

WORLD = load_world(0)
BORN = next(fact for fact in WORLD.facts if fact.relation == "born_in")
ASKED = Question(
    "q",
    f"Where was {BORN.subject} born?",
    (BORN.object,),
    BORN.subject,
    meta={"fact_ids": (BORN.id,)},
)
ABOUT, UNTITLED = Question("p", "Tell me about Ada Lovelace."), Question("u", "")
RULES, EXACT = rules(), world_claims(WORLD)

Read = Callable[[str], object]


def parts(text: str) -> object:
    return [
        read(text)
        for read in (sections, sentences, final_answer, answer_text, thinking, well_formed, opened)
    ]


def meaning(text: str) -> object:
    return [
        read(text)
        for read in (is_abstention, is_invalid, hedge, normalise, makes_claims.__wrapped__)
    ]


def answers(text: str) -> object:
    gold = {
        "single": ["Paris"],
        "numeric": ["1921"],
        "yes_no": ["yes"],
        "list": ["Paris", "a"],
        "false_premise": ["invalid question"],
    }
    return [matches(text, forms, kind, "Where is a Paris?") for kind, forms in gold.items()]


def claims(text: str) -> object:
    return RULES([Response("r", question, text) for question in (ABOUT, UNTITLED)])


def exact(text: str) -> object:
    return EXACT([Response("r", ASKED, text)])


READERS = {"parts": parts, "meaning": meaning, "answers": answers, "claims": claims, "exact": exact}
PIECES = {
    "tags": "<answer>a</answer>",
    "closing tags": "</think>x",
    "plans": "[Outline] a [Answer] b ",
    "boxes": r"\boxed{a} ",
    "open boxes": r"\boxed{",
    "wrappers": r"\text{",
    "capitals": "Ada Bo ",
    "pronouns": "He ran. She sat. It was. ",
    "quotes": "“a ",
    "straight quotes": '" ',
    "digits": "1 2 ",
    "big numbers": "1,000,",
    "one long word": "a",
    "one long number": "7",
    "new lines": "a\n",
    "empty lines": "\n",
    "list items": "- a\n",
    "numbered": "1. a\n",
    "code": "`a` ",
    "fences": "```\n",
    "refusals": "I do not know, ",
    "hedges": "maybe he may ",
    "Chinese": "我不知道，",
    "verbs": "is ",
    "brackets": "(",
    "commas": ",",
    "dates": "3 May 1921 ",
    "initials": "A. ",
    "alternatives": "Vetra or ",
    "negations": "not x but ",
    "half a list": "a, ",
    "words": "word ",
    "statements": f"{BORN.subject} was born in {BORN.object}. ",
    "half statements": f"{BORN.subject} is a ",
}
QUICK = 0.05  # seconds that tell nothing of growth


def seconds(read: Read, text: str) -> float:
    canonical.cache_clear()
    begun = process_time()
    read(text)
    return process_time() - begun


def assert_linear(read: Read, make: Callable[[int], str], size: int) -> None:
    """Eight times the text takes about eight times as long, not sixty-four; the bound leaves
    room for a busy machine, and what it fails once is measured again."""
    found = []
    for attempt in range(3):
        other = "." * attempt  # another text each time: readers may remember the last ones
        longer = seconds(read, make(8 * size) + other)
        found.append(
            (longer, 30 * seconds(read, make(size) + other) if longer > QUICK else longer + 1)
        )
        if longer < found[-1][1]:
            return
    raise AssertionError(f"seconds, and the most that is linear: {found}")


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("piece", PIECES)
def test_repeated_text_is_read_in_linear_time(reader: str, piece: str) -> None:
    assert_linear(READERS[reader], lambda size: PIECES[piece] * (size // len(PIECES[piece])), 1_500)


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["words", "big numbers"])
def test_answers_in_many_words_are_read_in_linear_time(piece: str) -> None:
    assert_linear(answers, lambda size: PIECES[piece] * (size // len(PIECES[piece])), 1_500)


@pytest.mark.parametrize("piece", ["“a ", "«a ", "「a", "„a ", '"a '])
def test_open_quotations_are_read_in_linear_time(piece: str) -> None:
    assert_linear(hedge, lambda size: piece * (size // len(piece)), 20_000)


SENTENCES = [
    "Ada{} Bo{} wrote.",
    "Ada{} wrote to Ada{} and ran.",
    "The cat{} was born. It ran.",
    "Ada and Ada{} wrote.",
    "It is x{}. She was born in {}.",
]


@pytest.mark.slow
@pytest.mark.parametrize("sentence", SENTENCES)
def test_many_names_are_read_in_linear_time(sentence: str) -> None:
    assert_linear(claims, lambda size: " ".join(sentence.format(i, i) for i in range(size)), 500)


@pytest.mark.slow
def test_many_quotations_of_a_judge_are_placed_in_linear_time() -> None:
    def said(size: int) -> list[str]:
        return [f"Ada{i} was born in {i}." for i in range(size)]

    def read(text: str) -> object:
        quoted = [{"text": one, "claims": [one]} for one in said(text.count("."))]
        extract = judged(
            lambda prompts: [Reply(json.dumps({"sentences": quoted})) for _ in prompts]
        )
        [found] = extract([Response("r", ABOUT, text)])
        assert found.error is None and len(found.claims) == len(quoted)
        return found

    assert_linear(read, lambda size: " ".join(said(size)), 250)


@pytest.mark.slow
def test_long_lists_of_refusals_and_claims_are_read_at_all() -> None:
    """As many nested calls as refusals would end in an error."""
    assert is_abstention("I do not know, " * 13_000 + "sorry.")
    assert not is_abstention("I do not know, " * 13_000 + "Vetra.")
    [found] = RULES([Response("r", ABOUT, "Ada ran. " * 10_000)])
    assert len(found.claims) == len(found.sentences) == 10_000
    [found] = RULES([Response("r", ABOUT, "- a cat ran\n" * 13_000)])
    assert len(found.sentences) == 13_000


def test_a_long_sentence_is_one_claim_in_its_own_place() -> None:
    text = "First. " + "the cat sat and\n" * 400 + "slept."
    [found] = RULES([Response("r", ABOUT, text)])
    *_, claim = found.claims
    assert claim.span == (7, len(text) - 1) and claim.end == len(text) - 1 and claim.coverage == 1.0
