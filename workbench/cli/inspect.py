"""`workbench inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.frame import app
from workbench.inspector.page import launch, settings
from workbench.runs.folder import what_is_there
from workbench.types import WorkbenchError


@app.command(epilog="Example: workbench inspect --run runs/demo/ternary")
def inspect(
    run: Annotated[Path | None, typer.Option(help="Folder of the run to open first.")] = None,
    runs: Annotated[
        Path | None,
        typer.Option(help="Folder that holds the runs; by default runs/, or the one above --run."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0 takes a free one.")
    ] = 0,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=(
                "A further name to be opened under, as by a proxy (NAME or NAME:PORT); repeatable."
            ),
        ),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address.")
    ] = False,
) -> int:
    """Open the reward inspector: what every claim of a response earned, and which tokens earned
    it.
    """
    from importlib.util import find_spec

    _check(run, runs)
    if find_spec("gradio") is None:
        raise WorkbenchError(
            "the inspector needs gradio: pip install 'factuality-workbench[apps]', or `make"
            " inspect`"
        )
    launch(settings(run, runs, port, allow_host or ()), browser=not no_browser)
    return 0


def _check(run: Path | None, runs: Path | None) -> None:
    """Raise a WorkbenchError for a folder that is not there, or is a file."""
    if runs is not None and not runs.is_dir():
        raise WorkbenchError(
            f"--runs {runs} is not a folder: name the one that holds the runs, or leave it out"
        )
    if run is not None and not run.is_dir():
        raise WorkbenchError(
            f"no run '{run.name}' in '{run.parent}': {what_is_there(runs or run.parent)}"
        )
