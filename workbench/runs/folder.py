"""A run's folder: what identifies it, which checkpoint is complete, and taking it back to that
checkpoint.

config.json      what the run is (method, config, seed, …); a different run may not use the
folder. `versions` are those of
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
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import BinaryIO

import workbench
from workbench.types import JsonMapping, JsonObject, WorkbenchError
from workbench.util.jsonl import remove_new_folders_on_error, unique_keys, write_json

FREE_MB = 200
FILES = ("metrics.jsonl", "rollouts.jsonl", "probe.jsonl", "summary.json")  # of a run
LOOKED = 0.2  # seconds: who asks whether a folder is in use holds its lock for a moment
PACKAGES = ("torch", "transformers", "trl", "peft", "unsloth")  # whose versions a run depends on


@contextlib.contextmanager
def lock(out: Path) -> Iterator[None]:
    """Make the folder `out` and keep other processes out of it; where files cannot be locked,
    only make it.

    A refusal inside (a WorkbenchError) takes back the lock file and the folders that were made
    for it, and the config.json of a run that came no further.

    Raises:
        WorkbenchError: the folder cannot be written, or another process is using it.
    """
    with remove_new_folders_on_error(out):
        _check_writable(out)
        found = {path.name for path in out.iterdir()}
        if importlib.util.find_spec("fcntl") is None:  # Windows
            yield
            return
        path = out / ".lock"
        new = not path.exists()
        with path.open("ab") as file:
            _hold(file, path)
            try:
                yield
            except WorkbenchError:
                made = {path.name for path in out.iterdir()} - found
                if "config.json" in made and made <= {"config.json", ".lock"}:
                    (out / "config.json").unlink()
                if new:  # an old one stays: it tells nothing, and removing it gains nothing
                    path.unlink(missing_ok=True)
                raise


def in_use(out: Path) -> bool:
    """Whether a process holds the lock of the folder `out`. Nothing is made or written."""
    if importlib.util.find_spec("fcntl") is None or not (out / ".lock").exists():
        return False
    with (out / ".lock").open("rb") as file:
        return _refused(file, shared=True)


def _hold(file: BinaryIO, path: Path) -> None:
    taken = WorkbenchError(
        f"another process is using '{path.parent}': wait for it or choose another --out folder"
    )
    until = time.monotonic() + LOOKED
    while _refused(file, shared=False):
        if time.monotonic() > until:
            raise taken
        time.sleep(0.01)
    # its last holder took it back
    if not path.exists() or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
        raise taken


def _refused(file: BinaryIO, shared: bool) -> bool:
    """Whether another process's lock keeps us from ours; on network file systems without locks,
    nothing does.
    """
    import fcntl

    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def open_run(
    out: Path,
    identity: JsonMapping,
    versions: Mapping[str, str] | None = None,
    *,
    read: Callable[[JsonObject], JsonObject] = dict,
) -> JsonObject | None:
    """Make the folder `out` that of the run that `identity` describes; the stored summary if
    that run is finished.

    `read` gives what an earlier version stored the form of today's. `versions` of the libraries
    are stored with a new run; resuming under others is allowed, with a warning.

    Raises:
        WorkbenchError: the disk is full, or another run lies there.
    """
    stored = read_json(out / "config.json")
    if stored is None and (out / "config.json").exists():
        raise WorkbenchError(
            f"'{out / 'config.json'}' is damaged: mend it, or choose another --out folder"
        )
    begun = stored.pop("versions", {}) if stored else {}
    if stored is None:
        foreign = [name for name in FILES if (out / name).exists()]
        reason = f"{', '.join(foreign)} but no config.json" if foreign else ""
    else:
        different = differences(read(stored), json.loads(json.dumps(identity)))
        reason = f"another run ({'; '.join(different)})" if different else ""
    if reason:
        raise WorkbenchError(f"'{out}' holds {reason}: choose another --out folder")
    if (summary := finished(out)) is not None:
        return summary
    if shutil.disk_usage(out).free < FREE_MB * 10**6:
        raise WorkbenchError(
            f"less than {FREE_MB} MB free at '{out}': free some space or choose another --out"
        )
    if stored is None:
        write_json(
            out / "config.json", {**identity, **({"versions": versions} if versions else {})}
        )
    elif begun and versions and (changed := differences(begun, versions)):
        print(
            f"'{out}' was begun under other versions, so it may not end the same:"
            f" {'; '.join(changed)}",
            file=sys.stderr,
        )
    return None


def finished(out: Path) -> JsonObject | None:
    """The summary in a folder, if it is that of something finished."""
    summary = read_json(out / "summary.json")
    return summary if summary and summary.get("status") == "done" else None


def what_is_there(folder: Path, most: int = 8) -> str:
    """The runs in a folder, or why there are none, for the end of a message about one that was
    not found.
    """
    if not folder.is_dir():
        return f"there is no folder '{folder}' either"
    folders = sorted(
        {path.parent for depth in ("*", "*/*") for path in folder.glob(f"{depth}/config.json")}
    )
    shown = [
        str(path) for path in folders if path.parent.name != "checkpoints" and path.name != "policy"
    ]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return (
        f"'{folder}' holds {', '.join(shown[:most])}{more}" if shown else f"'{folder}' holds no run"
    )


def differences(stored: JsonMapping, wanted: JsonMapping, prefix: str = "") -> list[str]:
    """Every key whose values differ, as "config.seed is 1, not 2"."""
    differing: list[str] = []
    for key in dict.fromkeys([*stored, *wanted]):
        old, new = stored.get(key), wanted.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            differing += differences(old, new, f"{prefix}{key}.")
        elif old != new:
            differing.append(f"{prefix}{key} is {json.dumps(old)}, not {json.dumps(new)}")
    return differing


def read_json(path: Path) -> JsonObject | None:
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
        if file.suffix == ".safetensors" or file.name in (
            "config.json",
            "adapter_config.json",
            "tokenizer.json",
        ):
            digest.update(f"{file.name}:{file_digest(file)}\n".encode())
    return digest.hexdigest()[:16]


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_writable(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".writable"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise WorkbenchError(
            f"cannot write to '{out}' ({error.strerror}): choose another --out folder"
        ) from error


def versions() -> dict[str, str]:
    """Versions of Python, this package and the libraries a run depends on, as far as they are
    installed.
    """
    installed = {"python": platform.python_version(), "workbench": workbench.__version__}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            installed[package] = version(package)
    return installed
