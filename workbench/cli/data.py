"""`workbench data …`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from workbench.answering.retrieve import retrieve
from workbench.answering.sources import stored
from workbench.cli.frame import Json, app, print_mapping, print_table, show, stdout_kept_clean, text
from workbench.data import load
from workbench.data.sets import SETS
from workbench.data.show import describe, parse_mapping

Source = Annotated[
    str,
    typer.Argument(metavar="NAME|FILE", help="A data set's name, a file, or hf:owner/name@config."),
]
Split = Annotated[
    str | None,
    typer.Option(
        help="A split of the hub's; of a file: rl, validation or test, by a hash of the ids."
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--map", metavar="FIELD=COLUMN,…", help="Which column holds the question, its answers, …"
    ),
]
Schema = Annotated[
    str | None, typer.Option("--as", metavar="NAME", help="The data set whose schema the file has.")
]

data_app = typer.Typer(no_args_is_help=True)
app.add_typer(
    data_app,
    name="data",
    help="The field's data sets by name, and any file of questions.",
    epilog="Example: workbench data show questions.csv --map question=prompt,answers=gold",
)


@data_app.command("list", epilog="Example: workbench data list")
def data_list(as_json: Json = False) -> None:
    """List the data sets that are known by name, and where each comes from."""
    rows = [
        {
            "name": s.name,
            "from": f"hf:{s.hub}" if s.hub else s.home,
            "columns": ", ".join(s.columns[0]),
        }
        for s in SETS.values()
    ]
    show({"data_sets": rows}, as_json, print_mapping)


@data_app.command("show", epilog="Example: workbench data show SelfAware.json -n 5 --json")
def data_show(
    source: Source,
    split: Split = None,
    count: Annotated[
        int, typer.Option("-n", "--limit", min=1, help="How many questions to show.")
    ] = 3,
    mapping: Columns = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Read a data set or a file, count its questions by kind, and show the first few."""
    with stdout_kept_clean():
        description = describe(source, split, count=count, mapping=mapping, schema=schema)
    show(description, as_json, _print)


@data_app.command(
    "retrieve",
    epilog="Example: workbench data retrieve eli5.jsonl --store wiki --out questions.jsonl",
)
def data_retrieve(
    source: Source,
    store: Annotated[
        str, typer.Option(metavar="NAME", help="An index that `workbench index build` made.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="The JSONL file to write, for `workbench train --questions`."
        ),
    ],
    k: Annotated[
        int, typer.Option("--k", "-k", min=1, max=50, help="Passages a question, at most.")
    ] = 3,
    mode: Annotated[
        Literal["text", "dense", "hybrid"] | None,
        typer.Option(
            help=(
                "How the index is searched: by words, by vectors, or both, which is the default"
                " where it has any."
            )
        ),
    ] = None,
    split: Split = None,
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", min=1, help="Only so many questions.")
    ] = None,
    mapping: Columns = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Give questions without passages those that an index finds, for training FoRAG; what is for
    evaluation only is refused. Stopped before its end, the same command goes on from
    FILE.partial."""
    with stdout_kept_clean():
        questions = load(source, split, limit, parse_mapping(mapping), schema=schema, training=True)
        counts = retrieve(questions, stored(store, mode), k, out)
    show({**counts, "out": str(out)}, as_json, print_mapping)


def _print(description: Mapping[str, Any]) -> None:
    names = [name for name in description if name != "questions"]
    print_table("", ("", ""), [(name, text(description[name])) for name in names])
    rows = [
        [
            q["id"],
            q["kind"],
            q["text"][:200],
            " | ".join(q["answers"])[:100],
            f"{q['title'][:60]} ({len(q['passages'])})",
        ]
        for q in description["questions"]
    ]
    print_table(
        "the first of them", ("id", "kind", "question", "answers", "title (passages)"), rows
    )
