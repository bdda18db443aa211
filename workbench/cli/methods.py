"""`workbench methods`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from workbench.cli.frame import Json, app, print_table, show, text
from workbench.config import settings
from workbench.recipes import METHODS, method


@app.command(epilog="Example: workbench methods truthrl --bench tiny")
def methods(
    name: Annotated[str | None, typer.Argument(metavar="[METHOD]", help="Show one method's settings.")] = None,
    bench: Annotated[str | None, typer.Option(help="Show them as they are at this bench; by default the paper's.")] = None,
    as_json: Json = False,
) -> None:
    """List the methods, or one method's settings: what `--set METHOD.FIELD=VALUE` can change, and what it is now."""
    if name is None:
        listed = {recipe.name: {"title": recipe.title, "trains": recipe.stages is not None} for recipe in METHODS.values()}
        show(listed, as_json, _print_methods)
    else:
        config = method(name).configure(bench)
        fields = {f"{name}.{field}": {"value": value, "help": help} for field, value, help in settings(config)}
        show(fields, as_json, _print_settings)


def _print_methods(listed: Any) -> None:
    rows = [(name, entry["title"], "rewards, training" if entry["trains"] else "rewards") for name, entry in listed.items()]
    print_table("", ("method", "", "here"), rows)


def _print_settings(fields: Any) -> None:
    print_table("", ("--set", "value", ""), [(name, text(entry["value"]), entry["help"]) for name, entry in fields.items()])
