"""Map a function over chunks of items in Ray worker processes, locally or on a cluster.

Only the driver (the process that runs the command) reads the input and writes the output. It sends
each chunk to a free worker, and returns the results in the order of the input. If a worker dies, no
row is lost or written twice.

The module uses Ray Core. Ray Data (2.60) is not suitable: if an item kills its worker, Ray Data
either retries it forever or aborts the whole data set.
"""

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

from workbench.types import Failure, JsonObject, WorkbenchError
from workbench.util.failures import error_line

LOOPBACK = "127.0.0.1"
TIMEOUT = 5.0  # seconds to wait until a cluster accepts a connection
OWN = {  # Ray reads these variables when it is imported and started on this machine
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    # a misleading name: on every system, "0" is to listen on 127.0.0.1, "1" on all interfaces
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    # Ray's default of 15 starves its workers when other programs use the machine
    "RAY_worker_niceness": "0",
}
AHEAD = 2  # chunks per process that are read before their results are written
TRIES = 2  # times that a chunk runs if its process dies, and then each of its items
STRIKES = 8  # the work stops after more successive deaths than this times the number of processes
AGAIN = "run the same command again to resume after the rows that are already written"

Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[list[Item]], list[Result]]  # items -> a result for each, in the same order


@dataclass(frozen=True)
class Actors:
    """Number of Ray worker processes, and the cluster that runs them.

    Attributes:
        count: number of processes, each with one CPU.
        address: HOST:PORT of a cluster; None starts Ray on this machine, on 127.0.0.1 only.
    """

    count: int
    address: str | None = None

    def check(self) -> None:
        """Check that Ray can be used with these settings. Call this method before a long job.

        Raises:
            WorkbenchError: `count` is below 1, Ray is not installed, or no server listens at
                `address`.
        """
        if self.count < 1:
            raise WorkbenchError(f"--actors must be at least 1 (got {self.count})")
        if importlib.util.find_spec("ray") is None:
            raise WorkbenchError(
                "Ray's actors need the package ray: `pip install -e '.[ray]'` in a clone, or `pip"
                " install ray==2.60.0`; or leave out --actors and --engine ray"
            )
        if self.address is None:
            return
        host, _, port = self.address.rpartition(":")
        try:  # without this check, Ray would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), TIMEOUT).close()
        except (OSError, ValueError, OverflowError) as error:
            raise WorkbenchError(
                f"no Ray cluster at '{self.address}' ({error_line(error)}): start one with"
                " `ray start --head` and pass its --address HOST:PORT"
            ) from error


@contextmanager
def ray_session(actors: Actors) -> Iterator[None]:
    """Context manager that starts Ray or joins a cluster, and disconnects at the end.

    If this process is already connected to Ray, the connection is used and left open.

    Raises:
        WorkbenchError: Ray cannot be started or joined, has too few CPUs, or fails in the block.
            Also if the process is connected already and `actors` has an address.
    """
    os.environ.update({"RAY_ENABLE_AUTO_CONNECT": "0"} | ({} if actors.address else OWN))
    import ray

    connected = ray.is_initialized()
    if connected and actors.address:
        raise WorkbenchError(
            "this process is already connected to a Ray cluster: leave --address out, or call"
            " ray.shutdown()"
        )
    try:
        if not connected:
            _connect(actors)
        if (cpus := int(ray.cluster_resources().get("CPU", 0))) < actors.count:
            raise WorkbenchError(
                f"the Ray cluster has {cpus} CPUs and {actors.count} actors need one each: lower"
                " --actors, or add machines"
            )
        yield
    except ray.exceptions.RayError as error:
        raise WorkbenchError(f"Ray failed ({error_line(error)}): {AGAIN}") from error
    finally:
        if not connected:
            ray.shutdown()


def _connect(actors: Actors) -> None:
    import ray

    options: JsonObject = {"address": actors.address or "local"}
    if not actors.address:
        options |= {"num_cpus": actors.count, "include_dashboard": False}
        options["_node_ip_address"] = LOOPBACK
        if (address := ray.util.get_node_ip_address()) != LOOPBACK:
            variables = " ".join(f"{name}={value}" for name, value in OWN.items())
            raise WorkbenchError(
                f"Ray was imported earlier and would accept connections at {address}, not only from"
                f" this machine: set {variables} before the import, or use a new process"
            )
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(log_to_driver=False, logging_level="error", **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise WorkbenchError(
            f"cannot {'join Ray at ' + actors.address if actors.address else 'start Ray'}"
            f" ({error_line(error)}): read Ray's logs, or leave --actors out to use this process"
        ) from error
    if threading.current_thread() is threading.main_thread():
        # Ray's handler would end the process in the middle of a row
        signal.signal(signal.SIGTERM, on_sigterm)


@dataclass
class _Task(Generic[Item]):
    """A chunk, or one item of it, to run in one process."""

    number: int  # of the chunk
    start: int  # position of the first item in the chunk
    items: list[Item]
    deaths: int = 0  # of processes that ran this task


@cache
def _make_once(pickled: bytes) -> Work[Any, Any]:
    from ray import cloudpickle

    work: Work[Any, Any] = cloudpickle.loads(pickled)()
    return work


def work_on_chunk(pickled: bytes, items: list[Any]) -> list[Any]:
    """Process a chunk of items in a Ray process; return one result per item.

    `pickled` is a pickled function that returns the processing function (`make` of `map_chunks`).
    """
    # at the top level of the module, because Ray pickles this function by reference
    return _make_once(pickled)(items)


def map_chunks(
    actors: Actors,
    make: Callable[[], Work[Item, Result]],
    failed: Callable[[Item, Failure], Result],
    chunks: Iterable[list[Item]],
) -> Iterator[list[Result]]:
    """Process chunks of items in Ray workers; yield each chunk's list of results, in order.

    If a worker process dies, its chunk is sent to another process. If this process dies too, the
    items of the chunk are sent one by one. An item on which two more processes die gets the result
    `failed(item, failure)`.

    Args:
        actors: number of worker processes, and the cluster. Without chunks, Ray is not started.
        make: returns the function that processes a chunk; called once in each worker process.
        failed: returns the result of an item that could not be processed.
        chunks: lists of items. They are read lazily: at most two (`AHEAD`) per worker are read
            before their results are yielded.

    Raises:
        WorkbenchError: the cluster cannot be reached or is too small, or too many processes die in
            a row. Exceptions of the processing function are raised unchanged.
    """
    remaining = iter(chunks)
    if (first := next(remaining, None)) is None:
        return
    with ray_session(actors):
        yield from _map(actors.count, make, failed, itertools.chain([first], remaining))


def _map(
    count: int,
    make: Callable[[], Work[Item, Result]],
    failed: Callable[[Item, Failure], Result],
    chunks: Iterable[list[Item]],
) -> Iterator[list[Result]]:
    """Process chunks in a running Ray session, at most `count` at a time; see `map_chunks`."""
    import ray

    # no retries by Ray: it would repeat a task that runs out of memory forever
    options = {"num_cpus": 1, "max_retries": 0, "scheduling_strategy": "SPREAD"}
    send, pickled = ray.remote(**options)(work_on_chunk).remote, ray.cloudpickle.dumps(make)
    numbered, turn, strikes = enumerate(chunks), 0, 0  # `turn`: the next chunk to yield
    waiting: deque[_Task[Item]] = deque()
    running: dict[ray.ObjectRef, _Task[Item]] = {}
    results: dict[int, list[Any]] = {}  # by chunk; None for an item without a result yet
    try:
        while True:
            for number, items in itertools.islice(numbered, AHEAD * count - len(results)):
                results[number] = [None] * len(items)
                waiting.append(_Task(number, 0, items))
            if not results:
                return
            while waiting and len(running) < count:
                task = waiting.popleft()
                running[send(pickled, task.items)] = task
            [reference], _ = ray.wait(list(running), num_returns=1)
            task = running.pop(reference)
            try:
                outputs, strikes = ray.get(reference), 0
            except ray.exceptions.RayTaskError as error:  # raised by the work itself
                raise error.cause from None
            except ray.exceptions.RayError as error:  # the process or its machine died
                strikes, task.deaths = strikes + 1, task.deaths + 1
                reason = error_line(error)
                if strikes > STRIKES * count:
                    raise WorkbenchError(
                        f"{strikes} Ray processes died in a row, the last with {reason}; {AGAIN}"
                    ) from None
                # again before other tasks, so that results stay in order
                if task.deaths < TRIES:
                    waiting.appendleft(task)
                    continue
                if len(task.items) > 1:
                    single = [_Task(task.number, i, [item]) for i, item in enumerate(task.items)]
                    waiting.extendleft(reversed(single))
                    continue
                message = f"{task.deaths} processes died while grading this item: {reason}"
                outputs = [failed(task.items[0], Failure("grade", "died", message))]
            assert len(outputs) == len(task.items), (len(outputs), len(task.items))
            results[task.number][task.start : task.start + len(outputs)] = outputs
            while turn in results and None not in results[turn]:
                yield results.pop(turn)
                turn += 1
    finally:
        for reference in running:
            with suppress(Exception):  # Ray itself may have ended
                ray.cancel(reference, force=True)
