"""Work in Ray's processes, on this machine or on every machine of a cluster.

The driver, the process that runs the command, reads the input and alone writes the output. A
chunk of items goes to a free process, and its results come back to the driver in the input's
order, so no row is lost or written twice when a process dies.

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
# with Ray's own niceness of 15, processes starve beside other work on the machine
OWN = {**PRIVATE, "RAY_worker_niceness": "0"}
AHEAD = 2  # chunks for each process that are read before their results are written
TRIES = 2  # deaths by a chunk before its items are tried one by one, and by an item before it fails
STRIKES = 8  # deaths in a row, for each process, before the work stops
AGAIN = "run the same command again: it goes on with what is written"

Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[list[Item]], list[Result]]  # items -> a result for each, in the same order


@dataclass(frozen=True)
class Actors:
    """How many processes, each with one CPU, and the cluster's HOST:PORT; None starts Ray here,
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
        where = {"address": "local", "num_cpus": actors.count, "include_dashboard": False}
        where["_node_ip_address"] = LOOPBACK
        if (listening := ray.util.get_node_ip_address()) != LOOPBACK:
            wanted = " ".join(f"{name}={value}" for name, value in PRIVATE.items())
            raise WorkbenchError(
                f"Ray, imported earlier, would listen at {listening}: set {wanted} before, or use a"
                " new process"
            )
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(log_to_driver=False, logging_level="error", **where)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise WorkbenchError(
            f"cannot start Ray or join its cluster at {actors.address} ({_line(error)}): its logs"
            " say more; without it the work is done here"
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_sigterm)  # Ray's own would end the process within a row


@dataclass
class _Task(Generic[Item]):
    """Items of the chunk `number` from `start` on, and how many processes died of them."""

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

    `make` is called once in each process and returns the function that works on a chunk. The
    chunk of a process that dies is tried again. After two deaths its items are tried one by one;
    `lost` makes the result of an item that two more processes die of.

    Raises:
        WorkbenchError: no such cluster, or too small a one; every process dies. Exceptions of
        the work are raised as they are.
    """
    remaining = iter(chunks)
    if (first := next(remaining, None)) is None:
        return
    with started(actors):
        yield from _map(actors.count, make, lost, itertools.chain([first], remaining))


@cache
def _made(pickled: bytes) -> Work[Any, Any]:
    from ray import cloudpickle

    make: Callable[[], Work[Any, Any]] = cloudpickle.loads(pickled)
    return make()


def work_on_chunk(pickled: bytes, items: list[Any]) -> list[Any]:
    """The task of one of Ray's processes, which makes its function with its first chunk."""
    return _made(pickled)(items)


def _again(task: _Task[Item]) -> list[_Task[Item]]:
    """What to try after another death: the task, or each of its items alone; for an item that
    processes keep dying of, nothing.
    """
    task.deaths += 1
    if task.deaths < TRIES:
        return [task]
    if len(task.items) == 1:
        return []
    return [_Task(task.number, place, [item]) for place, item in enumerate(task.items)]


def _map(
    count: int,
    make: Callable[[], Work[Item, Result]],
    lost: Callable[[Item, Failure], Result],
    chunks: Iterable[list[Item]],
) -> Iterator[list[Result]]:
    """Send at most `count` tasks at a time, each to a process of its own."""
    import ray

    # retries are counted here: Ray itself repeats a task that runs out of memory without end
    options = {"num_cpus": 1, "max_retries": 0, "scheduling_strategy": "SPREAD"}
    send, pickled = ray.remote(**options)(work_on_chunk).remote, ray.cloudpickle.dumps(make)
    numbered, turn, strikes = enumerate(chunks), 0, 0
    waiting: deque[_Task[Item]] = deque()
    running: dict[Any, _Task[Item]] = {}
    results: dict[int, list[Any]] = {}  # by chunk, with None for an open item
    try:
        while True:
            while len(results) < AHEAD * count and (entry := next(numbered, None)):
                results[entry[0]] = [None] * len(entry[1])
                waiting.append(_Task(entry[0], 0, entry[1]))
            if not results:
                return
            while waiting and len(running) < count:
                task = waiting.popleft()
                running[send(pickled, task.items)] = task
            [answer], _ = ray.wait(list(running), num_returns=1)
            task = running.pop(answer)
            try:
                found = ray.get(answer)
            except ray.exceptions.RayTaskError as error:  # raised by the work itself
                raise error.cause from None
            except ray.exceptions.RayError as error:  # the process or its machine has gone
                strikes += 1
                if strikes > STRIKES * count:
                    raise WorkbenchError(
                        f"{strikes} of Ray's processes died one after another, the last so:"
                        f" {_line(error)}; {AGAIN}"
                    ) from None
                if again := _again(task):
                    waiting.extendleft(reversed(again))
                    continue
                message = f"{task.deaths} processes died of it: {_line(error)}"
                found = [lost(task.items[0], Failure("grade", "died", message))]
            else:
                strikes = 0
            assert len(found) == len(task.items), (len(found), len(task.items))
            results[task.number][task.start : task.start + len(found)] = found
            while turn in results and None not in results[turn]:
                yield results.pop(turn)
                turn += 1
    finally:
        for answer in running:
            with suppress(Exception):  # Ray itself may have gone
                ray.cancel(answer, force=True)
