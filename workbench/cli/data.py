"""`workbench data …`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.frame import (
    Json,
    SearchMode,
    app,
    parse_columns,
    print_mapping,
    print_table,
    show,
    stdout_kept_clean,
    text,
)
from workbench.data import FIELDS, load
from workbench.data.sets import SETS
from workbench.experiments.answering.retrieve import retrieve
from workbench.experiments.answering.sources import stored
from workbench.types import Question, WorkbenchError

data_app = typer.Typer(no_args_is_help=True)
app.add_typer(
    data_app,
    name="data",
    help="The field's data sets by name, and any file of questions.",
    epilog="Example: workbench data show questions.csv --map question=prompt,answers=gold",
)


@data_app.callback()
def root() -> None:
    """Keep `show` a subcommand, although it is the only one."""


@data_app.command("show", epilog="Example: workbench data show SelfAware.json -n 5 --json")
def data_show(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|FILE",
            help=(
                "A data set's name, a file, or hf:owner/name@config; without it, the data sets"
                " that are known by name are listed."
            ),
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="A split of the hub's; of a file: rl, validation or test, by a hash of the ids."
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "-n", "--limit", min=1, help="Questions to show (default 3), or to write (default all)."
        ),
    ] = None,
    mapping: Annotated[
        str | None,
        typer.Option(
            "--map",
            metavar="FIELD=COLUMN,…",
            help="Which column holds the question, its answers, …",
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="The data set whose schema the file has."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Add passages of this index to questions without any, to train FoRAG on.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --store: the JSONL file of questions to write."),
    ] = None,
    k: Annotated[
        int, typer.Option("--k", "-k", min=1, max=50, help="Passages a question, at most.")
    ] = 3,
    mode: SearchMode = None,
    as_json: Json = False,
) -> None:
    """Read a data set or a file, count its questions by kind, and show the first few.

    With --store and --out, write its questions with the passages that an index finds for them.
    """
    if (store is None) != (out is None) or (store is not None and source is None):
        raise WorkbenchError(
            "passages are added by --store NAME and --out FILE together, with a NAME|FILE of"
            " questions"
        )
    if source is None:
        rows = [
            {
                "name": known.name,
                "from": f"hf:{known.hub}" if known.hub else known.home,
                "columns": ", ".join(known.columns[0]),
            }
            for known in SETS.values()
        ]
        show({"data_sets": rows}, as_json, print_mapping)
        return
    with stdout_kept_clean():
        columns = None if mapping is None else parse_columns(mapping, FIELDS)
        if store is None or out is None:
            questions = load(source, split, mapping=columns, schema=schema)
            found = {"source": source, **_describe(questions, limit or 3)}
        else:
            questions = load(source, split, limit, columns, schema=schema, training=True)
            found = {**retrieve(questions, stored(store, mode), k, out), "out": str(out)}
    show(found, as_json, _print if store is None else print_mapping)


def _describe(questions: Sequence[Question], count: int) -> dict[str, Any]:
    """A data set in numbers, and its first `count` questions."""
    return {
        "schema": questions[0].meta["source"],
        "n": len(questions),
        "kinds": dict(Counter(question.kind for question in questions)),
        "answered": sum(bool(question.answers) for question in questions),
        "unanswerable": sum(question.meta.get("answerable") is False for question in questions),
        "evaluation_only": any(question.meta.get("evaluation_only") for question in questions),
        "splits": dict(sorted(Counter(question.meta["split"] for question in questions).items())),
        "questions": [asdict(question) for question in questions[:count]],
    }


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
