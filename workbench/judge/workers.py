"""Coroutines that work side by side, in an event loop of their own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any

Work = Callable[[], Coroutine[Any, Any, None]]


async def together(work: Work, count: int) -> None:
    """Run `count` workers to their end; if one raises, or all are cancelled, none is left
    running.
    """
    tasks = [asyncio.create_task(work()) for _ in range(count)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def run_apart(main: Work) -> None:
    """Run a coroutine to its end in a thread of its own, so that the caller may itself be inside
    an event loop.

    An interrupt of the caller cancels it and waits until its connections are closed.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(main())
    errors: list[BaseException] = []
    # an interrupted Thread.join believes that the thread has ended (Python 3.11)
    done = threading.Event()

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except BaseException as error:
            errors.append(error)
        finally:
            loop.close()
            done.set()

    thread = threading.Thread(target=run, name="workbench-judge", daemon=True)
    thread.start()
    try:
        done.wait()
    except BaseException:
        with contextlib.suppress(RuntimeError):  # the loop may just have been closed
            loop.call_soon_threadsafe(task.cancel)
        if done.wait(5):
            thread.join()
        raise
    thread.join()
    if errors:
        raise errors[0]
