"""Figures show the given numbers, and no part covers another."""

import base64
import io
import json
from itertools import combinations

import pytest

from notebooks.pictures import CHROMIUM, WIDTH, add_pictures
from tests.helpers import ROOT, read_json, write_json
from tests.helpers.errors import raises_error
from workbench.credit.tokens import words
from workbench.inspector.token_view import VIEW, payload
from workbench.metrics import RATES, Row
from workbench.metrics.boundary import Probed, Sample, boundary_report
from workbench.metrics.plots import (
    boundary,
    learning_curves,
    outcomes_by_tier,
    over_steps,
    rates_with_intervals,
    rlfh,
)
from workbench.types import Feedback, JsonObject, Question, Response

BOUNDARY = ("boundary_map", "majority_at_k", "label_agreement", "risk_coverage")


def cell(accuracy: float, abstention: float) -> dict:
    hallucination = 1 - accuracy - abstention
    values = dict(
        zip(RATES, (accuracy, abstention, hallucination, accuracy - hallucination), strict=True)
    )
    return {
        "n": 4,
        **{rate: {"value": v, "low": v - 0.1, "high": v + 0.2} for rate, v in values.items()},
    }


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
    assert [annotation.text for annotation in figure.layout.annotations] == [
        "all",
        "known",
        "unknown",
    ]
    for axis in ("x", "x2", "x3"):
        bars = [trace for trace in figure.data if (trace.xaxis or "x") == axis]
        assert [
            sum(values) for values in zip(*(bar.y for bar in bars), strict=True)
        ] == pytest.approx([1.0, 1.0])
    known_correct = next(t for t in figure.data if t.xaxis == "x2" and t.name == "correct")
    assert tuple(known_correct.x) == ("start", "ternary") and tuple(known_correct.y) == (1.0, 0.75)


def test_intervals_are_drawn_on_both_sides(reports):
    bar = rates_with_intervals(reports).data[0]
    assert bar.error_y.array == pytest.approx(
        [0.2] * 4
    ) and bar.error_y.arrayminus == pytest.approx([0.1] * 4)


def test_more_policies_than_colours_are_all_drawn(reports):
    report = next(iter(reports.values()))
    assert len(rates_with_intervals({str(n): report for n in range(12)}).data) == 12


@pytest.mark.slow
def test_figures_fit_their_cell_and_show_shares_in_percent(reports):
    figures = drawn(reports)
    assert {name for name, figure in figures.items() if figure.layout.width is not None} == set()
    assert all(figure.layout.yaxis.tickformat for figure in (figures["curves"], figures["rates"]))
    rows = [{"step": step, "reward": step / 2, "accuracy": 0.5} for step in (1, 2)]
    training = over_steps({"run": rows}, dict.fromkeys(("reward", "accuracy", "kl"), ""), "")
    # a column without values is left out
    assert [tuple(line.y) for line in training.data] == [(0.5, 1.0), (0.5, 0.5)]
    assert training.layout.yaxis.tickformat is None and "%" in training.layout.yaxis2.tickformat


def answers(step: int, correct: int, wrong: int, count: int = 6) -> list[Row]:
    labels = ("correct",) * correct + ("wrong",) * wrong
    return [
        Row(
            f"{step}/{n}",
            f"q{n}",
            "scored",
            labels[n % 2 :],
            tuple(range(len(labels)))[n % 2 :],
            step=step,
        )
        for n in range(count)
    ]


def test_logged_claims_are_drawn_step_by_step():
    """A step with only refusals has no accuracy and no point."""
    logged = [(1, 3.0, 1.0), (2, None, None), (3, 2.0, 0.0)]
    rows = [
        {"step": step, "claims_correct": correct, "claims_wrong": wrong}
        for step, correct, wrong in logged
    ]
    trace = rlfh.trade_off_in_training({"one": rows}).data[0]
    assert (list(trace.x), list(trace.y), list(trace.text)) == (
        [4.0, 2.0],
        [0.75, 1.0],
        ["step 1", "step 3"],
    )


def probe(right: int) -> JsonObject:
    """A probe of two questions; the fact of the first was shown, and `right` of 4 samples are
    correct.
    """
    first = [Sample("rome", "correct")] * right + [Sample(None, "uncertain")] * (4 - right)
    second = [Sample(f"town {n}", "incorrect") for n in range(4)]
    return boundary_report(
        [Probed("shown", tuple(first), 28), Probed("never", tuple(second), 0)], 4
    )


def test_the_boundary_is_drawn_by_exposure_before_and_after():
    figure = boundary.boundary_map({"before": probe(3), "after": probe(1)})
    assert [annotation.text for annotation in figure.layout.annotations] == ["before", "after"]
    drawn = {(trace.name, trace.xaxis): trace.y for trace in figure.data}
    assert drawn["correct", "x"] == (0.0, 0.75) and drawn["abstained", "x2"] == (0.0, 0.75)
    assert drawn["hallucinated", "x"] == drawn["hallucinated", "x2"] == (1.0, 0.0)
    assert tuple(figure.data[0].x) == ("0<br>n = 1", "28<br>n = 1")


def test_many_exposures_are_drawn_in_groups():
    rows = {
        str(count): {"n": 1 + count % 2, "correct": count / 20, "abstain": 0, "wrong": 0.1}
        for count in range(20)
    }
    bars = boundary.boundary_map({"before": {"exposure": rows}}).data[0]
    assert bars.name == "correct" and tuple(bars.x) == (
        *("0<br>n = 1", "1–4<br>n = 6", "5–8<br>n = 6"),
        *("9–12<br>n = 6", "13–16<br>n = 6", "17–20<br>n = 5"),
    )
    assert bars.y[1] == pytest.approx((2 * 1 + 1 * 2 + 2 * 3 + 1 * 4) / 20 / 6)


def test_figures_over_k_follow_the_table():
    result = probe(3)
    lines = boundary.majority_at_k({"sft": result}).data
    assert [tuple(line.x) for line in lines] == [(1, 2, 4)] * 3 and tuple(lines[0].y) == (
        0.5,
        0.5,
        0.5,
    )
    precision, recall = boundary.label_agreement({"sft": result}).data
    assert tuple(precision.y) == tuple(recall.y) == (1.0, 1.0, 1.0)
    assert boundary.label_agreement({"sft": result | {"agreement": None}}).data[0].y == ()
    [curve] = boundary.risk_coverage({"sft": result}).data
    assert (tuple(curve.x), tuple(curve.y)) == ((0.5, 1.0), (0.0, 0.5))


def drawn(reports: dict) -> JsonObject:
    """Every figure, with the longest names."""
    names = ("before training, the SFT policy", "after training with RLFH")
    before, after = answers(0, 2, 3), answers(0, 4, 1)
    rows = [
        {
            "step": s,
            **dict.fromkeys(RATES, s / 10),
            "reward": 1.0,
            "kl": 0.1,
            "entropy": 2.0,
            "length": 40.0,
            "failed": 1,
        }
        for s in (1, 2)
    ]
    curves = {"ternary reward": rows, "binary reward": rows, "knowledge-enhanced reward": rows}
    return rlfh.figures(before, after, names) | {
        "steps": rlfh.trade_off(
            {"the paper's map": [*before, *answers(1, 4, 1)], "launch script": after}
        ),
        "arms": rlfh.trade_off({f"a setting, {n}": answers(0, 1 + n % 4, 1) for n in range(17)}),
        "outcomes": outcomes_by_tier(reports),
        "rates": rates_with_intervals(reports),
        "curves": learning_curves(curves),
        "dynamics": over_steps(curves, dict.fromkeys(rows[0], "a title"), "Dynamics"),
        **{
            f"{name} {len(some)}": draw(some)
            for name, draw in vars(boundary).items()
            if name in BOUNDARY
            for some in ({"sft": probe(3)}, dict(zip(names, (probe(3), probe(1)), strict=True)))
        },
    }


@pytest.mark.nightly
@pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on the path (Debian: apt install chromium)"
)
def test_titles_legends_and_axes_are_not_cut_and_do_not_overlap(reports):
    """In a browser at full size, every text is within the figure and covers no other."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the dev extra is not installed")
    from plotly.offline import get_plotlyjs

    boxes = """async ([data, layout]) => {
        document.body.innerHTML = "<div id=plot></div>";
        await Plotly.newPlot("plot", data, layout);
        const kinds = ".gtitle, .legend .bg, [class$=title] > text, .annotation-text, .xtick text,"
            + ".cbtitle text";
        const texts = document.querySelectorAll(`#plot :is(${kinds})`);
        const box = (e) => {
            const r = e.getBoundingClientRect();
            return [r.left, r.top, r.right, r.bottom, e.textContent || "legend"];
        };
        return [[...new Set(texts)].map(box), box(document.querySelector("#plot .main-svg"))];
    }"""
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.add_script_tag(content=get_plotlyjs())
        for name, figure in drawn(reports).items():
            whole = json.loads(figure.to_json())
            texts, (left, top, right, bottom, _) = page.evaluate(
                boxes, [whole["data"], whole["layout"]]
            )
            assert len(texts) >= 4, name
            for found in texts:
                assert (
                    left <= found[0]
                    and top <= found[1]
                    and found[2] <= right
                    and found[3] <= bottom
                ), (name, found)
            for one, other in combinations(texts, 2):
                apart = (
                    one[2] <= other[0] + 1
                    or other[2] <= one[0] + 1
                    or one[3] <= other[1] + 1
                    or other[3] <= one[1] + 1
                )
                assert apart, (name, one, other)
        browser.close()


def a_notebook(*plots: dict) -> dict:
    outputs = [
        {
            "output_type": "display_data",
            "metadata": {},
            "data": {"application/vnd.plotly.v1+json": plot},
        }
        for plot in plots
    ]
    cells = [
        {"cell_type": "markdown", "id": "0", "metadata": {}, "source": ["Straße"]},
        {
            "cell_type": "code",
            "id": "1",
            "metadata": {},
            "source": [],
            "execution_count": 1,
            "outputs": outputs,
        },
    ]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@pytest.mark.slow
@pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on the path (Debian: apt install chromium)"
)
def test_a_token_views_data_is_replaced_by_its_picture(tmp_path):
    pytest.importorskip("playwright.sync_api", reason="the dev extra is not installed")
    from PIL import Image

    said = Response(
        "r",
        Question("q", "Who is <b>Ada</b>?"),
        "Ada is a baker. " * 3,
        offsets=words("Ada is a baker. " * 3),
    )
    shown = {
        "output_type": "display_data",
        "metadata": {VIEW: payload(Feedback(said))},
        "data": {"text/plain": ["TokenView()"]},
    }
    notebook, file = a_notebook(), tmp_path / "a.ipynb"
    notebook["cells"][1]["outputs"] = [shown]
    write_json(file, notebook)
    assert add_pictures([file]) == 1
    [output] = read_json(file)["cells"][1]["outputs"]
    assert output["metadata"] == {} and set(output["data"]) == {"text/plain", "image/png"}
    drawn = Image.open(io.BytesIO(base64.b64decode(output["data"]["image/png"]))).convert("RGB")
    colours = drawn.getcolors(1 << 20)
    assert drawn.size[0] == WIDTH and 100 < drawn.size[1] < 1500 and colours and len(colours) > 10
    before = file.read_bytes()
    assert add_pictures([file]) == 0 and file.read_bytes() == before


def test_pictures_require_a_notebook(tmp_path):
    (tmp_path / "a.ipynb").write_text("{}")
    for name, message in (("a.ipynb", "it has no cells"), ("none.ipynb", "cannot read")):
        with raises_error(message):
            add_pictures([tmp_path / name])


def is_token_view(output: dict) -> bool:
    return str(output.get("data", {}).get("text/plain", [""])[0]).startswith("TokenView(")


def test_the_plots_of_our_notebooks_have_their_pictures():
    """`make notebooks` adds them: GitHub runs no scripts."""
    for file in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = read_json(file)
        found = [
            output.get("data", {})
            for cell in notebook["cells"]
            for output in cell.get("outputs", ())
        ]
        assert all(
            "image/png" in data for data in found if "application/vnd.plotly.v1+json" in data
        ), file.name
        views = [
            output["data"]
            for cell in notebook["cells"]
            for output in cell.get("outputs", ())
            if is_token_view(output)
        ]
        assert all("image/png" in data for data in views), file.name
        assert file.stat().st_size < 1_000_000, file.name
