"""Wait for a condition in another process or thread."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Return when the condition is true; fail after the timeout."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.005)
