"""Sampling in Ray's actors: each loads the policy itself, and samples and grades chunks of
questions on one CPU, as this process would with one thread. The judge, its cache and its key,
the search and what is written stay here."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from workbench.actors import Actors, spread
from workbench.actors.pool import Item, Result, Work
from workbench.bench import Bench
from workbench.checks import Checks
from workbench.generate import Policy
from workbench.judge.endpoint import CONCURRENCY
from workbench.policy import adapter_base, adapter_folder, load_policy
from workbench.runs.folder import policy_hash
from workbench.threads import DEFAULT_THREADS, use_threads
from workbench.types import Failure, Grade, WorkbenchError

# of an actor: how many there are decides how numbers are rounded, so that it is part of what a run
# is
THREADS = 1


@dataclass(frozen=True)
class Told(Generic[Item, Result]):
    """What an actor is told: where the policy lies, and what is under it; how checks are made,
    and graded by; what is done with both. `digests` are those of the folders as they are here,
    so that no machine has others under the same names."""

    policy: str
    base: str | None
    digests: Mapping[str, str | None]
    checks: Callable[[Mapping[str, Any]], Checks]
    grader: Callable[[Checks], Grade]
    work: Callable[[Policy, Grade, list[Item]], list[Result]]

    def __call__(self, asked: Mapping[str, Any]) -> Work[Item, Result]:
        """In an actor: what works on a chunk, with the policy in memory."""
        use_threads(THREADS).__enter__()  # for as long as the actor lives
        for folder, digest in self.digests.items():
            if policy_hash(folder) != digest:
                raise WorkbenchError(
                    f"'{folder}' is not on {socket.gethostname()}, or another one: copy it to every"
                    " machine"
                )
        policy = load_policy(self.policy, base=self.base, device="cpu")
        grade = self.grader(self.checks(asked))
        return lambda items: self.work(policy, grade, items)


@contextmanager
def in_actors(
    actors: Actors,
    bench: Bench,
    policy: str,
    base: str | None,
    grader: Callable[[Checks], Grade],
    work: Callable[[Policy, Grade, list[Item]], list[Result]],
    lost: Callable[[Item, Failure], Result],
) -> Iterator[Callable[[Iterable[list[Item]]], Iterator[list[Result]]]]:
    """A function from chunks of items to what `work` makes of them in actors, in the same order,
    as long as this lasts.

    An adapter lies over `base`, by default what it names; both are folders that each machine
    has, or names on the hub. `grader` grades by the bench's checks. Raises as `spread` does.
    """
    adapter = adapter_folder(Path(policy))
    places = [_place(policy), *([_place(base or adapter_base(adapter))] if adapter else [])]
    folders = [str(adapter_folder(Path(place)) or place) for place in places]
    digests = {folder: policy_hash(folder) for folder in folders} if actors.address else {}
    told = Told(
        places[0], places[1] if adapter else None, digests, bench.checks_elsewhere(), grader, work
    )
    many = min(actors.count, CONCURRENCY)
    if bench.llm_judge is None:
        with spread(actors, told, lost, {}, many) as sampler:
            yield sampler
        return
    with bench.llm_judge.shared(many) as asked, spread(actors, told, lost, asked, many) as sampler:
        yield sampler


def _place(name: str) -> str:
    """A folder wherever an actor works; a name on the hub is none."""
    return str(Path(name).resolve()) if Path(name).is_dir() else name


def threads_of(threads: int | None, actors: Actors | None) -> int:
    """How many threads a run has, which is part of what it is: those of an actor, where actors
    sample.

    Raises:
        WorkbenchError: actors are to have others.
    """
    if actors is None:
        return DEFAULT_THREADS if threads is None else threads
    if threads not in (None, THREADS):
        raise WorkbenchError(
            f"each actor has one thread, and not {threads}: leave --threads out with --actors"
        )
    return THREADS
