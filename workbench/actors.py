"""Work in Ray's actors: processes on this machine, or on every machine of a cluster.

The driver, the process that runs the command, reads the input and alone writes the output. A
chunk of items goes to a free actor, and its results come back to the driver in the input's order,
so no row is lost or written twice when an actor dies.

This is Ray's core and not Ray Data (2.60): there an item that kills its process is tried again
without end, or aborts the whole dataset, and all input is in the object store before the first
result.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from workbench.types import Failure, WorkbenchError

LOOPBACK = "127.0.0.1"
TIMEOUT = 5.0  # seconds within which a cluster has to accept a connection
# Read as Ray is imported and started. The third name is misleading: on any system it decides
# between 127.0.0.1 and all interfaces.
PRIVATE = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}
# with Ray's own niceness of 15, actors starve beside other work on the machine
OWN = {**PRIVATE, "RAY_worker_niceness": "0"}
AHEAD = 2  # chunks for each actor that are read before their results are written
TRIES = 2  # deaths by a chunk before its items are tried one by one, and by an item before it fails
STRIKES = 8  # deaths in a row, for each actor, before the work stops
AGAIN = "run the same command again: it goes on with what is written"

Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[list[Item]], list[Result]]  # items -> a result for each, in the same order


@dataclass(frozen=True)
class Actors:
    """How many actors, each with one CPU, and the cluster's HOST:PORT; None starts Ray here,
    where it listens at 127.0.0.1 alone.
    """

    count: int
    address: str | None = None

    def check(self) -> None:
        """Raise a WorkbenchError, before anything is started, where there cannot be so many."""
        if self.count < 1:
            raise WorkbenchError(f"--actors has to be at least 1, not {self.count}")
        if importlib.util.find_spec("ray") is None:
            raise WorkbenchError(
                "Ray's actors need the package ray: `pip install -e '.[ray]'` in a clone, or `pip"
                " install ray==2.60.0`; or leave --actors and --engine ray out"
            )
        if self.address is not None:
            _check_listening(self.address)


def actors_of(count: int | None, address: str | None) -> Actors | None:
    """The actors of the options --actors and --address; None where they are not given."""
    if count is None and address is not None:
        raise WorkbenchError(
            "--address is that of the Ray cluster of --actors: say how many with --actors N, or"
            " leave it out"
        )
    return None if count is None else Actors(count, address)


def _check_listening(address: str) -> None:
    """Raise a WorkbenchError where nothing listens: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), TIMEOUT).close()
    except (OSError, ValueError, OverflowError) as error:
        raise WorkbenchError(
            f"no Ray cluster at '{address}' ({_line(error)}): write --address HOST:PORT of one that"
            " `ray start --head` started"
        ) from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


@contextmanager
def started(actors: Actors) -> Iterator[None]:
    """Ray at an address, on this machine alone, or as this process is connected to it already."""
    os.environ.update({"RAY_ENABLE_AUTO_CONNECT": "0"} | ({} if actors.address else OWN))
    import ray

    connected = ray.is_initialized()
    if connected and actors.address:
        raise WorkbenchError(
            "this process is connected to a Ray cluster already: leave --address out, or call"
            " ray.shutdown()"
        )
    try:
        if not connected:
            _connect(ray, actors)
        if (cpus := int(ray.cluster_resources().get("CPU", 0))) < actors.count:
            raise WorkbenchError(
                f"the Ray cluster has {cpus} CPUs, one for an actor: lower --actors, or add"
                " machines"
            )
        yield
    except ray.exceptions.RayError as error:
        raise WorkbenchError(f"Ray has failed ({_line(error)}): {AGAIN}") from error
    finally:
        if not connected:
            ray.shutdown()


def _connect(ray: Any, actors: Actors) -> None:
    where: dict[str, Any] = {"address": actors.address}
    if not actors.address:
        if (listening := ray.util.get_node_ip_address()) != LOOPBACK:
            wanted = " ".join(f"{name}={value}" for name, value in PRIVATE.items())
            raise WorkbenchError(
                f"Ray, imported earlier, would listen at {listening}: set {wanted} before, or use a"
                " new process"
            )
        where = {"address": "local", "num_cpus": actors.count, "include_dashboard": False}
        where["_node_ip_address"] = LOOPBACK
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(log_to_driver=False, logging_level="error", **where)
    except (ConnectionError, RuntimeError, ValueError) as error:
        what = f"join the Ray cluster at {actors.address}" if actors.address else "start Ray"
        raise WorkbenchError(
            f"cannot {what} ({_line(error)}): its logs say more; without it the work is done here"
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_sigterm)  # Ray's own would end the process within a row


class _Worker:
    """An actor. Its work is made with the first chunk, so that an error there is a chunk's."""

    def __init__(self, make: Callable[[], Work[Any, Any]]) -> None:
        self.work = cache(make)

    def ready(self) -> None:
        """Called first: it returns once there is a process."""

    def do(self, items: list[Any]) -> list[Any]:
        return self.work()(items)


@dataclass
class _Task(Generic[Item]):
    """Items of the chunk `number` from `start` on, and how many actors died of them."""

    number: int
    start: int
    items: list[Item]
    deaths: int = 0


def map_chunks(
    actors: Actors,
    make: Callable[[], Work[Item, Result]],
    lost: Callable[[Item, Failure], Result],
    chunks: Iterable[list[Item]],
) -> Iterator[list[Result]]:
    """The results of chunks, in order. Ray is started with the first chunk and ended after the
    last.

    `make` is called once in each actor and returns the function that works on a chunk. An actor
    that dies is replaced, and its chunk is tried again. After two deaths its items are tried one
    by one; `lost` makes the result of an item that two more actors die of.

    Raises:
        WorkbenchError: no such cluster, or too small a one; every actor dies. Exceptions of the
        work are raised as they are.
    """
    remaining = iter(chunks)
    if (first := next(remaining, None)) is None:
        return
    with started(actors):
        yield from _Pool(actors.count, make, lost).map(itertools.chain([first], remaining))


class _Pool(Generic[Item, Result]):
    """Actors with one task each, so that an actor can die of no other task."""

    def __init__(
        self,
        count: int,
        make: Callable[[], Work[Item, Result]],
        lost: Callable[[Item, Failure], Result],
    ) -> None:
        import ray

        self.ray, self.count, self.make, self.lost = ray, count, ray.put(make), lost
        self.strikes = 0  # deaths since any work was done
        self.free: list[Any] = []
        self.waiting: deque[_Task[Item]] = deque()
        self.running: dict[Any, tuple[Any, _Task[Item] | None]] = {}  # None: an actor that starts
        self.results: dict[int, list[Any]] = {}  # by chunk, with None for an open item

    def map(self, chunks: Iterable[list[Item]]) -> Iterator[list[Result]]:
        numbered, turn = enumerate(chunks), 0
        try:
            for _ in range(self.count):
                self._start()
            while self._assign(numbered):
                self._collect()
                while turn in self.results and None not in self.results[turn]:
                    yield self.results.pop(turn)
                    turn += 1
        finally:
            self._end(*self.free, *(actor for actor, _ in self.running.values()))

    def _assign(self, numbered: Iterator[tuple[int, list[Item]]]) -> bool:
        """Give free actors their next tasks; return whether any work is left."""
        while len(self.results) < AHEAD * self.count and (entry := next(numbered, None)):
            number, items = entry
            self.results[number] = [None] * len(items)
            self.waiting.append(_Task(number, 0, items))
        while self.free and self.waiting:
            actor, task = self.free.pop(), self.waiting.popleft()
            self.running[actor.do.remote(task.items)] = actor, task
        return bool(self.results)

    def _start(self) -> None:
        """Start an actor. It gets no task before it is ready: there may be no CPU for it now."""
        options = {"num_cpus": 1, "scheduling_strategy": "SPREAD"}
        actor = self.ray.remote(_Worker).options(**options).remote(self.make)
        self.running[actor.ready.remote()] = actor, None

    def _end(self, *actors: Any) -> None:
        for actor in actors:
            with suppress(Exception):  # it is dead, or Ray is
                self.ray.kill(actor)

    def _collect(self) -> None:
        """Wait until an actor is ready, has done its task, or has died."""
        [answer], _ = self.ray.wait(list(self.running), num_returns=1)
        actor, task = self.running.pop(answer)
        try:
            results = self.ray.get(answer)
        except self.ray.exceptions.RayTaskError as error:  # raised by the work itself
            self._end(actor)
            raise error.cause from None
        except self.ray.exceptions.RayError as error:  # the process or its machine has gone
            self._end(actor)
            self._died(task, _line(error))
            self._start()
            return
        self.free.append(actor)
        if task:
            assert len(results) == len(task.items), (len(results), len(task.items))
            self.strikes = 0
            self.results[task.number][task.start : task.start + len(results)] = results

    def _died(self, task: _Task[Item] | None, reason: str) -> None:
        """Try a task again, then item by item; the item that actors keep dying of is lost."""
        self.strikes += 1
        if self.strikes > STRIKES * self.count:
            raise WorkbenchError(
                f"{self.strikes} of Ray's actors died one after another, the last so: {reason};"
                f" {AGAIN}"
            )
        if task is None:
            return
        task.deaths += 1
        if task.deaths < TRIES:
            self.waiting.appendleft(task)
        elif len(task.items) > 1:
            alone = [
                _Task(task.number, task.start + at, [one]) for at, one in enumerate(task.items)
            ]
            self.waiting.extendleft(reversed(alone))
        else:
            failure = Failure("grade", "died", f"{task.deaths} processes died of it: {reason}")
            self.results[task.number][task.start] = self.lost(task.items[0], failure)
