"""`workbench methods`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from workbench.cli.frame import Json, app, print_mapping, show
from workbench.methods import METHODS, TRAINED, trained
from workbench.util.config import settings


@app.command(epilog="Example: workbench methods truthrl --bench tiny")
def methods(
    name: Annotated[
        str | None, typer.Argument(metavar="[METHOD]", help="Show one method's settings.")
    ] = None,
    bench: Annotated[
        str | None,
        typer.Option(help="Show them as they are at this bench; by default the paper's."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the methods, or one method's settings: what `--set METHOD.FIELD=VALUE` can change,
    and what it is now.
    """
    if name is None:
        listed = {
            name: {
                "title": recipe.title,
                "pays": name in METHODS,
                "trains": recipe.stages is not None,
            }
            for name, recipe in TRAINED.items()
        }
        show(listed, as_json, _print)
    else:
        config = trained(name).configure(bench)
        fields = {
            f"{name}.{field}": {"value": value, "help": help}
            for field, value, help in settings(config)
        }
        show(fields, as_json, _print)


def _print(found: Mapping[str, Any]) -> None:
    print_mapping({"": [{"name": name, **one} for name, one in found.items()]})
