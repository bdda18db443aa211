"""What a policy can write before reinforcement learning: rates of texts that are known."""

import math

import pytest

from benchmarks.abilities import of_biographies, of_short_answers, read_biography, value_probability
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
    compound = f"{known} was born in {value('known', 'born_in')} in {value('known', 'birth_year')}."
    hedged = f" {known} may be a {value('known', 'profession')}."
    job = value("half", "profession")
    wrong = "miner" if job != "miner" else "baker"
    texts = {
        "known": [compound + hedged],
        "half": [f"{half} is a {job}.", f"{half} is a {wrong}.", f"{half} is a {job}."],
        "partial": [f"{known} is a {value('known', 'profession')}."],  # about another person
        "unknown": ["I do not know.", f"{known} is a {value('known', 'profession')}."],
    }
    found = [
        read_biography(WORLD, biography(tier, text))
        for tier, some in texts.items()
        for text in some
    ]
    rates = of_biographies(found)
    assert rates["factscore_known"] == 1 and rates["factscore_partial"] == 0
    assert rates["factscore_half"] == pytest.approx(2 / 3)
    assert rates["hedged"] == pytest.approx(1 / 7) and rates["hedged_known"] == pytest.approx(1 / 3)
    assert rates["compound"] == pytest.approx(1 / 6)
    assert rates["off_subject"] == rates["declined"] == 0.5
    assert rates["few"] == 1 and rates["spread"] == 0
    assert rates["auc"] == 0.5  # all values have the probability 1


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
    assert of_biographies([sure, unsure, *others])["auc"] == 1


def test_rates_of_short_answers() -> None:
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
    assert of_short_answers(greedy, sampled) == {
        "right_known": 0.5,
        "abstained_known": 0.0,
        "abstained_unknown": 0.25,
        "abstained_gaps": 0.5,
    }
