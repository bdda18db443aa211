"""`workbench …` in a process that kills itself writing a row of metrics: python -m tests.helpers.dying_run ROW ARGUMENT…"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import workbench.train.journal as journal
from workbench.cli import main


def die_at(place: int) -> None:
    """Arrange for SIGKILL in the place of the row of metrics of that number, counted from 1 over all stages."""
    written = 0
    append = journal.append_json

    def append_or_die(path: Path | str, row: Mapping[str, Any]) -> None:
        nonlocal written
        written += 1
        if written == place:
            os.kill(os.getpid(), signal.SIGKILL)
        append(path, row)

    journal.append_json = append_or_die


if __name__ == "__main__":
    die_at(int(sys.argv[1]))
    main(sys.argv[2:])
