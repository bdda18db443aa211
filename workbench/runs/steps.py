"""What a run tells over its steps: what its `metrics.jsonl` holds and, where that says nothing,
what its rows tell.

A trainer's logged numbers ("trl:NAME", "verl:NAME") are no method's rewards. Where they are all
that was paid, their sum stands for the reward *(ours)*: TRL weighs its reward functions alike
unless told otherwise, and neither trainer's log says more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from workbench.failures import is_logged
from workbench.jsonl import iter_rows
from workbench.runs.rows import Entry, Index, Shape, finite, read_index
from workbench.types import OUTCOMES

TOTALS = ("reward", "score")  # columns that are the whole reward, the first one first
RATES = ("accuracy", "abstention", "hallucination")  # the shares of `OUTCOMES`
_MEASURE = re.compile(
    r"(^|_)(len|length|lengths|tokens|chars|words|time|seconds|step|index|id)($|_)"
)  # of an answer, no reward


def reward_columns(names: Iterable[str]) -> list[str]:
    """Of a trainer's logged numbers, those whose sum is the reward: the one called so, else all
    but lengths and the like.
    """
    logged = {name: name.partition(":")[2] for name in names if is_logged(name)}
    totals = [name for total in TOTALS for name, column in logged.items() if column == total]
    return totals[:1] or [name for name, column in logged.items() if not _MEASURE.search(column)]


def reward_of(entry: Entry, method: str) -> float | None:
    """What `method` paid; without a method (""), the sum of the logged rewards. None where any
    of it was not scored.
    """
    if method:
        return entry.value(method)
    values = [
        entry.value(name) for name in reward_columns(name for name, part in entry.shape if not part)
    ]
    scored = [value for value in values if value is not None]
    return sum(scored) if scored and len(scored) == len(values) else None


def parts_of(entry: Entry, method: str) -> dict[str, float]:
    """What the reward is made of: the method's parts as `part:NAME`, or every logged number as
    `logged:NAME`.
    """
    told = {name: entry.numbers[place] for name, place in part_places(entry.shape, method).items()}
    return {name: value for name, value in told.items() if value is not None}


def part_places(shape: Shape, method: str) -> dict[str, int]:
    """Where rows of that shape have what `parts_of` tells among their numbers."""
    if method:
        return {
            f"part:{part}": place
            for (name, part), place in shape.items()
            if name == method and part
        }
    return {
        f"logged:{name.partition(':')[2]}": place
        for (name, part), place in shape.items()
        if is_logged(name) and not part
    }


def paid_by(index: Index, method: str = "") -> str:
    """The method whose reward the rows tell: `method`, else the first that paid any; "" where
    only a trainer logged numbers.
    """
    return method or next((name for name in index.methods() if not is_logged(name)), "")


def step_means(index: Index, method: str) -> dict[int, Mapping[str, Any]]:
    """A row of means for each step, in the columns of `metrics.jsonl`, and those of `parts_of`.

    `reward_std` is the standard deviation within the groups of two or more, averaged over them.
    A step is worked out again when it has grown.
    """
    with index.lock:
        known = index.memory.setdefault(("steps", method), {})
        # rows that were looked at, and whether any was cut off
        cuts = index.memory.setdefault("cut", [0, False])
        entries = index.entries[cuts[0] :]
        # else nobody may have noted any
        cuts[:] = [cuts[0] + len(entries), cuts[1] or any(entry.cut for entry in entries)]
        for step, rows in list(index.by_step.items()):
            if step is not None and known.get(step, (0,))[0] != (len(rows), cuts[1]):
                known[step] = ((len(rows), cuts[1]), _means(rows[:], method, cuts[1]))
        return {step: known[step][1] for step in sorted(known)}


def _means(rows: Sequence[Entry], method: str, cuts: bool) -> dict[str, Any]:
    values = [reward_of(row, method) for row in rows]
    scored = [value for value in values if value is not None]
    outcomes = [row.outcome for row in rows if row.outcome]
    places = {
        id(row.shape): part_places(row.shape, method).items()
        for row in {id(row.shape): row for row in rows}.values()
    }
    parts: dict[str, list[float]] = {}
    for row in rows:
        for name, place in places[id(row.shape)]:
            if (value := row.numbers[place]) is not None:
                parts.setdefault(name, []).append(value)
    return {
        **{
            rate: outcomes.count(label) / len(outcomes) if outcomes else None
            for rate, label in zip(RATES, OUTCOMES, strict=True)
        },
        "reward": fmean(scored) if scored else None,
        "reward_std": _spread(rows, values),
        "failed": len(values) - len(scored),
        "length": fmean(row.length for row in rows),
        "truncated": fmean(row.cut for row in rows) if cuts else None,
        **{name: fmean(part_values) for name, part_values in parts.items()},
    }


def _spread(rows: Sequence[Entry], values: Sequence[float | None]) -> float | None:
    groups: dict[str, list[float]] = {}
    for row, value in zip(rows, values, strict=True):
        if value is not None and row.group:
            groups.setdefault(row.group, []).append(value)
    spreads = [_deviation(group) for group in groups.values() if len(group) > 1]
    return fmean(spreads) if spreads else None


def _deviation(values: Sequence[float]) -> float:
    """The sample's standard deviation, in floats: `statistics.stdev` counts in fractions, thirty
    times as long.
    """
    mean = fmean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def by_step(
    metrics: Sequence[Mapping[str, Any]], index: Index, method: str
) -> list[dict[str, Any]]:
    """A row for each step: the numbers that training wrote down (`reward/NAME` as `part:NAME`),
    the rest from the rows.

    A damaged or diverged number is a gap, unless the rows tell it.
    """
    told: dict[int, dict[str, Any]] = {
        step: {**row} for step, row in step_means(index, method).items()
    }
    for row in metrics:
        if type(step := row.get("step")) is int:
            told.setdefault(step, {}).update(
                {_column(name): value for name, value in row.items() if finite(value) is not None}
            )
    return [{**row, "step": step} for step, row in sorted(told.items())]


def _column(name: str) -> str:
    return f"part:{name[7:]}" if name.startswith("reward/") else name


def run_steps(folder: Path | str, method: str = "") -> list[dict[str, Any]]:
    """`by_step` of a run's folder, trained here or imported."""
    metrics, rollouts = Path(folder) / "metrics.jsonl", Path(folder) / "rollouts.jsonl"
    index = read_index(rollouts) if rollouts.is_file() else Index()
    return by_step(
        list(iter_rows(metrics)) if metrics.is_file() else [], index, paid_by(index, method)
    )
