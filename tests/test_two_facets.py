"""Questions of two facets: their passages, an otherwise unchanged world, and verdicts by the
passages.
"""

from dataclasses import replace

import pytest

from workbench.experiments.evaluate import evaluation_grade
from workbench.methods.bench import bench
from workbench.types import TWO_FACETS, Feedback, Passage, Question, Response
from workbench.verdicts.checks import world_checks
from workbench.world import load_world
from workbench.world.facts import WorldConfig
from workbench.world.oracle import newest, read_statements
from workbench.world.parser import parser_of
from workbench.world.schema import RELATIONS
from workbench.world.world import World

WORLD = load_world()
WORLD_PARSER = parser_of(WORLD)
FORMER_EDITION = "Edition of 1960."


def stale(split: str = "test") -> Question:
    """A question with a former edition among its passages."""
    asked = bench("tiny").questions(split, [TWO_FACETS])
    return next(q for q in asked if any(p.text.startswith(FORMER_EDITION) for p in q.passages))


def graded(question: Question, text: str) -> Feedback:
    response = Response("r", question, text)
    [feedback] = evaluation_grade(world_checks(WORLD))([response])
    return feedback


def labels(question: Question, text: str) -> list[str | None]:
    return [
        verdict.label for verdict in graded(question, text).verdicts if verdict.aspect == "fact"
    ]


def test_every_split_has_them_and_equal_seeds_give_equal_questions() -> None:
    for split in ("sft", "rl", "validation", "test"):
        asked = bench("tiny").questions(split, [TWO_FACETS])
        assert len(asked) >= 100 and {q.meta["split"] for q in asked} == {split}
        assert {len(q.passages) for q in asked} == {2, 3}
    again = World(WorldConfig(seed=0)).two_facets
    assert again == WORLD.two_facets and len({q.id for q in again}) == len(again)
    assert World(WorldConfig(seed=1, scale=0.1)).two_facets[0].passages != again[0].passages


def test_passages_are_excerpts_of_pages_of_both_people() -> None:
    pages = {page.id: page for page in WORLD.pages}
    third = {"former edition": 0, "somebody else": 0}
    for question in WORLD.two_facets:
        people, titles = question.title.split(";"), [p.title for p in question.passages]
        assert set(people) <= set(titles)
        assert people[0] != people[1]
        assert len({p.id for p in question.passages}) == len(titles)
        for passage in question.passages:
            page = pages[passage.id.partition(":")[0]]
            assert page.title == passage.title and all(
                line in page.text for line in passage.text.split(". ")
            )
        if len(titles) == 3:
            third["somebody else" if set(titles) - set(people) else "former edition"] += 1
    assert min(third.values()) > 50


def test_the_passages_state_the_facts_of_the_question() -> None:
    for question in WORLD.two_facets[::10]:
        people = question.title.split(";")
        output = read_statements(WORLD_PARSER, question.passages)
        objects = {(s, r): newest(sources) for (s, r), sources in output.items()}
        facts = [fact for fact in WORLD.facts if fact.id in question.meta["fact_ids"]]
        assert facts and all(
            objects[fact.subject, fact.relation] == {fact.object} for fact in facts
        )
        assert all({fact.subject, fact.object} & set(people) for fact in facts)


def test_a_former_edition_is_corrected_by_the_current_one() -> None:
    question = stale()
    [old] = [p for p in question.passages if p.text.startswith(FORMER_EDITION)]
    employer = WORLD.by[old.title]["employer"].object
    former = next(
        s.object
        for (_, r), sources in read_statements(WORLD_PARSER, [old]).items()
        if r == "employer"
        for s in sources
    )
    assert former != employer
    assert labels(question, f"{old.title} works at {employer}. {old.title} works at {former}.") == [
        "correct",
        "wrong",
    ]
    # consistent with the passages, even if wrong in the world
    alone = replace(question, passages=(old,))
    assert labels(alone, f"{old.title} works at {former}. {old.title} works at {employer}.") == [
        "correct",
        "wrong",
    ]


def test_a_claim_absent_from_the_passages_is_vague_even_if_true() -> None:
    question = bench("tiny").questions("test", [TWO_FACETS])[0]
    person = question.title.split(";")[0]
    output = {
        relation
        for subject, relation in read_statements(WORLD_PARSER, question.passages)
        if subject == person
    }
    untold = next(fact for fact in WORLD.by[person].values() if fact.relation not in output)
    shown = next(fact for fact in WORLD.by[person].values() if fact.relation in output)
    said = [
        RELATIONS[fact.relation].states["en"][0].format(s=person, o=fact.object)
        for fact in (untold, shown)
    ]
    assert labels(question, " ".join(said)) == ["vague", "correct"]
    world = replace(question, meta={**question.meta, "evidence": "world"})
    assert labels(world, " ".join(said)) == ["correct", "correct"]
    # an unknown person, as in other questions
    assert labels(question, "Nobody Known works at Nowhere Labs.") == ["wrong"]


@pytest.mark.parametrize(
    "text", ["", "No page of the world. Nobody is a king. He works at Nowhere."]
)
def test_unreadable_passages_have_no_statements(text: str) -> None:
    assert read_statements(WORLD_PARSER, [Passage("p", "", text)]) == {}
    question = replace(
        bench("tiny").questions("test", [TWO_FACETS])[0], passages=(Passage("p", "", text),)
    )
    name = question.title.split(";")[0]
    assert labels(question, f"{name} works at {WORLD.by[name]['employer'].object}.") == ["vague"]
