"""Count the complete steps in a run's rollouts. A run resumes after the last complete step."""

import itertools
import warnings
from pathlib import Path

from workbench.types import WorkbenchError
from workbench.util.jsonl import iter_rows


def whole_steps(rollouts: Path, size: int) -> int:
    """Return the number of complete steps in a file of rollouts, from step 1 without a gap.

    A step is complete if it has exactly `size` rows with distinct ids.
    """
    ids: dict[int | None, list[str]] = {}
    if rollouts.exists():
        # `truncate_after_step` reports an unfinished last line
        with warnings.catch_warnings(action="ignore"):
            for row in iter_rows(rollouts):
                ids.setdefault(row.get("step"), []).append(str(row.get("id")))
    # distinct ids, because a copied file may have a step twice
    by_step = (ids.get(step, []) for step in itertools.count(1))
    return next(n for n, step in enumerate(by_step) if not len(step) == len(set(step)) == size)


def check_rollouts(rollouts: Path, steps: int, size: int) -> None:
    """Check that each of the first `steps` steps has `size` rows with distinct ids.

    Raises:
        WorkbenchError: a step lacks rows or has rows twice; the message names the first one.
    """
    if (whole := whole_steps(rollouts, size)) < steps:
        raise WorkbenchError(
            f"'{rollouts}' must have {size} rows with distinct ids for step {whole + 1}: restore"
            " the missing rows, or start again in another --out folder"
        )
