"""Train the runs of a queue one after another, each in its own process, and report status."""

import shlex
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from workbench.experiments.experiment import earlier_seconds
from workbench.experiments.queue.runs import FAILED, Run, distinct, train_entry
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.folder import in_use, lock, read_json, status_in
from workbench.types import JsonObject
from workbench.util.jsonl import write_json
from workbench.util.signals import handled_signals
from workbench.util.subprocess import INTERRUPTED, Background, start

LOG = "log.txt"  # in a run's folder: the output of its processes
PATIENCE = 10.0  # seconds to wait until a process that a killed queue left has ended
Status = Literal["waiting", "running", "interrupted", "done", "failed"]


def status_of(runs: Sequence[Run]) -> JsonObject:
    """Return the status of runs as `{"runs": […]}`. Runs with the same hash appear once.

    Each object has the run's "hash", "name", "method", "bench", "seed", "status" (such as
    "running"), last "step", number of "steps", "seconds", and "error" (None unless it failed).
    """
    return {
        "runs": [
            {
                "hash": run.hash,
                "name": run.entry.name,
                "method": run.entry.method,
                "bench": run.entry.bench,
                "seed": run.entry.seed,
                "status": (status := _status(run)),
                "step": len(metrics_rows(run.folder)),
                "steps": run.steps,
                "seconds": round(earlier_seconds(run.folder), 1),
                "error": (read_json(run.folder / FAILED) or {}).get("error")
                if status == "failed"
                else None,
            }
            for run in distinct(runs)
        ]
    }


def _status(run: Run) -> Status:
    """Return a run's status. "interrupted" means that it began, but neither finished nor failed."""
    if run.summary:
        return "done"
    if in_use(run.folder):
        return "running"
    if (run.folder / FAILED).exists() or status_in(run.folder) == "too_many_failures":
        return "failed"
    return "interrupted" if (run.folder / "config.json").exists() else "waiting"


def train_queue(runs: Sequence[Run], root: Path | str) -> JsonObject:
    """Train the unfinished runs in order, and return the status of all runs.

    If a run fails, its error is stored, and the next run starts. Ctrl-C and SIGTERM let the current
    run save and stop. The same call resumes the queue and tries failed runs again.

    Returns:
        The result of `status_of`, with two more keys:

        * `status`: "done" or "interrupted".
        * `failed`: number of runs that are not done. After an interrupt, runs that can be continued
          are not counted.

    Raises:
        WorkbenchError: another queue uses `root`, or a run's folder has another run. Nothing is
            started.
    """
    runs = distinct(runs)
    done = [run.summary is not None for run in runs]
    stopping = _Stopping()
    with lock(Path(root)), handled_signals(stopping.stop, signal.SIGINT, signal.SIGTERM):
        for number, run in enumerate(runs):
            if stopping.signals:
                break
            label = f"[{number + 1}/{len(runs)}] {run.entry.method}, seed {run.entry.seed}"
            label += f" ({run.entry.name})" if run.entry.name else ""
            ended = "done already" if done[number] else _train(run, label, stopping)
            _say(f"{label}: {ended}")
    _say(f"compare the results: workbench compare {shlex.quote(str(root))}")
    result = status_of(runs)
    interrupted = bool(stopping.signals)
    waiting = ("done", "waiting", "interrupted") if interrupted else ("done",)
    failed = [row for row in result["runs"] if row["status"] not in waiting]
    for row in failed:
        _say(
            f"not done: {row['hash']} {row['name']}".rstrip() + f": {row['error'] or row['status']}"
        )
    return {"status": "interrupted" if interrupted else "done", "failed": len(failed), **result}


def _train(run: Run, label: str, stopping: "_Stopping") -> str:
    """Train one run, and return a line that says how it ended."""
    until = time.monotonic() + PATIENCE
    while in_use(run.folder):  # a process that a killed queue left ends by itself
        if time.monotonic() > until:
            return f"another process is using '{run.folder}': skipped"
        time.sleep(0.05)
    _say(f"{label} → {run.folder}")
    run.folder.mkdir(parents=True, exist_ok=True)
    (run.folder / FAILED).unlink(missing_ok=True)
    # the process does not need these labels: the queue prints them
    entry = asdict(run.entry) | {"where": "", "name": ""}
    job = {"entry": entry, "root": str(run.folder.parent), "hash": run.hash}
    process = start(train_entry, job, run.folder / LOG)
    code = stopping.wait(process)
    if run.summary:
        return f"done in {duration(run.summary['seconds'])}"
    stopped = code == 0 and status_in(run.folder) == "interrupted"
    if stopping.signals or code in INTERRUPTED or stopped:
        return "interrupted"
    write_json(run.folder / FAILED, {"error": process.last_line(), "exit_code": code})
    return f"failed: {process.last_line()}; see {run.folder / LOG}"


def duration(seconds: float) -> str:
    """Format seconds as "50 s", "12 min" or "3 h 20 min"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"


@dataclass
class _Stopping:
    """Forward Ctrl-C and SIGTERM to the current run.

    The first signal lets the run save and stop, the second stops it at once, the third kills it.
    """

    signals: int = 0
    process: Background | None = None

    def wait(self, process: Background) -> int:
        """Wait for the end of a process, and return its exit code."""
        self.process = process
        try:
            if self.signals:  # a signal arrived before the process existed
                process.interrupt()
            return process.wait()
        finally:
            self.process = None

    def stop(self, *_: object) -> None:
        self.signals += 1
        if self.signals == 1:
            _say("stopping after this step; a second interrupt stops at once")
        if self.process:
            (self.process.interrupt if self.signals < 3 else self.process.process.kill)()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
