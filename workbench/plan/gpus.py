"""GPUs by name: memory that a process can have, and the makers' figures of speed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from workbench.types import WorkbenchError

GIB = 2**30
CPU = "cpu"  # this machine without a GPU
# limits of processes on Linux, and which are this one's
GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


@dataclass(frozen=True)
class GPU:
    """`memory` in GiB is a little less than what is on the box, as drivers report it; `flops` in
    bf16, dense; bytes/s.
    """

    name: str
    memory: float
    flops: float
    bandwidth: float


GPUS = {
    gpu.name: gpu
    for gpu in (
        GPU("l4-24", 22.0, 121e12, 300e9),
        GPU("rtx4090-24", 23.5, 165e12, 1008e9),
        GPU("a100-40", 39.4, 312e12, 1555e9),
        GPU("l40s-48", 44.0, 362e12, 864e9),
        GPU("a100-80", 79.0, 312e12, 2039e9),
        GPU("h100-80", 79.0, 989e12, 3350e9),
        GPU("h200-141", 139.0, 989e12, 4800e9),
    )
}


def memory_here(groups: Path = GROUPS, own: Path = OWN) -> int | None:
    """The memory in bytes that a process may have here: the machine's, or less where its control
    groups allow less, as in a container; None where the system does not tell it in the usual way
    (Windows)."""
    if not hasattr(os, "sysconf"):
        return None
    return min([os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *_allowed(groups, own)])


def _allowed(groups: Path, own: Path) -> Iterator[int]:
    """What the process's control groups, of either version, and those above them allow; nothing
    where they set no limit.
    """
    try:
        lines = own.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # no Linux, or hidden
        lines = []
    # a container often sees its own groups as the outermost ones
    for line in ["0::/", "0:memory:/", *lines]:
        _, kinds, path = line.split(":", 2) if line.count(":") > 1 else ("", "none", "")
        if kinds and "memory" not in kinds.split(","):
            continue
        top, name = (
            (groups / "memory", "memory.limit_in_bytes") if kinds else (groups, "memory.max")
        )
        below = PurePosixPath(path.lstrip("/"))
        for folder in (below, *below.parents):
            with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
                if (limit := int((top / folder / name).read_text(encoding="utf-8"))) > 0:
                    yield limit


def gpu_of(name: str) -> GPU:
    """The GPU of that name; "cpu" is this machine's memory, of whose speed nothing is assumed.

    Raises:
        WorkbenchError: there is none, or this machine's memory is not known.
    """
    if name == CPU:
        if (own := memory_here()) is None:
            raise WorkbenchError(
                f"this system does not tell its memory: choose one of {', '.join(GPUS)}"
            )
        return GPU(CPU, own / GIB, 0.0, 0.0)
    if name not in GPUS:
        raise WorkbenchError(f"no GPU '{name}' here: choose one of {', '.join(GPUS)}, or {CPU}")
    return GPUS[name]
