"""GPUs by name: memory that a process can have, and the makers' figures of speed."""

from __future__ import annotations

import os
from dataclasses import dataclass

from workbench.types import WorkbenchError

GIB = 2**30
CPU = "cpu"  # this machine without a GPU


@dataclass(frozen=True)
class GPU:
    """`memory` in GiB is a little less than what is on the box, as drivers report it; `flops` in bf16, dense; bytes/s."""

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


def memory_here() -> int | None:
    """This machine's memory in bytes; None where the system does not tell it in the usual way (Windows)."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else None


def gpu_of(name: str) -> GPU:
    """The GPU of that name; "cpu" is this machine's memory, of whose speed nothing is assumed.

    Raises:
        WorkbenchError: there is none, or this machine's memory is not known.
    """
    if name == CPU:
        if (own := memory_here()) is None:
            raise WorkbenchError(f"this system does not tell its memory: choose one of {', '.join(GPUS)}")
        return GPU(CPU, own / GIB, 0.0, 0.0)
    if name not in GPUS:
        raise WorkbenchError(f"no GPU '{name}' here: choose one of {', '.join(GPUS)}, or {CPU}")
    return GPUS[name]
