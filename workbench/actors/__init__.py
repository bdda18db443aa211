"""Work in Ray's actors: processes of this machine, or of every machine of a cluster, that chunks
of items are given to.

The driver, the process that was asked to do the work, keeps what there is one of: input and
output, the judge with its key and its cache, the evidence. A chunk goes to an actor that is
free, is worked on there as it would be in the driver, and comes back to be written by the driver
alone, in the input's order: whoever dies, no row is there twice. What an actor asks of the judge
or of the evidence is answered by the driver, so that a prompt is paid once, whoever asks it, and
what was paid for an actor that has died is in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from workbench.actors.cluster import Actors, line, started
from workbench.actors.desk import Asked, answered
from workbench.actors.pool import Item, Pool, Result, Work
from workbench.types import Failure, WorkbenchError

__all__ = ["Actors", "Asked", "spread"]


@contextmanager
def spread(
    actors: Actors,
    make: Callable[[Mapping[str, Asked]], Work[Item, Result]],
    lost: Callable[[Item, Failure], Result],
    asked: Mapping[str, Callable[..., Any]],
    threads: int,
) -> Iterator[Callable[[Iterable[list[Item]]], Iterator[list[Result]]]]:
    """A function from chunks of items to their results, in the same order, as long as this
    lasts: Ray is started, and ended.

    `make` is called in an actor, once there is a chunk for it, and gives what works on a chunk:
    a result for each item. It is told whom to ask for what is in `asked`, which `threads`
    threads of this process answer. `lost` makes the result of an item that actors keep dying of.

    Raises:
        WorkbenchError: there is no such cluster, or it is too small; what is to be made cannot
        be sent; actors die of whatever
            they are given.
    """
    with started(actors), answered(asked, threads) as there:
        yield Pool(_sent(partial(make, there)), actors.count, lost).map


def _sent(make: Callable[[], Any]) -> Any:
    """Where actors find what they are to make: it goes to each machine once."""
    import ray

    try:
        return ray.put(make)
    except (TypeError, ValueError, AttributeError) as error:  # as pickle says that it cannot
        raise WorkbenchError(
            f"this work cannot be sent to Ray's actors ({line(error)}): do it without them, or with"
            " checks that hold no lock, file or connection"
        ) from error
