"""What a policy can write before reinforcement learning: rates of texts that are known."""

import math

import pytest

from benchmarks.abilities import (
    ABILITIES,
    biography_rates,
    read_biography,
    short_rates,
    table,
    thought_rates,
    value_probability,
)
from workbench.types import Question, Response
from workbench.world.world import load_world

WORLD = load_world(0, 0.05)
ABOUT = {
    question.meta["tier"]: question for question in WORLD.questions("validation", ["biography"])
}


def biography(tier: str, text: str, probability: float = 1.0) -> Response:
    """Return a biography of a person of a tier. Each of its characters is a token."""
    size = len(text)
    return Response(
        "",
        ABOUT[tier],
        text,
        token_ids=(1,) * size,
        offsets=tuple((i, i + 1) for i in range(size)),
        logprobs=(math.log(probability),) * size,
    )


def value(tier: str, relation: str) -> str:
    return WORLD.by[ABOUT[tier].title][relation].object


def test_rates_of_biographies() -> None:
    known, half = (ABOUT[tier].title for tier in ("known", "half"))
    five_claims = (
        f"{known} was born in {value('known', 'born_in')} in {value('known', 'birth_year')}."
        f" {known} may be a {value('known', 'profession')}."
        f" {known} works at {value('known', 'employer')}."
        f" {known} won the {value('known', 'award')}."
    )
    job = value("half", "profession")
    wrong = "miner" if job != "miner" else "baker"
    three_claims = (
        f"{half} is a {job}. {half} works at {value('half', 'employer')}."
        f" {half} studied at {value('half', 'alma_mater')}."
    )
    texts = {
        "known": [five_claims],
        "half": [f"{half} is a {job}.", f"{half} is a {wrong}.", three_claims],
        "partial": [f"{known} is a {value('known', 'profession')}.", "I do not know."],
        "unknown": ["I do not know.", f"{known} is a {value('known', 'profession')}."],
    }
    rates = biography_rates(
        [
            read_biography(WORLD, biography(tier, text))
            for tier, some in texts.items()
            for text in some
        ]
    )
    assert rates == {
        "spread": 0.5,  # of the half-known person, but not of the partly known one
        "few": pytest.approx(4 / 5),
        "hedged": pytest.approx(1 / 11),
        "hedged_known": pytest.approx(1 / 5),
        "factscore_known": 1,
        "factscore_half": pytest.approx(2 / 3),
        "factscore_partial": 0,  # the claim is about another person
        "auc": 0.5,  # all values have the probability 1
        "compound": pytest.approx(1 / 10),
        "off_subject": 0.5,
        "declined": 0.5,
    }
    assert math.isnan(biography_rates([])["auc"]) and math.isnan(biography_rates([])["few"])


def test_the_probability_of_a_claim_is_that_of_its_value() -> None:
    half, job = ABOUT["half"].title, value("half", "profession")
    wrong = "miner" if job != "miner" else "baker"
    sure, unsure = (
        read_biography(WORLD, biography("half", f"{half} is a {word}.", probability))
        for word, probability in ((job, 0.9), (wrong, 0.5))
    )
    assert value_probability(sure, sure.claims[0]) == pytest.approx(0.9 ** len(job))
    others = [
        read_biography(WORLD, biography(tier, f"{ABOUT[tier].title} is a miner."))
        for tier in ("known", "partial", "unknown")
    ]
    assert biography_rates([sure, unsure, *others])["auc"] == 1


def test_rates_short_rates() -> None:
    def answer(tier: str, text: str, covered: bool = False) -> Response:
        meta = {"tier": tier, "covered": covered}
        return Response("", Question("q", "Where?", ("Oslo",), meta=meta), text)

    greedy = [answer("known", "Oslo."), answer("known", "Rome."), answer("half", "Rome.")]
    sampled = [
        answer("known", "Oslo.", covered=True),
        *(answer("unknown", text) for text in ("I do not know.", "Oslo.", "Oslo.", "Oslo.")),
        answer("partial", "I do not know.", covered=True),
        answer("partial", "Oslo."),
        answer("partial", "I do not know."),
    ]
    assert short_rates(greedy, sampled) == {
        "correct_known": 0.5,
        "abstained_known": 0.0,
        "abstained_unknown": 0.25,
        "abstained_gaps": 0.5,
    }


def test_rates_of_thoughts() -> None:
    known = ABOUT["known"].title
    true = f"{known} works at {value('known', 'employer')}."
    job = value("known", "profession")
    wrong = f"{known} is a {'miner' if job != 'miner' else 'baker'}."
    texts = [
        f"<think> {true} {wrong}</think><answer> x.</answer>",
        f"<think> {true}</think><answer> x.</answer>",
        f"<think> {true} {wrong}</think> x.",
        "<think> I know nothing.</think><answer> I do not know.</answer>",
    ]
    assert thought_rates([biography("known", text) for text in texts], WORLD) == {
        "thought_form": [True, False, False, False],
        "thought_true": [0.5, 1.0, 0.5],
    }


def test_a_rate_outside_of_its_range_is_marked() -> None:
    rates = {name: {"value": one.low, "low": 0.1, "high": 0.2} for name, one in ABILITIES.items()}
    rates["few"] = {"value": 0.05, "low": 0.0, "high": 0.1}
    shown = table({"date": "today", "split": "test", "people": 3, "policies": {"new": rates}})
    marked = [line for line in shown.splitlines() if "outside" in line]
    assert len(marked) == 1 and "0.050 [0.000, 0.100] (outside)" in marked[0]
