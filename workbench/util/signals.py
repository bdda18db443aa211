"""Handle signals for the duration of a block."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def handled_signals(handler: Callable[..., Any], *signals: signal.Signals) -> Iterator[None]:
    """Context manager that sets `handler` for each of `signals`, and restores the earlier handlers.

    Outside the main thread, the context manager does nothing, because Python sets signal handlers
    only in the main thread.
    """
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handler) for number in signals if main}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
