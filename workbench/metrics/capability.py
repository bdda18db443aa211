"""Accuracies on other tasks before and after training, to detect lost capabilities.

The accuracies are read from results files of lm-evaluation-harness. Such a file has, for each task
in `results`, metrics named "NAME,FILTER" and standard errors named "NAME_stderr,FILTER".
"""

import math
from collections.abc import Mapping
from pathlib import Path

from workbench.metrics.bootstrap import FEWEST
from workbench.runs.folder import read_json
from workbench.types import JsonMapping, JsonObject
from workbench.util.jsonl import finite

CAPABILITY = "capability"
Z = 1.959964  # quantile .975 of the normal distribution, for 95 % intervals


def read_accuracies(path: Path) -> JsonObject | None:
    """Return the accuracies of a results file: `{"TASK METRIC": {value, low, high, n, stderr}}`.

    The file is a JSON file that lm-evaluation-harness wrote. A key is, for example, "arc_easy acc".
    `n` is the number of samples, and `low` and `high` are the 95 % interval. A missing standard
    error is computed from the accuracy and n. If n is missing too, the interval is None.

    A metric is left out if its value is not from 0 to 1, or if smaller values are better. Return
    None if the file is not such a results file.
    """
    stored = (read_json(path) if path.suffix == ".json" else None) or {}
    results = stored.get("results")
    if not isinstance(results, Mapping):
        return None
    cells: JsonObject = {}
    for task, metrics in results.items():
        n = ((stored.get("n-samples") or {}).get(task) or {}).get("effective")
        better = (stored.get("higher_is_better") or {}).get(task) or {}
        for key, value in metrics.items() if isinstance(metrics, Mapping) else ():
            name, _, chosen = key.partition(",")
            share = finite(value) is not None and 0 <= value <= 1
            if name.endswith("_stderr") or better.get(name) is False or not share:
                continue
            error = metrics.get(f"{name}_stderr,{chosen}" if chosen else f"{name}_stderr")
            if not isinstance(error, float):
                error = math.sqrt(value * (1 - value) / n) if n else None
            if n and n < FEWEST:
                error = None
            shown = f"{task} {name}" + (f",{chosen}" if chosen not in ("", "none") else "")
            cells[shown] = {"value": value, **_interval(value, error), "n": n, "stderr": error}
    return cells


def _interval(value: float, error: float | None) -> dict[str, float | None]:
    low, high = (None, None) if error is None else (value - Z * error, value + Z * error)
    return {"low": low, "high": high}


def accuracy_changes(after: JsonMapping, before: JsonMapping) -> JsonObject:
    """Return the changes of accuracies: `{name: {value, other, diff, low, high, p, n, drop}}`.

    * `value`, `other`: the accuracy after and before training.
    * `diff`: `value` − `other`.
    * `low`, `high`: the 95 % interval of `diff`.
    * `p`: the two-sided p-value of a normal test with independent samples.
    * `n`: the number of samples in `after`.
    * `drop`: whether the whole interval is below 0.

    An accuracy is left out if it is in only one result, or has no standard error or fewer than 5
    samples.

    Args:
        after, before: results of `read_accuracies`.
    """
    changes: JsonObject = {}
    for name in after:
        one, other = after[name], before.get(name)
        if other is None or None in (one["stderr"], other["stderr"]):
            continue
        diff, error = one["value"] - other["value"], math.hypot(one["stderr"], other["stderr"])
        z = abs(diff) / error if error else (math.inf if diff else 0.0)
        changes[name] = {
            "value": one["value"],
            "other": other["value"],
            "diff": diff,
            **_interval(diff, error),
            "p": math.erfc(z / math.sqrt(2)),
            "n": one["n"],
            "drop": diff + Z * error < 0,
        }
    return changes
