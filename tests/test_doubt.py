"""How often policies state and hedge what they are often wrong about, from texts that are known."""

import pytest

from benchmarks.abilities import read_biography
from benchmarks.doubt import GROUPS, LEAST, TIERS, Said, correct_shares, factscore, rates, table
from tests.test_abilities import ABOUT, WORLD, biography, value

HALF = ABOUT["half"].title
JOB = f"{HALF} is a {value('half', 'profession')}."
WRONG_JOB = f"{HALF} is a {'miner' if 'miner' not in JOB else 'baker'}."
FIRM = f"{HALF} works at {value('half', 'employer')}."
MAYBE_FIRM = FIRM.replace("works", "may work")


def read(*texts: str) -> list:
    return [read_biography(WORLD, biography("half", text)) for text in texts]


def test_facts_are_grouped_by_their_correct_statements_in_the_first_policy() -> None:
    job, firm = (HALF, "profession"), (HALF, "employer")
    start = read(f"{JOB} {FIRM}", *[WRONG_JOB] * 4, *[f"{WRONG_JOB} {MAYBE_FIRM}"] * 3)
    assert LEAST == 4
    shares = correct_shares(Said(start))
    assert shares == {job: 1 / 8, firm: 1.0}
    found = rates(Said(start), shares, [HALF])
    assert found["mostly wrong"] == {"facts": 1, "stated": 1.0, "hedged": 0.0, "correct": 1 / 8}
    assert found["mostly correct"] == {"facts": 1, "stated": 0.5, "hedged": 0.75, "correct": 1.0}
    # 1, 0 (4 times) and 1/2 (3 times); without the job, only four texts have claims
    assert factscore(start, shares, 0.0) == pytest.approx(2.5 / 8)
    assert factscore(start, shares, 0.5) == 1.0

    trained = read(FIRM, f"{FIRM} {FIRM}", f"{JOB} {WRONG_JOB}", "I do not know.")
    found = rates(Said(trained), shares, [HALF])
    # three texts have claims; a fact that is stated twice counts once, as first stated
    assert found["mostly wrong"] == {
        "facts": 1,
        "stated": pytest.approx(1 / 3),
        "hedged": 0.0,
        "correct": 1.0,
    }
    assert found["mostly correct"]["stated"] == pytest.approx(2 / 3)


def test_a_fact_that_few_samples_state_is_in_no_group() -> None:
    shares = correct_shares(Said(read(JOB, JOB, JOB, FIRM)))
    assert shares == {}
    assert rates(Said(read(JOB)), shares, [HALF])["mostly correct"] == {
        "facts": 0,
        "stated": None,
        "hedged": None,
        "correct": None,
    }


def test_the_table_has_a_row_for_each_policy_and_tier() -> None:
    row = {"facts": 3, "stated": 0.5, "hedged": 0.1, "correct": 0.2, "low": 0.4, "high": 0.6}
    groups = dict.fromkeys(GROUPS, row)
    tiers = {tier: {"factscore": 0.7, "selected": 0.9, "groups": groups} for tier in TIERS}
    shown = table(
        {
            "date": "today",
            "split": "validation",
            "samples": 16,
            "policies": {"start": tiers, "rlfh": tiers},
        }
    )
    cells = "0.700 | 0.900 | 0.50 [0.40, 0.60] | 0.50 [0.40, 0.60] | 0.10 / 0.10 | 0.20 / 0.20"
    assert [f"| {name} | {tier} | {cells} |" for name in ("start", "rlfh") for tier in TIERS] == [
        line for line in shown.splitlines() if cells in line
    ]
    assert "3 mostly wrong facts of half people" in shown
