"""Work on the next pieces while one is finished, so that a judge is not idle at the borders of
chunks.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from typing import TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def ahead(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], workers: int
) -> Iterator[Result]:
    """`map(work, pieces)` with up to `workers` pieces at a time, each in a thread; the order stays.

    No more than `workers` pieces are taken from the iterable before their results are asked for.
    An exception is raised where its result would stand. The threads do not keep an interrupted
    process alive.
    """
    if workers <= 1:
        yield from map(work, pieces)
        return
    running: deque[SimpleQueue[tuple[bool, object]]] = deque()
    for piece in pieces:
        running.append(_start(work, piece))
        if len(running) >= workers:
            yield _result(running.popleft())
    while running:
        yield _result(running.popleft())


def _start(work: Callable[[Piece], Result], piece: Piece) -> SimpleQueue[tuple[bool, object]]:
    outcome: SimpleQueue[tuple[bool, object]] = SimpleQueue()

    def run() -> None:
        try:
            outcome.put((True, work(piece)))
        except BaseException as error:
            outcome.put((False, error))

    threading.Thread(target=run, daemon=True).start()
    return outcome


def _result(outcome: SimpleQueue[tuple[bool, object]]) -> Result:  # type: ignore[type-var]
    good, value = outcome.get()
    if not good:
        assert isinstance(value, BaseException), value
        raise value
    return value  # type: ignore[return-value]
