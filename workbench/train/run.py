"""A run's folder: what identifies it, which checkpoint is complete, and taking it back to that checkpoint.

config.json      what the run is (method, config, seed, …); a different run may not use the folder. `versions` are those of
                 the libraries that it was begun with
.lock            held by the process that uses the folder
metrics.jsonl    one row a step
rollouts.jsonl   every graded response, with its step; questions.jsonl beside it
checkpoints/     checkpoint-N, each with complete.json written last
policy/          the trained adapter with its tokenizer
summary.json     the result; its status says whether the run is finished
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.jsonl import iter_rows, truncate_after_step, unique_keys, write_json
from workbench.train.rollouts import check_rollouts, whole_steps
from workbench.types import WorkbenchError

MARKER = "complete.json"
FREE_MB = 200


@contextlib.contextmanager
def lock(out: Path) -> Iterator[None]:
    """Make the folder `out` and keep other processes out of it; where files cannot be locked, only make it.

    Raises:
        WorkbenchError: the folder cannot be written, or another process is using it.
    """
    _check_writable(out)
    if importlib.util.find_spec("fcntl") is None:  # Windows
        yield
        return
    import fcntl

    with (out / ".lock").open("ab") as file:  # left there: removing it could take away the lock of the next process
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WorkbenchError(f"another process is using '{out}': wait for it or choose another --out folder") from None
        except OSError:  # some network file systems have no locks
            pass
        yield


def open_run(out: Path, identity: Mapping[str, Any], versions: Mapping[str, str] | None = None) -> dict[str, Any] | None:
    """Make the folder `out` that of the run that `identity` describes; the stored summary if that run is finished.

    `versions` of the libraries are stored with a new run; resuming under others is allowed, with a warning.

    Raises:
        WorkbenchError: the disk is full, or another run lies there.
    """
    stored = read_json(out / "config.json")
    if stored is None and (out / "config.json").exists():
        raise WorkbenchError(f"'{out / 'config.json'}' is damaged: mend it, or choose another --out folder")
    begun = stored.pop("versions", {}) if stored else {}
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
        write_json(out / "config.json", {**identity, **({"versions": versions} if versions else {})})
    elif begun and versions and (changed := differences(begun, versions)):
        print(f"'{out}' was begun under other versions, so it may not end the same: {'; '.join(changed)}", file=sys.stderr)
    return None


def what_is_there(folder: Path, most: int = 8) -> str:
    """The runs in a folder, or why there are none, for the end of a message about one that was not found."""
    if not folder.is_dir():
        return f"there is no folder '{folder}' either"
    found = sorted({path.parent for depth in ("*", "*/*") for path in folder.glob(f"{depth}/config.json")})
    shown = [str(path) for path in found if path.parent.name != "checkpoints" and path.name != "policy"]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return f"'{folder}' holds {', '.join(shown[:most])}{more}" if shown else f"'{folder}' holds no run"


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


def rewind(out: Path, responses: int | None = None) -> tuple[Path | None, int]:
    """Take the folder back to its last complete checkpoint: (its folder or None, its step or 0).

    Half-written checkpoints, and those whose steps are not all in the metrics and, with `responses` rows each, in the
    rollouts, are removed; metrics and rollouts after that step are cut off.

    Raises:
        WorkbenchError: rollouts were lost from before every checkpoint; nothing is removed then.
    """
    checkpoints = sorted((out / "checkpoints").glob("checkpoint-*"), key=step_of)
    logged = len(metrics_rows(out))
    if responses is not None and (usable := [step_of(c) for c in checkpoints if step_of(c) <= logged and is_complete(c)]):
        check_rollouts(out / "rollouts.jsonl", usable[0], responses)
        logged = min(logged, whole_steps(out / "rollouts.jsonl", responses))
    complete = [checkpoint for checkpoint in checkpoints if step_of(checkpoint) <= logged and is_complete(checkpoint)]
    for checkpoint in checkpoints:
        if checkpoint not in complete:
            shutil.rmtree(checkpoint)
    last = complete[-1] if complete else None
    step = step_of(last) if last else 0
    for name in ("metrics.jsonl", "rollouts.jsonl"):
        if (out / name).exists():
            truncate_after_step(out / name, step)
    return last, step


def metrics_rows(out: Path) -> list[dict[str, Any]]:
    """The rows of steps 1, 2, 3, … in the folder's metrics, up to the first step that is missing."""
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
    """Declare a checkpoint written, once it is on the disk: the digests of its files, put in place by one rename."""
    sync_tree(checkpoint)
    paths = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name != MARKER)
    files = {path.relative_to(checkpoint).as_posix(): _digest(path) for path in paths}
    write_json(checkpoint / MARKER, {"step": step_of(checkpoint), "files": files})
    sync(checkpoint)
    sync(checkpoint.parent)


def is_complete(checkpoint: Path) -> bool:
    """Whether the marker is there and every file is as it was when the marker was written."""
    marker = read_json(checkpoint / MARKER)
    if not marker or marker.get("step") != step_of(checkpoint):
        return False
    return all((checkpoint / name).is_file() and _digest(checkpoint / name) == d for name, d in marker["files"].items())


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
    complete = sorted((path for path in checkpoints.glob("checkpoint-*") if (path / MARKER).is_file()), key=step_of)
    for checkpoint in complete[:-keep]:
        (checkpoint / MARKER).unlink()  # first, so that a half-removed checkpoint is not taken for a complete one
        shutil.rmtree(checkpoint)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None if it is missing or broken."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique_keys)
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
