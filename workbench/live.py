"""A training while it runs, in a notebook: its curves, how far it is, and a button that stops it
as Ctrl-C does.

    view = train_live("truthrl", "runs/ternary", seed=1)
    view                    # shows the curves, and lets the next cell run meanwhile
    summary = view.wait()   # a kernel interrupt here stops the training, once it has saved

`live("runs/ternary")` looks at a run that something else trains: a command, a queue, or this
kernel in a later cell. Tag a cell that shows a run before it is done `nbval-ignore-output`: what
it shows depends on the moment.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.background import INTERRUPTED, Background, start
from workbench.experiment import run_experiment
from workbench.plots import training_dynamics
from workbench.queue.entries import Entry
from workbench.queue.runs import planned
from workbench.recipes import trained
from workbench.runs.folder import finished, in_use, read_json
from workbench.runs.growing import Growing
from workbench.types import WorkbenchError

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
POINTS = 400  # of a line; more cannot be told apart, and all of them are sent anew with every step
OTHERS = ("policy", "judge", "judge_model", "store", "judge_cache")
EVERY = 1.0  # seconds between two looks at the file
LOG = "log.txt"


def live(folder: Path | str) -> Live:
    """A view of a run that something else trains, or will train, or has trained. It has no
    button: stop that where it runs.
    """
    return Live(Path(folder))


def train_live(
    method: str,
    out: Path | str,
    seed: int = 0,
    bench_name: str = "tiny",
    settings: Sequence[str] = (),
    *,
    steps: int | None = None,
    questions: str | None = None,
    threads: int | None = None,
    **others: str | None,
) -> Live:
    """Begin what `workbench train` does, in a process of its own that ends with this kernel, and
    view it.

    The same call goes on with an unfinished `out`, and shows a finished one. What the training
    prints stands in `out/log.txt`.

    Args:
        others: what else an `Entry` has: its policy and its judge.

    Raises:
        WorkbenchError: it cannot work; nothing is started then.
    """
    out = Path(out)
    if wrong := [
        name
        for name, value in others.items()
        if name not in OTHERS or not isinstance(value, str | None)
    ]:
        raise WorkbenchError(f"{', '.join(wrong)}: there may be {', '.join(OTHERS)}, each a text")
    entry = Entry(method, seed, bench_name, tuple(settings), steps, questions, threads, **others)  # type: ignore[arg-type]
    run = planned(entry, out.parent)
    if in_use(out):
        raise WorkbenchError(
            f"another process is using '{out}': look at it with live('{out}'), or choose another"
            " folder"
        )
    out.mkdir(parents=True, exist_ok=True)
    return Live(out, start(_train, {"entry": asdict(entry), "out": str(out)}, out / LOG), run.steps)


def _train(entry: dict[str, Any], out: str) -> None:
    run = planned(Entry(**{**entry, "settings": tuple(entry["settings"])}), Path(out).parent)
    run_experiment(
        trained(run.entry.method),
        run.config,
        run.bench,
        Path(out),
        seed=run.entry.seed,
        threads=run.entry.threads,
    )


class Live:
    """The curves of a run's `metrics.jsonl` and a line on how it stands, drawn anew as the file
    grows, until the run is over.

    `figure` is the latest figure, `told` the line, `button` stops a `training` of our own. A
    thread keeps them up to date from the beginning on; the notebook is sent them once the view
    is shown. While the run lasts, it is shown `chart`, a widget: JupyterLab draws an output once
    and for all. The output that is saved holds the last figure.
    """

    def __init__(
        self, folder: Path, training: Background | None = None, steps: int | None = None
    ) -> None:
        from ipywidgets import HTML, Button, HBox
        from plotly.graph_objects import FigureWidget

        self.folder, self.training, self.steps = folder, training, steps
        self.told, self.button = (
            HTML(),
            Button(description="Stop", tooltip="save and stop; once more stops at once"),
        )
        self.button.layout.width = "max-content"
        self.button.on_click(lambda _: self.stop())
        self.controls = HBox([self.button, self.told] if training else [self.told])
        self.figure: Figure = None
        self.chart = FigureWidget()
        self._handle: Any = None
        self._grew = False  # after it was shown
        self._file: Growing[list[dict[str, Any]]] = Growing(list, _add)
        self._drawing, self._closed, self._used = threading.RLock(), threading.Event(), False
        self._ended = self._done()  # the last rows are read
        self.refresh()
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def stop(self) -> None:
        """Let the training finish its step, save and stop, as Ctrl-C does; a second time, let it
        stop at once.
        """
        if self.training is None:
            raise WorkbenchError(
                f"'{self.folder}' is not trained by this notebook: stop it where it runs"
            )
        self.training.interrupt()
        self.button.description = "Stop at once"

    def close(self) -> None:
        """Look no longer; the training goes on."""
        self._closed.set()

    def wait(self) -> dict[str, Any] | None:
        """Return the run's summary once it is over; None where it wrote none.

        A kernel interrupt stops a training of our own; the button cannot: a kernel that waits
        here hears no button.

        Raises:
            WorkbenchError: the training failed, and why.
            KeyboardInterrupt: interrupted, where something else trains.
        """
        self.button.disabled, self.button.description = True, "Interrupt the kernel to stop"
        while self._watching.is_alive():
            try:
                self._watching.join(0.2)
            except KeyboardInterrupt:
                if self.training is None:
                    raise
                self.stop()
        self.refresh()
        if self.training and self.training.running:  # closed, and the kernel hears its button again
            self.button.disabled, self.button.description = False, "Stop"
        if (
            self.training
            and not self._closed.is_set()
            and self.training.wait() not in (0, *INTERRUPTED)
        ):
            raise WorkbenchError(
                f"the training failed: {self.training.last_line()}; the rest stands in"
                f" {self.folder / LOG}"
            )
        return read_json(self.folder / "summary.json")

    def refresh(self) -> None:
        """Read what the run has written since the last time, and show it."""
        with self._drawing:
            rows = (
                self._file.read(self.folder / "metrics.jsonl")
                if (self.folder / "metrics.jsonl").is_file()
                else []
            )
            self.told.value = escape(self._status(rows))
            self.figure = drawn(rows, self.folder.name)
            redraw(self.chart, self.figure)
            if self._handle and self._ended:
                self._handle.update(self._bundle(), raw=True)

    def _watch(self) -> None:
        seen: tuple[int, int] | None = None
        while not self._closed.wait(EVERY):
            over = self._over()  # asked first, so that the last rows are read
            try:
                now = _looks(self.folder / "metrics.jsonl")
                if over or now != seen:
                    self._ended = over
                    self.refresh()
            except (OSError, ValueError) as error:
                self.told.value = escape(f"{self.folder.name}: cannot be read: {error}")
                return
            seen = now
            if over:
                self.button.disabled = True
                return

    def _over(self) -> bool:
        """Whether nothing more is to come: a training of ours has ended, or whoever used the
        folder has left it.

        For the watching thread alone, which is who sees somebody leave.
        """
        if self.training:
            return not self.training.running
        used, self._used = self._used, in_use(self.folder)
        return not self._used and (used or self._done())

    def _done(self) -> bool:
        return not in_use(self.folder) and finished(self.folder) is not None

    def _status(self, rows: Sequence[Mapping[str, Any]]) -> str:
        step = f"step {rows[-1]['step'] if rows else 0}" + (
            f" of {self.steps}" if self.steps else ""
        )
        if self.training.running if self.training else in_use(self.folder):
            return f"{self.folder.name}: {step}, running"
        if self.training and self.training.wait() not in (0, *INTERRUPTED):
            return f"{self.folder.name}: {step}, failed: {self.training.last_line()}"
        status = (read_json(self.folder / "summary.json") or {}).get("status")
        return f"{self.folder.name}: {step}, {status or 'not running'}"

    def _bundle(self) -> dict[str, Any]:
        """The figure; before it, where it was first shown while the run lasted, the widget that
        follows it.
        """
        widget = self.chart._repr_mimebundle_() if self._grew else {}
        return {**widget, "text/plain": repr(self), **self.figure._repr_mimebundle_()}

    def _ipython_display_(self) -> None:
        from IPython.display import DisplayHandle, display

        controls = self.controls._repr_mimebundle_()
        # a widget's own text has in it what it shows at the moment
        display({**controls, "text/plain": repr(self)}, raw=True)
        with self._drawing:
            self._grew = not self._ended
            self._handle = DisplayHandle()
            self._handle.display(self._bundle(), raw=True)

    def __repr__(self) -> str:
        return f"Live({self.folder.name})"


def redraw(chart: FigureWidget, figure: Figure) -> None:
    """Show a figure in a widget; where only its curves have grown, nothing else is drawn anew."""
    if len(chart.data) != len(figure.data):
        chart.data = ()
        chart.add_traces(figure.data)
        chart.layout = figure.layout
        chart.update_layout(width=None, autosize=True)
        return
    with chart.batch_update():
        for curve, grown in zip(chart.data, figure.data, strict=True):
            curve.x, curve.y = grown.x, grown.y


def drawn(rows: Sequence[Mapping[str, Any]], label: str) -> Figure:
    """The curves of a run's rows, of those columns that they have; of many steps `POINTS` at
    most, the last among them.
    """
    apart = -(-len(rows) // POINTS) if rows else 1
    return training_dynamics({label: [*rows[::-1][::apart]][::-1]}, COLUMNS)


def _add(rows: list[dict[str, Any]], offset: int, line: bytes) -> None:
    rows.append(json.loads(line))


def _looks(path: Path) -> tuple[int, int] | None:
    """What changes with a file's content."""
    if not path.exists():
        return None
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns
