"""A progress bar for `workbench score`, on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from workbench.judge import Totals
from workbench.scoring.output import Tally
from workbench.scoring.run import Watch


@contextmanager
def bar() -> Iterator[Watch]:
    """Rows done, failures, calls and tokens; one line at the end where stderr is
    not a terminal.
    """
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("rows", MofNCompleteColumn(), "{task.fields[counts]}", TimeRemainingColumn())
    display = Progress(*columns, console=Console(stderr=True))

    def watch(tally: Tally, total: int, totals: Totals | None) -> None:
        counts = f"{tally.failed} failed"
        if totals:
            counts += f" · {totals.calls:,} calls, {totals.cached:,} cached,"
            counts += f" {totals.tokens / 1000:,.0f}k tokens"
        if not display.tasks:  # only now: before an error there would be an empty line
            display.add_task("rows", total=total, counts=counts)
            display.start()
        display.update(display.task_ids[0], completed=tally.rows, counts=counts)

    try:
        yield watch
    finally:
        if display.tasks:
            display.stop()
