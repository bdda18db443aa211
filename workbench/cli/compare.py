"""`workbench compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.frame import (
    ABSENT,
    Json,
    Seed,
    app,
    complain,
    percent,
    print_table,
    show,
    stdout_kept_clean,
    text,
)
from workbench.cli.metrics import paired_cells
from workbench.cli.train import metrics_with_values
from workbench.experiments.compare import compare
from workbench.experiments.queue.training import duration
from workbench.types import JsonMapping


@app.command(
    "compare", epilog="Example: workbench compare runs/ternary runs/binary --against runs/binary"
)
def compare_command(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN…",
            help="Runs, folders of runs (such as runs/queue), or files of feedback rows.",
        ),
    ],
    against: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Row or run whose paired differences are printed."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> int:
    """Compare the evaluations of runs, their settings and their cost.

    Runs that differ only in their seed are one row, with intervals over questions and seeds.
    """
    with stdout_kept_clean():
        result = compare(*map(Path, runs), against=against, seed=seed)
    return show(result, as_json, _print)


def _print(result: JsonMapping) -> None:
    rows, base = result["rows"], result.get("against")
    for key in dict.fromkeys(key for row in rows for key in row["metrics"]):
        tables = {row["name"]: row["metrics"][key] for row in rows if key in row["metrics"]}
        metrics = metrics_with_values(tables.values())
        cells = [
            (name, *(percent(table.get(metric)) for metric in metrics))
            for name, table in tables.items()
        ]
        print_table(f"{key}: percent [95 % interval]", ("", *metrics), cells)
    for name, tests in result.get("paired", {}).items():
        if reason := tests.get("reason"):
            complain(f"{name} is not paired with {base}: {reason}")
            continue
        cells = [(one, *paired_cells(one, tests[one])) for one in metrics_with_values([tests])]
        columns = ("paired, percent", name, base, "difference [95 %]", "p", "questions")
        print_table("", columns, cells)
    names = [row["name"] for row in rows if row["method"]]
    if result["differences"]:
        differing = [
            (key, *(text(values[name]) for name in names))
            for key, values in result["differences"].items()
        ]
        print_table("settings that differ", ("", *names), differing)
    print_table("cost", ("", "seeds", "judge calls", "tokens in", "time"), list(map(_cost, rows)))


def _cost(row: JsonMapping) -> tuple[str, ...]:
    cost = row["cost"]
    time = duration(cost["run_seconds"]) if "run_seconds" in cost else ABSENT
    return row["name"], text(row["seeds"]), *map(text, map(cost.get, ("calls", "tokens_in"))), time
