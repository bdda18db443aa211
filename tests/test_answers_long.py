"""Parsers finish on long and repetitive responses."""

import json

import pytest

from workbench.claims import judged, makes_claims, rules
from workbench.claims import world as world_claims
from workbench.text import (
    answer_text,
    final_answer,
    is_abstention,
    is_invalid,
    matches,
    normalise,
    sections,
    sentences,
    thinking,
    well_formed,
)
from workbench.text.hedging import hedge
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


@pytest.mark.slow
@pytest.mark.parametrize("piece", [*PIECES.values(), "“a ", "«a ", "「a", "„a "])
def test_long_repetitive_texts_are_read(piece: str) -> None:
    """A pattern that backtracks without a limit does not finish; see `benchmarks/growth.py`."""
    text = piece * (12_000 // len(piece))
    for read in READERS.values():
        read(text)
    for start, end in sentences(text):
        assert text[start:end].strip() == text[start:end]


@pytest.mark.slow
def test_many_sentences_quoted_by_a_judge_are_located() -> None:
    quotations = [f"Ada{i} was born in {i}." for i in range(2_000)]
    raw = json.dumps({"sentences": [{"text": one, "claims": [one]} for one in quotations]})
    extract = judged(lambda prompts: [Reply(raw) for _ in prompts])
    [claims] = extract([Response("r", ABOUT, " ".join(quotations))])
    assert claims.error is None and len(claims.claims) == 2_000
    assert all(claim.span is not None for claim in claims.claims)


@pytest.mark.slow
def test_long_lists_of_refusals_and_claims_are_read() -> None:
    """One nested call per refusal would exceed the recursion limit."""
    assert is_abstention("I do not know, " * 13_000 + "sorry.")
    assert not is_abstention("I do not know, " * 13_000 + "Vetra.")
    [result] = RULES([Response("r", ABOUT, "Ada ran. " * 10_000)])
    assert len(result.claims) == len(result.sentences) == 10_000
    [result] = RULES([Response("r", ABOUT, "- a cat ran\n" * 13_000)])
    assert len(result.sentences) == 13_000


def test_a_long_sentence_is_one_claim_with_the_span_of_the_sentence() -> None:
    text = "First. " + "the cat sat and\n" * 400 + "slept."
    [result] = RULES([Response("r", ABOUT, text)])
    *_, claim = result.claims
    assert claim.span == (7, len(text) - 1) and claim.end == len(text) - 1 and claim.coverage == 1.0
