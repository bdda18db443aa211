"""A progress bar for `workbench score`, on stderr."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from workbench.judge import Totals
from workbench.score.run import Progress, Watch
from workbench.score.tally import Tally


@contextmanager
def bar() -> Iterator[Progress]:
    """Rows done, claims a second, failures, calls and tokens; one line at the end where stderr is
    not a terminal.
    """
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, ProgressColumn, Task, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Counts(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(task.fields["counts"]())

    console = Console(stderr=True)
    remaining = [TimeRemainingColumn()] if console.is_terminal else []
    display = Bar("rows", MofNCompleteColumn(), Counts(), *remaining, console=console)

    def start(total: int, totals: Totals | None) -> Watch:
        began, tallies, earlier = time.monotonic(), list[Tally](), list[int]()

        def counts() -> str:
            """Reads the judge's counters as they stand, so that it moves within a chunk too."""
            claims = tallies[-1].claims - earlier[0] if tallies else 0
            rate = claims / max(time.monotonic() - began, 1e-3)
            parts = [
                f"{rate:,.0f} claims/s",
                f"{tallies[-1].failed if tallies else 0} failed",
            ]
            if totals:
                parts.append(
                    f"{totals.calls:,} calls, {totals.cached:,} cached,"
                    f" {totals.tokens / 1000:,.0f}k tokens"
                )
            return " · ".join(parts)

        def watch(tally: Tally, done: int) -> None:
            tallies[:] = [tally]
            earlier.append(tally.claims)  # the first are those of an earlier run
            display.update(row, completed=done)

        row = display.add_task("rows", total=total, counts=counts)
        display.start()
        return watch

    try:
        yield start
    finally:
        if display.tasks:  # otherwise there would be an empty line above the error
            display.stop()
