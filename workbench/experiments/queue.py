"""Queues: train the runs that a TOML file lists in order, each in its own process.

    [defaults]                          # for all runs
    bench = "tiny"

    [[run]]
    method = "truthrl"
    seed = [1, 2, 3]                    # one run each
    set = ["truthrl.reward=binary"]
    name = "binary"

A `set` in `[defaults]` may have settings of several methods: "truthrl.reward=binary" applies to
runs of truthrl only. A run's own `set` has precedence. A run's folder is named by a hash of its
inputs.
"""

import shlex
import signal
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import RLock

from workbench.experiments.experiment import earlier_seconds
from workbench.experiments.run import LOG, Entry, Run, checked, plan_run, start_training
from workbench.methods import trained
from workbench.methods.bench import bench
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.folder import in_use, lock, read_json, status_in
from workbench.runs.naming import LABEL
from workbench.types import JsonObject, WorkbenchError
from workbench.util.jsonl import write_json
from workbench.util.signals import handled_signals
from workbench.util.subprocess import INTERRUPTED, Background

ROOT = Path("runs/queue")
LIMIT = 10_000  # maximum number of runs per file
QUICK_STEPS = 2  # training steps of a run with `--quick`
FAILED = "failed.json"  # in a run's folder: the error of its last process
PATIENCE = 10.0  # seconds to wait until a process that a killed queue left has ended


def read_entries(path: Path) -> list[Entry]:
    """Read a queue's file, and return its runs in order, one entry for each seed.

    Raises:
        WorkbenchError: the file cannot be read, has no run, or has an unknown key or value.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WorkbenchError(
            f"cannot read '{path}' ({error.strerror}): name a TOML file with a table [[run]] for"
            " each run"
        ) from None
    except ValueError as error:
        raise WorkbenchError(f"'{path}' is not TOML ({error}): correct that line") from None
    rows, defaults = document.pop("run", []), document.pop("defaults", {})
    if document or not isinstance(rows, list):
        unknown = next(iter(document), "run")
        raise WorkbenchError(
            f"'{path}': unknown '{unknown}': use only the tables [defaults] and [[run]]"
        )
    if not rows:
        raise WorkbenchError(f"'{path}' has no run: add a table [[run]] with its method")
    common = checked(defaults, f"'{path}', [defaults]")
    shared = [(one.strip().partition(".")[0], one) for one in common.pop("set", [])]
    entries: list[Entry] = []
    for number, row in enumerate(rows, start=1):
        where = f"'{path}', run {number}"
        fields = {**common, **checked(row, where)}
        if "method" not in fields:
            raise WorkbenchError(f'{where} has no method: add a line such as method = "truthrl"')
        seeds, own = fields.pop("seed", 0), fields.pop("set", [])
        # other methods do not have these settings
        settings = [setting for method, setting in shared if method == fields["method"]]
        entry = Entry(settings=(*settings, *own), where=where, **fields)
        entries += [
            replace(entry, seed=seed) for seed in (seeds if isinstance(seeds, list) else [seeds])
        ]
    if len(entries) > LIMIT:
        raise WorkbenchError(f"'{path}' has {len(entries)} runs, more than {LIMIT}: split it")
    # a misspelt method name would otherwise drop the setting silently
    for method, setting in shared:
        if method not in {entry.method for entry in entries}:
            raise WorkbenchError(
                f"'{path}', [defaults]: the setting '{setting}' belongs to a method that no run"
                " trains: leave it out"
            )
    return entries


def queue_runs(file: Path | str, root: Path | str = ROOT, quick: bool = False) -> list[Run]:
    """Return all runs of a queue's file in order, trained or not.

    Two runs with the same inputs, such as method, settings and seed, have the same folder.

        for run in queue_runs("seeds.toml"):
            print(run.entry.name, run.entry.seed, run.summary and run.summary["seconds"])

    Args:
        root: folder with a subfolder for each run.
        quick: True returns short test runs (see `shortened`), in folders of their own.

    Raises:
        WorkbenchError: the file cannot be read, or a run in it has an invalid setting.
    """
    open_bench = cache(bench)  # reads each data set once
    runs = []
    for entry in read_entries(Path(file)):
        try:
            runs.append(plan_run(shortened(entry) if quick else entry, Path(root), open_bench))
        except WorkbenchError as error:
            raise WorkbenchError(f"{entry.where}: {error}") from None
    return runs


def shortened(entry: Entry) -> Entry:
    """Return a short test of a run: `QUICK_STEPS` training steps, and greedy evaluations only."""
    chosen = trained(entry.method)
    last = chosen.with_steps(chosen.configure(entry.bench, entry.settings), QUICK_STEPS)
    settings = (*entry.settings, *last, f"{entry.method}.eval_samples=0")
    return replace(entry, steps=None, settings=settings)


def distinct(runs: Iterable[Run]) -> list[Run]:
    """Return the runs without duplicates.

    Runs are duplicates if the hashes of their inputs are equal. The last of them is kept.
    """
    return list({run.hash: run for run in runs}.values())


def status_of(runs: Sequence[Run]) -> JsonObject:
    """Return the status of runs as `{"runs": [{…}, …]}`, with an object for each different hash.

    An object has the run's "hash", "name", "method", "bench", "seed", "status" (such as
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


def _status(run: Run) -> str:
    """Return a run's status. "interrupted" means that it began, but neither finished nor failed."""
    if run.summary:
        return "done"
    if in_use(run.folder):
        return "running"
    if (run.folder / FAILED).exists() or status_in(run.folder) == "too_many_failures":
        return "failed"
    return "interrupted" if (run.folder / "config.json").exists() else "waiting"


def train_queue(runs: Sequence[Run], root: Path | str, jobs: int = 1) -> JsonObject:
    """Train the unfinished runs in order, and return the status of all runs.

    If a run fails, its error is stored, and the next run starts. Ctrl-C and SIGTERM let the current
    runs save and stop. The same call resumes the queue and tries failed runs again.

    Args:
        jobs: number of runs to train at the same time. Each uses its own number of CPU threads.

    Returns:
        The result of `status_of`, with two more keys:

        * `status`: "done" or "interrupted".
        * `failed`: number of runs that are not done. After an interrupt, runs with the status
          "waiting" or "interrupted" are not counted.

    Raises:
        WorkbenchError: another queue uses `root`, a run's folder has another run, or `jobs` is less
            than 1. Nothing is started.
    """
    if jobs < 1:
        raise WorkbenchError(f"jobs is {jobs}: train at least 1 run at a time")
    runs = distinct(runs)
    done = [run.summary is not None for run in runs]
    stopping = _Stopping()

    def train(number: int) -> None:
        if stopping.signals:
            return
        run = runs[number]
        label = f"[{number + 1}/{len(runs)}] {run.entry.method}, seed {run.entry.seed}"
        label += f" ({run.entry.name})" if run.entry.name else ""
        try:
            _store_name(run)
            ended = "done already" if done[number] else _train(run, label, stopping)
        except Exception:  # such as a full disk: the other runs would meet it, too
            stopping.stop()
            raise
        _say(f"{label}: {ended}")

    handled = handled_signals(stopping.stop, signal.SIGINT, signal.SIGTERM)
    with lock(Path(root)), handled, ThreadPoolExecutor(jobs) as pool:
        list(pool.map(train, range(len(runs))))  # raises the error of a thread
    _say(f"compare the results: workbench compare {shlex.quote(str(root))}")
    result = status_of(runs)
    status, succeeded = "done", ["done"]
    if stopping.signals:
        status, succeeded = "interrupted", ["done", "waiting", "interrupted"]
    failed = [row for row in result["runs"] if row["status"] not in succeeded]
    for row in failed:
        label = f"not done: {row['hash']} {row['name']}".rstrip()
        _say(f"{label}: {row['error'] or row['status']}")
    return {"status": status, "failed": len(failed), **result}


def _store_name(run: Run) -> None:
    """Store the run's name for `workbench compare`."""
    if run.entry.name:
        run.folder.mkdir(parents=True, exist_ok=True)
        (run.folder / LABEL).write_text(f"{run.entry.name}\n", encoding="utf-8")


def _train(run: Run, label: str, stopping: "_Stopping") -> str:
    """Train one run, and return a line that says how it ended."""
    until = time.monotonic() + PATIENCE
    while in_use(run.folder):  # a process that a killed queue left ends by itself
        if time.monotonic() > until:
            return f"another process is using '{run.folder}': skipped"
        time.sleep(0.05)
    _say(f"{label} → {run.folder}")
    (run.folder / FAILED).unlink(missing_ok=True)
    process = start_training(run.entry, run.folder, queued=True)
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


class _Stopping:
    """Forward Ctrl-C and SIGTERM to the current runs.

    The first signal lets the runs save and stop, the second stops them at once, the third kills
    them.
    """

    def __init__(self) -> None:
        self.signals = 0
        self.processes: list[Background] = []
        # reentrant: a second signal may arrive while `stop` handles the first one
        self._lock = RLock()

    def wait(self, process: Background) -> int:
        """Wait for the end of a process, and return its exit code."""
        with self._lock:
            self.processes.append(process)
            if self.signals:  # a signal arrived before the process existed
                process.interrupt()
        return process.wait()

    def stop(self, *_: object) -> None:
        with self._lock:
            self.signals += 1
            if self.signals == 1:
                _say("stopping after this step; a second interrupt stops at once")
            for process in self.processes:  # signals to a process that has ended are ignored
                (process.interrupt if self.signals < 3 else process.process.kill)()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")  # one call, so that the lines of two threads do not mix
    sys.stderr.flush()
