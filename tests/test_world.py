"""The closed world: deterministic, complete, and with exact counts of exposures."""

import re

import pytest

from tests.helpers.world_names import names
from workbench.world import load_world
from workbench.world.facts import TIERS
from workbench.world.schema import RELATIONS


@pytest.fixture(scope="module")
def world():
    return load_world(0)


def test_every_entity_has_one_fact_per_relation_of_its_kind(world):
    for name, entity in world.entities.items():
        expected = {
            relation.name for relation in RELATIONS.values() if relation.subject == entity.kind
        }
        assert set(world.by[name]) == expected


def test_exposures_are_counted_over_all_documents(world):
    shown = sum(count for by_lang in world.exposures.values() for count in by_lang.values())
    assert shown == sum(len(document.fact_ids) for document in world.documents)


def test_unknown_people_are_in_no_document(world):
    hidden = re.compile("|".join(map(re.escape, names(world, "person", "unknown", "page_only"))))
    assert not any(hidden.search(document.whole) for document in world.documents)
    assert not any(fact.id in world.exposures for fact in world.facts if not fact.covered)


def test_a_part_of_a_name_does_not_reveal_the_tier(world):
    """Unknown people have the first names of known people, too: only the full name is known."""
    first = {tier: {name.split()[0] for name in names(world, "person", tier)} for tier in TIERS}
    assert len(first["known"] & first["unknown"]) > 0.9 * len(first["known"])


def test_stale_pages_are_dated_and_wrong_in_one_value(world):
    stale = [page for page in world.pages if page.stale]
    current = {page.title: page for page in world.pages if not page.stale}
    assert len(stale) > 50
    for page in stale:
        employer = world.by[page.title]["employer"]
        assert str(page.edition) in page.text and page.edition < current[page.title].edition
        assert employer.object not in page.text and employer.id not in page.fact_ids


def test_splits_share_no_person(world):
    splits: dict[str, set[str]] = {}
    for question in world.all_questions:
        if question.kind in ("single", "numeric", "biography"):
            splits.setdefault(question.meta["split"], set()).add(question.title)
    for a in ("sft", "rl", "validation", "test"):
        for b in ("sft", "rl", "validation", "test"):
            assert a == b or not splits[a] & splits[b]


def test_rl_has_no_question_kinds_of_ood(world):
    assert {q.kind for q in world.questions("rl")} == {
        "single",
        "numeric",
        "biography",
        "long_form",
    }
    assert {"two_hop", "comparison", "false_premise", "list", "yes_no"} <= {
        q.kind for q in world.questions("ood")
    }


def test_answers_follow_from_the_facts(world):
    facts = {fact.id: fact for fact in world.facts}
    for question in world.all_questions:
        shown = [facts[fact_id] for fact_id in question.meta["fact_ids"]]
        if question.kind in ("single", "numeric", "two_hop"):
            assert question.answers == shown[-1].forms[question.meta["lang"]]
        if question.kind == "comparison":
            assert question.answers == (min(shown, key=lambda fact: int(fact.object)).subject,)
        if question.kind == "list":
            assert question.answers == tuple(fact.subject for fact in shown)
