"""Keep the memory of a training on a CPU small."""

import ctypes
import os

# parameters of glibc's mallopt, from malloc.h
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
LARGE = 2 * 2**20  # bytes of a block that is returned to the system as soon as it is freed
UNUSED = 100 * 2**20  # bytes of small free blocks that the process keeps


def return_freed_memory() -> None:
    """Make the C library return large freed blocks to the system at once, for this process.

    By default, glibc keeps freed blocks of up to 32 MB for later allocations. New tensors rarely
    fit into these blocks, so the process grows. For example, a GRPO step then takes 4.0 GB instead
    of 2.0 GB (docs/scaling.md). The function does nothing with other C libraries, or if the
    environment variable MALLOC_MMAP_THRESHOLD_ is set.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt and "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        mallopt(MMAP_THRESHOLD, LARGE)
        mallopt(TRIM_THRESHOLD, UNUSED)
