"""Exact verdicts of the closed world."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.helpers import examples
from workbench.claims import world as world_claims
from workbench.pipeline import grade
from workbench.types import Claim, Claims, Failure, Feedback, Question, Response, Verify
from workbench.verdicts.world import (
    world_checklist,
    world_checklist_items,
    world_claim_checklist,
    world_facts,
    world_question,
    world_reasoning,
)
from workbench.world import load_world
from workbench.world.schema import RELATIONS
from workbench.world.world import World


@pytest.fixture(scope="module")
def world() -> World:
    return load_world(0, 0.1)


@pytest.fixture(scope="module")
def biography(world: World) -> Question:
    return world.questions("test", ["biography"])[0]


def other(world: World, relation: str, truth: str) -> str:
    """Another object of the relation than the true one."""
    return next(
        fact.object for fact in world.facts if fact.relation == relation and fact.object != truth
    )


def text_of(world: World, question: Question) -> tuple[str, list[str]]:
    """A true, a false, a hedged true and a vague sentence about the question's entity, and their
    relations.
    """
    facts = world.by[question.title]
    job, city = facts["profession"].object, other(world, "born_in", facts["born_in"].object)
    award = facts["award"].object
    return (
        f"{question.title} is a {job}. {question.title} was born in {city}. "
        f"{question.title} may have won the {award}. {question.title} studied at some university."
    ), ["profession", "born_in", "award", "alma_mater"]


def test_five_labels_with_the_importance_as_informativeness(
    world: World, biography: Question
) -> None:
    text, relations = text_of(world, biography)
    checked = judged(world, biography, text)
    assert [verdict.label for verdict in checked.verdicts] == [
        "correct",
        "wrong",
        "hedged_correct",
        "vague",
    ]
    assert [verdict.p for verdict in checked.verdicts] == [1.0, 0.0, 1.0, None]
    output = [world.by[biography.title][relation] for relation in relations]
    assert [item["fact"] for verdict in checked.verdicts for item in verdict.evidence] == [
        fact.id for fact in output
    ]
    # the true fact, even if the claim is wrong
    for fact, verdict in zip(output, checked.verdicts, strict=True):
        assert fact.object in verdict.evidence[0]["text"]
        assert biography.title in verdict.evidence[0]["text"]
    importance = [fact.importance for fact in output]
    assert [verdict.informativeness for verdict in checked.verdicts] == importance
    assert [verdict.target for verdict in checked.verdicts] == [
        f"claim:{claim.id}" for claim in checked.claims
    ]


def judged(
    world: World, question: Question, text: str, by: Callable[[World], Verify] = world_facts
) -> Feedback:
    [row] = grade([by(world)], {}, world_claims(world))([Response("r", question, text)])
    return row


def ratings(world: World, question: Question, text: str) -> list[int | None]:
    found = judged(world, question, text).verdicts
    return [verdict.informativeness for verdict in found if verdict.aspect == "fact"]


def one(world: World, kind: str) -> Question:
    return next(
        question
        for split in ("test", "validation", "ood")
        for question in world.questions(split, [kind])
    )


def stated(
    world: World, subject: str, relation: str, said: str = "", stance: str = "states"
) -> str:
    fact = world.by[subject][relation]
    return getattr(RELATIONS[relation], stance)["en"][0].format(
        s=fact.subject, o=said or fact.object
    )


def test_a_repeated_or_paraphrased_claim_is_useless(world: World, biography: Question) -> None:
    name, relation = biography.title, RELATIONS["profession"]
    job, city = stated(world, name, "profession"), stated(world, name, "born_in")
    again = relation.states["en"][1].format(s=name, o=world.by[name]["profession"].object)
    vague, hedged = (stated(world, name, "profession", stance=one) for one in ("vague", "hedges"))
    elsewhere = stated(world, name, "born_in", other(world, "born_in", city))
    for text, expected in (
        (f"{job} {city} {job} {again}", [5, 4, 1, 1]),
        (f"{job} {hedged}", [5, 1]),
        (f"{job} {vague}", [5, 1]),
        (f"{vague} {job}", [5, 5]),
        (f"{city} {elsewhere}", [4, 4]),
        (f"<think>{job}</think><answer>{job} {job}</answer>", [5, 5, 1]),
    ):
        assert ratings(world, biography, text) == expected


def test_a_claim_about_another_person_is_useless(world: World, biography: Question) -> None:
    """A verdict of the aspect "subject" tells if a useless claim is repeated or about another
    person; unreadable claims have none.
    """
    stranger = next(
        f.subject
        for f in world.facts
        if f.relation == "profession" and f.subject != biography.title
    )
    own, others = (stated(world, one, "profession") for one in (biography.title, stranger))
    row = judged(world, biography, f"{own} {others} {own} {others} Rubbish is here.")
    subjects = [row.verdict(f"claim:{claim.id}", "subject") for claim in row.claims]
    assert [one and one.label for one in subjects] == [None, "other", "asked", "other", None]
    text = f"{own} {others}"
    # without a title, the question's text names the subject
    assert ratings(world, replace(biography, title=""), text) == [5, 1]
    assert ratings(world, Question("q", "What can you tell me?"), text) == [5, 5]


@pytest.mark.parametrize("kind", ["long_form", "comparison"])
def test_both_entities_of_a_question_are_on_subject(world: World, kind: str) -> None:
    question = one(world, kind)
    first, second = question.title.split(";")
    stranger = next(
        f.subject
        for f in world.facts
        if f.relation == "birth_year" and f.subject not in (first, second)
    )
    text = " ".join(stated(world, name, "birth_year") for name in (first, second, stranger))
    importance = RELATIONS["birth_year"].importance
    assert ratings(world, question, text) == [importance, importance, 1]


def test_both_hops_of_a_question_are_on_subject(world: World) -> None:
    question = one(world, "two_hop")
    bridge, target = [
        next(f for f in world.facts if f.id == name) for name in question.meta["fact_ids"]
    ]
    rival = other(world, bridge.relation, bridge.object)
    first, second = (
        stated(world, bridge.subject, bridge.relation),
        stated(world, target.subject, target.relation),
    )
    elsewhere = stated(world, rival, target.relation)
    important = [RELATIONS[fact.relation].importance for fact in (bridge, target)]
    assert ratings(world, question, f"{first} {second}") == important
    assert ratings(world, question, f"{first} {elsewhere}") == [important[0], 1]
    # A wrong bridge entity is wrong, but on subject.
    mistaken = stated(world, bridge.subject, bridge.relation, rival)
    assert ratings(world, question, f"{mistaken} {elsewhere}") == important


def test_an_unreadable_claim_is_vague_and_another_worlds_question_a_failure(
    world: World, biography: Question
) -> None:
    """Also if another extractor than the world's read the response, without verdicts."""
    true = stated(world, biography.title, "born_in")
    claims = (Claim(0, "Glorbs zibble the mumps."), Claim(1, true), Claim(2, "Who?"))
    row = (Response("r", biography, "x"), Claims(((0, 1),), claims))
    verdicts = world_facts(world)([row])[0].verdicts
    assert [(v.label, v.error) for v in verdicts] == [
        ("vague", None),
        ("correct", None),
        ("vague", None),
    ]
    unread = verdicts[0]
    assert (unread.p, unread.informativeness, unread.evidence) == (0.0, 1, ({"unparsed": "form"},))
    against = world_claim_checklist(world)([row])[0].verdicts
    assert [v.label for v in against] == ["missing", "consistent", "missing"]
    napoleon = Claims(((0, 1),), (Claim(4, "Napoleon was an emperor."),))
    elsewhere = Response("r", Question("q", "Who was Napoleon?"), "x")
    [verdict] = world_facts(world)([(elsewhere, napoleon)])[0].verdicts
    assert (verdict.target, verdict.label) == ("claim:4", None)
    assert isinstance(verdict.error, Failure)


def test_items_are_the_important_facts_of_the_questions_subject(
    world: World, biography: Question
) -> None:
    items = world_checklist_items(world, biography)
    important = [fact for fact in world.by[biography.title].values() if fact.importance >= 3]
    assert len(items) == len(important) == 5
    assert all(
        fact.object in item and biography.title in item
        for fact, item in zip(important, items, strict=True)
    )
    assert len(world_checklist_items(world, world.questions("test", ["long_form"])[0])) == 10
    assert world_checklist_items(world, world.questions("test", ["single"])[0]) == ()


def test_the_checklist_is_compared_only_with_the_answer(world: World, biography: Question) -> None:
    text, _ = text_of(world, biography)
    employer = world_checklist_items(world, biography)[1]
    for question in (
        biography,
        replace(biography, checklist=world_checklist_items(world, biography)),
    ):
        response = Response("r", question, f"<think>{employer}</think><answer>{text}</answer>")
        [checked] = world_checklist(world)([(response, Claims())])
        labels = {verdict.target: verdict.label for verdict in checked.verdicts}
        assert labels == {
            "item:0": "consistent",  # profession
            "item:1": "missing",  # employer: only in the thinking
            "item:2": "contradictory",  # birthplace
            "item:3": "missing",  # birth year
            "item:4": "consistent",  # award, hedged
        }


def test_an_item_stated_and_contradicted_is_contradictory(
    world: World, biography: Question
) -> None:
    items = world_checklist_items(world, biography)
    text = f"{items[2]} {text_of(world, biography)[0]}"
    [checked] = world_checklist(world)([(Response("r", biography, text), Claims())])
    assert checked.verdicts[2].label == "contradictory"
    question = replace(biography, checklist=("Napoleon was an emperor.",))  # of another world
    [checked] = world_checklist(world)([(Response("r", question, "x"), Claims())])
    assert checked.verdicts[0].label is None and checked.verdicts[0].error is not None


def test_claims_against_the_checklist(world: World, biography: Question) -> None:
    text, _ = text_of(world, biography)
    response = Response("r", biography, f"{text} Rubbish is here.")
    [found] = world_claims(world)([response])
    [checked] = world_claim_checklist(world)([(response, found)])
    # The university is not important enough to be listed; the unreadable sentence matches no item.
    assert [verdict.label for verdict in checked.verdicts] == [
        "consistent",
        "contradictory",
        "consistent",
        "missing",
        "missing",
    ]


@pytest.mark.parametrize(("thought", "label"), examples("judged_thoughts"))
def test_reasoning_is_good_with_a_true_claim_on_subject_and_no_wrong_claim(
    world: World, biography: Question, thought: str, label: str
) -> None:
    true, false, _, vague = text_of(world, biography)[0].removesuffix(".").split(". ")
    other_person = next(
        q.title for q in world.questions("test", ["biography"]) if q.title != biography.title
    )
    output = {
        "true": true,
        "false": false,
        "vague": vague,
        "made_up": f"{biography.title} was born in Atlantis",
        "unreadable": "Glorbs zibble the mumps",
        "beside": f"{other_person} is a {world.by[other_person]['profession'].object}",
    }
    thought = thought.format(**{name: f"{sentence}." for name, sentence in output.items()})

    for answer in (f"{false}.", "I don't know."):
        text = f"<think>{thought}</think><answer>{answer}</answer>"
        verdict = judged(world, biography, text, world_reasoning).verdict("reasoning", "reasoning")
        assert verdict is not None and verdict.label == label


def test_reasoning_of_a_failed_extraction_fails(world: World, biography: Question) -> None:
    failure = Failure("extract", "x", "y")
    [checked] = world_reasoning(world)([(Response("r", biography, "x"), Claims(error=failure))])
    assert (checked.verdicts[0].label, checked.verdicts[0].error) == (None, failure)


def test_a_question_is_recognised_by_its_text(world: World, biography: Question) -> None:
    known = world_question(world, Question("mine", f" {biography.text.upper()} "))
    assert (known.id, known.title, known.kind) == ("mine", biography.title, "biography")
    assert known.checklist == world_checklist_items(world, biography)
    single = next(q for q in world.questions("test", ["single"]) if len(q.meta["fact_ids"]) == 1)
    assert world_question(world, Question("s", single.text, ("own",))).answers == ("own",)
    # a question on a single fact also in paraphrases
    [relation] = [fact.relation for fact in world.facts if fact.id == single.meta["fact_ids"][0]]
    asks = [text.format(s=single.title) for text in RELATIONS[relation].asks["en"]]
    assert len(asks) > 1 and single.text in asks
    for text in asks:
        known = world_question(world, Question("s", text))
        assert (known.text, known.answers, known.title) == (text, single.answers, single.title)
    # other questions get the people they name as title
    named = world_question(world, Question("q", f"What became of {biography.title}, please?"))
    assert (named.title, named.answers, named.checklist) == (biography.title, (), ())
    assert world_question(world, Question("q", "Who was Napoleon?")).title == ""
