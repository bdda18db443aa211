"""What the rows of a run tell over its steps, where no `metrics.jsonl` does: of imported runs, and of what was scored of them.

A trainer's logged numbers ("trl:NAME", "verl:NAME") are no method's rewards. Where they are all that was paid, their sum stands
for the reward *(ours)*: TRL weighs its reward functions alike unless told otherwise, and neither trainer's log says more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from workbench.jsonl import iter_rows
from workbench.metrics import rates
from workbench.token_view.payload import is_logged
from workbench.types import Feedback, Question

TOTALS = ("reward", "score")  # columns that are the whole reward, the first one first
_MEASURE = re.compile(
    r"(^|_)(len|length|lengths|tokens|chars|words|time|seconds|step|index|id)($|_)"
)  # of an answer, no reward


def reward_columns(names: Sequence[str]) -> list[str]:
    """Of a trainer's logged numbers, those whose sum is the reward: the one called so, else all but lengths and the like."""
    logged = {name: name.partition(":")[2] for name in names if is_logged(name)}
    totals = [name for total in TOTALS for name, column in logged.items() if column == total]
    return totals[:1] or [name for name, column in logged.items() if not _MEASURE.search(column)]


def reward_of(feedback: Feedback, method: str) -> float | None:
    """What `method` paid; without a method (""), the sum of the logged rewards. None where any of it was not scored."""
    names = [method] if method else reward_columns(list(feedback.rewards))
    values = [feedback.rewards[name].value if name in feedback.rewards else None for name in names]
    scored = [value for value in values if value is not None]
    return sum(scored) if scored and len(scored) == len(values) else None


def parts_of(feedback: Feedback, method: str) -> dict[str, float]:
    """What the reward is made of: the method's parts as `part:NAME`, or every logged number as `logged:NAME`."""
    if method:
        parts = feedback.rewards[method].parts if method in feedback.rewards else {}
        return {f"part:{name}": value for name, value in parts.items()}
    return {
        f"logged:{name.partition(':')[2]}": reward.value
        for name, reward in feedback.rewards.items()
        if is_logged(name) and reward.value is not None
    }


def step_rows(path: Path, method: str) -> Mapping[int, Mapping[str, Any]]:
    """A row of means for each step, in the columns of `metrics.jsonl`, and those of `parts_of`.

    `reward_std` is the standard deviation within the groups of two or more, averaged over them. Rows that cannot be read are
    left out.
    """
    stat = path.stat()
    return _step_rows(path, method, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=8)
def _step_rows(path: Path, method: str, size: int, modified: int) -> Mapping[int, Mapping[str, Any]]:
    by_step: dict[int, list[Feedback]] = {}
    for row in iter_rows(path):
        try:
            feedback = Feedback.from_row(row, Question(str(row.get("question_id")), ""))
        except (KeyError, TypeError, ValueError):
            continue
        if feedback.response.step is not None:
            by_step.setdefault(feedback.response.step, []).append(feedback)
    cuts = any(row.response.finish == "length" for rows in by_step.values() for row in rows)  # else nobody may have noted any
    return {step: _means(rows, method, cuts) for step, rows in sorted(by_step.items())}


def _means(rows: Sequence[Feedback], method: str, cuts: bool) -> dict[str, Any]:
    values = [reward_of(row, method) for row in rows]
    scored = [value for value in values if value is not None]
    parts: dict[str, list[float]] = {}
    for row in rows:
        for name, value in parts_of(row, method).items():
            parts.setdefault(name, []).append(value)
    return {
        **rates(rows),
        "reward": fmean(scored) if scored else None,
        "reward_std": _spread(rows, values),
        "failed": len(values) - len(scored),
        "length": fmean(len(row.response.offsets) for row in rows),
        "truncated": fmean(row.response.finish == "length" for row in rows) if cuts else None,
        **{name: fmean(part_values) for name, part_values in parts.items()},
    }


def _spread(rows: Sequence[Feedback], values: Sequence[float | None]) -> float | None:
    groups: dict[str, list[float]] = {}
    for row, value in zip(rows, values, strict=True):
        if value is not None and row.response.group:
            groups.setdefault(row.response.group, []).append(value)
    spreads = [stdev(group) for group in groups.values() if len(group) > 1]
    return fmean(spreads) if spreads else None
