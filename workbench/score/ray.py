"""Score chunks of rows in Ray's actors: processes of this machine, or of every machine of a cluster.

The driver, the process that was asked to score, keeps what there is one of: input and output, the judge with its key and its
cache, the evidence. Actors grade. A chunk goes to one that is free, is scored there by the function that a thread of the driver
would call, and comes back to be written by the driver alone, in the input's order: whoever dies, no row is there twice. What an
actor asks of the judge or of the evidence is answered by the driver, so that a prompt is paid once, whoever asks it, and what
was paid for an actor that has died is in the cache.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from workbench.recipes import reward_fns
from workbench.score import setup
from workbench.score.desk import Asked, answered, end
from workbench.score.rows import Item
from workbench.score.run import Engine, Plan, Scored, given_up, scoring
from workbench.score.setup import Options
from workbench.types import Failure, WorkbenchError

AHEAD = 2  # chunks for each actor that are taken from the input before their turn to be written has come
TRIES = 2  # how often actors may die of a chunk before its rows are scored one by one, and of a row before that has failed
STRIKES = 8  # how many actors, for each that there is to be, may die in a row before anything is scored
FOUND = 5.0  # seconds within which a cluster has to be there
LOOPBACK = "127.0.0.1"
# Read as Ray is imported and started. The third name is misleading: on any system it decides between 127.0.0.1 and all
# interfaces. Actors would have a niceness of 15, with which other work on the machine hardly lets them run at all.
PRIVATE = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
OWN = {**PRIVATE, "RAY_worker_niceness": "0"}
AGAIN = "run the same command again: it goes on with what is written, and asks for no reply that is in the judge's cache"


def there(options: Options, plan: Plan) -> Engine:
    """Chunks are scored by Ray's actors. Nothing is started before there is a chunk; nothing is left running after the last.

    Raises:
        WorkbenchError: there is no such cluster, or it is too small; actors die of whatever they are given.
    """
    if options.address:
        _find(options.address)
    # Actors only ask the driver: an address may have a password in it, and is not sent to them.
    told = replace(options, judge="http://driver", api_key_env=None) if options.remote else options

    def engine(chunks: Iterable[list[Item]]) -> Iterator[Scored]:
        waiting = iter(chunks)
        if (first := next(waiting, None)) is None:
            return
        with _cluster(options.at_a_time, options.address), answered(plan) as asked:
            make = partial(_scoring, told, plan.checks is not None, asked)
            yield from _Pool(make, options.at_a_time, plan).map(itertools.chain([first], waiting))

    return engine


def _find(address: str) -> None:
    """Raise a WorkbenchError where nothing listens: Ray would look for it for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), FOUND).close()
    except (OSError, ValueError, OverflowError) as error:
        raise WorkbenchError(
            f"no Ray cluster at '{address}' ({_line(error)}): write --address HOST:PORT of one that `ray start --head` started"
        ) from error


def _scoring(options: Options, judged: bool, asked: Mapping[str, Asked]) -> Callable[[list[Item]], Scored]:
    """In an actor: what scores a chunk, made of the options as the driver makes it, but for whom it asks."""
    configs = setup.methods(options)
    if not judged:
        return scoring(Plan(reward_fns(configs)))
    checks = setup.checks_of(options, asked.get("search"), asked.get("judge"))
    return scoring(setup.plan(options, configs, checks)[1])


@contextmanager
def _cluster(actors: int, address: str | None) -> Iterator[None]:
    """Ray at an address, on this machine alone, or as this process has connected itself, for the time of the work."""
    os.environ.update({"RAY_ENABLE_AUTO_CONNECT": "0"} if address else {"RAY_ENABLE_AUTO_CONNECT": "0", **OWN})
    import ray

    connected = ray.is_initialized()
    if connected and address:
        raise WorkbenchError("this process is connected to a Ray cluster already: leave --address out, or call ray.shutdown()")
    try:
        if not connected:
            _connect(ray, actors, address)
        if (cpus := int(ray.cluster_resources().get("CPU", 0))) < actors:
            raise WorkbenchError(f"the Ray cluster has {cpus} CPUs, one for an actor: lower --actors, or add machines")
        yield
    except ray.exceptions.RayError as error:
        raise WorkbenchError(f"Ray has failed ({_line(error)}): {AGAIN}") from error
    finally:
        if not connected:
            ray.shutdown()


def _connect(ray: Any, actors: int, address: str | None) -> None:
    if not address and (where := ray.util.get_node_ip_address()) != LOOPBACK:
        wanted = " ".join(f"{name}={value}" for name, value in PRIVATE.items())
        raise WorkbenchError(f"Ray, imported earlier, would listen at {where}: set {wanted} before, or use a new process")
    own = {"address": "local", "num_cpus": actors, "include_dashboard": False, "_node_ip_address": LOOPBACK}
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(log_to_driver=False, logging_level="error", **({"address": address} if address else own))
    except (ConnectionError, RuntimeError, ValueError) as error:
        what = f"join the Ray cluster at {address}" if address else "start Ray"
        raise WorkbenchError(f"cannot {what} ({_line(error)}): its logs say more, and --engine local needs none") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_sigterm)  # Ray's own would end the process in the midst of a row


class Grader:
    """An actor that scores chunks, and dies with what it was given at worst."""

    def __init__(self, make: Callable[[], Callable[[list[Item]], Scored]]) -> None:
        self.make = make

    @cached_property
    def work(self) -> Callable[[list[Item]], Scored]:
        return self.make()  # not as the actor is made: what it raises is then told as what any chunk raises

    def ready(self) -> None:
        """Called first: it is answered once there is a process."""

    def score(self, items: list[Item]) -> Scored:
        return self.work(items)


@dataclass(frozen=True)
class _Task:
    """Rows that are scored together: those of the chunk `number`, from the row `start` on. `deaths` of actors came of it."""

    number: int
    start: int
    items: list[Item]
    deaths: int = 0


@dataclass
class _Pool:
    """Actors that score chunks; who dies is replaced. An actor has one task at a time, so that it can die of no other."""

    make: Callable[[], Callable[[list[Item]], Scored]]
    actors: int
    plan: Plan
    strikes: int = 0  # actors that died since anything was scored
    free: list[Any] = field(default_factory=list)
    waiting: deque[_Task] = field(default_factory=deque)
    running: dict[Any, tuple[Any, _Task | None]] = field(default_factory=dict)  # by result; of an actor that begins, no task
    done: dict[int, list[Any]] = field(default_factory=dict)  # by chunk: its rows as far as they are scored, else None

    def map(self, chunks: Iterator[list[Item]]) -> Iterator[Scored]:
        """The chunks scored, in order; `AHEAD` for each actor are taken before their turn has come."""
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
        """Have an actor made. It gets nothing to do before it is there, since there may be no room for it now."""
        actor = ray.remote(Grader).options(num_cpus=1, scheduling_strategy="SPREAD").remote(self.make)
        self.running[actor.ready.remote()] = actor, None

    def _takes_on(self, numbered: Iterator[tuple[int, list[Item]]]) -> bool:
        """Give free actors something to do; whether there is anything left."""
        while len(self.done) < AHEAD * self.actors and (entry := next(numbered, None)):
            number, items = entry
            self.done[number] = [None] * len(items)
            self.waiting.append(_Task(number, 0, items))
        while self.free and self.waiting:
            actor, task = self.free.pop(), self.waiting.popleft()
            self.running[actor.score.remote(task.items)] = actor, task
        return bool(self.done)

    def _collect(self, ray: Any) -> None:
        """Wait until an actor is there, or has done its task or died of it."""
        for result in ray.wait(list(self.running), num_returns=1)[0]:
            actor, task = self.running.pop(result)
            try:
                scored = ray.get(result)
            except ray.exceptions.RayTaskError as error:  # raised by what scores, as it would have been here
                raise error.cause from None
            except ray.exceptions.RayError as error:  # its process or its machine has gone
                end(ray, [actor])
                self._died(task, error)
                self._hire(ray)
            else:
                self._note(task, scored)
                self.free.append(actor)

    def _note(self, task: _Task | None, scored: Sequence[Any]) -> None:
        if task:
            self.strikes = 0
            self.done[task.number][task.start : task.start + len(scored)] = scored

    def _died(self, task: _Task | None, error: Exception) -> None:
        """Try a task again, at last row by row; of a row that actors keep dying of, make a failure."""
        self.strikes += 1
        if self.strikes > STRIKES * self.actors:
            raise WorkbenchError(f"{self.strikes} of Ray's actors died one after another, the last so: {_line(error)}; {AGAIN}")
        if not task:
            return
        if (deaths := task.deaths + 1) < TRIES:
            self.waiting.appendleft(_Task(task.number, task.start, task.items, deaths))
        elif len(task.items) > 1:
            rows = [_Task(task.number, task.start + place, [item]) for place, item in enumerate(task.items)]
            self.waiting.extendleft(reversed(rows))
        else:
            failure = Failure("grade", "died", f"{deaths} processes died of it: {_line(error)}")
            self.done[task.number][task.start] = given_up(task.items[0], failure, self.plan.rewards)


def _line(error: Exception) -> str:
    """What an error says, on one line that is not long."""
    return " ".join(str(error).split())[:300] or type(error).__name__
