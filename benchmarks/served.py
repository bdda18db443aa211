"""A benchmark's server as a process of its own: the script itself, called with `--serve`, which
prints the server's address.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def serving(script: str, *arguments: str) -> Iterator[str]:
    """The address, for as long as the server is wanted."""
    process = subprocess.Popen(
        [sys.executable, script, "--serve", *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
