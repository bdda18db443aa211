"""Write, check and remove checkpoints, and reset a run's folder to its last complete one.

A run resumes after its last complete step, so the complete steps in its files are counted, too.
"""

import itertools
import os
import shutil
import sys
import warnings
from pathlib import Path

from workbench.runs.folder import file_digest, read_json
from workbench.types import JsonObject, WorkbenchError
from workbench.util.jsonl import iter_rows, truncate_after_step, write_json

MARKER = "complete.json"


def rewind(out: Path, responses: int | None = None, updates: int = 1) -> tuple[Path | None, int]:
    """Reset a run's folder to its last complete checkpoint.

    A checkpoint is kept if it is fully written, and if metrics.jsonl and rollouts.jsonl have all
    steps up to it. All other checkpoints are removed. The rows of later steps are removed, too.

    Args:
        responses: number of responses per step in rollouts.jsonl; None if the training does not
            write this file.
        updates: optimizer steps per training step, because the N in "checkpoint-N" counts optimizer
            steps.

    Returns:
        (folder, training step) of the last complete checkpoint; (None, 0) if there is none.

    Raises:
        WorkbenchError: rollouts.jsonl does not have exactly `responses` rows for each training step
            up to the earliest complete checkpoint.
    """
    checkpoints = sorted((out / "checkpoints").glob("checkpoint-*"), key=step_of)
    logged = len(metrics_rows(out))
    steps = {path: step_of(path) // updates for path in checkpoints if is_complete(path)}
    steps = {path: step for path, step in steps.items() if step <= logged}
    if responses is not None and steps:
        logged = check_rollouts(out / "rollouts.jsonl", min(steps.values()), responses)
        steps = {path: step for path, step in steps.items() if step <= logged}
    for path in checkpoints:
        if path not in steps:
            shutil.rmtree(path)
    last, step = list(steps.items())[-1] if steps else (None, 0)
    if step:
        print(f"resuming '{out}' after step {step}", file=sys.stderr)
    for name in ("metrics.jsonl", "rollouts.jsonl"):
        if (out / name).exists():
            truncate_after_step(out / name, step)
    return last, step


def metrics_rows(out: Path) -> list[JsonObject]:
    """Return the rows of metrics.jsonl up to the first missing step; [] without the file."""
    if not (out / "metrics.jsonl").exists():
        return []
    # `truncate_after_step` reports an unfinished last line
    with warnings.catch_warnings(action="ignore"):
        rows = list(iter_rows(out / "metrics.jsonl"))
    in_order = [row.get("step") == number for number, row in enumerate(rows, start=1)]
    return rows[: [*in_order, False].index(False)]


def check_rollouts(rollouts: Path, steps: int, size: int) -> int:
    """Count the complete steps with which a rollouts file begins; require at least `steps`.

    The count starts at step 1 and ends before the first step that is not complete. A step is
    complete if it has exactly `size` rows with distinct ids.

    Raises:
        WorkbenchError: the count is below `steps`. The message names the first incomplete step.
    """
    ids: dict[int | None, list[str]] = {}
    if rollouts.exists():
        # `truncate_after_step` reports an unfinished last line
        with warnings.catch_warnings(action="ignore"):
            for row in iter_rows(rollouts):
                ids.setdefault(row.get("step"), []).append(str(row.get("id")))
    # distinct ids, because a copied file may have a step twice
    by_step = (ids.get(step, []) for step in itertools.count(1))
    whole = next(n for n, step in enumerate(by_step) if not len(step) == len(set(step)) == size)
    if whole < steps:
        raise WorkbenchError(
            f"'{rollouts}' must have {size} rows with distinct ids for step {whole + 1}: restore"
            " the missing rows, or start again in another --out folder"
        )
    return whole


def step_of(checkpoint: Path) -> int:
    """Return the number N of a folder "checkpoint-N"; -1 for another name."""
    number = checkpoint.name.rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def mark_complete(checkpoint: Path) -> None:
    """Mark a checkpoint as complete: sync its files to the disk, then write their digests."""
    # before the marker, which promises that the files are on the disk
    for path in (*checkpoint.rglob("*"), checkpoint):
        sync(path)
    paths = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name != MARKER)
    files = {path.relative_to(checkpoint).as_posix(): file_digest(path) for path in paths}
    write_json(checkpoint / MARKER, {"step": step_of(checkpoint), "files": files})
    # the folders too: a file's name may be lost while its content is kept
    sync(checkpoint)
    sync(checkpoint.parent)


def is_complete(checkpoint: Path) -> bool:
    """Return whether a checkpoint is complete.

    It is complete if it has a complete.json, and all files have the digests listed there.
    """
    marker = read_json(checkpoint / MARKER)
    if not marker or marker.get("step") != step_of(checkpoint):
        return False
    return all(
        (checkpoint / name).is_file() and file_digest(checkpoint / name) == digest
        for name, digest in marker["files"].items()
    )


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    file = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def prune(checkpoints: Path) -> None:
    """Remove all complete checkpoints in a folder, except the two with the highest steps."""
    complete = sorted(
        (path for path in checkpoints.glob("checkpoint-*") if (path / MARKER).is_file()),
        key=step_of,
    )
    for checkpoint in complete[:-2]:
        # first, so that a half-removed checkpoint does not count as complete
        (checkpoint / MARKER).unlink()
        shutil.rmtree(checkpoint)
