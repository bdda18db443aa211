"""`workbench methods`: list the methods and their settings."""

from typing import Annotated

from typer import Argument, Option

from workbench.cli.frame import Json, app, print_mapping, show
from workbench.methods import METHODS, TRAINED, trained
from workbench.types import JsonMapping
from workbench.util.config import settings


@app.command(epilog="Example: workbench methods truthrl --bench tiny")
def methods(
    name: Annotated[
        str | None, Argument(metavar="[METHOD]", help="Show the settings of this method.")
    ] = None,
    bench: Annotated[
        str | None, Option(help="Bench whose defaults are shown; default: the paper's.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the methods, or the settings of one method.

    `workbench train` and `workbench score` change a setting by `--set METHOD.FIELD=VALUE`.
    """
    if name is None:
        result = {
            name: {
                "title": method.title,
                "pays": name in METHODS,
                "trains": method.stages is not None,
            }
            for name, method in TRAINED.items()
        }
        show(result, as_json, _print)
    else:
        if not as_json:
            where = f"on the bench {bench}" if bench else "of the paper; --bench tiny has others"
            print(f"settings of {name} {where}:\n")
        fields = {
            f"{name}.{field}": {"value": value, "help": help}
            for field, value, help in settings(trained(name).configure(bench))
        }
        show(fields, as_json, _print)


def _print(result: JsonMapping) -> None:
    print_mapping({"": [{"name": name, **columns} for name, columns in result.items()]})
