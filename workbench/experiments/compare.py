"""Compare evaluated runs and feedback files side by side: `workbench compare`.

Runs that differ only in their seed are one row. Its name says in which settings it differs from
the other rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.experiments.experiment import SUMMARY
from workbench.metrics import compare_files, read_rows
from workbench.metrics.outcomes import RESAMPLES
from workbench.metrics.report import Settings, over_runs, paired_runs
from workbench.metrics.rows import Row, file_of
from workbench.pipeline import ANSWER_SECTIONS
from workbench.runs.folder import describe_runs, finished
from workbench.runs.store import AFTER, BEFORE, EVALUATION, ROLLOUTS
from workbench.types import JsonMapping, JsonObject, WorkbenchError
from workbench.util.jsonl import iter_rows

IDENTITY = [key for key in SUMMARY if key not in ("method", "seed", "threads")]


@dataclass(frozen=True)
class Evaluated:
    """A finished run, or a feedback file (without method and seed)."""

    path: Path
    sets: Mapping[str, JsonMapping]  # set of questions -> report; the most important set first
    answers: Mapping[str, Path]  # set -> file of the greedy answers
    cost: Mapping[str, float]
    method: str | None = None
    seed: int | None = None
    settings: Mapping[str, object] | None = None  # by full name

    def rows(self, key: str) -> list[Row]:
        """The stored answers to a set of questions; empty in runs of earlier versions."""
        file, sections = self.answers[key], tuple(ANSWER_SECTIONS) if self.method else ()
        return read_rows(file, sections) if file.is_file() else []


def compare(
    *runs: Path | str, against: str | None = None, seed: int = 0, resamples: int = RESAMPLES
) -> JsonObject:
    """Compare finished runs and feedback files, with 95 % intervals over questions and seeds.

    Args:
        runs: folders of runs, folders of several runs such as a queue's, or feedback files.
        against: name of a row, or path of a run, that the others are compared with in pairs.

    Returns:
        `rows` of `name`, `method`, `seeds`, `runs`, `cost` and `metrics` (`{set: {metric: {value,
        low, high, n}}}`); `differences`, the values of the settings that differ, by row; and with
        `against` `paired`, `{row: {metric: {value, other, diff, low, high, p, n}}}`.

    Raises:
        WorkbenchError: a run is not finished, a file is not feedback, or no row has this name.
    """
    options = Settings(seed=seed, resamples=resamples)
    named = _named([_read(path, options) for run in runs for path in _finished(Path(run))])
    rows = [_row(name, group, options) for name, group in named.items()]
    trained = {name: group[0].settings for name, group in named.items() if group[0].method}
    differences = {
        key: {name: settings.get(key) for name, settings in trained.items() if settings}
        for key in _differing(list(trained.values()))
    }
    result: JsonObject = {"rows": rows, "differences": differences}
    if against is not None:
        by_path = {str(one.path): name for name, group in named.items() for one in group}
        base = against if against in named else by_path.get(str(Path(against)))
        if base is None:
            raise WorkbenchError(f"no row '{against}': choose one of {', '.join(named)}")
        others = {name: group for name, group in named.items() if name != base}
        paired = {name: _paired(group, named[base], options) for name, group in others.items()}
        result |= {"against": base, "paired": paired}
    return result


def _finished(path: Path) -> list[Path]:
    """Return a feedback file or a run, or the finished runs of a folder.

    Raises:
        WorkbenchError: there is none.
    """
    if path.is_file() or (path / "config.json").exists() or (path / ROLLOUTS).exists():
        return [path]
    if runs := [
        file.parent for file in sorted(path.glob("*/summary.json")) if finished(file.parent)
    ]:
        return runs
    raise WorkbenchError(f"no finished run in '{path}': {describe_runs(path.parent)}")


def _read(path: Path, options: Settings) -> Evaluated:
    summary = finished(path)
    if summary is None:
        if (path / "config.json").exists():
            raise WorkbenchError(f"'{path}' is not finished: repeat its command to continue it")
        file, cost = file_of(path), Counter[str]()
        report = compare_files(file, seed=options.seed, resamples=options.resamples)
        for row in iter_rows(file):
            cost.update(row.get("cost") or {})
        return Evaluated(path, {"responses": report}, {"responses": file}, cost)
    split = summary["after"]["split"]
    before, after = f"{split} before training", split
    return Evaluated(
        path,
        {name: summary[when]["greedy"] for name, when in ((after, "after"), (before, "before"))},
        {after: path / EVALUATION / AFTER, before: path / EVALUATION / BEFORE},
        {**summary["cost"], "run_seconds": summary["seconds"]},
        summary["method"],
        summary["seed"],
        dict(_flat({key: summary.get(key) for key in IDENTITY})),
    )


def _flat(settings: JsonMapping, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the settings by full name, as `--set` spells them without the method."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, "" if name == "config" else f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _named(found: Sequence[Evaluated]) -> dict[str, list[Evaluated]]:
    """Group runs that differ only in their seed; name a group by its method and what differs."""
    groups: dict[str, list[Evaluated]] = {}
    for one in found:
        key = json.dumps([one.method, one.settings or str(one.path)], sort_keys=True)
        groups.setdefault(key, []).append(one)
    named = {}
    for one, *seeds in groups.values():
        alike = [group[0].settings for group in groups.values() if group[0].method == one.method]
        values = [f"{key}={(one.settings or {}).get(key)}"[:60] for key in _differing(alike)]
        name = " ".join([one.method, *values]) if one.method else str(one.path)
        named[name if name not in named else f"{name} {one.path}"] = [one, *seeds]
    return named


def _differing(settings: Sequence[JsonMapping | None]) -> list[str]:
    """Return the settings that differ, without digests unless only digests differ."""
    known = [one for one in settings if one]
    values = {key: {json.dumps(one.get(key)) for one in known} for one in known for key in one}
    differing = [key for key, different in values.items() if len(different) > 1]
    return [key for key in differing if not key.endswith("_hash")] or differing


def _row(name: str, group: Sequence[Evaluated], options: Settings) -> JsonObject:
    cost = Counter[str]()
    for one in group:
        cost.update(one.cost)
    return {
        "name": name,
        "method": group[0].method,
        "seeds": sorted(one.seed for one in group if one.seed is not None),
        "runs": [str(one.path) for one in group],
        "cost": dict(cost),
        "metrics": {key: _metrics(group, key, options) for key in group[0].sets},
    }


def _metrics(group: Sequence[Evaluated], key: str, options: Settings) -> dict[str, JsonMapping]:
    """Return the metrics of a set of questions, over all seeds.

    If a seed has no stored answers, values are means over the seeds, without intervals.
    """
    reports = [one.sets[key] for one in group]
    tables = [
        {name: cell for name, cell in report.items() if _has_value(cell)} for report in reports
    ]
    if len(group) == 1:
        keys = ("value", "low", "high", "n")
        return {
            name: {key: cell.get(key, reports[0]["n"]) for key in keys}
            for name, cell in tables[0].items()
        }
    rows = [one.rows(key) for one in group]
    pooled = over_runs(rows, options) if all(rows) else {}
    return {
        name: pooled.get(name)
        or {
            "value": sum(table[name]["value"] for table in tables) / len(tables),
            **{"low": None, "high": None, "n": reports[0]["n"]},
        }
        for name in tables[0]
        if all(name in table for table in tables)
    }


def _has_value(cell: object) -> bool:
    return isinstance(cell, Mapping) and cell.get("value") is not None


def _paired(group: Sequence[Evaluated], base: Sequence[Evaluated], options: Settings) -> JsonObject:
    """Return the paired differences of two rows on their first sets, or the `reason` for none.

    Runs are paired by seed or, without a common seed, in order.
    """
    common = {one.seed for one in base} & {one.seed for one in group}
    first, second = (
        sorted(
            (one for one in side if not common or one.seed in common), key=lambda one: one.seed or 0
        )
        for side in (group, base)
    )
    pairs = [
        [one.rows(next(iter(one.sets))) for one in pair]
        for pair in zip(first, second, strict=False)
    ]
    if not all(all(pair) for pair in pairs):
        return {
            "reason": "answers were not stored: `workbench evaluate RUN --split NAME --out FILE`"
            " stores them"
        }
    cells = paired_runs([own for own, _ in pairs], [others for _, others in pairs], options)
    known = {name: cell for name, cell in cells.items() if cell["diff"] is not None}
    return known or {"reason": "the two answered no common question"}
