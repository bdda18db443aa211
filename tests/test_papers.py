"""The table of the papers' settings: by hand, and the same as `workbench plan` says."""

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
    """20,000 questions in steps of 128 are 157 steps, the last one filled up: 20,096 responses
    of 512 tokens after 512 of prompt; of 21 claims each, so 23 requests."""
    row = measured(RLFH)
    assert (row["rollouts"], row["generated"], row["learnt"]) == (
        157 * 128,
        157 * 128 * 512,
        157 * 128 * 1024,
    )
    assert row["requests"] == 157 * 128 * 23
    assert row["machines"] == math.ceil((row["hours"]["h100-80"] + row["judge_hours"]) / (8 * 24))


def test_a_million_prompts_are_fifty_times_twenty_thousand() -> None:
    few, many = measured(RLFH), measured(RLFH, MILLION)
    times = 7_813 / 157  # steps
    assert many["prompts"] == MILLION and many["rollouts"] == 7_813 * 128
    for name in ("requests", "tokens_in", "tokens_out", "generated", "learnt"):
        assert math.isclose(many[name], times * few[name], rel_tol=1e-6)
    assert math.isclose(many["hours"]["a100-80"], times * few["hours"]["a100-80"], rel_tol=0.01)


def test_a_judges_hours_by_hand() -> None:
    """A thousand prompts of 1,000 tokens and replies of 24: two operations a weight and token,
    and attention's, at .3 of the H100's 989 TFLOP/s."""
    shape = shape_of(papers.JUDGE)
    weights = shape.matrices + 128_256 * 8192
    each = 2 * weights + 2 * 80 * 1024 * shape.queries
    seconds = 1_024_000 * each / (0.3 * 989e12)
    told = judge_hours({"requests": 1000, "tokens_in": 1_000_000, "tokens_out": 24_000})
    assert GPUS[papers.JUDGE_GPU]["flops"] == 989e12 and told == round(seconds / 3600, 2)
    assert judge_hours({"requests": 0, "tokens_in": 0, "tokens_out": 0}) == 0


@pytest.mark.slow
def test_the_stored_rows_are_what_the_plan_says_now() -> None:
    assert read_json(STORED) == json.loads(json.dumps(papers.found()))
