"""Run concurrent coroutines from synchronous code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Work = Callable[[], Coroutine[Any, Any, None]]


async def run_workers(work: Work, count: int) -> None:
    """Run `count` workers to their end. If one raises, or all are cancelled, all are stopped."""
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(work())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


def run_in_thread(main: Work) -> None:
    """Run a coroutine to its end in a thread of its own: the caller may be in an event loop.

    An interrupt of the caller cancels the coroutine and waits until its connections are closed.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(main())
    try:
        with ThreadPoolExecutor(1, "workbench-judge") as pool:
            running = pool.submit(loop.run_until_complete, task)
            try:
                running.result()
            except BaseException:
                loop.call_soon_threadsafe(task.cancel)
                raise
    finally:
        loop.close()
