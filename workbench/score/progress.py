"""A progress bar for `workbench score`, on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from workbench.judge import Totals
from workbench.score.run import Progress, Watch
from workbench.score.tally import Tally


@contextmanager
def bar() -> Iterator[Progress]:
    """Rows done, failures, calls and tokens; one line at the end where stderr is
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
        failed = 0

        def counts() -> str:
            """Read the judge's counters as they stand, so that it moves within a chunk too."""
            text = f"{failed} failed"
            if totals:
                text += f" · {totals.calls:,} calls, {totals.cached:,} cached,"
                text += f" {totals.tokens / 1000:,.0f}k tokens"
            return text

        def watch(tally: Tally, done: int) -> None:
            nonlocal failed
            failed = tally.failed
            display.update(row, completed=done)

        row = display.add_task("rows", total=total, counts=counts)
        display.start()
        return watch

    try:
        yield start
    finally:
        if display.tasks:  # otherwise there would be an empty line above the error
            display.stop()
