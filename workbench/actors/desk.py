"""Questions of Ray's actors to the driver: a judge and a search that stay in one process, for
use in many.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any


class Desk:
    """An actor beside the driver: where actors leave questions for it, and wait for the answers."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.questions: asyncio.Queue[tuple[int, str, tuple[Any, ...], dict[str, Any]]] = (
            asyncio.Queue()
        )
        self.waiting: dict[int, asyncio.Future[tuple[bool, Any]]] = {}

    async def ask(
        self, name: str, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[bool, Any]:
        number, answer = next(self.numbers), asyncio.get_running_loop().create_future()
        self.waiting[number] = answer
        await self.questions.put((number, name, arguments, named))
        return await answer

    async def take(self) -> tuple[int, str, tuple[Any, ...], dict[str, Any]]:
        return await self.questions.get()

    async def answer(self, number: int, good: bool, value: Any) -> None:
        answer = self.waiting.pop(number)
        if not answer.done():  # else whoever asked has died
            answer.set_result((good, value))


@dataclass(frozen=True)
class Asked:
    """A judge, or a search, that the driver has: what is asked here is answered there."""

    desk: Any
    kind: str
    name: str

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        import ray

        good, value = ray.get(self.desk.ask.remote(self.kind, arguments, named))
        if not good:
            raise value
        return value


@contextmanager
def answered(asked: Mapping[str, Callable[..., Any]], count: int) -> Iterator[dict[str, Asked]]:
    """Judge and search, by name, for use in actors: `count` threads of this process answer as
    long as this lasts.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    if not asked:
        yield {}
        return
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    desk = (
        ray.remote(Desk)
        .options(num_cpus=0, scheduling_strategy=here, max_concurrency=10_000)
        .remote()
    )
    closed = threading.Event()
    threads = [
        threading.Thread(target=_answer, args=(desk, asked, closed), daemon=True)
        for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        yield {
            kind: Asked(desk, kind, str(getattr(one, "name", kind))) for kind, one in asked.items()
        }
    finally:
        closed.set()
        end(ray, [desk])
        until = time.monotonic() + 1
        for thread in threads:
            # one that waits for a judge is not waited for
            thread.join(max(0.0, until - time.monotonic()))


def _answer(desk: Any, asked: Mapping[str, Callable[..., Any]], closed: threading.Event) -> None:
    """Answer one question after another, until the desk is closed."""
    import ray

    with suppress(Exception):  # the desk is closed, Ray is gone, or an answer cannot be sent
        while True:
            number, kind, arguments, named = ray.get(desk.take.remote())
            try:
                answer = True, asked[kind](*arguments, **named)
            except Exception as error:  # raised where it was asked
                answer = False, error
            if closed.is_set():
                return
            desk.answer.remote(number, *answer)
    if not closed.is_set():
        end(ray, [desk])  # rather than that anybody waits for an answer that will not come


def end(ray: Any, actors: Iterable[Any]) -> None:
    """Have actors ended, whatever has become of them."""
    for actor in actors:
        with suppress(Exception):  # it is dead, or Ray is
            ray.kill(actor)
