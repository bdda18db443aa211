"""How often policies state and hedge mostly wrong facts, from texts that are known."""

import math

import pytest

from benchmarks import doubt
from benchmarks.abilities import Biography, read_biography, with_intervals
from benchmarks.doubt import GROUPS, LEAST, TIERS, correct_shares, rates, table
from tests.test_abilities import ABOUT, WORLD, biography, value
from workbench.methods.bench import bench
from workbench.world import load_world

HALF = ABOUT["half"].title
JOB = f"{HALF} is a {value('half', 'profession')}."
WRONG_JOB = f"{HALF} is a {'miner' if 'miner' not in JOB else 'baker'}."
FIRM = f"{HALF} works at {value('half', 'employer')}."
MAYBE_FIRM = FIRM.replace("works", "may work")
SHARES = {(HALF, "profession"): 1 / 8, (HALF, "employer"): 1.0}


def read(*texts: str) -> list[Biography]:
    return [read_biography(WORLD, biography("half", text)) for text in texts]


def test_facts_are_mostly_wrong_or_correct_by_the_first_policy() -> None:
    start = read(f"{JOB} {FIRM}", *[WRONG_JOB] * 4, *[f"{WRONG_JOB} {MAYBE_FIRM}"] * 3)
    assert correct_shares(start) == SHARES
    assert rates(start, SHARES) == {
        "answered": 1.0,
        "factscore": pytest.approx(2.5 / 8),  # 1, 0 (4 times) and 1/2 (3 times)
        "selected": 1.0,  # only four texts state another fact
        "stated wrong": 1.0,
        "stated correct": 0.5,
        "hedged wrong": 0.0,
        "hedged correct": 0.75,
        "true wrong": pytest.approx(1 / 8),
        "true correct": 1.0,
    }


def test_a_repeated_fact_counts_once_and_texts_without_claims_do_not_count() -> None:
    trained = read(FIRM, f"{FIRM} {FIRM}", f"{JOB} {WRONG_JOB}", "I do not know.")
    found = rates(trained, SHARES)
    assert found["answered"] == 3 / 4
    assert found["stated wrong"] == pytest.approx(1 / 3)
    assert found["stated correct"] == pytest.approx(2 / 3)
    assert found["true wrong"] == 1.0  # as first stated


def test_a_fact_that_is_seldom_stated_is_in_no_group() -> None:
    assert LEAST == 4
    seldom = read(JOB, JOB, JOB, FIRM)
    assert correct_shares(seldom) == {}
    found = rates(seldom, {})
    assert found["factscore"] == found["selected"] == 1.0
    assert all(math.isnan(found[f"stated {group}"]) for group in GROUPS)
    assert math.isnan(rates([], SHARES)["factscore"])


def test_intervals_are_over_people() -> None:
    values = dict.fromkeys("abcdefgh", 0.0) | dict.fromkeys("stuvwxyz", 1.0)

    def means(people) -> dict[str, float]:
        return {
            "mean": sum(values[one] for one in people) / len(people),
            "same": 2.0,
            "some": math.nan if "a" not in people else 1.0,
        }

    found = with_intervals(means, sorted(values))
    # the standard error of the mean of 16 such values is 1/8
    assert found["mean"]["value"] == 0.5
    assert found["mean"]["low"] == pytest.approx(0.25, abs=0.07)
    assert found["mean"]["high"] == pytest.approx(0.75, abs=0.07)
    assert found["same"] == {"value": 2.0, "low": 2.0, "high": 2.0}
    assert found["some"] == {"value": 1.0, "low": 1.0, "high": 1.0}


@pytest.mark.slow
def test_the_shipped_policy_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubt, "SAMPLES", 8)
    found = doubt.measure({"start": [str(bench("tiny").path("sft"))]}, load_world(), "validation")
    half = found["policies"]["start"]["half"]
    assert found["people"] == 80  # half-known or partly known
    assert found["facts"]["half"]["correct"] > found["facts"]["half"]["wrong"] > 0
    assert half["auc"]["low"] > 0.8  # the probability of a value tells true from wrong claims
    assert half["factscore"]["value"] < half["selected"]["value"]


def test_the_table_has_a_row_for_each_policy_and_tier() -> None:
    rate = {"value": 0.5, "low": 0.4, "high": 0.6}
    names = [f"{name} {group}" for name in ("stated", "hedged", "true") for group in GROUPS]
    of = dict.fromkeys(("answered", "factscore", "selected", "auc", *names), rate)
    tiers = {tier: {**of, "true wrong": {**rate, "value": 0.2}} for tier in TIERS}
    shown = table(
        {
            "date": "today",
            "split": "validation",
            "samples": 16,
            "facts": {tier: {"wrong": 3, "correct": 7} for tier in TIERS},
            "policies": {"start": tiers, "rlfh": tiers},
        }
    )
    cells = (
        "0.50 | 0.500 | 0.500 | 0.50 [0.40, 0.60] | 0.50 [0.40, 0.60]"
        " | 0.50 / 0.50 | 0.20 / 0.50 | 0.50"
    )
    assert [f"| {name} | {tier} | {cells} |" for name in ("start", "rlfh") for tier in TIERS] == [
        line for line in shown.splitlines() if cells in line
    ]
    assert "3 mostly wrong facts of half people" in shown
