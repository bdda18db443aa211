"""From the options of `workbench score` to the function that scores a chunk of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.methods import METHODS, checks_needed, method_configs, reward_fns, sections_read
from workbench.pipeline import SECTIONS, assemble, rescore
from workbench.retrieval import Search
from workbench.scoring.evidence import evidence
from workbench.scoring.options import Options
from workbench.scoring.rows import Item
from workbench.types import Checks, Failure, Feedback, Grade, Judge, RewardFn, WorkbenchError
from workbench.verdicts.checks import judge_checks, local_checks, world_checks
from workbench.world import load_world

WITHOUT_METHOD = ("fact", "outcome", "checklist")  # checks where no reward is asked for
Scored = list[tuple[Feedback, bool]]  # of a chunk's rows, in order, and whether each was judged now


@dataclass(frozen=True)
class Plan:
    """The checks, by name, and the rewards, by method; claims of other `sections` are not checked.

    `checks` may be None where every row has its verdicts. `left_out` are the methods that the
    judge has no checks for.
    """

    rewards: Mapping[str, RewardFn]
    needed: Sequence[str] = ()
    sections: frozenset[str] = SECTIONS
    checks: Checks | None = None
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def grade(self) -> Grade:
        """The judge's part. Without rewards, a row without gold answers needs no outcome."""
        assert self.checks is not None
        return assemble(
            self.checks, self.needed, self.rewards, self.sections, where_given=not self.rewards
        )

    def score(self, items: list[Item]) -> Scored:
        """Score a chunk: judge what has no verdicts, and compute rewards from the others'."""
        fresh = [item.response for item in items if not item.replay]
        if fresh and self.checks is None:
            raise WorkbenchError("a row without verdicts needs a judge")
        graded = iter(self.grade()(fresh) if fresh else ())
        scored: Scored = []
        for item in items:
            if item.replay:
                scored.append((rescore(item.feedback, self.rewards), False))
            else:  # rewards that came with the row stay
                row = next(graded)
                rewards = {**item.feedback.rewards, **row.rewards}
                scored.append((replace(row, rewards=rewards), True))
        return scored

    def lost(self, item: Item, failure: Failure) -> tuple[Feedback, bool]:
        """A row that could not be scored at all: a failed one, which the next run tries again."""
        return rescore(replace(item.feedback, error=failure), self.rewards), True


def methods(options: Options) -> dict[str, Any]:
    """The configs of the methods whose reward is computed: one, all, or none."""
    if options.method == "none":
        if options.overrides:
            raise WorkbenchError(
                f"--set {options.overrides[0]} has no method to set: name one with --method"
            )
        return {}
    names = METHODS if options.method == "all" else (options.method,)
    return method_configs(names, options.overrides)


def checks_of(options: Options, search: Search | None = None, judge: Judge | None = None) -> Checks:
    """The checks of the judge that the options name; `judge` is the endpoint, where it is one."""
    if options.exact:
        return world_checks(load_world())
    if judge is None:
        return local_checks(search, options.verifier)
    return judge_checks(judge, search, in_doubt=options.in_doubt)


def plan(
    options: Options, configs: Mapping[str, Any], checks: Checks
) -> tuple[dict[str, Any], Plan]:
    """The configs of the methods that the judge can serve, and how rows are scored by it.

    A method is left out only where all are asked for.

    Raises:
        WorkbenchError: the method that was asked for needs a check that the judge does not have.
    """
    if not configs:
        needed = tuple(name for name in WITHOUT_METHOD if name in checks.verify)
        return {}, Plan({}, needed, checks=checks)
    able = {*checks.verify, *(["single_pass"] if checks.single_pass else [])}
    missing = {name: set(checks_needed({name: configs[name]})) - able for name in configs}
    lacking = {name: sorted(names) for name, names in missing.items() if names}
    if lacking and (options.method != "all" or len(lacking) == len(configs)):
        name, names = next(iter(lacking.items()))
        raise WorkbenchError(
            f"this judge cannot do what {name} needs ({', '.join(names)}): name an endpoint with"
            " --judge URL, or another --method"
        )
    served = {name: config for name, config in configs.items() if name not in lacking}
    needed, sections = checks_needed(served), sections_read(served)
    return served, Plan(reward_fns(served), needed, sections, checks, lacking)


def in_actor(options: Options, judged: bool, known: dict[str, int]) -> Any:
    """In one of Ray's actors: the function that scores a chunk. `known`: see `Evidence`."""
    configs = methods(options)
    if not judged:
        return Plan(reward_fns(configs)).score
    search = None if options.exact else evidence(options, known)
    return plan(options, configs, checks_of(options, search))[1].score
