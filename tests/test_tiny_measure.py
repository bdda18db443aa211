"""What the card of a tiny policy says: replies of known worth get the rates that they must, on
the real questions.
"""

from collections.abc import Callable, Sequence

import pytest

from workbench.grade import grade
from workbench.tiny.skill_rates import (
    long_form,
    rates,
    reading_questions,
    reasoned,
    reasoned_questions,
    thought_questions,
    thought_rates,
)
from workbench.tiny.skills import numbered
from workbench.types import Feedback, Question, Response
from workbench.verify import outcome
from workbench.world import load_world, schema


@pytest.fixture(scope="module")
def world():
    return load_world(0)


def told(
    questions: Sequence[Question], reply: Callable[[Question], str], finish: str = "stop"
) -> list[Feedback]:
    return grade([outcome()], {})([Response(q.id, q, reply(q), finish=finish) for q in questions])


def test_a_reader_who_is_right_and_one_who_always_passes(world):
    right = told(reading_questions(world, "several", 40, 0), lambda q: f"{q.answers[0]}.")
    assert rates(right) == {"n": 40, "accuracy": 1.0, "abstention": 0.0}
    passing = told(reading_questions(world, "stale", 40, 0), lambda q: "I do not know.")
    assert rates(passing) == {"n": 40, "accuracy": 0.0, "abstention": 1.0}
    nothing = told(reading_questions(world, "none", 40, 0), lambda q: "painter.")
    # there is nothing to get right
    assert rates(nothing) == {"n": 40, "accuracy": None, "abstention": 0.0}


def test_who_calls_every_question_invalid_fails_the_true_twins(world):
    asked = [
        q for q in reasoned_questions(world, "test") if q.kind in ("false_premise", "true_premise")
    ]
    found = reasoned(
        told(asked, lambda q: "<think> a</think><answer> invalid question.</answer>"), world
    )
    assert (
        found["false_premise"]["all"]["accuracy"] == 1.0
        and found["true_premise"]["all"]["accuracy"] == 0.0
    )
    assert (
        found["false_premise"]["all"]["n"]
        == found["true_premise"]["all"]["n"]
        > found["true_premise"]["covered"]["n"]
    )
    assert found["true_premise"]["covered"]["n"] > found["true_premise"]["known"]["n"] > 50
    right = reasoned(
        told(asked, lambda q: f"<think> a</think><answer> {q.answers[0]}.</answer>"), world
    )
    assert all(cell["accuracy"] == 1.0 for groups in right.values() for cell in groups.values())


def test_an_answer_is_copied_when_it_is_what_the_thought_states_last_of_the_fact(world):
    asked = [q for q in thought_questions(world, "test") if "born" in q.text and "city" in q.text][
        :4
    ]
    cities = [name for name, entity in world.entities.items() if entity.kind == "city"][:2]
    thoughts = (  # what is thought of each person, and what is answered
        (f"{{}} was born in {cities[0]}.", cities[0]),
        (f"{{}} was born in {cities[0]}.", cities[1]),
        ("{} is a painter.", cities[0]),  # states nothing of what is asked
        (f"{{}} was born in {cities[1]}. She was born in {cities[0]}.", cities[0]),
    )
    said = {
        question.id: f"<think> {thought.format(question.title)}</think><answer> {answer}.</answer>"
        for question, (thought, answer) in zip(asked, thoughts, strict=True)
    }
    found = thought_rates(told(asked, lambda q: said[q.id]), world)
    assert (found["stated"], found["copied"]) == (3, pytest.approx(2 / 3))


PLAN = "[Structure] comparison [Outline] 1. {s} [1] 2. {t} [2] [Answer]"


@pytest.mark.parametrize(
    ("reply", "form", "facets", "supported"),  # supported: None where nothing is claimed
    [
        ("{s} is a {o}. In comparison, {t} is a {p}.", 0.0, 1.0, 1.0),  # no plan
        (
            (
                "[Structure] comparison [Outline] 1. {s} [1] 2. {t} [2] [Answer] {s} is a {o}. In"
                " comparison, {t} is a {p}."
            ),
            1.0,
            1.0,
            1.0,
        ),
        (PLAN + " {s} is a {p}.", 1.0, 0.5, 0.0),
        (PLAN + " {s} is a {o}. I do not know who {t} is.", 1.0, 0.5, 1.0),
        (PLAN + " I do not know who {s} is. I do not know who {t} is.", 1.0, 0.0, None),
        # of somebody who was not asked about
        (PLAN + " {s} is a {o}. {t} is a {p}. {u} is a {p}.", 1.0, 1.0, 2 / 3),
        (
            (
                "[Structure] comparison [Outline] 1. {s} [2] 2. {t} [1] [Answer] {s} is a {o}. {t}"
                " is a {p}."
            ),
            0.0,
            1.0,
            1.0,
        ),
        # on nothing
        (
            "[Structure] comparison [Outline] 1. {s} 2. {t} [Answer] {s} is a {o}. {t} is a {p}.",
            0.0,
            1.0,
            1.0,
        ),
        # another order
        (
            "[Structure] comparison [Outline] 1. {t} 2. {s} [Answer] {s} is a {o}. {t} is a {p}.",
            0.0,
            1.0,
            1.0,
        ),
        (
            "[Structure] harbor [Outline] 1. {s} 2. {t} [Answer] {s} is a {o}. {t} is a {p}.",
            0.0,
            1.0,
            1.0,
        ),
        (
            (
                "[Structure] comparison [Outline] 1. {s} 2. {t} [Answer] {s} is a harbor. {t} is a"
                " {p}."
            ),
            0.0,
            0.5,
            1.0,
        ),
    ],
)
def test_a_planned_text_has_its_form_its_facets_and_its_support(
    world, reply, form, facets, supported
):
    *names, third = world.ephemeral(held_out=True).free[:3]
    question = Question(
        "pair",
        "What?",
        title=";".join(names),
        kind="long_form",
        system=schema.OUTLINE,
        passages=numbered(["", ""]),
        meta={"objects": ({"baker"}, {"poet"}), "sources": (1, 2)},
    )
    text = reply.format(s=names[0], t=names[1], u=third, o="baker", p="poet")
    found = long_form(told([question], lambda q: text), world)
    assert (found["form"], found["facets"], found["supported"]) == (form, facets, supported)
    cut = long_form(told([question], lambda q: text, finish="length"), world)
    assert cut["form"] == 0.0
