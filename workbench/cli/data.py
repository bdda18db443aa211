"""`workbench data …`: show data sets and files of questions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from workbench.cli.frame import (
    Json,
    SearchMode,
    add_group,
    parse_columns,
    print_table,
    show,
    stdout_kept_clean,
    text,
)
from workbench.data import FIELDS, load
from workbench.data.sets import SETS
from workbench.experiments.answering.retrieve import retrieve
from workbench.experiments.answering.sources import stored
from workbench.types import JsonMapping, JsonObject, Question, WorkbenchError

data_app = add_group(
    "data",
    "Show data sets and files of questions.",
    "data show questions.csv --map question=prompt,answers=gold",
)


@data_app.command("show", epilog="Example: workbench data show SelfAware.json -n 5 --json")
def data_show(
    source: Annotated[
        str | None,
        Argument(
            metavar="NAME|FILE",
            help="A data set's name, a file, or hf:owner/name@config; default: list the known data"
            " sets.",
        ),
    ] = None,
    split: Annotated[
        str | None,
        Option(
            help="A split of the data set; for a file rl, validation or test, by a hash of the ids."
        ),
    ] = None,
    limit: Annotated[
        int | None,
        Option(
            "-n", "--limit", min=1, help="Questions to show (default: 3) or write (default: all)."
        ),
    ] = None,
    mapping: Annotated[
        str | None,
        Option(
            "--map",
            metavar="FIELD=COLUMN,…",
            help="Column names of the file, such as question=prompt,answers=gold.",
        ),
    ] = None,
    schema: Annotated[
        str | None,
        Option("--as", metavar="NAME", help="Data set with the same schema as the file."),
    ] = None,
    store: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Index of passages for questions without any, as FoRAG's training needs them.",
        ),
    ] = None,
    out: Annotated[
        Path | None, Option(metavar="FILE", help="JSONL file for the questions with passages.")
    ] = None,
    k: Annotated[
        int, Option("--k", "-k", min=1, max=50, help="Maximum passages per question.")
    ] = 3,
    mode: SearchMode = None,
    as_json: Json = False,
) -> None:
    """Show the number of questions by kind, and the first questions, of a data set or file.

    Without a name, the known data sets are listed. With both --store and --out, the questions are
    written to the file --out instead, and questions without passages get passages from the index
    --store.
    """
    if (store is None) != (out is None) or (store is not None and source is None):
        raise WorkbenchError(
            "to write questions with passages, give --store NAME, --out FILE and a data set or file"
        )
    if source is None:
        rows = [
            {
                "name": known.name,
                "from": f"hf:{known.hub}" if known.hub else known.home,
                "columns": known.columns[0],
            }
            for known in SETS.values()
        ]
        show({"data_sets": rows}, as_json)
        return
    with stdout_kept_clean():
        columns = None if mapping is None else parse_columns(mapping, FIELDS)
        if store is None or out is None:
            questions = load(source, split, mapping=columns, schema=schema)
            result = {"source": source, **_describe(questions, limit or 3)}
        else:
            # written questions may be trained on, so evaluation-only data sets are refused
            questions = load(source, split, limit, columns, schema=schema, training=True)
            result = {**retrieve(questions, stored(store, mode), k, out), "out": str(out)}
    show(result, as_json, _print if store is None else None)


def _describe(questions: Sequence[Question], count: int) -> JsonObject:
    """Return the counts of a data set, and its first `count` questions."""
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


def _print(description: JsonMapping) -> None:
    counts = [(name, text(value)) for name, value in description.items() if name != "questions"]
    print_table("", ("", ""), counts)
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
    print_table("first questions", ("id", "kind", "question", "answers", "title (passages)"), rows)
