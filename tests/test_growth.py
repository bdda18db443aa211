"""The growth benchmark: slopes by hand, generated responses, and stored results."""

import math

import pytest

from benchmarks import growth
from benchmarks.growth import AXES, BASE, Written, judged, people, slope
from tests.helpers import ROOT, read_json
from workbench.experiments.plan import judge_requests

STORED = ROOT / "benchmarks" / "results" / "growth.json"


def words(text: str) -> int:
    return len(text.split())


def test_slopes_by_hand() -> None:
    """Slopes in logs: 1 for 3n, 2 for n², 0 for a constant; between 0 and 1 for 8 + 2n."""
    values = [2, 4, 8, 16]
    costs = {1.0: [6, 12, 24, 48], 2.0: [4, 16, 64, 256], 0.0: [5, 5, 5, 5]}
    assert all(
        math.isclose(slope(values, by), expected, abs_tol=1e-12) for expected, by in costs.items()
    )
    assert 0 < slope(values, [12, 16, 24, 40]) < 1
    assert slope([1, 4], [3, 6]) == pytest.approx(0.5)  # twice the cost for four times the size


@pytest.mark.parametrize("point", [{}, {"claims": 8, "length": 256, "prompts": 2}])
def test_responses_have_the_requested_length_and_claims(point: dict[str, int]) -> None:
    """RLFH requests the claims of each response, their verdicts and their ratings; padding has no
    claims.
    """
    point = {**BASE, **point}
    responses = Written(people(), words, seed=1).responses(point)
    assert (
        len({one.text for one in responses}) == len(responses) == point["prompts"] * point["group"]
    )
    assert all(point["length"] <= words(one.text) < point["length"] + 16 for one in responses)
    counts, claims, _ = judged(responses, words)
    assert claims == point["claims"]
    assert counts["requests"] <= len(responses) * judge_requests(["fact"], point["claims"])
    assert counts["requests"] > len(responses) * (2 + point["claims"] / 2)  # few claims are equal
    other = Written(people(), words, seed=1).responses(point, turn=1)
    assert {one.text for one in other}.isdisjoint(one.text for one in responses)


def test_results_are_stored_for_every_axis() -> None:
    stored = read_json(STORED)
    assert {axis: tuple(one["values"]) for axis, one in stored["axes"].items()} == AXES
    for axis, one in stored["axes"].items():
        for name in growth.COUNTS:
            assert one["slopes"][name]["slope"] == round(slope(AXES[axis], one[name]), 3)
    requests = stored["axes"]["prompts"]["slopes"]["requests"]["slope"]
    assert math.isclose(requests, 1, abs_tol=growth.NEAR)
    assert f"| {growth.TITLES['learning']} |" in growth.table(stored)
