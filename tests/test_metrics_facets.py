"""Form, facets, order, repetition and citations of an answer on two facets, by hand."""

from dataclasses import replace

import pytest

from benchmarks.reproduce import METRICS, answered
from workbench.experiments.evaluate import evaluation_grade, report
from workbench.metrics import FACET_METRICS, facet_terms
from workbench.types import BY_PASSAGES, TWO_FACETS, Failure, Feedback, Passage, Question, Response
from workbench.verdicts.checks import world_checks
from workbench.world import load_world
from workbench.world.schema import RELATIONS

WORLD = load_world()
ADA, BO, CY = [name for name in WORLD.by if WORLD.entities[name].kind == "person"][:3]


def says(name: str, relation: str, value: str = "") -> str:
    return (
        RELATIONS[relation]
        .states["en"][0]
        .format(s=name, o=value or WORLD.by[name][relation].object)
    )


PASSAGES = (
    Passage("one", BO, f"{says(BO, 'employer')} {says(BO, 'award')}"),
    Passage("two", ADA, f"{says(ADA, 'employer')} {says(ADA, 'born_in')}"),
)
ASKED = Question(
    "q",
    f"What is {ADA} known for and how does it compare with {BO}?",
    title=f"{ADA};{BO}",
    passages=PASSAGES,
    kind=TWO_FACETS,
    meta={"evidence": BY_PASSAGES, "tier": "known"},
)
PLAN = f"[Structure] comparison [Outline] 1. {ADA} [2] 2. {BO} [1] [Answer]"
TRUE = f"{says(ADA, 'employer')} {says(ADA, 'born_in')} In comparison, {says(BO, 'employer')}"


def graded(text: str, question: Question = ASKED, finish: str = "stop") -> Feedback:
    [feedback] = evaluation_grade(world_checks(WORLD))(
        [Response("r", question, text, finish=finish)]
    )
    return feedback


def measured(text: str, finish: str = "stop") -> dict[str, float | None]:
    terms = facet_terms(graded(text, finish=finish))
    return {name: top / bottom if bottom else None for name, (top, bottom) in terms.items()}


def test_a_planned_answer_with_correct_citations() -> None:
    found = measured(f"{PLAN} {TRUE}")
    assert found == {
        "form": 1.0,
        "facets": 1.0,
        "order": 1.0,
        "as_planned": 1.0,
        "repetition": 0.0,
        "off_subject": 0.0,
        "coherent": 1.0,
        "length": float(len(TRUE.split())),
        "citation_recall": 1.0,
        "citation_precision": 1.0,
    }
    assert set(found) == set(FACET_METRICS) < set(METRICS)


def test_a_plain_answer_can_be_coherent_without_citations() -> None:
    found = measured(TRUE)
    assert (found["form"], found["coherent"], found["order"]) == (0.0, 1.0, 1.0)
    assert (found["citation_recall"], found["citation_precision"]) == (0.0, None)
    assert "as_planned" not in found


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (f"{PLAN} {says(ADA, 'employer')}", {"facets": 0.5, "order": 0.0, "coherent": 0.0}),
        (
            f"{PLAN} {says(BO, 'employer')} {says(ADA, 'employer')}",
            {"order": 1.0, "as_planned": 0.0, "coherent": 1.0},
        ),
        (
            f"{says(ADA, 'award')} {says(BO, 'award')} {says(ADA, 'born_in')}",
            {"facets": 1.0, "order": 0.0, "coherent": 0.0},
        ),
        (
            f"{PLAN} {TRUE} {says(ADA, 'employer')}",
            {"order": 0.0, "repetition": 0.25, "coherent": 0.0},
        ),
        (
            f"{PLAN} {says(ADA, 'employer')} {TRUE}",
            {"order": 1.0, "repetition": 0.25, "coherent": 0.0},
        ),
        (
            f"{PLAN} {TRUE} {says(CY, 'employer')}",
            {"order": 1.0, "off_subject": 0.25, "coherent": 0.0},
        ),
        (f"{PLAN} {TRUE} It is so.", {"off_subject": 0.0, "coherent": 1.0}),
        (
            f"{PLAN} ",
            {"form": 0.0, "facets": 0.0, "repetition": None, "coherent": 0.0, "length": 0.0},
        ),
        (
            f"[Structure] comparison [Outline] 1. {BO} [1] 2. {ADA} [2] [Answer] {TRUE}",
            {"order": 1.0, "as_planned": 0.0},
        ),
        (
            f"{PLAN.replace('2.', f'2. {ADA} 3.')} {TRUE}",
            {"form": 1.0, "order": 1.0, "as_planned": 1.0},
        ),
    ],
)
def test_missing_misplaced_and_repeated_facets(text: str, changed: dict[str, float | None]) -> None:
    found = measured(text)
    assert {name: found[name] for name in changed} == changed


def test_citations_are_compared_with_the_passages() -> None:
    """Ada's point cites passage 1, which does not mention her: her two sentences and two of three
    citations are wrong. False sentences and missing passages have no support.
    """
    astray = PLAN.replace(f"{ADA} [2]", f"{ADA} [1]")
    found = measured(f"{astray} {TRUE}")
    assert (found["citation_recall"], found["citation_precision"]) == (1 / 3, 1 / 3)
    false = says(BO, "award", next(a for a in WORLD.names.stems) + " Prize")
    assert measured(f"{PLAN} {says(ADA, 'employer')} {false}")["citation_precision"] == 0.5
    assert measured(f"{PLAN.replace('[2]', '[9]')} {TRUE}")["citation_recall"] == 1 / 3


def test_a_citation_between_two_sentences_belongs_to_the_first() -> None:
    first, second = says(ADA, "employer"), says(BO, "award")
    for text, right in (
        (f"{first} [2] {second} [1]", 2.0),
        (f"{first} [1] {second} [2]", 0.0),
        (f"[2] {first} [1] {second}", 0.0),
    ):
        terms = facet_terms(graded(text))
        assert terms["citation_recall"] == (right, 2.0) and terms["citation_precision"][0] == right


def test_unjudged_rows_have_no_terms_and_a_refusal_has_no_facets() -> None:
    failed = replace(graded(TRUE), error=Failure("judge", "timeout", "late"))
    assert facet_terms(failed) == {} and facet_terms(replace(graded(TRUE), verdicts=())) == {}
    assert measured("I do not know.")["facets"] == 0.0


def test_the_report_has_them_only_for_questions_of_two_facets() -> None:
    rows = [graded(f"{PLAN} {TRUE}"), graded(TRUE, replace(ASKED, id="p"))]
    found = report(rows, [])["greedy"]
    assert found["form"]["value"] == 0.5
    assert found["coherent"]["value"] == 1.0
    assert found["fact_per_query"]["value"] == 1.0
    assert found["by_kind"][TWO_FACETS]["order"]["value"] == 1.0
    others = graded(TRUE, replace(ASKED, meta={}, passages=()))
    assert "form" not in report([others], [])["greedy"]
    assert answered(rows[0]).terms()["form"] == (1.0, 1.0)
    assert "form" not in answered(others).terms()
