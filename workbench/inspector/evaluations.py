"""Build the tables of the Runs tab that compare runs: their evaluations and their settings."""

from collections.abc import Mapping, Sequence

from workbench.inspector.parts import page_json
from workbench.inspector.runs import Runs, damage
from workbench.metrics import RATES
from workbench.metrics.claims import COUNTS
from workbench.runs.naming import differing, flat
from workbench.types import JsonMapping, JsonObject

# metrics to show: rates of answers that have a gold answer; without such rates, metrics of claims
SHOWN = ((*RATES,), ("factscore", "responded", "correct", "incorrect"))
WHEN, KEYS = ("before", "after"), ("value", "low", "high")


def headline(summary: JsonMapping) -> JsonObject | None:
    """Return the main metric of a run's greedy answers before and after training.

    The metric is truthfulness or, for questions without gold answers, FactScore. The result is
    {"metric": name, "before": value, "after": value}. "before" may be None. Return None if the
    metric is not known after training.

    Args:
        summary: the content of the run's summary.json.
    """
    reports = [(summary.get(when) or {}).get("greedy") or {} for when in WHEN]
    for metric in ("truthfulness", "factscore"):
        before, after = ((report.get(metric) or {}).get("value") for report in reports)
        if after is not None:
            return {"metric": metric, "before": before, "after": after}
    return None


@page_json()
def before_after(runs: Runs, names: Sequence[str]) -> JsonObject:
    """Return tables that compare the evaluations and settings of runs, as JSON text.

    The JSON object has "tables", each with its "head" (column titles) and "rows", and a "note" on
    the number of questions and their split. If no run has an evaluation, it has only a "note".
    """
    configs = [runs.described(name, "config.json") for name in names]
    named = runs.labels()
    with damage(f"run '{', '.join(names)}': summary.json"):
        reports = _reports({named[n]: runs.described(n, "summary.json") for n in names})
        rows = _rows(list(reports.values()))
    if not rows:
        return {"note": "No selected run has an evaluation before and after training."}
    n, split = (next(iter(reports.values())).get(key) for key in ("n", "split"))
    tables = [{"head": ["", *reports], "rows": rows}]
    settings = [flat(config) for config in configs]
    if keys := differing(configs):
        rows = [[key, *(str(one.get(key, "")) for one in settings)] for key in keys]
        tables.append({"head": ["Setting", *(named[name] for name in names)], "rows": rows})
    return {"note": f"{n} questions of split {split}, 95 % intervals", "tables": tables}


def _reports(summaries: Mapping[str, JsonMapping]) -> dict[str, JsonMapping]:
    """Return the evaluation reports by column title, such as "Before" and "After".

    `summaries` maps run labels to summary.json contents. Runs with equal reports before training
    share one column for it.
    """
    columns: dict[str, JsonMapping] = {}
    for name, summary in summaries.items():
        # an unfinished run has null instead of an evaluation
        before, after = (summary.get(when) or {} for when in WHEN)
        if before and before not in columns.values():
            columns["Before" if not columns else f"{name}, before"] = before
        if after:
            columns["After" if len(summaries) == 1 else name] = after
    return columns


def _rows(reports: Sequence[JsonMapping]) -> list[list[str]]:
    for metrics in SHOWN:
        rows = [
            [f"{metric.capitalize()}, {mode}", *cells]
            for mode in ("greedy", "sampled")
            for metric in metrics
            if any(cells := [_cell(report, mode, metric) for report in reports])
        ]
        if rows:
            return rows
    return []


def _cell(report: JsonMapping, mode: str, metric: str) -> str:
    cell = (report.get(mode) or {}).get(metric) or {}
    if not isinstance(cell, Mapping) or cell.get("value") is None:
        return ""
    spec = ".1f" if metric in COUNTS else ".1%"
    value, *bounds = (format(cell[key], spec) for key in KEYS if cell.get(key) is not None)
    interval = f" [{', '.join(bounds)}]" if bounds else ""
    return f"{value}{interval}".replace("-", "\N{MINUS SIGN}")
