"""Waiting for what another process or thread does."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Return once it has happened; fail if it does not in time."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.005)
