"""Which checkpoint of a run is complete, and taking the run's folder back to it."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from pathlib import Path

from workbench.runs.folder import file_digest, read_json
from workbench.runs.rollouts import check_rollouts, whole_steps
from workbench.types import JsonObject
from workbench.util.jsonl import iter_rows, truncate_after_step, write_json

MARKER = "complete.json"


def rewind(out: Path, responses: int | None = None, updates: int = 1) -> tuple[Path | None, int]:
    """Take the folder back to its last complete checkpoint: (its folder or None, its step or 0).

    A step is so many `updates`, which are what checkpoints are numbered by.

    Half-written checkpoints, and those whose steps are not all in the metrics and, with
    `responses` rows each, in the rollouts, are removed; metrics and rollouts after that step are
    cut off.

    Raises:
        WorkbenchError: rollouts were lost from before every checkpoint; nothing is removed then.
    """
    checkpoints = sorted((out / "checkpoints").glob("checkpoint-*"), key=step_of)
    logged = len(metrics_rows(out))
    steps = {path: step_of(path) // updates for path in checkpoints if is_complete(path)}
    steps = {path: step for path, step in steps.items() if step <= logged}
    if responses is not None and steps:
        check_rollouts(out / "rollouts.jsonl", min(steps.values()), responses)
        logged = whole_steps(out / "rollouts.jsonl", responses)
        steps = {path: step for path, step in steps.items() if step <= logged}
    for path in checkpoints:
        if path not in steps:
            shutil.rmtree(path)
    last, done = list(steps.items())[-1] if steps else (None, 0)
    if done:
        print(f"resuming '{out}' after step {done}", file=sys.stderr)
    for name in ("metrics.jsonl", "rollouts.jsonl"):
        if (out / name).exists():
            truncate_after_step(out / name, done)
    return last, done


def metrics_rows(out: Path) -> list[JsonObject]:
    """The rows of steps 1, 2, 3, … in the folder's metrics, up to the first step that is
    missing.
    """
    if not (out / "metrics.jsonl").exists():
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an unfinished last line is reported when it is cut off
        rows = list(iter_rows(out / "metrics.jsonl"))
    whole = [row.get("step") == number for number, row in enumerate(rows, start=1)]
    return rows[: [*whole, False].index(False)]


def step_of(checkpoint: Path) -> int:
    number = checkpoint.name.rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def mark_complete(checkpoint: Path) -> None:
    """Declare a checkpoint written, once it is on the disk: the digests of its files, put in
    place by one rename.
    """
    sync_tree(checkpoint)
    paths = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name != MARKER)
    files = {path.relative_to(checkpoint).as_posix(): file_digest(path) for path in paths}
    write_json(checkpoint / MARKER, {"step": step_of(checkpoint), "files": files})
    sync(checkpoint)
    sync(checkpoint.parent)


def is_complete(checkpoint: Path) -> bool:
    """Whether the marker is there and every file is as it was when the marker was written."""
    marker = read_json(checkpoint / MARKER)
    if not marker or marker.get("step") != step_of(checkpoint):
        return False
    return all(
        (checkpoint / name).is_file() and file_digest(checkpoint / name) == d
        for name, d in marker["files"].items()
    )


def sync_tree(folder: Path) -> None:
    """`sync` a folder and everything in it."""
    for path in (*folder.rglob("*"), folder):
        sync(path)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    if path.is_dir() and os.name == "nt":  # Windows does not open folders
        return
    file = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def prune(checkpoints: Path, keep: int = 2) -> None:
    """Remove all but the newest `keep` complete checkpoints."""
    complete = sorted(
        (path for path in checkpoints.glob("checkpoint-*") if (path / MARKER).is_file()),
        key=step_of,
    )
    for checkpoint in complete[:-keep]:
        # first, so that a half-removed checkpoint is not taken for a complete one
        (checkpoint / MARKER).unlink()
        shutil.rmtree(checkpoint)
