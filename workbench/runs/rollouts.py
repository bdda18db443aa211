"""The rollouts that a run has recorded, counted: a step without all of its rows is no step that
a run can go on from.
"""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path

from workbench.types import WorkbenchError
from workbench.util.jsonl import iter_rows


def whole_steps(rollouts: Path, size: int) -> int:
    """How many steps, from the first on, have their `size` rows, each with an id of its own."""
    ids: dict[int | None, list[str]] = {}
    if rollouts.exists():
        with warnings.catch_warnings():
            # an unfinished last line is reported when it is cut off
            warnings.simplefilter("ignore")
            for row in iter_rows(rollouts):
                ids.setdefault(row.get("step"), []).append(str(row.get("id")))
    whole = (
        len(step_ids) == len(set(step_ids)) == size
        for step in itertools.count(1)
        for step_ids in [ids.get(step, [])]
    )
    return sum(1 for _ in itertools.takewhile(bool, whole))


def check_rollouts(rollouts: Path, steps: int, size: int) -> None:
    """Refuse a record that lacks rows of its first `steps` steps, or has rows twice.

    Raises:
        WorkbenchError: the first step that is not whole.
    """
    if (whole := whole_steps(rollouts, size)) < steps:
        raise WorkbenchError(
            f"'{rollouts}' has not the {size} rows of step {whole + 1}, each once: put the lost"
            " rows back, or begin anew in another --out folder"
        )
