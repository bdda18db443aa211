"""`workbench queue`: train the runs of a file, or show their status."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from workbench.cli.frame import Json, app, print_mapping, show, stdout_kept_clean, text
from workbench.experiments.queue import (
    QUICK_STEPS,
    ROOT,
    duration,
    queue_runs,
    status_of,
    train_queue,
)
from workbench.types import JsonMapping


@app.command(epilog="Example: workbench queue seeds.toml --status")
def queue(
    file: Annotated[
        Path,
        Argument(
            metavar="FILE", help="TOML with a table [[run]] for each run; see docs/formats.md."
        ),
    ],
    out: Annotated[
        Path, Option(help="Folder of the runs, whose names are hashes of their settings.")
    ] = ROOT,
    quick: Annotated[
        bool,
        Option(
            "--quick", help=(f"Test each run with {QUICK_STEPS} steps, in a folder of its own.")
        ),
    ] = False,
    jobs: Annotated[
        int,
        Option(min=1, help="Number of runs to train at a time; each has its own threads."),
    ] = 1,
    status: Annotated[
        bool, Option("--status", help="Show the status of the runs, and start nothing.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Train the runs of a file in order.

    Ctrl-C saves the current runs after their step; a second one stops them at once. The same
    command continues a stopped queue.
    """
    with stdout_kept_clean():
        runs = queue_runs(file, out, quick)
        result = status_of(runs) if status else train_queue(runs, out, jobs)
    code = show(result, as_json, _print)
    return 0 if status else code  # a failed run is not a failure of `--status`


def _print(result: JsonMapping) -> None:
    rows = [
        {
            **{"run": row["hash"], "name": row["name"], "method": row["method"]},
            **{"seed": row["seed"], "status": row["status"]},
            "step": f"{row['step']}/{text(row['steps'])}",
            "took": duration(row["seconds"]) if row["seconds"] else None,
        }
        for row in result["runs"]
    ]
    print_mapping({"": rows})
    for row in result["runs"]:
        if row["error"]:
            print(f"{row['hash']}: {row['error']}")
