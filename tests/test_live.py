"""A training seen from a notebook: its curves grow while a cell waits, and an interrupt stops it
cleanly.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("IPython", reason="the notebooks extra is not installed")

from tests.helpers.background_jobs import crash, train_slowly
from tests.helpers.waiting import wait_for
from workbench.background import start
from workbench.live import Live, live, train_live
from workbench.runs.checkpoints import metrics_rows
from workbench.types import WorkbenchError

SETTINGS = [
    f"truthrl.{part}"
    for part in ("eval_samples=0", "eval_kinds=list", "prompts_per_step=4", "group_size=4")
]


@pytest.mark.slow
def test_a_run_of_another_process_is_shown_to_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fcntl")
    run = tmp_path / "run"
    view = live(run)
    assert view.status == "step 0, not running" and view.figure.data == ()
    job = {"folder": str(run), "steps": 300}
    writer = start(train_slowly, job, tmp_path / "log.txt")
    wait_for(lambda: len(metrics_rows(run)) > 2, seconds=120)
    assert re.fullmatch(r"step \d+, running", view.status)
    with pytest.raises(WorkbenchError, match="is not trained by this notebook"):
        view.stop()
    assert view.wait() == {"status": "done"} and writer.wait() == 0
    assert "run: step 300, done" in capsys.readouterr().out
    titles = [title.text for title in view.figure.layout.annotations]
    curves = dict(zip(titles, view.figure.data, strict=True))
    assert set(curves) == {"reward", "length, tokens"}  # the KL was never measured
    assert curves["reward"].y[:3] == (0.1, 0.2, 0.3) and repr(view) == "Live(run)"


@pytest.mark.slow
def test_a_stopped_training_saves_first(tmp_path: Path) -> None:
    run = tmp_path / "run"
    view = Live(run, start(train_slowly, {"folder": str(run)}, tmp_path / "log.txt"), steps=10**6)
    wait_for(lambda: len(metrics_rows(run)) > 1, seconds=120)
    assert view.status.endswith("of 1000000, running")
    view.stop()
    assert view.wait() == {"status": "interrupted"}


def test_a_failed_training_names_its_reason(tmp_path: Path) -> None:
    view = Live(tmp_path, start(crash, {}, tmp_path / "log.txt"))
    with pytest.raises(WorkbenchError, match="the training failed: RuntimeError: a bug"):
        view.wait()


def test_what_cannot_work_starts_nothing(tmp_path: Path) -> None:
    judged = {"judge": "http://127.0.0.1:9/v1"}  # without the name of its model
    for wrong in ({"settings": ["truthrl.nope=1"]}, {"bench_name": "huge"}, {"seed": -1}, judged):
        with pytest.raises(WorkbenchError):
            train_live("truthrl", tmp_path / "run", **wrong)
    assert not (tmp_path / "run").exists()


CELLS = (
    """
import os, signal, threading, time
from pathlib import Path
from workbench.live import live, train_live

def interrupt():  # as the kernel's menu does
    while not Path({run!r}, "metrics.jsonl").exists():
        time.sleep(0.02)
    time.sleep(1)  # by then the cell waits
    os.kill(os.getpid(), signal.SIGINT)

how = dict(seed=1, steps=40, settings={settings})
view = train_live("truthrl", {run!r}, **how)
threading.Thread(target=interrupt).start()
view.wait()["status"]
""",
    """
view = train_live("truthrl", {run!r}, **how)
view.wait()["status"]
""",
    "live({run!r})",
)


@pytest.mark.slow
@pytest.mark.nightly
def test_a_notebook_trains_is_interrupted_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("PLOTLY_RENDERER", "plotly_mimetype")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parent.parent))
    run = tmp_path / "run"
    cells = [
        nbformat.v4.new_code_cell(cell.format(run=str(run), settings=SETTINGS)) for cell in CELLS
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=900, resources=where).execute()
    interrupted, finished, shown = (cell.outputs for cell in notebook.cells)
    ends = [outputs[-1].data["text/plain"] for outputs in (interrupted, finished)]
    assert ends == ["'interrupted'", "'done'"]
    assert "resuming" in (run / "log.txt").read_text() and len(metrics_rows(run)) == 40
    mime = "application/vnd.plotly.v1+json"
    [curves] = [output.data[mime]["data"] for output in finished if mime in output.get("data", {})]
    assert curves[0]["x"] == list(range(1, 41)) and shown[0].data[mime]["data"] == curves
