"""Keep the memory of a training on a CPU small."""

import ctypes
import os

# parameters of glibc's mallopt, from malloc.h
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
LARGE = 2 * 2**20  # bytes of a block that is returned to the system as soon as it is freed
UNUSED = 100 * 2**20  # bytes of small free blocks that the process keeps


def return_freed_memory() -> None:
    """Make the C library return large freed blocks to the system at once, for this process.

    By default, glibc keeps freed blocks of up to 32 MB. Tensors of varying sizes rarely fit into
    them, so the process grows: a step of GRPO took 4.0 GB in place of 2.0 GB (docs/scaling.md).
    Nothing changes with other C libraries, or if the environment sets MALLOC_MMAP_THRESHOLD_.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt and "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        mallopt(MMAP_THRESHOLD, LARGE)
        mallopt(TRIM_THRESHOLD, UNUSED)
