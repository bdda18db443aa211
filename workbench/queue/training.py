"""Going through a queue: one run after another, each in a process of its own, until all are done
or somebody stops it.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.background import INTERRUPTED, Background, start
from workbench.jsonl import write_json
from workbench.metrics import RATES
from workbench.queue.runs import FAILED, Run, distinct, train_entry
from workbench.queue.status import status_of
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.folder import in_use, lock, read_json

LOG = "log.txt"  # in a run's folder: what its processes printed
PATIENCE = 10.0  # seconds in which the process of a queue that was killed must have ended
CLAIMS = ("factscore", "responded")  # told where no question has a gold answer


def train_queue(runs: Sequence[Run], root: Path | str) -> dict[str, Any]:
    """Train the runs that are not done, in their order, and return how all stand, as `status_of`
    does.

    A run that fails is left as it is, with its reason; the others go on. Ctrl-C and SIGTERM let
    the run under way save and stop; `status` is "interrupted" then, and "done" where every run
    was tried. The same call goes on where this one ended, however it did, and tries once more
    what has failed.

    Raises:
        WorkbenchError: another queue is at work in `root`, or something else lies in a run's
        folder; nothing is started then.
    """
    once = distinct(runs)
    done = [run.summary is not None for run in once]
    with lock(Path(root)), _Stopping() as stopping:
        for number, run in enumerate(once, start=1):
            if stopping.asked:
                break
            place = f"[{number}/{len(once)}] {_title(run)}"
            if done[number - 1]:
                _say(f"{place}: done already; {outcome(run)}")
            else:
                _say(f"{place}: {_train(run, place, stopping)}")
    result = status_of(once)
    # Where nobody stopped the queue, whatever is not done did not get there: it failed, is
    # another's, or was interrupted alone.
    left = (
        ("failed", "running") if stopping.asked else ("failed", "running", "interrupted", "waiting")
    )
    failed = [row for row in result["runs"] if row["status"] in left]
    told = {
        "running": "in use by another process",
        "interrupted": "interrupted",
        "waiting": "not begun",
        "failed": "failed",
    }
    for row in failed:
        _say(
            f"not done: {row['hash']} {row['name']}".rstrip()
            + f": {row['error'] or told[row['status']]}"
        )
    return {"status": "interrupted" if stopping.asked else "done", "failed": len(failed), **result}


def _train(run: Run, place: str, stopping: _Stopping) -> str:
    """Train one run; how it ended, in a line."""
    if not _freed(run.folder):
        return f"another process is using '{run.folder}': left to it"
    _say(f"{place} → {run.folder}")
    run.folder.mkdir(parents=True, exist_ok=True)
    (run.folder / FAILED).unlink(missing_ok=True)
    entry = asdict(run.entry) | {"where": "", "name": ""}
    process = start(
        train_entry,
        {"entry": entry, "root": str(run.folder.parent), "hash": run.hash},
        run.folder / LOG,
    )
    code = stopping.wait(process)
    if run.summary:
        return f"done in {seconds(run.summary['seconds'])}; {outcome(run)}"
    ended = (read_json(run.folder / "summary.json") or {}).get("status") if code == 0 else None
    if stopping.asked or code in INTERRUPTED or ended == "interrupted":
        return "interrupted"
    write_json(run.folder / FAILED, {"error": process.last_line(), "exit_code": code})
    return f"failed: {process.last_line()}; the rest stands in {run.folder / LOG}"


def outcome(run: Run) -> str:
    """The last step's reward and the greedy answers' rates before and after, of a run that is
    done.
    """
    summary, rows = run.summary or {}, metrics_rows(run.folder)
    before, after = ((summary.get(when) or {}).get("greedy") or {} for when in ("before", "after"))
    reward = rows[-1].get("reward") if rows else None
    told = [] if reward is None else [f"reward {reward:.2f}"]
    names = [name for name in RATES if _value(after, name)] or [
        name for name in CLAIMS if _value(after, name)
    ]
    told += [f"{name} {_value(before, name) or '—'} → {_value(after, name)}" for name in names]
    failed = summary.get("failed") or 0
    return ", ".join([*told, *([f"{failed} answers without a reward"] if failed else [])])


def seconds(number: float) -> str:
    """A duration as people say it: "50 s", "12 min", "3 h 20 min"."""
    if number < 100:
        return f"{number:.0f} s"
    minutes = round(number / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"


class _Stopping:
    """Hands Ctrl-C and SIGTERM on to the run under way: first to save and stop, then to stop at
    once, at last to be killed.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.process: Background | None = None
        self.handlers: dict[int, Any] = {}

    def __enter__(self) -> _Stopping:
        if threading.current_thread() is threading.main_thread():
            for name in (signal.SIGINT, signal.SIGTERM):
                self.handlers[name] = signal.signal(name, self._stop)
        return self

    def __exit__(self, *_: Any) -> None:
        for name, handler in self.handlers.items():
            signal.signal(name, handler)

    def wait(self, process: Background) -> int:
        """The process's exit code, once it has ended."""
        self.process = process
        try:
            if self.asked:  # before there was a process to tell
                process.interrupt()
            return process.wait()
        finally:
            self.process = None

    def _stop(self, *_: Any) -> None:
        self.asked += 1
        if self.asked == 1:
            _say("stopping after this step; once more stops at once")
        if self.process:
            (self.process.interrupt if self.asked < 3 else self.process.process.kill)()


def _freed(folder: Path) -> bool:
    """Wait until nobody uses the folder: the run of a queue that was killed ends by itself."""
    until = time.monotonic() + PATIENCE
    while in_use(folder):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _title(run: Run) -> str:
    told = f"{run.entry.method}, seed {run.entry.seed}"
    return f"{run.entry.name} ({told})" if run.entry.name else told


def _value(block: Any, name: str) -> str:
    value = (block.get(name) or {}).get("value")
    return "" if value is None else f"{value:.2f}"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
