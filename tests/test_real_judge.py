"""The benchmark of a small language model as the judge of facts, on claims worked by hand."""

import pytest

from benchmarks.human.altered import ROLES
from benchmarks.real.judge import ALL, Item, summarise
from workbench.types import Passage

PAGE = (Passage("0", "", "Ada taught Ben in Oslo."),)


def item(set: str, claim: str, gold: bool) -> Item:
    return Item(set, claim, PAGE, gold, claim)


ITEMS = [
    item("sets", "Ada taught Ben.", True),
    item("sets", "Ben was in Oslo.", True),
    item("sets", "Ada was in Oslo alone.", False),
    item("sets", "Ben never met Ada.", False),
    item(ROLES, "Ben was taught by Ada.", True),
    item(ROLES, "Ada was taught by Ben.", False),
]
LOCAL = [("correct", 0.9), ("vague", 0.4), ("correct", 0.8), ("wrong", 0.1)] + [
    ("correct", 0.9)
] * 2
MODEL = ["correct", "correct", "wrong", None, "correct", "wrong"]  # the fourth reply is unreadable


def test_each_judge_is_measured_on_the_claims_that_it_decides() -> None:
    rows = [
        {"key": one.key, "label": label, "p": None, "error": None if label else "not_json"}
        | {"asked": True, "cpu": 2.0, "tokens": 100}
        for one, label in zip(ITEMS, MODEL, strict=True)
    ]
    found = summarise(ITEMS, LOCAL, rows, seed=0)
    assert found["asked"] == 6 and found["errors"] == {"not_json": 1}
    assert found["in_declared_form"]["value"] == pytest.approx(5 / 6, abs=1e-4)
    assert found["passed_on"]["value"] == pytest.approx(4 / 6, abs=1e-4)
    assert found["cpu_seconds_per_claim"] == {"median": 2.0, "mean": 2.0}
    sets = found["sets"]["sets"]
    # local: 1 of 2 supported, 1 of 2 others; model: 2 of 2 and 1 of 1, without its failure;
    # both: 1 of 2 and 2 of 2, because the local verifier refuses the claim of the failure
    values = {name: sets[name]["balanced_accuracy"]["value"] for name in ("local", "model", "both")}
    assert values == {"local": 0.5, "model": 1.0, "both": 0.75}
    assert [sets[name]["n"] for name in ("local", "model", "both")] == [4, 3, 4]
    roles = found["altered"][ROLES]
    assert {name: roles["altered"][name]["value"] for name in values} == {
        "local": 1.0,
        "model": 0.0,
        "both": 0.0,
    }
    assert roles["original"]["both"]["value"] == 1.0
    assert roles["separated"]["model"]["balanced_accuracy"]["value"] == 1.0
    assert found["altered"][ALL] == roles
    # claims not yet sent to the model count for no judge
    assert summarise(ITEMS, LOCAL, rows[:5], seed=0)["altered"][ROLES]["altered"]["local"]["n"] == 0
