"""A training returns freed memory to the system."""

import platform

import pytest

from tests.helpers import run_python

GROWTH = """
import ctypes, re, sys
from workbench.util.memory import return_freed_memory

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024

if sys.argv[1] == "yes":
    return_freed_memory()
start, libc = resident(), ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
blocks = []
for megabytes in range(3, 20):
    libc.free(libc.malloc(megabytes << 20))  # glibc raises its threshold to the freed size
    blocks.append(libc.malloc(megabytes << 20))
    ctypes.memset(blocks[-1], 1, megabytes << 20)
for block in blocks[:-1]:  # the last block, on top of the heap, stays
    libc.free(block)
print(resident() - start)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only for glibc")
def test_freed_blocks_go_back_to_the_system() -> None:
    kept, returned = (
        int(run_python("-c", GROWTH, choice).stdout.split()[-1]) for choice in ("no", "yes")
    )
    assert kept > 100  # malloc kept the freed blocks
    assert returned < 40
