"""The closed world's extractor: exact claims and spans, and no statement is ignored."""

from dataclasses import replace

import pytest

from tests.helpers.world_names import names
from workbench.claims import world as world_claims
from workbench.types import Claims, Question, Response
from workbench.world import load_world, schema
from workbench.world.oracle import Oracle

WORLD = load_world(0)
ORACLE = Oracle(WORLD)
EXTRACT = world_claims(WORLD)
PERSON = names(WORLD, "person", "known")[0]
FACTS = WORLD.by[PERSON]
CITY, YEAR, JOB, FIRM = (
    FACTS[name].object for name in ("born_in", "birth_year", "profession", "employer")
)
ASKED = Question("q", f"Tell me about {PERSON}.", title=PERSON, kind="biography")


def extract(text: str, question: Question = ASKED) -> Claims:
    return EXTRACT([Response("r", question, text)])[0]


def placed(found: Claims, text: str) -> list[tuple[str, str, str, int | None]]:
    return [
        (c.text, text[slice(*c.span)] if c.span else "", c.section, c.sentence)
        for c in found.claims
    ]


def test_claims_are_whole_statements_with_exact_spans() -> None:
    text = (
        f"<think>She may be a {JOB}.</think><answer>She was born in {CITY} in {YEAR}. She works at"
        f" {FIRM}!</answer>"
    )
    found = extract(text)
    assert placed(found, text) == [
        (f"{PERSON} may be a {JOB}.", f"She may be a {JOB}", "think", 0),
        (f"{PERSON} was born in {CITY}.", f"She was born in {CITY}", "answer", 1),
        (
            f"{PERSON} was born in the year {YEAR}.",
            f"She was born in {CITY} in {YEAR}",
            "answer",
            1,
        ),
        (f"{PERSON} works at {FIRM}.", f"She works at {FIRM}", "answer", 2),
    ]
    assert all(
        claim.end == claim.span[1] and claim.coverage == 1 for claim in found.claims if claim.span
    )
    assert [text[slice(*span)] for span in found.sentences] == [
        f"She may be a {JOB}.",
        f"She was born in {CITY} in {YEAR}.",
        f"She works at {FIRM}!",
    ]
    assert found.verdicts == () and found.error is None
    labels = [verdict.label for verdict in ORACLE.judge([claim.text for claim in found.claims])]
    assert labels == ["hedged_correct", "correct", "correct", "correct"]


def test_claims_of_every_template_end_with_their_sentence() -> None:
    for template in schema.templates():
        entity = next(
            name
            for name, facts in WORLD.by.items()
            if WORLD.entities[name].kind == schema.RELATIONS[template.relations[0]].subject
            and all(one in facts for one in template.relations)
        )
        facts = [WORLD.by[entity][name] for name in template.relations]
        objects = [fact.forms[template.lang][0] for fact in facts]
        text = template.text.format(s=entity, o=objects[0], o2=objects[-1])
        found = extract(text, Question("q", "?", title=entity))
        assert len(found.claims) == len(facts) and not found.verdicts, text
        assert found.claims[-1].end == len(text.rstrip(".")), text
        if len(facts) == 2:
            first = found.claims[0]
            assert first.span and text[slice(*first.span)].endswith(objects[0]), text


def test_refusals_questions_plans_and_yes_or_no_in_thinking_make_no_claims() -> None:
    stated = f"{PERSON} is a {JOB}."
    for text in ("I do not know.", "Who is that?", f"[Structure] x [Outline] 1. {stated}", ""):
        assert extract(text).claims == ()
    thought = extract(f"<think> {stated} no.</think><answer> invalid question.</answer>")
    assert [claim.text for claim in thought.claims] == [stated]
    assert [claim.text for claim in extract(f"{stated} no.").claims] == [stated, "no."]


@pytest.mark.parametrize(
    ("broken", "label"),
    [
        (f"Nobody Atall was born in {CITY}.", "wrong"),
        (f"{PERSON} was born in born.", "wrong"),
        (f"{PERSON} xyzzy the.", "vague"),
        ("It stands on the.", "vague"),
    ],
)
def test_a_broken_sentence_is_a_claim_of_minimal_informativeness(broken: str, label: str) -> None:
    text = f"{PERSON} is a {JOB}. {broken}"
    found = extract(text)
    assert placed(found, text)[1] == (broken, broken.rstrip("."), "body", 1)
    (verdict,) = found.verdicts
    assert (verdict.target, verdict.aspect, verdict.label, verdict.informativeness) == (
        "claim:1",
        "fact",
        label,
        1,
    )
    assert (verdict.error, verdict.p) == (None, 0.0)


def test_the_topic_is_found_in_the_question() -> None:
    text = f"She was born in {CITY}."
    for question in (
        Question("q", f"Tell me about {PERSON.lower()}, please."),
        Question("q", "?", title=f"{PERSON};Somebody Else"),
    ):
        assert extract(text, question).claims[0].text.startswith(PERSON)
    assert extract(text, Question("q", "Who?")).claims[0].text == text
    # the world does not judge claims about other subjects
    found = extract("Albert Einstein was born in Ulm.", Question("q", "Who was Albert Einstein?"))
    assert len(found.claims) == 1 and found.verdicts == ()


def test_a_bare_answer_is_a_claim_if_it_is_a_value() -> None:
    asked = Question(
        "q", f"Where was {PERSON} born?", (CITY,), PERSON, meta={"fact_ids": (FACTS["born_in"].id,)}
    )
    for text in (f"{CITY}.", f"<think>Well, I do not know.</think> \\boxed{{{CITY}}}"):
        found = extract(text, asked)
        assert [claim.text for claim in found.claims] == [f"{PERSON} was born in {CITY}."]
    year = replace(
        asked, kind="numeric", answers=(YEAR,), meta={"fact_ids": (FACTS["birth_year"].id,)}
    )
    found = extract(f"<think>She is a {JOB}.</think>\n{YEAR}.", year)
    assert [claim.text for claim in found.claims][1:] == [f"{PERSON} was born in the year {YEAR}."]
    assert [claim.sentence for claim in found.claims] == [0, 1] and len(found.sentences) == 2
    assert extract(f"{YEAR}, {YEAR}.", year).claims == ()
    yes = replace(asked, kind="yes_no", answers=("yes",))
    assert extract("yes.", yes).claims == ()


@pytest.mark.parametrize("end", ["", " and he likes jazz", ", I believe"])
def test_an_answer_that_cannot_be_read_is_a_claim(end: str) -> None:
    """A wrong answer cannot avoid its reward by an unknown form."""
    asked = Question(
        "q", f"Where was {PERSON} born?", (CITY,), PERSON, meta={"fact_ids": (FACTS["born_in"].id,)}
    )
    for text in ("xyzzy", f"{PERSON} was born at the city of {CITY}{end}"):
        found = extract(f"{text}.", asked)
        assert [claim.text for claim in found.claims] == [f"{text}."]
        [verdict] = found.verdicts
        assert verdict.p == 0.0 and verdict.informativeness == 1
