"""KLCF's reward by hand: checklist, truthfulness, general term, format and length."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from tests.helpers.errors import raises_error
from tests.helpers.reward_rows import failure, payer, row, with_verdicts
from workbench.credit.tokens import words
from workbench.methods.klcf.config import KLCF
from workbench.methods.klcf.reward import checks, overlong, reward
from workbench.pipeline import grade
from workbench.text import sentences
from workbench.types import Failure, Feedback, Response, Verdict
from workbench.util.failures import unparsed
from workbench.verdicts.checks import world_checks
from workbench.world.render import state
from workbench.world.world import load_world

PLAIN = KLCF(form=False)
ONE_TRUE_ONE_WRONG = "correct:5 wrong:5"
BAD = Failure("verify", "timeout", "no reply")


def items(consistent: int, contradictory: int, missing: int) -> list[Verdict]:
    labels = ["consistent"] * consistent + ["contradictory"] * contradictory + ["missing"] * missing
    return [Verdict(f"item:{number}", "checklist", label) for number, label in enumerate(labels)]


pay = payer(reward, PLAIN)


@pytest.mark.parametrize(
    ("counts", "b", "recall", "precision", "check"),
    [
        ((2, 1, 1), 1, 2 / 4, 2 / 3, 4 / 7),  # 2·(2/3)(1/2)/(2/3 + 1/2) = (2/3)/(7/6)
        ((2, 1, 1), 2, 2 / 4, 2 / 3, 10 / 19),  # 5·(1/3)/(4·2/3 + 1/2) = (5/3)/(19/6)
        ((0, 0, 4), 1, 0.0, 0.0, 0.0),  # silent: C + X = 0
        ((0, 3, 1), 1, 0.0, 0.0, 0.0),
        ((1, 0, 3), 1, 0.25, 1.0, 0.4),
    ],
)
def test_checklist(
    counts: tuple[int, int, int], b: float, recall: float, precision: float, check: float
) -> None:
    paid = pay(row("", verdicts=items(*counts)), replace(PLAIN, w_truth=0.0, b=b))
    assert (paid.parts["recall"], paid.parts["precision"]) == pytest.approx((recall, precision))
    assert paid.value == pytest.approx(check) == pytest.approx(paid.parts["check"])


def test_a_refusal_earns_the_reward_of_an_abstention() -> None:
    """Truth .5 for no claims, checklist 0 of 2: .25. A guess with p = .3 that contradicts the list
    earns .15.
    """
    config = replace(PLAIN, abstain=0.5)
    refused = written("I do not know.", items(0, 0, 2))
    assert pay(refused, config).value == pytest.approx(0.25) and pay(refused).value == 0.0
    assert pay(refused, replace(config, truth="missing")).value == pytest.approx(0.25)
    guess = row("wrong:3", verdicts=[*items(0, 1, 1), Verdict("claim:0", "truth", p=0.3)])
    assert pay(guess, config).value == pytest.approx(0.15) == pay(guess).value


@pytest.mark.parametrize(
    "text",
    ["", " ", "Who could that be?", "I love such questions!", "<think>I do not know.</think>"],
)
def test_a_response_without_claims_or_refusal_is_not_an_abstention(text: str) -> None:
    assert pay(written(text, items(0, 0, 2)), replace(PLAIN, abstain=0.5)).value == 0.0


def written(text: str, verdicts: Sequence[Verdict]) -> Feedback:
    """A response of this text, without claims."""
    made = row("", verdicts=verdicts)
    return replace(
        made,
        response=replace(made.response, text=text, token_ids=(1,) * 4),
        sentences=sentences(text),
    )


@pytest.mark.parametrize(
    ("claims", "truth"),
    [
        (ONE_TRUE_ONE_WRONG, 0.5),
        # 1, 1, .5, 0
        ("correct:1 hedged_correct:1 vague:1 hedged_wrong:1", 2.5 / 4),
        ("", 0.0),  # nothing claimed
    ],
)
def test_fact_verdicts_replace_a_missing_truthfulness_model(claims: str, truth: float) -> None:
    paid = pay(row(claims), replace(PLAIN, w_check=0.0))
    assert paid.value == pytest.approx(truth) and paid.parts["stood_in"] == len(claims.split())


def test_the_truthfulness_model_takes_precedence() -> None:
    modelled = with_verdicts(row(ONE_TRUE_ONE_WRONG), Verdict("claim:1", "truth", p=0.7))
    paid = pay(modelled, replace(PLAIN, w_check=0.0))
    assert paid.value == pytest.approx((1 + 0.7) / 2) and paid.parts["stood_in"] == 1


def test_an_unreadable_claim_can_be_worth_nothing() -> None:
    """P(true) is .9 for a readable claim, a fragment and a claim with an unknown name: (.9 + 0 +
    .9)/3.
    """
    read = row("correct:3 vague:1 wrong:1")
    claimed = tuple(Verdict(f"claim:{number}", "truth", p=0.9) for number in range(3))
    facts = [
        verdict
        if verdict.label == "correct"
        else unparsed(verdict.target, "form", "test", verdict.label or "")
        for verdict in read.verdicts
    ]
    modelled = replace(read, verdicts=(*facts, *claimed))
    config = replace(PLAIN, w_check=0.0)
    assert pay(modelled, config).value == pytest.approx(0.9)
    assert pay(modelled, replace(config, unreadable="zero")).value == pytest.approx(0.6)
    # a vague claim that was read
    plain = with_verdicts(read, *claimed)
    assert pay(plain, replace(config, unreadable="zero")).value == pytest.approx(0.9)


def test_unreadable_claims_need_the_truth_term_and_the_judge() -> None:
    config = replace(PLAIN, unreadable="zero")
    with raises_error("klcf.w_truth is 0"):
        reward(replace(config, w_truth=0.0))
    assert checks(config, "truth") == ("truth", "fact", "checklist")
    assert checks(config, "fact") == ("fact", "checklist")


def test_the_world_tells_fragments_from_whole_claims() -> None:
    """A true sentence, and a fragment: the truthfulness model gives each P(true) 1."""
    world = load_world()
    checks = world_checks(world)
    question = world.questions("validation", ["biography"])[0]
    fact = next(fact for fact in world.facts if fact.subject == question.title)
    whole = state(fact, "en", Random(0))
    responses = [
        Response(str(number), question, text, offsets=words(text), source="words")
        for number, text in enumerate([whole, f"{whole} {fact.object} University."])
    ]
    config = replace(PLAIN, w_check=0.0, unreadable="zero")
    values = [
        pay(
            with_verdicts(
                graded, *(Verdict(f"claim:{c.id}", "truth", p=1.0) for c in graded.claims)
            ),
            config,
        ).value
        for graded in grade([], {}, checks.extract)(responses)
    ]
    assert values == [1.0, 0.5]


def test_the_variant_averages_claims_missing_from_the_checklist() -> None:
    """check = 4/7 as above. Claims consistent, missing, missing with p = 1, 0, 1: truth = 1/2; (4/7
    + 1/2)/2.
    """
    variant = replace(PLAIN, truth="missing")

    def claimed(*labels: str) -> Feedback:
        verdicts = [
            Verdict(f"claim:{number}", "checklist", label) for number, label in enumerate(labels)
        ]
        return row("correct:5 wrong:5 correct:5", verdicts=[*items(2, 1, 1), *verdicts])

    some_missing = pay(claimed("consistent", "missing", "missing"), variant)
    assert some_missing.value == pytest.approx((4 / 7 + 1 / 2) / 2)
    # dropped, weights renormalised
    no_claim_missing = claimed("consistent", "contradictory", "consistent")
    none_missing = pay(no_claim_missing, variant)
    assert none_missing.value == pytest.approx(4 / 7) and "truth" not in none_missing.parts
    silent = row("", verdicts=items(2, 1, 1))
    # a response without claims does not avoid the term
    assert pay(silent, variant).value == pytest.approx((4 / 7 + 0) / 2)
    assert failure(pay(no_claim_missing, replace(variant, w_check=0.0))).kind == "no_terms"
    # claim 2 was not compared
    assert "claim:2" in failure(pay(claimed("consistent", "missing"), variant)).message


def test_weights_are_relative() -> None:
    """check 4/7, truth 1/2, general .9 at .4/.2/.4: .4·4/7 + .2·.5 + .4·.9 = .6886"""
    full = row(
        ONE_TRUE_ONE_WRONG, verdicts=[*items(2, 1, 1), Verdict("response", "general", p=0.9)]
    )
    weights = replace(PLAIN, w_check=0.4, w_truth=0.2, w_general=0.4)
    assert pay(full, weights).value == pytest.approx(0.4 * 4 / 7 + 0.1 + 0.36)
    tenfold = replace(weights, w_check=4, w_truth=2, w_general=4)
    assert pay(full, tenfold).value == pay(full, weights).value
    assert pay(full).value == pytest.approx((4 / 7 + 1 / 2) / 2)  # equal, and no general term


def test_a_broken_format_earns_only_format_and_length() -> None:
    """l_max 4, l_cache 2: five tokens earn −1, three (4 − 2 − 3)/2 = −.5."""
    tagged = row(ONE_TRUE_ONE_WRONG, think="", tagged=True, verdicts=items(2, 1, 1))
    assert pay(tagged, KLCF()).value == pytest.approx((4 / 7 + 1 / 2) / 2)
    untagged = row(ONE_TRUE_ONE_WRONG, verdicts=items(2, 1, 1))
    assert pay(untagged, KLCF()) == replace(
        pay(untagged, KLCF()), value=-1.0, parts={"format": -1.0, "length": 0.0}
    )
    assert len(untagged.response.offsets) == 3
    assert pay(untagged, KLCF(l_max=4, l_cache=2)).value == pytest.approx(-1.5)
    assert pay(untagged, KLCF(form=False, l_max=4, l_cache=2)).value == pytest.approx(
        (4 / 7 + 1 / 2) / 2 - 0.5
    )


@pytest.mark.parametrize(
    ("tokens", "penalty"), [(0, 0.0), (1536, 0.0), (1537, -1 / 512), (2048, -1.0), (9999, -1.0)]
)
def test_soft_overlong(tokens: int, penalty: float) -> None:
    assert overlong(tokens, 2048, 512) == pytest.approx(penalty)


def test_the_whole_reward_is_on_the_last_token() -> None:
    paid = pay(row(ONE_TRUE_ONE_WRONG, think="", tagged=True, verdicts=items(2, 1, 1)), KLCF())
    assert {event.end for event in paid.events} == {None}
    assert [event.part for event in paid.events] == ["check", "truth", "format", "length"]
    assert paid.tokens[-1] == pytest.approx(paid.value) and not any(paid.tokens[:-1])


LISTED = row("", verdicts=items(1, 0, 0))


@pytest.mark.parametrize(
    ("feedback", "config", "says"),
    [
        (row(ONE_TRUE_ONE_WRONG), PLAIN, "set klcf.w_check=0"),  # no checklist
        (row("", verdicts=items(1, 0, 0), checklist=("a", "b")), PLAIN, "item:1"),  # a part of it
        (with_verdicts(LISTED, Verdict("item:1", "checklist", error=BAD)), PLAIN, "no reply"),
        (row("", verdicts=[Verdict("item:0", "checklist", "yes")]), PLAIN, "be one of consistent"),
        (
            row(ONE_TRUE_ONE_WRONG, verdicts=items(1, 0, 0)),
            replace(PLAIN, w_general=1.0),
            "'general' verdict",
        ),
        (
            with_verdicts(row(ONE_TRUE_ONE_WRONG), Verdict("claim:0", "truth", error=BAD)),
            replace(PLAIN, w_check=0),
            "no reply",
        ),
    ],
)
def test_a_missing_verdict_gives_no_reward(feedback: Feedback, config: KLCF, says: str) -> None:
    assert says in failure(pay(feedback, config)).message


def test_length_needs_tokens() -> None:
    bare = replace(LISTED, response=replace(LISTED.response, offsets=()))
    assert "klcf.l_max=none" in failure(pay(bare)).message
    assert pay(bare, replace(PLAIN, l_max=None)).value == pytest.approx(0.5)


def test_settings_determine_the_checks() -> None:
    assert checks(KLCF()) == ("fact", "checklist")
    assert checks(KLCF(w_truth=0, w_general=1)) == ("checklist", "general")
    assert checks(KLCF(truth="missing")) == ("fact", "claim_checklist", "checklist")
