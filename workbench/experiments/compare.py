"""Compare evaluated runs and feedback files side by side: `workbench compare`.

Runs that differ only in their seed are combined into one row. The name of a row is its method, with
the settings that differ from other rows of the same method.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from workbench.methods import METHODS
from workbench.metrics import FACET_METRICS, compare_files, read_rows
from workbench.metrics.capability import CAPABILITY, accuracy_changes, read_accuracies
from workbench.metrics.facets import FACT_METRICS
from workbench.metrics.outcomes import RESAMPLES
from workbench.metrics.report import Settings, over_runs, paired_runs
from workbench.metrics.rows import Row, file_of
from workbench.pipeline import ANSWER_SECTIONS
from workbench.runs.folder import describe_runs, finished, read_json
from workbench.runs.naming import APART, LABEL, differing, flat, short_names, with_settings
from workbench.runs.store import AFTER, BEFORE, EVALUATION, ROLLOUTS
from workbench.types import JsonMapping, JsonObject, WorkbenchError
from workbench.util.grouping import group_by
from workbench.util.jsonl import iter_rows


@dataclass(frozen=True)
class Evaluated:
    """One input of `compare`: a finished run, a feedback file, or results of lm-evaluation-harness.

    Attributes:
        sets: name of a question set -> (metrics, file with the graded answers). A run has the sets
            "test" and "test before training", for example; the main set comes first.
        method: the method of a run; None for a file.
    """

    path: Path
    # name of a question set -> (report, file of the answers); the main set first
    sets: Mapping[str, tuple[JsonMapping, Path]]
    cost: Mapping[str, float]
    method: str | None = None
    seed: int = 0
    settings: JsonObject = field(default_factory=dict)  # full name of a setting -> value
    label: str = ""  # name of the run in its queue

    def rows(self, key: str) -> list[Row]:
        """Return the graded answers to the question set `key` of `sets`; [] if not stored."""
        file, sections = self.sets[key][1], ANSWER_SECTIONS if self.method else ()
        return read_rows(file, sections) if file.is_file() else []


Group = Sequence[Evaluated]
TRAINERS = ("grpo", "ppo", "dpo")  # a method's settings of each; its setting `trainer` names one


def compare(
    *runs: Path | str, against: str | None = None, seed: int = 0, resamples: int = RESAMPLES
) -> JsonObject:
    """Compare finished runs and feedback files, with 95 % intervals over questions and seeds.

    Runs that differ only in their seed are combined into one row of the result. The name of a row
    is the method with its distinguishing settings, such as "truthrl reward=binary", or the path of
    a file.

    Args:
        runs: folders of runs, folders of several runs such as a queue's, feedback files (graded
            responses as JSON lines), or results files of lm-evaluation-harness.
        against: the baseline: the name or short name of a row, or the path of a run or file in it;
            None for no comparison with a baseline.
        seed: seed of the bootstrap.
        resamples: number of resamples of the bootstrap.

    Returns:
        An object with these keys. Without a baseline, the last two are missing.

        * `rows`: objects with `name`, `short` (a shorter name), `method`, `seeds`, `runs` (paths),
          `cost` and `metrics`. The metrics are `{question set: {metric: {value, low, high, n}}}`.
        * `differences`: the settings in which rows of one method differ, and those that all rows
          have and in which they differ, `{setting: {row: value}}`.
        * `unfinished`: paths of runs in the named folders that are left out.
        * `against`: the name of the baseline's row.
        * `paired`: paired comparisons with the baseline, `{row: {metric: {value, other, diff, low,
          high, p, n}}}`. `other` is the baseline's value. `diff` is `value` − `other`, with its
          interval from `low` to `high` and its p-value `p`. Results files also have `drop`: True if
          the interval is below 0. A row that cannot be compared has `{"reason": text}`.

    Raises:
        WorkbenchError: a run is not finished, a file is not feedback, two runs have the same
            settings and seed, or `against` is not a row, or the only one.
    """
    options = Settings(seed=seed, resamples=resamples)
    found: dict[Path, Path] = {}  # each run once, by its resolved path
    for path in (path for run in runs for path in _finished(Path(run))):
        found.setdefault(path.resolve(), path)
    paths = list(found.values())
    inside = [one for run in runs if Path(run) not in paths for one in _runs_in(Path(run))]
    unfinished = [str(path) for path in inside if path not in paths]
    named = _named([_read(path, options) for path in paths])
    for group in named.values():
        _check_seeds(group)
    trained = {name: group[0] for name, group in named.items() if group[0].method}
    short = _short(named)
    rows = {str(one.path): name for name, group in named.items() for one in group}
    rows |= {new: name for name, new in short.items()} | {name: name for name in named}
    base = None if against is None else rows.get(against, rows.get(str(Path(against))))
    if base is None and against is not None:
        listed = ", ".join(f"'{name}'" for name in short.values())
        raise WorkbenchError(f"no row '{against}': choose one of {listed}, or the path of a run")
    if base is not None and len(named) == 1:
        raise WorkbenchError(f"'{against}' is in the only row: name a run to compare with it")
    result: JsonObject = {
        "rows": [
            {
                "name": name,
                "short": short[name],
                "method": group[0].method,
                "seeds": sorted(one.seed for one in group if one.method),
                "runs": [str(one.path) for one in group],
                "cost": _sum(one.cost for one in group),
                "metrics": {key: _metrics(group, key, options) for key in group[0].sets},
            }
            for name, group in named.items()
        ],
        "differences": _differences(trained),
        "unfinished": unfinished,
    }
    if base is not None:
        result["against"] = base
        result["paired"] = {
            name: _paired(group, named[base], options)
            for name, group in named.items()
            if name != base
        }
    return result


def _check_seeds(group: Group) -> None:
    """Raise `WorkbenchError` if two runs of a row have the same seed."""
    found: dict[int, Path] = {}
    for one in group:
        first = found.setdefault(one.seed, one.path)
        if one.method and first != one.path:
            raise WorkbenchError(
                f"'{first}' and '{one.path}' have the same settings and seed: leave one of them out"
            )


def _finished(path: Path) -> list[Path]:
    """Return [path] for a feedback file or a run, else the finished runs in the folder `path`."""
    if path.is_file() or any((path / name).exists() for name in ("config.json", ROLLOUTS)):
        return [path]
    if not (runs := list(filter(evaluated, _runs_in(path)))):
        raise WorkbenchError(f"no finished run in '{path}': {describe_runs(path.parent)}")
    return runs


def _runs_in(path: Path) -> list[Path]:
    """Return the runs in a folder, which may hold the folder of a queue."""
    files = [*path.glob("*/config.json"), *path.glob("*/*/config.json")]
    # the stages of a run are no runs
    return sorted(file.parent for file in files if file.parent.parent.name != "stages")


def evaluated(path: Path) -> JsonObject | None:
    """Return the summary of a finished run with an evaluation, else None."""
    summary = finished(path)
    return summary if summary and summary.get("after") else None


def _read(path: Path, options: Settings) -> Evaluated:
    summary = evaluated(path)
    if summary is None:
        if (path / "config.json").exists():
            raise WorkbenchError(f"'{path}' is not finished: repeat its command to continue it")
        if (accuracies := read_accuracies(path)) is not None:
            return Evaluated(path, {CAPABILITY: (accuracies, path)}, {})
        file = file_of(path)
        report = compare_files(file, seed=options.seed, resamples=options.resamples)
        costs = (row.get("cost") or {} for row in iter_rows(file))
        return Evaluated(path, {"responses": (report, file)}, _sum(costs))
    try:
        return _of_run(path, summary)
    except (AttributeError, LookupError, TypeError) as error:
        raise WorkbenchError(
            f"'{path / 'summary.json'}' is damaged ({error!r}): train the run again, or leave it"
            " out"
        ) from error


def _of_run(path: Path, summary: JsonMapping) -> Evaluated:
    folder = path / EVALUATION
    cost = {**summary.get("cost", {}), "run_seconds": summary["seconds"]}
    config = read_json(path / "config.json") or {}
    settings = flat({key: config[key] for key in config if key not in APART})
    kinds = settings.get("prompts.eval_kinds")  # runs with other kinds have other questions
    split = summary["after"]["split"] + (f" ({kinds})" if kinds else "")
    sets = {split: (summary["after"]["greedy"], folder / AFTER)}
    if summary.get("before"):
        sets[f"{split} before training"] = (summary["before"]["greedy"], folder / BEFORE)
    label = path / LABEL
    name = label.read_text(encoding="utf-8", errors="replace").strip() if label.is_file() else ""
    return Evaluated(path, sets, cost, summary["method"], summary["seed"], settings, name)


def _named(found: Group) -> dict[str, list[Evaluated]]:
    """Group runs that differ only in their seed, and return name -> group.

    The name of a group is its method, with the settings that differ between groups of this method.
    A file has no method, so its name is its path.
    """
    groups = group_by(
        found,
        lambda one: json.dumps(
            [one.method, one.settings or str(one.path), list(one.sets)], sort_keys=True
        ),
    )
    named = {}
    for group in groups.values():
        own = group[0]
        # a name needs only settings that differ within the method: other methods have other names
        alike = [other[0].settings for other in groups.values() if other[0].method == own.method]
        name = str(own.path)
        if own.method:
            name = with_settings(own.method, own.settings, differing(alike))
        named[f"{name} {own.path}" if name in named else name] = group
    return named


def _short(named: Mapping[str, Group]) -> dict[str, str]:
    """Return a short name of each row: its runs' name in their queue, or its method with settings.

    Settings that have the method's default value are left out, unless the rows of the method differ
    in a single setting.
    """
    labels = {name: {one.label for one in group} for name, group in named.items()}
    brief = []
    for name, group in named.items():
        [label, *others] = labels[name]
        own = group[0]
        alike = [other[0].settings for other in named.values() if other[0].method == own.method]
        keys = differing(alike) if own.method else []
        if label and not others and sum(label in some for some in labels.values()) == 1:
            brief.append(label)
        elif own.method in METHODS and len(keys) > 1:
            default = _defaults(own.method, own.settings.get("bench"))
            changed = [key for key in keys if own.settings.get(key) != default.get(key)]
            brief.append(with_settings(own.method, own.settings, changed))
        else:
            brief.append(name)
    distinct = brief if len({*brief}) == len(brief) else list(named)
    return dict(zip(named, short_names(distinct), strict=True))


def _defaults(method: str, bench: str | None) -> JsonObject:
    """Return a method's settings on a bench, by name."""
    chosen = METHODS[method]
    config = json.loads(json.dumps(asdict(chosen.configure(bench))))
    return flat({"config": config})


def _differences(trained: Mapping[str, Evaluated]) -> JsonObject:
    """Return the settings in which rows differ: `{setting: {row: value}}`.

    Methods have different settings, so a setting counts if rows of one method differ in it, or if
    all rows use it. The settings of another trainer than the run's are not used.
    """
    groups = group_by(trained.values(), lambda one: one.method)
    within = {key for own in groups.values() for key in differing([one.settings for one in own])}
    settings = {name: one.settings for name, one in trained.items()}
    keys = differing(list(settings.values()))
    used = {key: {k: own[key] for k, own in settings.items() if _uses(own, key)} for key in keys}
    return {
        key: values
        for key, values in used.items()
        if (key in within and values) or len(values) == len(settings)
    }


def _uses(settings: JsonMapping, key: str) -> bool:
    trainer, part = settings.get("trainer"), key.split(".")[0]
    return key in settings and (trainer is None or part not in TRAINERS or part == trainer)


def _sum(costs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total = Counter[str]()
    for cost in costs:
        total.update(cost)
    return dict(total)


def _metrics(group: Group, key: str, options: Settings) -> JsonObject:
    """Return a group's metrics on the question set `key`, over all its seeds.

    Metrics that `over_runs` does not compute are means over the seeds, without intervals.
    """
    reports = [known_metrics(one.sets[key][0]) for one in group]
    cells = {}
    for name, cell in reports[0].items():
        values = [report[name]["value"] for report in reports if name in report]
        bounds = {key: cell[key] if len(group) == 1 else None for key in ("low", "high")}
        n = cell["n"] if "n" in cell else group[0].sets[key][0]["n"]
        cells[name] = {"value": sum(values) / len(values), **bounds, "n": n}
    if len(group) > 1 and all(rows := [one.rows(key) for one in group]):
        # a report with metrics of facets has these only for the answers about facets
        kept = FACT_METRICS if cells.keys() & set(FACET_METRICS) else ()
        pooled = known_metrics(over_runs(rows, options))
        cells |= {name: cell for name, cell in pooled.items() if name not in kept}
    return cells


def known_metrics(report: JsonMapping) -> JsonObject:
    """Return the metrics of a report whose value is not None: metric -> `{value, low, high, …}`."""
    return {
        name: cell
        for name, cell in report.items()
        if isinstance(cell, Mapping) and cell.get("value") is not None
    }


def _paired(group: Group, base: Group, options: Settings) -> JsonObject:
    """Return the paired differences between two groups, by metric; {"reason": text} if impossible.

    The evaluations after training are compared. Runs with the same seed are paired. If the groups
    have no seed in common, their runs are paired in order. Results files have no answers to single
    questions, so only their totals are compared.
    """
    accuracies = [
        side[0].sets[CAPABILITY][0] for side in (group, base) if CAPABILITY in side[0].sets
    ]
    if accuracies:
        changes = accuracy_changes(*accuracies) if len(accuracies) == 2 else {}
        return changes or {"reason": "no accuracy with a standard error is in both"}
    by_seed = [{one.seed: one for one in side} for side in (group, base)]
    common = sorted(by_seed[0].keys() & by_seed[1].keys())
    sides = [[seeds[seed] for seed in common or sorted(seeds)] for seeds in by_seed]
    runs, others = zip(
        *([one.rows(next(iter(one.sets))) for one in pair] for pair in zip(*sides, strict=False)),
        strict=True,
    )
    if not all((*runs, *others)):
        remedy = "`workbench evaluate RUN --split NAME --out FILE` stores them"
        return {"reason": f"an earlier version did not store the answers; {remedy}"}
    return known_metrics(paired_runs(runs, others, options)) or {"reason": "no question is common"}
