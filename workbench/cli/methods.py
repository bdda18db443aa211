"""`workbench methods`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from workbench.cli.frame import Json, app, print_table, show, text
from workbench.config import settings
from workbench.recipes import METHODS, TRAINED, trained


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
        show(listed, as_json, _print_methods)
    else:
        config = trained(name).configure(bench)
        fields = {
            f"{name}.{field}": {"value": value, "help": help}
            for field, value, help in settings(config)
        }
        show(fields, as_json, _print_settings)


def _print_methods(listed: Any) -> None:
    offers = {"pays": "rewards", "trains": "training"}
    rows = [
        (name, one["title"], ", ".join(told for key, told in offers.items() if one[key]))
        for name, one in listed.items()
    ]
    print_table("", ("method", "", "here"), rows)


def _print_settings(fields: Any) -> None:
    print_table(
        "",
        ("--set", "value", ""),
        [(name, text(entry["value"]), entry["help"]) for name, entry in fields.items()],
    )
