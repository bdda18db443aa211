"""A training in a notebook: curves that grow with the file, and a clean stop by button or
interrupt."""

import json
import re
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

pytest.importorskip("ipywidgets", reason="the notebooks extra is not installed")

from tests.helpers import ROOT
from tests.helpers.background_jobs import crash, train_slowly
from tests.helpers.errors import raises_error
from tests.helpers.waiting import wait_for
from workbench import train
from workbench.experiments.live import POINTS, Live, curves, redraw
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.folder import in_use
from workbench.types import WorkbenchError
from workbench.util.subprocess import start

SETTINGS = [
    f"truthrl.{part}"
    for part in ("eval_samples=0", "eval_kinds=list", "prompts_per_step=4", "group_size=4")
]


def steps_of(figure: Any) -> int:
    """The last step of the first curve."""
    return figure.data[0].x[-1] if figure.data else 0


@pytest.mark.slow
def test_the_view_follows_the_run_of_another_process(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    run = tmp_path / "run"
    view = Live(run)
    assert view.status.value == "run: step 0, not running" and steps_of(view.figure) == 0
    writer = start(train_slowly, {"folder": str(run)}, tmp_path / "log.txt")
    wait_for(lambda: steps_of(view.figure) > 2, seconds=120)
    first = steps_of(view.figure)
    assert re.fullmatch(r"run: step \d+, running", view.status.value)
    wait_for(lambda: steps_of(view.figure) > first, seconds=120)
    assert view.button not in view.controls.children
    with raises_error("was not started by this notebook"):
        view.stop()
    writer.interrupt()
    assert view.wait() == {"status": "interrupted"} and writer.wait() == 0
    rows = metrics_rows(run)
    assert view.status.value == f"run: step {len(rows)}, interrupted" and steps_of(
        view.figure
    ) == len(rows)
    curves = {
        title.text: curve
        for title, curve in zip(view.figure.layout.annotations, view.figure.data, strict=True)
    }
    assert set(curves) == {"reward", "length, tokens"}  # the KL was never measured
    assert curves["reward"].y[:3] == (0.1, 0.2, 0.3)


@pytest.mark.slow
def test_the_button_stops_the_training(tmp_path: Path) -> None:
    run = tmp_path / "<b>run"
    view = Live(run, start(train_slowly, {"folder": str(run)}, tmp_path / "log.txt"), steps=10**6)
    wait_for(lambda: steps_of(view.figure) > 1, seconds=120)
    assert view.button in view.controls.children and view.status.value.endswith(
        "of 1000000, running"
    )
    view.button.click()
    assert view.button.description == "Stop at once"
    assert view.wait() == {"status": "interrupted"} and view.button.disabled and not in_use(run)
    # a waiting kernel receives no clicks
    assert view.button.description == "Interrupt the kernel to stop"
    assert (
        view.status.value == f"&lt;b&gt;run: step {len(metrics_rows(run))} of 1000000, interrupted"
    )


@pytest.mark.slow
def test_redrawing_extends_the_curves() -> None:
    chart = go.FigureWidget()
    rows = [{"step": step, "reward": step / 10} for step in range(1, 6)]
    for count in (0, 2, 5):
        redraw(chart, curves(rows[:count], "run"))
        assert steps_of(chart) == count and chart.layout.width is None
    [curve] = curves([{"step": step, "reward": 0.5} for step in range(1, 1002)], "run").data
    # every third step, counted from the last
    assert len(curve.x) == 334 <= POINTS and curve.x[:2] == (2, 5) and curve.x[-1] == 1001
    assert chart.data[0].y == (0.1, 0.2, 0.3, 0.4, 0.5)
    assert chart.layout.annotations[0].text == "reward"


@pytest.mark.slow
def test_a_failed_training_shows_its_error(tmp_path: Path) -> None:
    view = Live(tmp_path, start(crash, {}, tmp_path / "log.txt"))
    with raises_error("the training failed: RuntimeError: a bug"):
        view.wait()
    assert view.status.value.endswith("failed: RuntimeError: a bug")


def test_invalid_arguments_start_no_training(tmp_path: Path) -> None:
    wrongs = (
        {"settings": ["truthrl.nope=1"]},
        {"bench": "huge"},
        {"seed": -1},
        {"judge": "http://127.0.0.1:9/v1"},  # without a model
        {"policy": tmp_path},
    )
    for wrong in wrongs:
        with pytest.raises(WorkbenchError):
            train("truthrl", tmp_path / "run", live=True, **wrong)
    assert not (tmp_path / "run").exists()


CELLS = (
    """
from workbench import train
from workbench.experiments.live import Live
how = dict(seed=1, steps=40, settings={settings}, live=True)
view = train("truthrl", {run!r}, **how)
view
""",
    """
import os, signal, threading, time
from pathlib import Path

def interrupt():  # as the kernel's menu does
    while not Path({run!r}, "metrics.jsonl").exists():
        time.sleep(0.02)
    time.sleep(1)  # the cell is waiting by then
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
print(view.wait()["status"])
""",
    """
view = train("truthrl", {run!r}, **how)
display(view)
print(view.wait()["status"])
""",
    "Live({run!r})",
)


@pytest.mark.nightly
def test_an_interrupted_notebook_resumes_its_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("PLOTLY_RENDERER", "plotly_mimetype")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    run = tmp_path / "run"
    cells = [
        nbformat.v4.new_code_cell(cell.format(run=str(run), settings=SETTINGS)) for cell in CELLS
    ]
    notebook = nbformat.v4.new_notebook(cells=[*cells, nbformat.v4.new_code_cell(cells[-1].source)])
    nbclient.NotebookClient(
        notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    _, interrupted, finished, shown, again = (cell.outputs for cell in notebook.cells)
    assert interrupted[-1].text == "interrupted\n" and finished[-1].text == "done\n"
    assert "resuming" in (run / "log.txt").read_text() and len(metrics_rows(run)) == 40
    mime = "application/vnd.plotly.v1+json"
    curves = [
        output.data[mime]["data"]
        for cell in (finished, shown, again)
        for output in cell
        if mime in output.get("data", {})
    ]
    assert len(curves) == 3  # a cell may show other outputs
    assert curves[0][0]["x"] == list(range(1, 41)) and curves[0] == curves[1] == curves[2]
    texts = [json.dumps(output, sort_keys=True) for output in (shown, again)]
    # replayed notebooks are compared like this
    assert len({re.sub(r"\b[0-9a-f]{32}\b", "HEX", text) for text in texts}) == 1
