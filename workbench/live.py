"""A training in a notebook: it runs in the background, and a cell shows its curves meanwhile.

    view = train_live("truthrl", "runs/ternary", seed=1)
    summary = view.wait()   # a kernel interrupt here stops the training, once it has saved

`live("runs/ternary")` shows a run that another process trains, such as a command or a queue.
Tag a cell that shows an unfinished run `nbval-ignore-output`, since its output depends on time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.background import INTERRUPTED, Background, start
from workbench.plots import training_dynamics
from workbench.queue.entries import Entry
from workbench.queue.runs import planned, train_run
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.folder import in_use, read_json
from workbench.types import WorkbenchError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

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
INTERVAL = 1.0  # seconds between two looks at the file
LOG = "log.txt"


def live(folder: Path | str) -> Live:
    """A view of a run that another process trains or has trained."""
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
    **others: str,
) -> Live:
    """Start `workbench train` in a process of its own, which ends with this kernel, and view it.

    The same call continues an unfinished `out` and shows a finished one. The training prints to
    `out/log.txt`.

    Args:
        others: further fields of an `Entry`: its policy and its judge.

    Raises:
        WorkbenchError: the run cannot work; nothing is started then.
    """
    out = Path(out)
    entry = Entry(method, seed, bench_name, tuple(settings), steps, questions, threads, **others)
    run = planned(entry, out.parent)
    if in_use(out):
        raise WorkbenchError(
            f"another process is using '{out}': view it with live('{out}'), or choose another"
            " folder"
        )
    out.mkdir(parents=True, exist_ok=True)
    return Live(out, start(_train, {"entry": asdict(entry), "out": str(out)}, out / LOG), run.steps)


def _train(entry: dict[str, Any], out: str) -> None:
    train_run(planned(Entry.of(entry), Path(out).parent), Path(out))


@dataclass(frozen=True)
class Live:
    """The curves of a run's `metrics.jsonl` and its status. `training` is the process if this
    kernel has started it.
    """

    folder: Path
    training: Background | None = None
    steps: int | None = None

    @property
    def running(self) -> bool:
        return self.training.running if self.training else in_use(self.folder)

    @property
    def figure(self) -> Figure:
        """The curves up to the last step that is recorded."""
        return training_dynamics({self.folder.name: metrics_rows(self.folder)}, COLUMNS)

    @property
    def status(self) -> str:
        """The last step that is recorded, and whether the run goes on."""
        step = f"step {len(metrics_rows(self.folder))}"
        step += f" of {self.steps}" if self.steps else ""
        if self.running:
            return f"{step}, running"
        status = (read_json(self.folder / "summary.json") or {}).get("status")
        return f"{step}, {status or 'not running'}"

    def stop(self) -> None:
        """Let the training finish its step, save and stop; a second call stops it at once."""
        if self.training is None:
            raise WorkbenchError(
                f"'{self.folder}' is not trained by this notebook: stop it where it runs"
            )
        self.training.interrupt()

    def wait(self) -> dict[str, Any] | None:
        """Show the curves as they grow, and return the run's summary once the run is over; None
        if it wrote none.

        Raises:
            WorkbenchError: the training failed, and why.
            KeyboardInterrupt: interrupted, where another process trains.
        """
        shown, running = -1, True
        while running:
            try:
                running = self.running  # before the file is read, so that the last rows are shown
                if (steps := len(metrics_rows(self.folder))) != shown or not running:
                    shown = steps
                    self._show()
                if running:
                    time.sleep(INTERVAL)
            except KeyboardInterrupt:
                if self.training is None:
                    raise
                self.stop()
        if self.training and self.training.wait() not in (0, *INTERRUPTED):
            raise WorkbenchError(
                f"the training failed: {self.training.last_line()}; see {self.folder / LOG}"
            )
        return read_json(self.folder / "summary.json")

    def _show(self) -> None:
        from IPython.display import clear_output, display

        clear_output(wait=True)  # an updated output would not be drawn again by JupyterLab
        print(f"{self.folder.name}: {self.status}")
        display(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"text/plain": repr(self), **self.figure._repr_mimebundle_()}

    def __repr__(self) -> str:  # without the process, whose id differs from run to run
        return f"Live({self.folder.name})"
