"""`workbench scorecard`: run `benchmarks/scorecard.py` from a clone of the repository."""

import runpy
from pathlib import Path
from typing import Annotated

from typer import Option

from workbench.cli.frame import Json, app
from workbench.types import WorkbenchError

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "scorecard.py"


@app.command("scorecard", epilog="Example: workbench scorecard --only D1")
def scorecard_command(
    only: Annotated[
        list[str] | None,
        Option(
            metavar="ID",
            help='A finding, such as D1, or "rlfh_long M1" if several studies have the id; or a'
            " study, such as klcf; repeatable.",
        ),
    ] = None,
    run: Annotated[bool, Option("--run", help="Train and measure again.")] = False,
    quick: Annotated[
        bool, Option("--quick", help="With --run: one seed of each arm, and half of the steps.")
    ] = False,
    policy: Annotated[
        str | None, Option(help="With --run and --only: initial policy of these studies.")
    ] = None,
    jobs: Annotated[
        int, Option(min=1, help="With --run: runs to train and policies to ask at the same time.")
    ] = 1,
    as_json: Json = False,
) -> int:
    """Show which findings of the papers hold here, or measure them again.

    By default, the results in the repository are shown. With --run, the studies are run again, and
    their results are written to runs/scorecard.
    """
    if not SCRIPT.is_file():
        raise WorkbenchError(
            "the findings are not part of the package: clone the project and run this command there"
        )
    runpy.run_path(str(SCRIPT))["show"](only or (), run, policy, quick, jobs, as_json)
    return 0
