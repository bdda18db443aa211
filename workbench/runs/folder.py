"""Open, lock and identify the folder of a run. These are its files:

config.json      everything that determines the result (method, config, seed, …), and the library
                 `versions` at the start; a run with another config cannot use the folder
.lock            locked by the process that uses the folder
metrics.jsonl    one row per step
rollouts.jsonl   every graded response with its step; its questions are in questions.jsonl
checkpoints/     checkpoint-N, each with complete.json written last
policy/          the trained adapter with its tokenizer
summary.json     the result; `status` says whether the run is finished
"""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
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

FREE_MB = 200  # least free space, in megabytes, to start or resume a run
# files that a run writes; a folder that has one of them needs a config.json
FILES = ("metrics.jsonl", "rollouts.jsonl", "probe.jsonl", "summary.json")
LOCK_SECONDS = 0.2  # how long to wait for the lock, because `in_use` holds it for a moment
PACKAGES = ("torch", "transformers", "trl", "peft", "unsloth")  # their versions affect a run


@contextlib.contextmanager
def lock(out: Path) -> Iterator[None]:
    """Context manager that creates the folder `out` and locks it against other processes.

    If the block raises a WorkbenchError before the run writes results, the folder is left as it
    was.

    Raises:
        WorkbenchError: the folder cannot be written, or another process uses it.
    """
    with remove_new_folders_on_error(out):
        try:
            out.mkdir(parents=True, exist_ok=True)
            probe = out / ".writable"
            probe.write_text("")
            probe.unlink()
        except OSError as error:
            raise WorkbenchError(
                f"cannot write to '{out}' ({error.strerror}): choose another --out folder"
            ) from error
        # an error must leave the folder as it was, so that another run can use it
        before = {path.name for path in out.iterdir()}
        path = out / ".lock"
        with path.open("ab") as file:
            _acquire(file, path)
            try:
                yield
            except WorkbenchError:
                new = {path.name for path in out.iterdir()} - before
                if "config.json" in new and new <= {"config.json", ".lock"}:
                    (out / "config.json").unlink()
                if ".lock" in new:  # an old lock file is harmless
                    path.unlink(missing_ok=True)
                raise


def in_use(out: Path) -> bool:
    """Return whether a process holds the lock of the folder `out`, without writing anything."""
    if not (out / ".lock").exists():
        return False
    with (out / ".lock").open("rb") as file:
        return _is_locked(file, shared=True)


def _acquire(file: BinaryIO, path: Path) -> None:
    """Lock the open file at `path`; raise a WorkbenchError if another process uses the folder."""
    error = WorkbenchError(
        f"another process is using '{path.parent}': wait for it or choose another --out folder"
    )
    until = time.monotonic() + LOCK_SECONDS
    while _is_locked(file, shared=False):
        if time.monotonic() > until:
            raise error
        time.sleep(0.01)
    # the previous holder may have removed the file after this process opened it
    if not path.exists() or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
        raise error


def _is_locked(file: BinaryIO, shared: bool) -> bool:
    """Try to lock a file; return whether a lock of another process prevents it.

    Return False on network file systems that have no locks.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def check_identity(
    out: Path, identity: JsonMapping, read: Callable[[JsonObject], JsonObject] = dict
) -> JsonObject | None:
    """Return the content of config.json in the folder `out` of a run; None if the folder is new.

    Args:
        identity, read: as for `open_run`.

    Raises:
        WorkbenchError: the folder has another run, or files of a run without a config.json, or its
            config.json is damaged.
    """
    stored = read_json(out / "config.json")
    if stored is None and (out / "config.json").exists():
        raise WorkbenchError(
            f"'{out / 'config.json'}' is damaged: fix it, or choose another --out folder"
        )
    if stored is None:
        foreign = [name for name in FILES if (out / name).exists()]
        reason = f"{', '.join(foreign)} but no config.json" if foreign else ""
    else:
        # versions are not part of the identity: an upgrade must not make a run unusable
        known = {name: value for name, value in stored.items() if name != "versions"}
        different = differences(read(known), json.loads(json.dumps(identity)))
        reason = f"another run ({'; '.join(different)})" if different else ""
    if reason:
        raise WorkbenchError(f"'{out}' holds {reason}: choose another --out folder")
    return stored


def open_run(
    out: Path,
    identity: JsonMapping,
    versions: Mapping[str, str] | None = None,
    *,
    read: Callable[[JsonObject], JsonObject] = dict,
) -> JsonObject | None:
    """Prepare the folder `out` to start or resume a run; write config.json for a new run.

    Args:
        identity: JSON values that determine the run's result, stored in config.json.
        versions: library versions, stored with a new run. If a resumed run has other versions, a
            warning is printed.
        read: converts the content of the folder's config.json to the form of `identity`, if an
            earlier version of this library wrote it; by default, it is not changed.

    Returns:
        The summary of a finished run; None if the run is new or not finished.

    Raises:
        WorkbenchError: the disk is almost full, config.json is damaged, or the folder has a run
            with another identity.
    """
    stored = check_identity(out, identity, read)
    if (summary := finished(out)) is not None:
        return summary
    # a full disk in the middle of a run would cost its last steps
    if shutil.disk_usage(out).free < FREE_MB * 10**6:
        raise WorkbenchError(
            f"less than {FREE_MB} MB free at '{out}': free some space or choose another --out"
        )
    if stored is None:
        write_json(
            out / "config.json", {**identity, **({"versions": versions} if versions else {})}
        )
        return None
    first = stored.get("versions")
    if first and versions and (changed := differences(first, versions)):
        print(
            f"'{out}' was started with other versions, so its result may differ:"
            f" {'; '.join(changed)}",
            file=sys.stderr,
        )
    return None


def finished(out: Path) -> JsonObject | None:
    """Return the summary in a run's folder if its status is "done", else None."""
    summary = read_json(out / "summary.json")
    return summary if summary and summary.get("status") == "done" else None


def status_in(out: Path) -> str | None:
    """Return the status in a folder's summary.json; None without this file."""
    return (read_json(out / "summary.json") or {}).get("status")


def describe_runs(folder: Path) -> str:
    """List the runs in a folder, for an error message: "'runs' contains runs/a".

    At most 8 runs are listed. If the folder does not exist, the text says so.
    """
    if not folder.is_dir():
        return f"there is no folder '{folder}' either"
    folders = sorted(
        {path.parent for depth in ("*", "*/*") for path in folder.glob(f"{depth}/config.json")}
    )
    # checkpoints and policies have a config.json, too
    runs = [
        str(path) for path in folders if path.parent.name != "checkpoints" and path.name != "policy"
    ]
    more = f" and {len(runs) - 8} more" if len(runs) > 8 else ""
    return f"'{folder}' contains {', '.join(runs[:8]) or 'no run'}{more}"


def differences(stored: JsonMapping, wanted: JsonMapping, prefix: str = "") -> list[str]:
    """Compare two JSON objects; return a text for each difference, such as "seed is 1, not 2".

    In this example, the seed is 1 in `stored` and 2 in `wanted`. Values in nested objects are named
    by their path, such as "grpo.beta".

    Args:
        prefix: begins the name of every value; "" at the top level.
    """
    differing: list[str] = []
    for key in dict.fromkeys([*stored, *wanted]):
        old, new = stored.get(key), wanted.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            differing += differences(old, new, f"{prefix}{key}.")
        elif old != new:
            differing.append(f"{prefix}{key} is {json.dumps(old)}, not {json.dumps(new)}")
    return differing


def settings_path(out: Path) -> Path:
    """Return the path of the settings that `workbench score` stores next to its output `out`."""
    return out.with_name(f"{out.stem}.settings.json")


def read_json(path: Path) -> JsonObject | None:
    """Return the object in a JSON file, or None if it is missing or broken."""
    if not path.is_file():  # a pipe, for example, would never end
        return None
    try:
        # a file in which a key occurs twice is damaged: it is unknown which value is right
        value = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique_keys)
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def policy_hash(folder: str) -> str | None:
    """Return a digest of a local policy's weights, configuration and tokenizer.

    The result is None if `folder` is not a folder, for example if it is a name on the hub.
    """
    path = Path(folder)
    if not path.is_dir():
        return None
    digest = hashlib.sha256()
    for file in sorted(path.iterdir()):
        # cards and digests are left out: they do not change what the policy generates
        if file.suffix == ".safetensors" or file.name in (
            "config.json",
            "adapter_config.json",
            "tokenizer.json",
        ):
            digest.update(f"{file.name}:{file_digest(file)}\n".encode())
    return digest.hexdigest()[:16]


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """Return name -> version of Python, this package, torch, transformers, trl, peft and unsloth.

    Packages that are not installed are left out. The result also has "dtype" (the value of
    WORKBENCH_DTYPE) if it is set, and "gpu" (the name of the first GPU) if there is one.
    """
    installed = {"python": platform.python_version(), "workbench": workbench.__version__}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            installed[package] = version(package)
    # the number format changes results, like another version
    if dtype := os.environ.get("WORKBENCH_DTYPE"):
        installed["dtype"] = dtype
    # read here, because torch is not always imported and takes a second
    for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))[:1]:
        if model := re.search(r"^Model:\s*(.+)$", file.read_text(), re.MULTILINE):
            installed["gpu"] = model[1].strip()
    return installed
