"""All methods on one row: configs by name, checks, and properties of every reward."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import examples
from tests.helpers.reward_rows import failure, row
from workbench.inspector.examples import worked_example
from workbench.methods import METHODS, method_configs, reward_fns
from workbench.methods.rlfh.config import RLFH
from workbench.pipeline import rescore
from workbench.types import Claim, Feedback, JsonObject, Question, Response, Verdict

LABELS = ("correct", "hedged_correct", "vague", "hedged_wrong", "wrong")
RATED = st.builds("{}:{}".format, st.sampled_from(LABELS), st.integers(1, 5))
SENTENCE = st.lists(RATED, max_size=4).map(" ".join)
SENTENCES = st.lists(SENTENCE, min_size=1, max_size=4)
SETTINGS: tuple[list[str], ...] = (
    [],
    "rlfh.granularity=sentence klcf.form=false forag.evaluation=sentence".split(),
    "klcf.l_max=8 klcf.l_cache=4 forag.evaluation=holistic".split(),
    "rlfh.spread=true forag.aggregate=max knowrl.facts=if_wrong".split(),
)


def judged(
    sentences: Sequence[str],
    think: str | None,
    tagged: bool,
    outcome: str,
    items: Sequence[str],
    finish: str,
) -> Feedback:
    checklist = [
        Verdict(f"item:{number}", "checklist", label) for number, label in enumerate(items)
    ]
    verdicts = (Verdict("outcome", "answer", outcome), *checklist)
    return row(*sentences, think=think, tagged=tagged, verdicts=verdicts, finish=finish)


JUDGED = st.builds(
    judged,
    SENTENCES,
    st.none() | SENTENCE,
    st.booleans(),
    st.sampled_from(("correct", "uncertain", "incorrect")),
    st.lists(st.sampled_from(("consistent", "contradictory", "missing")), min_size=1, max_size=4),
    st.sampled_from(("stop", "length")),
)


@pytest.mark.slow
@given(feedback=JUDGED, settings=st.sampled_from(SETTINGS))
def test_every_reward_is_the_sum_of_its_events(feedback: Feedback, settings: list[str]) -> None:
    """The events and the tokens sum to the value; events end inside the response."""
    for name, paid in rescore(
        feedback, reward_fns(method_configs(settings=settings))
    ).rewards.items():
        assert paid.value is not None, (name, paid.error)
        assert math.isclose(sum(event.value for event in paid.events), paid.value, abs_tol=1e-9)
        assert math.isclose(sum(paid.tokens), paid.value, abs_tol=1e-9)
        assert len(paid.tokens) == len(feedback.response.offsets)
        assert all(
            event.end is None or 0 < event.end <= len(feedback.response.text)
            for event in paid.events
        )
        assert all(
            event.start is None or event.end is None or event.start < event.end
            for event in paid.events
        )


@pytest.mark.slow
@given(feedback=JUDGED, data=st.data())
def test_the_order_of_claims_and_verdicts_does_not_matter(
    feedback: Feedback, data: st.DataObject
) -> None:
    claims, verdicts = (
        tuple(data.draw(st.permutations(feedback.claims))),
        tuple(data.draw(st.permutations(feedback.verdicts))),
    )
    rewards = reward_fns(method_configs(settings=["klcf.form=false"]))
    shuffled = rescore(replace(feedback, claims=claims, verdicts=verdicts), rewards)
    for name, paid in rescore(feedback, rewards).rewards.items():
        assert shuffled.rewards[name].value == paid.value
        assert shuffled.rewards[name].tokens == pytest.approx(paid.tokens)


@pytest.mark.slow
@given(feedback=JUDGED)
def test_the_value_of_rlfh_does_not_depend_on_granularity(feedback: Feedback) -> None:
    pay = {
        (granularity, spread): RLFH(granularity=granularity, spread=spread)
        for granularity in ("statement", "sentence", "paragraph")
        for spread in (False, True)
    }
    values = [
        rescore(feedback, reward_fns({"rlfh": config})).rewards["rlfh"].value
        for config in pay.values()
    ]
    assert values == pytest.approx([values[0]] * len(values))


@pytest.mark.parametrize(("change", "message"), examples("unfit_claims"))
def test_invalid_claims_of_a_row_are_not_scored(change: JsonObject, message: str) -> None:
    """Other rows of the batch are unaffected."""
    example = worked_example()
    broken = replace(example, claims=(*example.claims[:3], replace(example.claims[3], **change)))
    paid = rescore(broken, reward_fns(method_configs())).rewards
    assert paid["truthrl"].value == 1.0  # does not look at claims
    for name in ("rlfh", "forag", "klcf", "knowrl"):
        error = failure(paid[name])
        assert error.kind == "bad_claims" and message in error.message


def test_sentences_outside_the_response_are_not_scored() -> None:
    example = worked_example()
    broken = replace(example, sentences=(*example.sentences[:3], (0, 9000)))
    paid = rescore(broken, reward_fns(method_configs(["rlfh"]))).rewards["rlfh"]
    assert "a sentence lies outside the response" in failure(paid).message


PLACES = st.none() | st.integers(-3, 40)
CLAIMS = st.builds(
    Claim,
    st.integers(0, 5),
    st.text(max_size=4),
    st.sampled_from(("think", "answer", "body")),
    st.none() | st.integers(-2, 6),
    st.none() | st.tuples(st.integers(-3, 40), st.integers(-3, 40)),
    PLACES,
    st.none() | st.floats(),
)
VERDICTS = st.builds(
    Verdict,
    st.sampled_from(
        ("claim:0", "claim:1", "claim:9", "item:0", "segment:0", "outcome", "response")
    ),
    st.sampled_from(("fact", "truth", "checklist", "factuality", "baseline", "answer")),
    st.none() | st.sampled_from((*LABELS, "consistent", "uncertain", "", "\ud800")),
    st.none() | st.floats(),
    st.none() | st.integers(-1, 7),
)


@pytest.mark.slow
@given(
    JUDGED,
    st.none() | st.lists(CLAIMS, max_size=3),
    st.lists(VERDICTS, max_size=4),
    st.sampled_from(SETTINGS),
)
def test_any_row_is_scored_or_has_an_error(
    feedback: Feedback, claims: list[Claim] | None, verdicts: list[Verdict], settings: list[str]
) -> None:
    row = replace(
        feedback,
        claims=feedback.claims if claims is None else tuple(claims),
        verdicts=(*verdicts, *feedback.verdicts),
    )
    for paid in rescore(row, reward_fns(method_configs(settings=settings))).rewards.values():
        assert (paid.value is None) == (paid.error is not None)
        assert paid.value is not None or not (paid.events or paid.tokens or paid.parts)
        assert math.isclose(sum(paid.tokens), paid.value or 0.0, abs_tol=1e-9)
        assert all(map(math.isfinite, (*paid.tokens, *paid.parts.values())))


def test_verdicts_on_missing_targets_change_nothing() -> None:
    example, rewards = worked_example(), reward_fns(method_configs())
    strays = (
        Verdict("claim:77", "fact", "wrong", 0.0, 5),
        Verdict("item:9", "checklist", "consistent"),
        Verdict("segment:50", "factuality", p=0.5),
        Verdict("item:3", "checklist", "consistent"),
    )
    assert (
        rescore(replace(example, verdicts=(*example.verdicts, *strays)), rewards).rewards
        == rescore(example, rewards).rewards
    )


def test_worked_example_in_every_method() -> None:
    """RLFH as in test_reward_rlfh. TruthRL: correct. FoRAG: (1 + 0)/2 and 1 (hedged, true). KLCF: R
    1/3, P 1/2, F .4; p 2/3; (.4 + 2/3)/2. KnowRL: format 1, correct 2, one supported fact 1. Binary
    RAR: a claim is wrong.
    """
    paid = rescore(worked_example(), reward_fns(method_configs())).rewards
    assert {name: reward.value for name, reward in paid.items()} == pytest.approx(
        {
            "rlfh": 1.6550881545,
            "truthrl": 1.0,
            "forag": 1.5,
            "klcf": 8 / 15,
            "knowrl": 4.0,
            "binary_rar": 0.0,
        }
    )
    assert tuple(paid) == tuple(METHODS)


def test_a_stored_row_is_enough_for_replay() -> None:
    rewards = reward_fns(method_configs())
    once = rescore(worked_example(), rewards)
    stored = Feedback.from_row(once.to_row(), once.response.question)
    assert rescore(replace(stored, rewards={}), rewards) == once


def test_a_bare_row_is_scored_or_has_an_error() -> None:
    bare = rescore(
        Feedback(Response("r", Question("q", "?"), "")), reward_fns(method_configs())
    ).rewards
    assert (bare["rlfh"].value, bare["forag"].value) == (0.0, 0.0)  # no claims
    assert bare["klcf"].value == -1.0  # not in the required format
    for name in ("truthrl", "knowrl"):
        assert failure(bare[name])
