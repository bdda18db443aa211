"""Chunks of items in actors, one after another: whose turn it is, and what becomes of a chunk
whose actor dies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from workbench.actors.cluster import AGAIN, line
from workbench.actors.desk import end
from workbench.types import Failure, WorkbenchError

# chunks for each actor that are taken from the input before their turn to be written has come
AHEAD = 2
# how often actors may die of a chunk before its items are tried one by one, and of an item before
# that has failed
TRIES = 2
# how many actors, for each that there is to be, may die in a row before any work is done
STRIKES = 8

Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[list[Item]], list[Result]]  # items -> a result for each, in the same order


class Worker(Generic[Item, Result]):
    """An actor that works on chunks, and dies with what it was given at worst."""

    def __init__(self, make: Callable[[], Work[Item, Result]]) -> None:
        self.make = make

    @cached_property
    def work(self) -> Work[Item, Result]:
        # not as the actor is made: what it raises is then told as what any chunk raises
        return self.make()

    def ready(self) -> None:
        """Called first: it is answered once there is a process."""

    def do(self, items: list[Item]) -> list[Result]:
        return self.work(items)


@dataclass(frozen=True)
class _Task(Generic[Item]):
    """Items that are worked on together: those of the chunk `number` from `start` on. `deaths`
    of actors came of it.
    """

    number: int
    start: int
    items: list[Item]
    deaths: int = 0


@dataclass
class Pool(Generic[Item, Result]):
    """Actors that work on chunks; who dies is replaced. An actor has one task at a time, so that
    it can die of no other.
    """

    make: Any  # a function that makes what does the work, or where Ray keeps that function
    actors: int
    lost: Callable[[Item, Failure], Result]
    strikes: int = 0  # actors that died since any work was done
    free: list[Any] = field(default_factory=list)
    waiting: deque[_Task[Item]] = field(default_factory=deque)
    # by answer; of a new actor, no task
    running: dict[Any, tuple[Any, _Task[Item] | None]] = field(default_factory=dict)
    # by chunk: its results as far as there are any, else None
    done: dict[int, list[Any]] = field(default_factory=dict)

    def map(self, chunks: Iterable[list[Item]]) -> Iterator[list[Result]]:
        """The results of chunks, in order; `AHEAD` chunks for each actor are taken before their
        turn has come.
        """
        import ray

        numbered, turn = enumerate(chunks), 0
        try:
            for _ in range(self.actors):
                self._hire(ray)
            while self._takes_on(numbered):
                self._collect(ray)
                while turn in self.done and None not in self.done[turn]:
                    yield self.done.pop(turn)
                    turn += 1
        finally:
            end(ray, [*self.free, *(actor for actor, _ in self.running.values())])

    def _hire(self, ray: Any) -> None:
        """Have an actor made. It gets nothing to do before it is there, since there may be no
        room for it now.
        """
        actor = (
            ray.remote(Worker).options(num_cpus=1, scheduling_strategy="SPREAD").remote(self.make)
        )
        self.running[actor.ready.remote()] = actor, None

    def _takes_on(self, numbered: Iterator[tuple[int, list[Item]]]) -> bool:
        """Give free actors something to do; whether there is anything left."""
        while len(self.done) < AHEAD * self.actors and (entry := next(numbered, None)):
            number, items = entry
            self.done[number] = [None] * len(items)
            self.waiting.append(_Task(number, 0, items))
        while self.free and self.waiting:
            actor, task = self.free.pop(), self.waiting.popleft()
            self.running[actor.do.remote(task.items)] = actor, task
        return bool(self.done)

    def _collect(self, ray: Any) -> None:
        """Wait until an actor is there, or has done its task or died of it."""
        for answer in ray.wait(list(self.running), num_returns=1)[0]:
            actor, task = self.running.pop(answer)
            try:
                results = ray.get(answer)
            # raised by what works, as it would have been here
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except ray.exceptions.RayError as error:  # its process or its machine has gone
                end(ray, [actor])
                self._died(task, error)
                self._hire(ray)
            else:
                self._note(task, results)
                self.free.append(actor)

    def _note(self, task: _Task[Item] | None, results: Sequence[Result]) -> None:
        if task:
            # else it would be waited for without end
            assert len(results) == len(task.items), (len(results), len(task.items))
            self.strikes = 0
            self.done[task.number][task.start : task.start + len(results)] = results

    def _died(self, task: _Task[Item] | None, error: Exception) -> None:
        """Try a task again, at last item by item; an item that actors keep dying of is lost."""
        self.strikes += 1
        if self.strikes > STRIKES * self.actors:
            raise WorkbenchError(
                f"{self.strikes} of Ray's actors died one after another, the last so:"
                f" {line(error)}; {AGAIN}"
            )
        if not task:
            return
        if (deaths := task.deaths + 1) < TRIES:
            self.waiting.appendleft(_Task(task.number, task.start, task.items, deaths))
        elif len(task.items) > 1:
            alone = [
                _Task(task.number, task.start + place, [item])
                for place, item in enumerate(task.items)
            ]
            self.waiting.extendleft(reversed(alone))
        else:
            failure = Failure("grade", "died", f"{deaths} processes died of it: {line(error)}")
            self.done[task.number][task.start] = self.lost(task.items[0], failure)
