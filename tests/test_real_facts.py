"""The table of real facts: claims it decides, claims it leaves undecided, and its bench."""

from dataclasses import replace
from random import Random

import pytest

from benchmarks.real.exact import exact_terms
from benchmarks.real.forms import FORMS
from tests.helpers import examples
from workbench.data.real_facts import TIERS, entities, pages, questions
from workbench.methods.bench import NAME_ALONE, YES_OR_NO, bench
from workbench.methods.method import chosen_questions
from workbench.text import sentences, well_formed
from workbench.text.outline import read_outline
from workbench.types import (
    Checked,
    Claim,
    Claims,
    Cost,
    Failure,
    Feedback,
    Passage,
    Question,
    Response,
    Verdict,
)
from workbench.verdicts.checks import real_checks
from workbench.verdicts.real_facts import by_table, table_says


@pytest.mark.parametrize(("claim", "true"), examples("real_facts"))
def test_the_table_decides_only_claims_that_it_can_read(claim: str, true: bool | None) -> None:
    assert table_says(claim) is true


@pytest.mark.parametrize(("claim", "true"), examples("asked_countries"))
def test_claims_refer_to_the_country_of_the_question(claim: str, true: bool | None) -> None:
    assert table_says(claim, "Kenya") is true
    assert table_says(claim) is table_says(claim, "Yokohama") is None  # a city


def test_every_page_is_true_by_the_table() -> None:
    texts = [page.text for page in pages()[:300]]
    decided = [table_says(text[slice(*span)]) for text in texts for span in sentences(text)]
    assert False not in decided and decided.count(True) > 0.95 * len(decided)


def test_the_questions_are_of_all_tiers_and_no_entity_is_in_two_splits() -> None:
    by_split: dict[str, set[str]] = {}
    for question in questions():
        by_split.setdefault(question.meta["split"], set()).add(question.title)
        assert question.meta["tier"] in TIERS and (question.answers or question.kind == "long_form")
    assert set(by_split) == {"rl", "validation", "test"} and len(by_split["test"]) >= 400
    assert sum(map(len, by_split.values())) == len(set.union(*by_split.values()))
    names = [entity.name for entity in entities()]
    assert len(set(names)) == len(names) and {page.title for page in pages()} == set(names)


def test_the_small_bench_needs_no_file() -> None:
    small = bench("small")
    short, long = small.questions("rl"), small.questions("rl", ["long_form"])
    assert {one.kind for one in short} == {"single", "yes_no", "comparison"}
    systems = {"yes_no": YES_OR_NO}
    assert all(
        one.system == systems.get(one.kind, NAME_ALONE) and not one.passages for one in short
    )
    capitals = small.questions("rl", ["capital"])
    assert capitals and {one.meta["relation"] for one in capitals} == {"capital"}
    assert chosen_questions(small, "rl", ["capital"]) == capitals
    assert long and not any(one.system or one.answers for one in long)
    assert bench("small").hash == small.hash


def test_exact_counts_ignore_the_judge_repetitions_and_other_countries() -> None:
    question = Question("q", "Tell me about Kenya.", title="Kenya", kind="long_form")
    texts = (
        "Kenya is in Africa.",
        "Kenya is in Africa.",  # counted once
        "Its capital is Mombasa.",  # wrong, but the judge calls it correct
        "The capital of Peru is Lima.",  # about another country
        "The capital of South Sudan is Juba.",
        "Kenya is beautiful.",  # the table does not decide
    )
    claims = tuple(Claim(number, text) for number, text in enumerate(texts))
    verdicts = tuple(
        Verdict(f"claim:{claim.id}", "fact", label="correct", by="local") for claim in claims
    )
    feedback = Feedback(Response("r", question, "one two three"), (), claims, verdicts)
    assert exact_terms(feedback) == {
        "table_true": (1, 1.0),
        "table_false": (1, 1.0),
        "words": (3, 1.0),
        "table_precision": (1, 2),
        "overrated": (1, 2),
    }
    failed = tuple(replace(one, label=None) for one in verdicts)  # without verdicts, no ratings
    assert "overrated" not in exact_terms(replace(feedback, verdicts=failed))
    refusal = Feedback(Response("r", question, "I don't know."))
    assert exact_terms(refusal)["table_true"] == (0, 1.0)
    assert "table_precision" not in exact_terms(refusal)
    other = Question("q", "Tell me about Ann.", title="Ann", kind="long_form")
    assert exact_terms(Feedback(Response("r", other, "x"), (), claims, verdicts)) == {}


@pytest.mark.slow
def test_the_page_decides_claims_that_the_table_leaves_undecided() -> None:
    checks = real_checks()
    text = "Paraguay is in Argentina. Its capital is Asunción. Paraguay has nice beaches."
    question = Question("q", "Tell me about Paraguay.", title="Paraguay")
    claims = (
        Claim(0, "Paraguay is in Argentina.", sentence=0),
        Claim(1, "The capital of Paraguay is perhaps Rome.", sentence=1),
        Claim(2, "Paraguay has nice beaches.", sentence=2),
    )
    batch = [(Response("r", question, text), Claims(((0, 25), (26, 50), (51, 79)), claims))]
    [checked] = checks.verify["fact"](batch)
    wrong, _, open_ = checked.verdicts
    assert (wrong.label, wrong.p, wrong.by) == ("wrong", 0.0, "table")
    assert all("passage" in item for item in wrong.evidence)  # no objection of the verifier
    assert open_.by == "local" and wrong.informativeness and open_.informativeness


# Claims that the table contradicts, because it lacks the name or the number in the passage.
OTHER_NAMES = (
    ("The capital of Austria is Wien.", "The capital of Austria is Vienna (German: Wien)."),
    ("The capital of Italy is Roma.", "Roma is the capital of Italy."),
    ("France borders Brazil.", "In South America, France borders Brazil."),
    ("The population of Jakarta is 32,000,000.", "Jakarta and its suburbs have 32,000,000 people."),
)


@pytest.mark.parametrize(("claim", "passage"), OTHER_NAMES)
@pytest.mark.parametrize(
    ("own", "given", "label", "by"),
    [
        (True, "correct", "correct", "local"),
        (True, "hedged_correct", "hedged_correct", "local"),
        (True, "vague", "wrong", "table"),
        (True, None, "wrong", "table"),  # the check failed
        (False, "correct", "wrong", "table"),
    ],
)
def test_the_table_does_not_overrule_passages_of_the_question(
    claim: str, passage: str, own: bool, given: str | None, label: str, by: str
) -> None:
    assert table_says(claim) is False
    passages = (Passage("p", "", passage if own else " "),)  # a blank passage does not count
    response = Response("r", Question("q", "?", passages=passages), claim)
    extraction = Claims(((0, len(claim)),), (Claim(0, claim, sentence=0),))
    error = None if given else Failure("verify", "timeout", "no reply")
    verdict = Verdict("claim:0", "fact", given, p=0.97, by="local", error=error)
    fact = by_table(lambda batch: [Checked((verdict,), Cost())])
    [checked] = fact([(response, extraction)])
    [found] = checked.verdicts
    assert (found.label, found.by, found.error) == (label, by, None)
    assert found.p == (0.97 if by == "local" else 0.0)


def test_gold_answers_have_the_methods_formats() -> None:
    rows = {name: form(Random(0)) for name, form in FORMS.items()}
    assert all(well_formed(row["answers"][0]) for row in rows["thoughts"])
    plans = [read_outline(row["answers"][0]) for row in rows["outlines"]]
    assert all(plan and [point.source for point in plan.points] == [1, 2] for plan in plans)
