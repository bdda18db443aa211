"""`workbench inspect`: serve the reward inspector."""

from pathlib import Path
from typing import Annotated

from typer import Option

from workbench.cli.frame import app
from workbench.inspector.page import launch, settings
from workbench.runs.folder import describe_runs
from workbench.types import WorkbenchError


@app.command(epilog="Example: workbench inspect --run runs/demo/ternary")
def inspect(
    run: Annotated[Path | None, Option(help="Run folder or feedback file to open first.")] = None,
    runs: Annotated[
        Path | None, Option(help="Folder of all runs; default: runs/, or the folder above --run.")
    ] = None,
    port: Annotated[
        int, Option(min=0, max=65535, help="Port on this machine; 0: any free port.")
    ] = 0,
    allow_host: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            help="Host name of the page behind a proxy: NAME or NAME:PORT; repeatable.",
        ),
    ] = None,
    no_browser: Annotated[bool, Option("--no-browser", help="Only print the address.")] = False,
) -> int:
    """Open the reward inspector in a browser.

    The inspector shows the rewards of every claim and token of a response.
    """
    from importlib.util import find_spec

    if runs is not None and not runs.is_dir():
        raise WorkbenchError(
            f"--runs {runs} is not a folder: name the folder of all runs, or leave it out"
        )
    if run is not None and not run.exists():
        raise WorkbenchError(
            f"no run '{run.name}' in '{run.parent}': {describe_runs(runs or run.parent)}"
        )
    if find_spec("gradio") is None:  # an optional extra; importing it takes seconds
        raise WorkbenchError(
            "the inspector needs gradio: pip install 'factuality-workbench[apps]', or `make"
            " inspect`"
        )
    launch(settings(run, runs, port, allow_host or ()), browser=not no_browser)
    return 0
