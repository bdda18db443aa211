"""Score chunks of rows in Ray's actors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from workbench.actors import Actors, Asked, spread
from workbench.actors.cluster import find
from workbench.recipes import reward_fns
from workbench.score import setup
from workbench.score.rows import Item
from workbench.score.run import Engine, Plan, Scored, given_up, scoring
from workbench.score.setup import Options


def there(options: Options, plan: Plan) -> Engine:
    """Chunks are scored by Ray's actors. Nothing is started before there is a chunk; nothing is
    left running after the last.

    Raises:
        WorkbenchError: there is no such cluster, or it is too small; actors die of whatever they
        are given.
    """
    if options.address:
        find(options.address)
    # Actors only ask the driver: an address may have a password in it, and is not sent to them.
    told = replace(options, judge="http://driver", api_key_env=None) if options.remote else options

    def engine(chunks: Iterable[list[Item]]) -> Iterator[Scored]:
        waiting = iter(chunks)
        if (first := next(waiting, None)) is None:
            return
        make, lost = (
            partial(_scoring, told, plan.checks is not None),
            partial(given_up, plan.rewards),
        )
        with spread(
            Actors(options.at_a_time, options.address), make, lost, plan.asked, plan.workers
        ) as scored:
            yield from scored(itertools.chain([first], waiting))

    return engine


def _scoring(
    options: Options, judged: bool, asked: Mapping[str, Asked]
) -> Callable[[list[Item]], Scored]:
    """In an actor: what scores a chunk, made of the options as the driver makes it, but for whom
    it asks.
    """
    configs = setup.methods(options)
    if not judged:
        return scoring(Plan(reward_fns(configs)))
    checks = setup.checks_of(options, asked.get("search"), asked.get("judge"))
    return scoring(setup.plan(options, configs, checks)[1])
