"""How the runs of a queue stand, read from their folders alone: also while a queue is at work,
and after one was killed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal

from workbench.experiment import earlier_seconds
from workbench.queue.runs import FAILED, Run, distinct
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.folder import in_use, read_json

Status = Literal["waiting", "running", "interrupted", "done", "failed"]
Paces = Mapping[tuple[str, str], float]  # seconds a step by method and bench


def status_of(runs: Sequence[Run]) -> dict[str, Any]:
    """`{"runs": […], "left": seconds}`: a row for each run, and how long those that are not over
    will take.

    `left` is estimated from the steps that are done: the run's own, or else those of its method
    on its bench below the same folder. It does not count the evaluations, and is None where
    nothing is known.
    """
    once = distinct(runs)
    paces = paces_below(once[0].folder.parent) if once else {}
    rows = [row_of(run, paces) for run in once]
    coming = [row["left"] for row in rows if row["status"] not in ("done", "failed")]
    return {"runs": rows, "left": None if None in coming else sum(coming)}


def row_of(run: Run, paces: Paces) -> dict[str, Any]:
    """A run's name, status, steps, seconds so far, and the seconds that its other steps may
    take.
    """
    steps = [row["seconds"] for row in metrics_rows(run.folder)]
    status = state_of(run)
    return {
        "hash": run.hash,
        "name": run.entry.name,
        "method": run.entry.method,
        "bench": run.entry.bench,
        "seed": run.entry.seed,
        "status": status,
        "step": len(steps),
        "steps": run.steps,
        "seconds": round(earlier_seconds(run.folder), 1),
        "left": 0.0 if status == "done" else _left(run, steps, paces),
        "error": (read_json(run.folder / FAILED) or {}).get("error")
        if status == "failed"
        else None,
    }


def state_of(run: Run) -> Status:
    """A run that was begun and is over without a result was interrupted, unless its process said
    why it failed.
    """
    if run.summary:
        return "done"
    if in_use(run.folder):
        return "running"
    stopped = (read_json(run.folder / "summary.json") or {}).get("status")
    if (run.folder / FAILED).exists() or stopped == "too_many_failures":
        return "failed"
    return "interrupted" if (run.folder / "config.json").exists() else "waiting"


def paces_below(root: Path) -> Paces:
    """The median step of all runs below `root`, by method and bench."""
    seconds: dict[tuple[str, str], list[float]] = {}
    for path in root.glob("*/config.json"):
        stored = read_json(path) or {}
        key = (str(stored.get("method")), str(stored.get("bench")))
        seconds.setdefault(key, []).extend(row["seconds"] for row in metrics_rows(path.parent))
    return {key: median(steps) for key, steps in seconds.items() if steps}


def _left(run: Run, steps: Sequence[float], paces: Paces) -> float | None:
    pace = median(steps) if steps else paces.get((run.entry.method, run.entry.bench))
    return None if run.steps is None or pace is None else round((run.steps - len(steps)) * pace, 1)
