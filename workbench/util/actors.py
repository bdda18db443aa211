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
# Ray reads these variables when it is imported and started. The third name is misleading: on every
# system, "0" makes Ray listen on 127.0.0.1 and "1" on all interfaces.
PRIVATE = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}
# Ray's default niceness of 15 starves its workers when other programs use the machine
OWN = {**PRIVATE, "RAY_worker_niceness": "0"}
AHEAD = 2  # chunks per process that are read before their results are written
# after this many process deaths on a chunk, its items run one by one; after this many on a single
# item, the item counts as failed
TRIES = 2
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


def actors_of(count: int | None, address: str | None) -> Actors | None:
    """Return the `Actors` for the command-line options --actors and --address.

    Args:
        count: value of --actors; None if the option is missing. Then the result is None, too.
        address: value of --address, or None.

    Raises:
        WorkbenchError: --address is given without --actors.
    """
    if count is None and address is not None:
        raise WorkbenchError(
            "--address names a Ray cluster but --actors is missing: add --actors N, or leave"
            " --address out"
        )
    return None if count is None else Actors(count, address)


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

    options: JsonObject = {"address": actors.address}
    if not actors.address:
        options = {"address": "local", "num_cpus": actors.count, "include_dashboard": False}
        options["_node_ip_address"] = LOOPBACK
        if (address := ray.util.get_node_ip_address()) != LOOPBACK:
            variables = " ".join(f"{name}={value}" for name, value in PRIVATE.items())
            raise WorkbenchError(
                f"Ray was imported earlier and would accept connections at {address}, not only from"
                f" this machine: set {variables} before the import, or use a new process"
            )
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(log_to_driver=False, logging_level="error", **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise WorkbenchError(
            f"cannot start Ray or join its cluster at {actors.address} ({error_line(error)}):"
            " read Ray's logs, or leave --actors out to work in this process"
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


def map_chunks(
    actors: Actors,
    make: Callable[[], Work[Item, Result]],
    failed: Callable[[Item, Failure], Result],
    chunks: Iterable[list[Item]],
) -> Iterator[list[Result]]:
    """Process chunks of items in Ray workers; yield each chunk's list of results, in order.

    If a worker process dies, its chunk is sent again. After two deaths, the items of the chunk are
    sent one by one. If two more processes die on the same item, its result is `failed(item,
    failure)`.

    Args:
        actors: number of worker processes, and the cluster.
        make: returns the function that processes a chunk; called once in each worker process.
        failed: returns the result of an item that could not be processed.
        chunks: lists of items. Up to `AHEAD` chunks per worker are read before their results are
            yielded.

    Raises:
        WorkbenchError: the cluster cannot be reached or is too small, or too many processes die in
            a row. Exceptions of the processing function are raised unchanged.
    """
    remaining = iter(chunks)
    if (first := next(remaining, None)) is None:
        return
    with ray_session(actors):
        yield from _map(actors.count, make, failed, itertools.chain([first], remaining))


@cache
def _make_once(pickled: bytes) -> Work[object, object]:
    from ray import cloudpickle

    make: Callable[[], Work[object, object]] = cloudpickle.loads(pickled)
    return make()


def work_on_chunk(pickled: bytes, items: list[object]) -> list[object]:
    """Process one chunk in a Ray process, and return a result for each item.

    Args:
        pickled: the pickled argument `make` of `map_chunks`. Each process calls `make` only once.
    """
    # at the top level of the module, because Ray pickles this function by reference
    return _make_once(pickled)(items)


def _retries(task: _Task[Item]) -> list[_Task[Item]]:
    """Count one more death of a task's process, and return the tasks that replace the task.

    * After the first death: the same task.
    * After the second death of a chunk: one task for each item.
    * After the second death of a single item: no task.
    """
    task.deaths += 1
    if task.deaths < TRIES:
        return [task]
    if len(task.items) == 1:
        return []
    return [_Task(task.number, i, [item]) for i, item in enumerate(task.items)]


def _map(
    count: int,
    make: Callable[[], Work[Item, Result]],
    failed: Callable[[Item, Failure], Result],
    chunks: Iterable[list[Item]],
) -> Iterator[list[Result]]:
    """Yield the results of each chunk, in order, in a running Ray session; see `map_chunks`.

    At most `count` tasks run at a time, each in its own process.
    """
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
            while len(results) < AHEAD * count and (entry := next(numbered, None)):
                results[entry[0]] = [None] * len(entry[1])
                waiting.append(_Task(entry[0], 0, entry[1]))
            if not results:
                return
            while waiting and len(running) < count:
                task = waiting.popleft()
                running[send(pickled, task.items)] = task
            [reference], _ = ray.wait(list(running), num_returns=1)
            task = running.pop(reference)
            try:
                outputs = ray.get(reference)
            except ray.exceptions.RayTaskError as error:  # raised by the work itself
                raise error.cause from None
            except ray.exceptions.RayError as error:  # the process or its machine died
                strikes += 1
                if strikes > STRIKES * count:
                    raise WorkbenchError(
                        f"{strikes} Ray processes died in a row, the last with {error_line(error)};"
                        f" {AGAIN}"
                    ) from None
                if retries := _retries(task):
                    waiting.extendleft(reversed(retries))  # first, so that results stay in order
                    continue
                message = (
                    f"{task.deaths} processes died while grading this item: {error_line(error)}"
                )
                outputs = [failed(task.items[0], Failure("grade", "died", message))]
            else:
                strikes = 0
            assert len(outputs) == len(task.items), (len(outputs), len(task.items))
            results[task.number][task.start : task.start + len(outputs)] = outputs
            while turn in results and None not in results[turn]:
                yield results.pop(turn)
                turn += 1
    finally:
        for reference in running:
            with suppress(Exception):  # Ray itself may have ended
                ray.cancel(reference, force=True)
