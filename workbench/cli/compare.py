"""`workbench compare`: print the evaluations of runs side by side."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from workbench.cli.frame import (
    Json,
    Seed,
    app,
    complain,
    percent,
    print_mapping,
    show,
    stdout_kept_clean,
)
from workbench.cli.metrics import paired_cells
from workbench.cli.train import metrics_with_values
from workbench.experiments.compare import compare
from workbench.experiments.compare_page import write_page
from workbench.experiments.queue import duration
from workbench.metrics.capability import CAPABILITY
from workbench.types import JsonMapping, JsonObject

UNFINISHED = 3  # unfinished runs that are named


@app.command(
    "compare", epilog="Example: workbench compare runs/ternary runs/binary --against runs/binary"
)
def compare_command(
    runs: Annotated[
        list[str],
        Argument(
            metavar="RUN…",
            help="Runs, folders of runs (such as runs/queue), files of feedback rows, or results"
            " files of lm-evaluation-harness.",
        ),
    ],
    against: Annotated[
        str | None,
        Option(metavar="NAME", help="Row to compare with: its name, or the path of a run."),
    ] = None,
    html: Annotated[
        Path | None, Option(metavar="FILE", help="Also write a page with tables and figures.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> int:
    """Compare the evaluations of runs, their settings and their cost.

    Runs that differ only in their seed share one row, with intervals over questions and seeds. A
    row's name is that of its runs in their queue. Otherwise, it is the method, with the settings in
    which the rows differ and that are not the method's defaults.

    --against names a baseline. The command then also prints the paired difference of each row to
    the baseline. For results of lm-evaluation-harness, it also prints each accuracy that is
    significantly lower than the baseline's.
    """
    with stdout_kept_clean():
        result = compare(*runs, against=against, seed=seed)
        if html:
            write_page(result, html)
            complain(f"wrote {html}: open it in a browser")
    return show(result, as_json, _print)


def _print(result: JsonMapping) -> None:
    rows, base = result["rows"], result.get("against", "")
    short = {row["name"]: row["short"] for row in rows}
    if unfinished := result["unfinished"]:
        complain(f"left out, because not finished: {', '.join(unfinished[:UNFINISHED])}")
        if (more := len(unfinished) - UNFINISHED) > 0:
            complain(f"{more} more runs are not finished")
    tables: JsonObject = {}
    for key in dict.fromkeys(key for row in rows for key in row["metrics"]):
        own = {row["name"]: row["metrics"][key] for row in rows if key in row["metrics"]}
        every = dict.fromkeys(name for cells in own.values() for name in cells)
        metrics = every if key == CAPABILITY else metrics_with_values(own.values())
        tables[f"{key}: percent [95 % interval]"] = [
            {"": short[name], **{metric: percent(cells.get(metric)) for metric in metrics}}
            for name, cells in own.items()
        ]
    for name, tests in result.get("paired", {}).items():
        if reason := tests.get("reason"):
            complain(f"{short[name]} is not paired with {short[base]}: {reason}")
            continue
        columns = (short[name], short[base], "difference [95 %]", "p", "questions")
        title = f"{short[name]} minus {short[base]}: percent, on questions where both have a value"
        tables[title] = [
            {"": metric, **dict(zip(columns, paired_cells(metric, tests[metric]), strict=True))}
            for metric in metrics_with_values([tests]) or tests
        ]
        for metric, test in tests.items():
            if test.get("drop"):
                complain(f"{short[name]}: {metric} dropped by {-100 * test['diff']:.1f} points")
    trained = [row["name"] for row in rows if row["method"]]
    tables["settings that differ"] = [
        {"": key, **{short[name]: values.get(name) for name in trained}}
        for key, values in result["differences"].items()
    ]
    tables["cost"] = [
        {
            "": short[row["name"]],
            "seed": row["seeds"],
            "judge calls": row["cost"].get("calls"),
            "tokens in": row["cost"].get("tokens_in"),
            "time of all seeds": duration(row["cost"].get("run_seconds", 0)),
        }
        for row in rows
    ]
    tables["full names"] = {new: name for name, new in short.items() if new != name}
    print_mapping({title: table for title, table in tables.items() if table})
