"""A run's folder: what identifies it, which checkpoint is complete, and taking it back to that checkpoint.

config.json      what the run is (method, config, seed, …); a different run may not use the folder
metrics.jsonl    one row a step
rollouts.jsonl   every graded response, with its step; questions.jsonl beside it
checkpoints/     checkpoint-N, each with complete.json written last
policy/          the trained adapter with its tokenizer
summary.json     the result; its status says whether the run is finished
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.store import truncate_after_step, write_json
from workbench.types import WorkbenchError

MARKER = "complete.json"
FREE_MB = 200


def open_run(out: Path, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """Make `out` the folder of the run that `identity` describes; the stored summary if that run is finished.

    Raises:
        WorkbenchError: the folder cannot be written, the disk is full, or another run lies there.
    """
    _check_writable(out)
    stored = read_json(out / "config.json")
    foreign = [name for name in ("metrics.jsonl", "rollouts.jsonl", "summary.json") if (out / name).exists()]
    if stored is None and foreign:
        raise WorkbenchError(f"'{out}' holds {', '.join(foreign)} but no config.json: choose another --out folder")
    if stored is not None and (different := differences(stored, json.loads(json.dumps(identity)))):
        raise WorkbenchError(f"'{out}' holds another run ({'; '.join(different)}): choose another --out folder")
    summary = read_json(out / "summary.json")
    if summary and summary.get("status") == "done":
        return summary
    if shutil.disk_usage(out).free < FREE_MB * 10**6:
        raise WorkbenchError(f"less than {FREE_MB} MB free at '{out}': free some space or choose another --out")
    if stored is None:
        write_json(out / "config.json", identity)
    return None


def differences(stored: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Every key whose values differ, as "config.seed is 1, not 2"."""
    found: list[str] = []
    for key in dict.fromkeys([*stored, *wanted]):
        old, new = stored.get(key), wanted.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found += differences(old, new, f"{prefix}{key}.")
        elif old != new:
            found.append(f"{prefix}{key} is {json.dumps(old)}, not {json.dumps(new)}")
    return found


def rewind(out: Path) -> tuple[Path | None, int]:
    """Take the folder back to its last complete checkpoint: (its folder or None, its step or 0).

    Half-written checkpoints are removed, and metrics and rollouts after that step are cut off.
    """
    checkpoints = sorted((out / "checkpoints").glob("checkpoint-*"), key=step_of)
    complete = [checkpoint for checkpoint in checkpoints if is_complete(checkpoint)]
    for checkpoint in checkpoints:
        if checkpoint not in complete:
            shutil.rmtree(checkpoint)
    last = complete[-1] if complete else None
    step = step_of(last) if last else 0
    for name in ("metrics.jsonl", "rollouts.jsonl"):
        if (out / name).exists():
            truncate_after_step(out / name, step)
    return last, step


def step_of(checkpoint: Path) -> int:
    number = checkpoint.name.rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def mark_complete(checkpoint: Path) -> None:
    """Declare a checkpoint written: sizes and digests of its files, put in place by one rename."""
    paths = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name != MARKER)
    files = {path.relative_to(checkpoint).as_posix(): _digest(path) for path in paths}
    write_json(checkpoint / MARKER, {"step": step_of(checkpoint), "files": files})


def is_complete(checkpoint: Path) -> bool:
    """Whether the marker is there and every file is as it was when the marker was written."""
    marker = read_json(checkpoint / MARKER)
    if not marker or marker.get("step") != step_of(checkpoint):
        return False
    return all((checkpoint / name).is_file() and _digest(checkpoint / name) == d for name, d in marker["files"].items())


def prune(checkpoints: Path, keep: int = 2) -> None:
    """Remove all but the newest `keep` complete checkpoints."""
    complete = sorted((path for path in checkpoints.glob("checkpoint-*") if (path / MARKER).is_file()), key=step_of)
    for checkpoint in complete[:-keep]:
        (checkpoint / MARKER).unlink()  # first, so that a half-removed checkpoint is not taken for a complete one
        shutil.rmtree(checkpoint)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None if it is missing or broken."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def policy_hash(folder: str) -> str | None:
    """Digest of a local policy's weights, configuration and tokenizer; None for a hub name."""
    path = Path(folder)
    if not path.is_dir():
        return None
    digest = hashlib.sha256()
    for file in sorted(path.iterdir()):
        if file.suffix == ".safetensors" or file.name in ("config.json", "adapter_config.json", "tokenizer.json"):
            digest.update(f"{file.name}:{_digest(file)}\n".encode())
    return digest.hexdigest()[:16]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_writable(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".writable"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise WorkbenchError(f"cannot write to '{out}' ({error.strerror}): choose another --out folder") from error
