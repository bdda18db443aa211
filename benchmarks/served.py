"""Run a benchmark's server as a separate process.

The process is the same script with `--serve`, which prints the server's address.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def serving(script: str, *arguments: str) -> Iterator[str]:
    """Yield the server's address, and end the server afterwards."""
    process = subprocess.Popen(
        [sys.executable, script, "--serve", *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
