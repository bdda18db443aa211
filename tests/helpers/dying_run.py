"""`workbench …` in a process that kills itself at a row of metrics or amid rows of feedback:

python -m tests.helpers.dying_run ROW ARGUMENT…
python -m tests.helpers.dying_run feedback:TIME ARGUMENT…
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import workbench.training.recorder as journal
from workbench.cli import main
from workbench.runs.store import Store
from workbench.types import Feedback, JsonMapping, JsonObject


def die_at(place: int) -> None:
    """Kill the process instead of writing this row of metrics, counted from 1 over all stages."""
    written = 0
    append = journal.append_json

    def append_or_die(path: Path | str, row: JsonMapping) -> None:
        nonlocal written
        written += 1
        if written == place:
            os.kill(os.getpid(), signal.SIGKILL)
        append(path, row)

    journal.append_json = append_or_die


def die_in_feedback(time: int) -> None:
    """Kill the process halfway through this write of feedback, counted from 1 over all stages."""
    written = 0
    append = Store.append

    def append_or_die(store: Store, feedbacks: Sequence[Feedback]) -> list[JsonObject]:
        nonlocal written
        written += 1
        if written == time:
            append(store, feedbacks[: len(feedbacks) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return append(store, feedbacks)

    Store.append = append_or_die  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    kind, _, place = sys.argv[1].rpartition(":")
    (die_in_feedback if kind else die_at)(int(place))
    main(sys.argv[2:])
