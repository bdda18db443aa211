"""Figures show the numbers they were given."""

import pytest

from workbench.metrics import RATES
from workbench.plots import exposure_and_accuracy, learning_curves, outcomes_by_tier, rates_with_intervals


def cell(accuracy: float, abstention: float) -> dict:
    hallucination = 1 - accuracy - abstention
    values = dict(zip(RATES, (accuracy, abstention, hallucination, accuracy - hallucination), strict=True))
    return {"n": 4, **{rate: {"value": v, "low": v - 0.1, "high": v + 0.2} for rate, v in values.items()}}


@pytest.fixture
def reports() -> dict:
    def report(known: dict, unknown: dict, every: dict) -> dict:
        return {"greedy": {**every, "by_tier": {"unknown": unknown, "known": known}}}

    return {
        "start": report(cell(1.0, 0.0), cell(0.0, 0.25), cell(0.5, 0.125)),
        "ternary": report(cell(0.75, 0.25), cell(0.0, 1.0), cell(0.375, 0.625)),
    }


def test_outcomes_stack_to_one_in_every_tier(reports):
    figure = outcomes_by_tier(reports)
    assert [annotation.text for annotation in figure.layout.annotations] == ["all", "known", "unknown"]
    for axis in ("x", "x2", "x3"):
        bars = [trace for trace in figure.data if (trace.xaxis or "x") == axis]
        assert [sum(values) for values in zip(*(bar.y for bar in bars), strict=True)] == pytest.approx([1.0, 1.0])
    known_correct = next(t for t in figure.data if t.xaxis == "x2" and t.name == "correct")
    assert tuple(known_correct.x) == ("start", "ternary") and tuple(known_correct.y) == (1.0, 0.75)


def test_intervals_are_drawn_on_both_sides(reports):
    bar = rates_with_intervals(reports).data[0]
    assert bar.error_y.array == pytest.approx([0.2] * 4) and bar.error_y.arrayminus == pytest.approx([0.1] * 4)


def test_an_empty_block_is_drawn_as_nothing(reports):
    empty = {rate: {"value": None, "low": None, "high": None} for rate in RATES}
    bar = rates_with_intervals({"start": {"sampled": empty}}, "sampled").data[0]
    assert list(bar.y) == list(bar.error_y.array) == list(bar.error_y.arrayminus) == [None] * 4


def test_curves_follow_the_rows():
    rows = [{"step": step, **dict.fromkeys(RATES, step / 10)} for step in (1, 2, 3)]
    figure = learning_curves({"ternary": rows, "binary": rows[:2]})
    assert len(figure.data) == 8
    assert tuple(figure.data[0].x) == (1, 2, 3) and tuple(figure.data[0].y) == (0.1, 0.2, 0.3)


def test_exposure_plot_labels_its_points():
    trace = exposure_and_accuracy([(20, 0.9, 30), (0, 0.0, 40)]).data[0]
    assert tuple(trace.text) == ("30 questions", "40 questions") and tuple(trace.y) == (0.9, 0.0)
