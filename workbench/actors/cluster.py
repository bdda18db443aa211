"""Ray itself: found, started, joined and ended."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from workbench.types import WorkbenchError

RAY = "needs the package ray: `pip install -e '.[ray]'` in a clone, or `pip install ray==2.60.0`"
FOUND = 5.0  # seconds within which a cluster has to be there
LOOPBACK = "127.0.0.1"
# Read as Ray is imported and started. The third name is misleading: on any system it decides
# between 127.0.0.1 and all interfaces. Actors would have a niceness of 15, with which other work on
# the machine hardly lets them run at all.
PRIVATE = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}
OWN = {**PRIVATE, "RAY_worker_niceness": "0"}
AGAIN = (
    "run the same command again: it goes on with what is written, and asks for no reply that is in"
    " the judge's cache"
)


@dataclass(frozen=True)
class Actors:
    """How many there are to be, each with one CPU, and the cluster's HOST:PORT; None for one
    that is started here, where it listens at 127.0.0.1 alone."""

    count: int
    address: str | None = None


def actors_of(count: int | None, address: str | None) -> Actors | None:
    """The actors that options ask for; None where they ask for none.

    Raises:
        WorkbenchError: a cluster without a number of actors.
    """
    if count is None and address is not None:
        raise WorkbenchError(
            "--address is that of the Ray cluster of --actors: say how many with --actors N, or"
            " leave it out"
        )
    return None if count is None else Actors(count, address)


def check(actors: Actors) -> None:
    """Raise a WorkbenchError, before anything is started, for actors that there cannot be."""
    if actors.count < 1:
        raise WorkbenchError(f"--actors has to be at least 1, not {actors.count}")
    check_address(actors.address)
    if importlib.util.find_spec("ray") is None:
        raise WorkbenchError(f"--actors {RAY}; or leave it out")
    if actors.address:
        find(actors.address)
    elif actors.count > (cpus := os.cpu_count() or 1) and not _connected():
        raise WorkbenchError(
            f"this machine has {cpus} CPUs, one for an actor: lower --actors, or join a cluster by"
            " --address"
        )


def check_address(address: str | None) -> None:
    """Raise a WorkbenchError for the address of a client, which is not that of a cluster."""
    if "://" in (address or ""):
        raise WorkbenchError(
            f"--address {address}: write HOST:PORT, on a machine that has joined the cluster with"
            " `ray start --address`"
        )


def _connected() -> bool:
    """Whether this process has connected itself to a cluster, whatever that has."""
    return "ray" in sys.modules and bool(sys.modules["ray"].is_initialized())


def find(address: str) -> None:
    """Raise a WorkbenchError where nothing listens: Ray would look for it for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), FOUND).close()
    except (OSError, ValueError, OverflowError) as error:
        raise WorkbenchError(
            f"no Ray cluster at '{address}' ({line(error)}): write --address HOST:PORT of one that"
            " `ray start --head` started"
        ) from error


@contextmanager
def started(actors: Actors) -> Iterator[None]:
    """Ray at an address, on this machine alone, or as this process has connected itself, for the
    time of the work.
    """
    address = actors.address
    os.environ.update(
        {"RAY_ENABLE_AUTO_CONNECT": "0"} if address else {"RAY_ENABLE_AUTO_CONNECT": "0", **OWN}
    )
    import ray

    connected = ray.is_initialized()
    if connected and address:
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
        raise WorkbenchError(f"Ray has failed ({line(error)}): {AGAIN}") from error
    finally:
        if not connected:
            ray.shutdown()


def _connect(ray: Any, actors: Actors) -> None:
    address = actors.address
    if not address and (where := ray.util.get_node_ip_address()) != LOOPBACK:
        wanted = " ".join(f"{name}={value}" for name, value in PRIVATE.items())
        raise WorkbenchError(
            f"Ray, imported earlier, would listen at {where}: set {wanted} before, or use a new"
            " process"
        )
    own = {
        "address": "local",
        "num_cpus": actors.count,
        "include_dashboard": False,
        "_node_ip_address": LOOPBACK,
    }
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(
            log_to_driver=False, logging_level="error", **({"address": address} if address else own)
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        what = f"join the Ray cluster at {address}" if address else "start Ray"
        raise WorkbenchError(
            f"cannot {what} ({line(error)}): its logs say more; without it the work is done here"
        ) from error
    if threading.current_thread() is threading.main_thread():
        # Ray's own would end the process in the midst of a row
        signal.signal(signal.SIGTERM, on_sigterm)


def line(error: Exception) -> str:
    """What an error says, on one line that is not long."""
    return " ".join(str(error).split())[:300] or type(error).__name__
