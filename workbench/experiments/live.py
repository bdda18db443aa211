"""View a training in a notebook: its curves while it runs, its status, and a Stop button.

    view = workbench.train("truthrl", "runs/ternary", seed=1, live=True)
    view                    # shows the curves; the next cell can run meanwhile
    summary = view.wait()   # a kernel interrupt here saves and stops the training

`Live("runs/ternary")` shows a run that another process trains, such as a command or a queue.
If nbval tests the notebook, tag a cell that shows an unfinished run `nbval-ignore-output`.
"""

import threading
import time
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.experiments.run import LOG, Entry, plan_run, start_training
from workbench.methods.bench import Bench
from workbench.metrics.plots import over_steps
from workbench.runs.folder import finished, in_use, read_json, status_in
from workbench.runs.growing import Growing, add_objects
from workbench.types import JsonMapping, JsonObject, WorkbenchError
from workbench.util.subprocess import INTERRUPTED, Background

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, FigureWidget

COLUMNS = {
    "reward": "reward",
    "kl": "KL to the reference",
    "length": "length, tokens",
    "accuracy": "accuracy",
    "abstention": "abstention",
    "hallucination": "hallucination",
    "claims_correct": "correct claims",
    "claims_wrong": "wrong claims",
}
POINTS = 400  # maximum points per curve; all are sent again with every step
INTERVAL = 1.0  # seconds between two checks of the file


def start_live(entry: Entry, out: Path) -> "Live":
    """Start a training in its own process, and return a live view of it.

    The process ends when this kernel ends. If `out` has an unfinished run, the same call continues
    it. A finished run is only shown. The training's output goes to `out/log.txt`.

    Args:
        entry: the method, bench and other arguments of the training.
        out: folder of the run.

    Raises:
        WorkbenchError: an argument is invalid, or another process uses `out`. Nothing is started.
    """
    run = plan_run(entry, out.parent)
    if in_use(out):
        raise WorkbenchError(
            f"another process uses '{out}': view it with Live('{out}'), or choose another folder"
        )
    training = start_training(entry, out)
    return Live(out, training, run.steps, run.bench.with_cache_dir(out))


class Live:
    """A view of a run for notebooks: its status and the curves of metrics.jsonl.

    A thread updates the view until the run is over.

    Attributes:
        training: the process that this view started; None if a command or queue trains the run.
        bench: the questions, policy and judge of the run; None if `training` is None.
        figure: a figure of the curves. A saved notebook contains it.
        chart: a widget with the same curves, shown until the run is over.
        status: a widget with a line of text, such as "ternary: step 20 of 48, running".
        button: a widget that stops the training.
    """

    def __init__(
        self,
        folder: Path | str,
        training: Background | None = None,
        steps: int | None = None,
        bench: Bench | None = None,
    ) -> None:
        from ipywidgets import HTML, Button, HBox
        from plotly.graph_objects import FigureWidget

        self.folder, self.training, self.steps, self.bench = Path(folder), training, steps, bench
        self.status = HTML()
        self.button = Button(
            description="Stop", tooltip="save and stop; click again to stop at once"
        )
        self.button.layout.width = "max-content"
        self.button.on_click(lambda _: self.stop())
        self.controls = HBox([self.button, self.status] if training else [self.status])
        self.figure: Figure = None
        self.chart = FigureWidget()  # JupyterLab draws `figure` only once
        self._handle: Any = None
        self._grew = False  # the run was unfinished when it was displayed
        self._file: Growing[list[JsonObject]] = Growing(list, add_objects)
        self._lock = threading.RLock()
        self._ended = not in_use(self.folder) and finished(self.folder) is not None
        self.refresh()
        # a daemon: the kernel must be able to exit while a run is watched
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def stop(self) -> None:
        """Let the training finish its step, save and stop, as Ctrl-C does.

        A second call stops the training at once.

        Raises:
            WorkbenchError: another program trains the run.
        """
        if self.training is None:
            raise WorkbenchError(
                f"'{self.folder}' was not started by this notebook: stop the command or queue that"
                " trains it"
            )
        self.training.interrupt()
        self.button.description = "Stop at once"

    def wait(self) -> JsonObject | None:
        """Wait until the run ends, and return its summary; None if the run stored no summary.

        During the wait, a kernel interrupt stops the training, and the Stop button does not work.

        Raises:
            WorkbenchError: the training failed.
            KeyboardInterrupt: the kernel was interrupted, and another program trains the run.
        """
        # a waiting kernel receives no clicks
        self.button.disabled, self.button.description = True, "Interrupt the kernel to stop"
        while self._watching.is_alive():
            try:
                self._watching.join(0.2)
            except KeyboardInterrupt:
                if self.training is None:
                    raise
                self.stop()
        self.refresh()
        if self.training and self.training.wait() not in (0, *INTERRUPTED):
            raise WorkbenchError(
                f"the training failed: {self.training.last_line()}; see {self.folder / LOG}"
            )
        return read_json(self.folder / "summary.json")

    def refresh(self) -> None:
        """Read the rows added to metrics.jsonl, and update the status and the curves."""
        path = self.folder / "metrics.jsonl"
        with self._lock:
            rows = self._file.read(path) if path.is_file() else []
            self.status.value = escape(f"{self.folder.name}: {self._status(rows)}")
            self.figure = curves(rows, self.folder.name)
            redraw(self.chart, self.figure)
            if self._handle and self._ended:
                self._handle.update(self._bundle(), raw=True)

    def _watch(self) -> None:
        """Refresh the view when metrics.jsonl has changed, until the training has ended."""
        path, seen, over, running = self.folder / "metrics.jsonl", None, False, False
        while not over:
            time.sleep(INTERVAL)
            # before reading, so that the last rows are read
            before, running = running, self._running()
            # another process may not have started the run yet: then it is not over
            over = not running and bool(self.training or before or finished(self.folder))
            try:
                modified = path.stat().st_mtime_ns if path.exists() else None
                if over or modified != seen:
                    self._ended = over
                    self.refresh()
            except (OSError, ValueError) as error:
                self.status.value = escape(f"{self.folder.name}: cannot be read: {error}")
                return
            seen = modified
        self.button.disabled = True

    def _running(self) -> bool:
        return self.training.running if self.training else in_use(self.folder)

    def _status(self, rows: Sequence[JsonMapping]) -> str:
        step = f"step {rows[-1]['step'] if rows else 0}"
        step += f" of {self.steps}" if self.steps else ""
        if self._running():
            return f"{step}, running"
        if self.training and self.training.wait() not in (0, *INTERRUPTED):
            return f"{step}, failed: {self.training.last_line()}"
        return f"{step}, {status_in(self.folder) or 'not running'}"

    def _bundle(self) -> JsonObject:
        """Return the output to display: the figure, and for an unfinished run the widget `chart`.

        The keys are MIME types.
        """
        widget = self.chart._repr_mimebundle_() if self._grew else {}
        return {**widget, "text/plain": repr(self), **self.figure._repr_mimebundle_()}

    def _ipython_display_(self) -> None:
        from IPython.display import DisplayHandle, display

        # a widget's own text contains its current value
        display({**self.controls._repr_mimebundle_(), "text/plain": repr(self)}, raw=True)
        with self._lock:
            self._grew = not self._ended
            self._handle = DisplayHandle()
            self._handle.display(self._bundle(), raw=True)

    def __repr__(self) -> str:
        return f"Live({self.folder.name})"


def redraw(chart: "FigureWidget", figure: "Figure") -> None:
    """Show `figure` in the widget `chart`.

    If both have the same number of curves, only the data of the curves is replaced.
    """
    if len(chart.data) != len(figure.data):
        chart.data = ()
        chart.add_traces(figure.data)
        chart.layout = figure.layout
        chart.update_layout(autosize=True)
        return
    with chart.batch_update():
        for curve, grown in zip(chart.data, figure.data, strict=True):
            curve.x, curve.y = grown.x, grown.y


def curves(rows: Sequence[JsonMapping], label: str) -> "Figure":
    """Return a figure with a curve over the steps for each metric in `COLUMNS`.

    Args:
        rows: the rows of metrics.jsonl, one per step. At most `POINTS` are shown.
        label: name of the run.
    """
    every = -(-len(rows) // POINTS) or 1
    return over_steps({label: rows[::-1][::every][::-1]}, COLUMNS, "Training dynamics")
