"""Run concurrent coroutines from synchronous code."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any

Work = Callable[[], Coroutine[Any, Any, None]]


async def run_workers(work: Work, count: int) -> None:
    """Run `count` workers to their end. If one raises, or all are cancelled, all are stopped."""
    tasks = [asyncio.create_task(work()) for _ in range(count)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def run_in_thread(main: Work) -> None:
    """Run a coroutine to its end in a thread of its own: the caller may be in an event loop.

    An interrupt of the caller cancels the coroutine and waits until its connections are closed.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(main())
    errors: list[BaseException] = []
    # not Thread.join, which fails after an interrupt in Python 3.11
    done = threading.Event()

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except BaseException as error:
            errors.append(error)
        finally:
            loop.close()
            done.set()

    threading.Thread(target=run, name="workbench-judge", daemon=True).start()
    try:
        done.wait()
    except BaseException:
        with contextlib.suppress(RuntimeError):  # the loop may just have been closed
            loop.call_soon_threadsafe(task.cancel)
        done.wait(5)
        raise
    if errors:
        raise errors[0]
