"""The table of the papers' settings: by hand, and equal to `workbench plan`."""

import json
import math

import pytest

from benchmarks import papers
from benchmarks.papers import MILLION, SETTINGS, judge_hours, measured
from tests.helpers import ROOT, read_json
from workbench.experiments.shape import GPUS, shape_of

STORED = ROOT / "benchmarks" / "results" / "papers.json"
RLFH = next(one for one in SETTINGS if one.name == "RLFH")


def test_rlfhs_setting_by_hand() -> None:
    """20,000 questions in steps of 128 are 157 steps, the last one filled up: 20,096 responses of
    512 tokens after prompts of 512; 21 claims each need 23 requests.
    """
    row = measured(RLFH)
    assert (row["rollouts"], row["generated"], row["learnt"]) == (
        157 * 128,
        157 * 128 * 512,
        157 * 128 * 1024,
    )
    assert row["requests"] == 157 * 128 * 23
    assert row["machines"] == math.ceil((row["hours"]["h100-80"] + row["judge_hours"]) / (8 * 24))


def test_costs_are_proportional_to_the_number_of_steps() -> None:
    few, many = measured(RLFH), measured(RLFH, MILLION)
    times = 7_813 / 157  # steps
    assert many["prompts"] == MILLION and many["rollouts"] == 7_813 * 128
    for name in ("requests", "tokens_in", "tokens_out", "generated", "learnt"):
        assert math.isclose(many[name], times * few[name], rel_tol=1e-6)
    assert math.isclose(many["hours"]["a100-80"], times * few["hours"]["a100-80"], rel_tol=0.01)


def test_a_judges_hours_by_hand() -> None:
    """1,000 prompts of 1,000 tokens, replies of 24: two operations per weight and token, plus
    attention, at .3 of the H100's 989 TFLOP/s.
    """
    shape = shape_of(papers.JUDGE)
    weights = shape.matrices + 128_256 * 8192
    each = 2 * weights + 2 * 80 * 1024 * shape.queries
    seconds = 1_024_000 * each / (0.3 * 989e12)
    output = judge_hours({"requests": 1000, "tokens_in": 1_000_000, "tokens_out": 24_000})
    assert GPUS[papers.JUDGE_GPU]["flops"] == 989e12 and output == round(seconds / 3600, 2)
    assert judge_hours({"requests": 0, "tokens_in": 0, "tokens_out": 0}) == 0


@pytest.mark.slow
def test_the_stored_rows_equal_the_present_plan() -> None:
    assert read_json(STORED) == json.loads(json.dumps(papers.found()))
