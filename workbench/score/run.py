"""Score a file of responses: streaming, resumable, one failed row at a time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.checks import Checks
from workbench.failures import too_many
from workbench.grade import SECTIONS, assemble, rescore
from workbench.judge import Totals
from workbench.score.ahead import ahead
from workbench.score.record import claim, resume
from workbench.score.rows import Item
from workbench.score.survey import Reader, Survey
from workbench.score.tally import Tally
from workbench.store import Store
from workbench.types import Failure, Feedback, Grade, Passage, RewardFn, WorkbenchError

CHUNK = 128  # responses that are judged, and written, together
ENOUGH = 20  # rows after which the share of failures can stop a scoring


# of a chunk of rows, in order, and whether each was asked for now, or only paid anew
Scored = list[tuple[Feedback, bool]]
# chunks of rows -> these scored, in the same order
Engine = Callable[[Iterable[list[Item]]], Iterator[Scored]]


@dataclass(frozen=True)
class Plan:
    """How rows are scored: the checks by name out of those that a judge can do, and the rewards
    by method; claims of other `sections` are not checked.

    `checks` may be None where every row brings its verdicts. `retrieved` gives the passages that
    were found since it was last asked; `totals` count the judge's calls as they are made;
    `left_out` are methods that the judge has no checks for. `asked` are the judge and the search
    that the checks ask, where there are such, by these names: what an engine that scores
    elsewhere has to have answered here.
    """

    rewards: Mapping[str, RewardFn]
    needed: Sequence[str] = ()
    sections: frozenset[str] = SECTIONS
    checks: Checks | None = None
    retrieved: Callable[[], list[Passage]] = list
    workers: int = 1
    chunk: int = CHUNK
    totals: Totals | None = None
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    asked: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def grade(self) -> Grade:
        """The judge's part, for rows that are not replayed. Without rewards, a row without gold
        answers needs no outcome.
        """
        assert self.checks is not None
        return assemble(
            self.checks, self.needed, self.rewards, self.sections, where_given=not self.rewards
        )


def run(
    reader: Reader,
    survey: Survey,
    plan: Plan,
    out: Path,
    settings: Mapping[str, Any],
    *,
    engine: Engine | None = None,
    max_failed: float = 0.2,
    overwrite: bool = False,
    watch: Callable[[Tally, int], None] = lambda tally, done: None,
) -> dict[str, Any]:
    """Score the rows of a surveyed file into `out`; returns the summary.

    What `out` already has is kept, if it was begun with the same `settings`; rows that failed
    are tried again. `engine` scores elsewhere what threads of this process do by default; rows
    are read and written here. `status` is "done", "interrupted", or "too_many_failures": more
    than `max_failed` of the rows so far failed, or lack what the rewards asked for look at.
    """
    began = time.perf_counter()
    claim(out, settings, overwrite)
    tally, remaining, status = Tally(list(plan.rewards)), dict(survey.ids), "done"
    earlier = resume(out, remaining, list(plan.rewards), tally)
    watch(tally, earlier)
    with Store(out) as store, suppress(KeyboardInterrupt):
        status = "interrupted"
        for rows in (engine or here(plan))(_chunks(reader.items(remaining), plan.chunk)):
            stored = store.append([row for row, _ in rows], plan.retrieved())
            for row, (_, judged) in zip(stored, rows, strict=True):
                tally.add(row, judged)
            watch(tally, tally.rows)
            if tally.rows >= ENOUGH and too_many(
                tally.failed + tally.unscored, tally.rows, max_failed
            ):
                break
        status = (
            "too_many_failures"
            if too_many(tally.failed + tally.unscored, tally.rows, max_failed)
            else "done"
        )
    if status == "done" and remaining:
        raise WorkbenchError(
            f"'{reader.path}' has changed since it was begun: run the same command again"
        )
    return {
        "status": status,
        "out": str(out),
        **tally.summary(),
        "left_out": dict(plan.left_out),
        "earlier": earlier,
        "malformed": survey.malformed,
        "duplicates": survey.duplicates,
        "problems": [{"line": line, "problem": problem} for line, problem in survey.problems],
        "cost": dict(tally.cost),
        "seconds": round(time.perf_counter() - began, 2),
    }


def here(plan: Plan) -> Engine:
    """Chunks are scored in threads of this process."""
    return lambda chunks: ahead(scoring(plan), chunks, plan.workers)


def scoring(plan: Plan) -> Callable[[list[Item]], Scored]:
    """What scores a chunk of rows."""
    judged = plan.grade() if plan.checks else None

    def score(items: list[Item]) -> Scored:
        fresh = [item for item in items if not item.replay]
        if fresh and judged is None:
            raise WorkbenchError("a row without verdicts needs a judge")
        graded = iter(judged([item.response for item in fresh]) if fresh and judged else ())
        return [
            (rescore(item.feedback, plan.rewards), False)
            if item.replay
            else (_keeping(item.feedback, next(graded)), True)
            for item in items
        ]

    return score


def given_up(
    rewards: Mapping[str, RewardFn], item: Item, failure: Failure
) -> tuple[Feedback, bool]:
    """A row that could not be scored at all: a failed one, which the next run tries again."""
    return rescore(replace(item.feedback, error=failure), rewards), True


def _keeping(logged: Feedback, graded: Feedback) -> Feedback:
    """New feedback with the rewards that came with its row."""
    return replace(graded, rewards={**logged.rewards, **graded.rewards})


def _chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    remaining = iter(items)
    while chunk := list(itertools.islice(remaining, size)):
        yield chunk
