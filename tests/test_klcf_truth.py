"""`benchmarks/klcf_truth.py`: its arithmetic by hand, the claims of its arms, and that a killed
call goes on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.klcf_truth import auc, difference, measured, verdict


def test_auc_is_the_share_of_pairs_in_order() -> None:
    """True .9, .4; false .5, .4: of four pairs (.9, .5), (.9, .4) are in order, (.4, .5) is not,
    (.4, .4) counts half.
    """
    assert auc(
        np.array([0.9, 0.5, 0.4, 0.4]), np.array([True, False, True, False])
    ) == pytest.approx(2.5 / 4)


def run(arm: str, seed: int, *values: float) -> dict[str, Any]:
    scored = [
        [f"q{number // 2}", value, float(number % 2 == 0)] for number, value in enumerate(values)
    ]
    return {"arm": arm, "seed": seed, "scored": scored, "auc": 1.0, "accuracy": 1.0, "ece": 0.0}


def test_the_difference_is_that_of_the_aucs_with_people_drawn_whole() -> None:
    perfect, none = (0.9, 0.1) * 4, (0.5, 0.5) * 4
    found = difference(
        [
            run("own", 1, *perfect),
            run("world", 1, *none),
            run("own", 2, *none),
            run("world", 2, *none),
        ],
        "world",
    )
    # half a point of one seed in two, whoever is drawn
    assert found == {"value": 0.25, "low": 0.25, "high": 0.25}
    with pytest.raises(AssertionError, match="the same claims"):
        difference([run("own", 1, *perfect), run("world", 1, *none[:4])], "world")


def test_a_person_of_several_seeds_is_drawn_once_for_all() -> None:
    """Three seeds of the same people with the same values say what one says: the interval must
    not shrink.
    """
    mine, other = (0.9, 0.2, 0.4, 0.6, 0.8, 0.3, 0.1, 0.7), (0.5, 0.6, 0.7, 0.2, 0.4, 0.4, 0.9, 0.1)
    once, thrice = (
        [run(arm, seed, *own) for seed in seeds for arm, own in (("own", mine), ("world", other))]
        for seeds in ([1], [1, 2, 3])
    )
    found = difference(once, "world")
    assert (
        difference(thrice, "world") == pytest.approx(found) and found["high"] - found["low"] > 0.5
    )


@pytest.mark.parametrize(
    ("value", "low", "high", "said"),
    [
        (0.03, 0.01, 0.05, "holds"),
        (0.01, 0.005, 0.03, "unclear"),
        (0.03, -0.01, 0.07, "unclear"),
        (0.0, -0.01, 0.01, "fails"),
    ],
)
def test_verdicts_need_the_least_effect_and_an_interval_above_none(
    value: float, low: float, high: float, said: str
) -> None:
    assert verdict({"value": value, "low": low, "high": high}) == said


def test_a_killed_call_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    made: list[tuple[str, int]] = []

    def make(arm: str, place: Any, out: Path, seed: int) -> dict[str, Any]:
        if len(made) == 4:
            raise KeyboardInterrupt
        made.append((arm, seed))
        return run(arm, seed, *((0.9, 0.1) if arm == "own" else (0.5, 0.5)) * 3)

    file = tmp_path / "it.json"
    with pytest.raises(KeyboardInterrupt):
        measured(file, tmp_path, [1, 2], make)
    assert len(json.loads(file.read_text())["runs"]) == 4 and "findings" not in json.loads(
        file.read_text()
    )
    made.clear()
    found = measured(file, tmp_path, [1, 2], make)
    assert made == [("world", 2), ("tuned", 2)]
    assert [(one["id"], one["verdict"], one["value"]) for one in found["findings"]] == [
        ("B1", "holds", 0.5),
        ("B2", "holds", 0.5),
    ]
