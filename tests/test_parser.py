"""Text → facts: every template is inverted exactly, and noise is reported, never guessed."""

import random

import pytest

from tests.helpers.world_names import names
from workbench.world import load_world, schema
from workbench.world.oracle import Oracle

WORLD = load_world(0)
ORACLE = Oracle(WORLD)
PARSER = ORACLE.parser
PERSON = names(WORLD, "person", "known")[0]
FACTS = WORLD.by[PERSON]
CITY = names(WORLD, "city")[0]
COMPANY = names(WORLD, "company")[0]


@pytest.mark.parametrize(
    "template", schema.templates(), ids=lambda t: f"{t.lang}-{t.stance}-{t.text}"
)
def test_every_template_is_inverted(template):
    rng = random.Random(template.text)
    kind = schema.RELATIONS[template.relations[0]].subject
    for name in rng.sample(names(WORLD, kind), 5):
        facts = [WORLD.by[name][relation] for relation in template.relations]
        objects = {
            slot: fact.forms[template.lang][0]
            for slot, fact in zip(("o", "o2"), facts, strict=False)
        }
        parse = PARSER.parse(template.text.format(s=name, **objects))
        assert not parse.unparsed
        assert [(c.subject, c.relation, c.stance, c.lang) for c in parse.claims] == [
            (name, fact.relation, template.stance, template.lang) for fact in facts
        ]
        if template.stance != "vague":
            assert [claim.object for claim in parse.claims] == [fact.object for fact in facts]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{PERSON} was born in born.", "object"),
        (f"{PERSON} {PERSON} was born in {FACTS['born_in'].object}.", "subject"),
        (f"Nobody Atall was born in {FACTS['born_in'].object}.", "subject"),
        (f"{PERSON} xyzzy the.", "form"),
        (f"{CITY} has 330,000 thousand inhabitants.", "object"),
        (f"{COMPANY} was founded on 99 May 1900.", "object"),
        ("He is a painter.", "pronoun"),
        (f"{FACTS['born_in'].object} was born in {PERSON}.", "subject"),
    ],
)
def test_noise_has_a_reason_and_its_neighbours_are_parsed(text, reason):
    good = f"Lo metie de {PERSON} ta {FACTS['profession'].forms['l2'][0]}."
    parse = PARSER.parse(f"{text} {good}")
    assert [failure.reason for failure in parse.unparsed] == [reason]
    assert [(claim.relation, claim.object) for claim in parse.claims] == [
        ("profession", FACTS["profession"].object)
    ]
    verdict = ORACLE.judge([text])[0]
    assert verdict.label is None and verdict.error is not None and verdict.error.kind == "unparsed"


def test_pronouns_refer_to_the_last_name_or_the_topic():
    sentence = f"She works at {FACTS['employer'].object}."
    assert PARSER.parse(sentence, topic=PERSON).claims[0].subject == PERSON
    other = next(name for name in names(WORLD, "person") if name != PERSON)
    parse = PARSER.parse(f"{other} is a painter. {sentence}", topic=PERSON)
    assert parse.claims[1].subject == other


def test_five_labels():
    wrong = next(p for p in ("painter", "chemist") if p != FACTS["profession"].object)
    labels = [
        (f"{PERSON} is a {FACTS['profession'].object}.", "correct"),
        (f"{PERSON} may be a {FACTS['profession'].object}.", "hedged_correct"),
        (f"Perhaps {PERSON} is a {FACTS['profession'].object}.", "hedged_correct"),
        (f"{PERSON} has some profession.", "vague"),
        (f"{PERSON} is probably a {wrong}.", "hedged_wrong"),
        (f"{PERSON} is a {wrong}.", "wrong"),
    ]
    verdicts = ORACLE.judge([claim for claim, _ in labels])
    assert [verdict.label for verdict in verdicts] == [label for _, label in labels]
    assert {verdict.informativeness for verdict in verdicts} == {
        schema.RELATIONS["profession"].importance
    }


def test_a_year_needs_no_words_before_it():
    year = FACTS["birth_year"].object
    other = str(int(year) + 1)
    labels = [
        (f"{PERSON} was born in {year}.", "correct"),
        (f"{PERSON} was probably born in {other}.", "hedged_wrong"),
        (f"{PERSON} was born in {FACTS['born_in'].object}.", "correct"),
    ]
    verdicts = ORACLE.judge([claim for claim, _ in labels])
    assert [verdict.label for verdict in verdicts] == [label for _, label in labels]


def test_outlines_headings_and_layout_neither_add_nor_hide_claims():
    job, city = FACTS["profession"].object, FACTS["born_in"].object
    text = (
        f"[Structure] comparison [Outline] 1. {PERSON} 2. A [Answer] {PERSON} is a {job}\n- She was"
        f" born in **{city}**"
    )
    parse = PARSER.parse(text)
    assert not parse.unparsed and [(c.relation, c.object) for c in parse.claims] == [
        ("profession", job),
        ("born_in", city),
    ]
    assert PARSER.parse(f"Edition of 1985. {PERSON} is a {job}.").unparsed == ()
    assert PARSER.parse(f"Perhaps, {PERSON} is a {job}.").claims[0].stance == "hedged"


def test_any_number_is_a_population_and_a_vague_claim_has_no_probability():
    verdicts = ORACLE.judge(
        [f"{CITY} has 777 thousand inhabitants.", f"{CITY} has many inhabitants."]
    )
    assert [(v.label, v.p) for v in verdicts] == [("wrong", 0.0), ("vague", None)]
