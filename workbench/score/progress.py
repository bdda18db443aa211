"""A progress bar for `workbench score`, on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from workbench.judge import Totals
from workbench.score import Progress
from workbench.score.tally import Tally


@contextmanager
def bar() -> Iterator[Progress]:
    """Rows done, claims a second, calls, tokens, cache hits and failures; where stderr is no
    terminal, one line at the end.
    """
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, ProgressColumn, Task, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Told(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(task.fields["tell"]())

    console = Console(stderr=True)
    columns = (
        MofNCompleteColumn(),
        Told(),
        *([TimeRemainingColumn()] if console.is_terminal else []),
    )

    def start(total: int, totals: Totals | None) -> Callable[[Tally, int], None]:
        teller = _Teller(totals)
        row = display.add_task("rows", total=total, tell=teller.tell)
        display.start()

        def watch(tally: Tally, done: int) -> None:
            teller.note(tally)
            display.update(row, completed=done)

        return watch

    display = Bar("rows", *columns, console=console)
    try:
        yield start
    finally:
        if display.tasks:  # a bar of nothing would be an empty line above the error
            display.stop()


class _Teller:
    """The line beside the bar. The judge's counts are read as they stand, so that it moves
    within a chunk too.
    """

    def __init__(self, totals: Totals | None) -> None:
        self.totals, self.began = totals, time.monotonic()
        self.claims = self.earlier = self.failed = 0
        self.begun = False

    def note(self, tally: Tally) -> None:
        self.claims, self.failed = tally.claims, tally.failed
        if not self.begun:  # claims of an earlier run are no part of the rate
            self.earlier, self.begun = tally.claims, True

    def tell(self) -> str:
        seconds = time.monotonic() - self.began
        parts = [
            f"{(self.claims - self.earlier) / max(seconds, 1e-3):,.0f} claims/s",
            f"{self.failed} failed",
        ]
        if self.totals:
            parts.append(
                f"{self.totals.calls:,} calls, {self.totals.cached:,} cached,"
                f" {self.totals.tokens / 1000:,.0f}k tokens"
            )
        return " · ".join(parts)
