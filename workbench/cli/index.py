"""`workbench index …`: build and search indexes of passages."""

import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from workbench.cli.frame import (
    ABSENT,
    Json,
    add_group,
    complain,
    print_table,
    show,
    stdout_kept_clean,
)
from workbench.retrieval import build_index, list_indexes, open_index
from workbench.retrieval.index import ROOT
from workbench.types import JsonMapping

index_app = add_group(
    "index", "Build and search indexes of passages.", "index build world --from world"
)

Root = Annotated[Path, Option("--root", "--out", help="Folder of the indexes.")]


@index_app.command(
    "build",
    epilog="Example: workbench index build wiki"
    " --from hf:wikimedia/wikipedia/20231101.simple:train",
)
def index_build(
    name: Annotated[
        str, Argument(help="Name or path of the index; an unfinished index is resumed.")
    ],
    source: Annotated[
        str,
        Option(
            "--from",
            metavar="FILE|hf:DATASET[/CONFIG][:SPLIT]|world",
            help="JSONL, Parquet, TSV or CSV with a column text and optional columns title and id;"
            " a .txt or .md file or a folder of them; a hub data set; the closed world's pages.",
        ),
    ],
    encoder: Annotated[
        str,
        Option(
            metavar="MODEL|none",
            help="A sentence-transformers model for vectors, such as"
            " sentence-transformers/gtr-t5-large; all-MiniLM-L6-v2 is included and needs no"
            " network.",
        ),
    ] = "none",
    words: Annotated[
        int, Option(min=0, help="Maximum words per passage; 0 keeps pages whole.")
    ] = 100,
    root: Root = ROOT,
    as_json: Json = False,
) -> int:
    """Split pages into passages and index them.

    If the command was stopped, the same command completes the index.
    """
    with stdout_kept_clean():
        card = build_index(name, source, encoder, words, root, _progress())
    if card["failed"]:
        complain(
            f"{card['failed']} rows of {card['source']['spec']} could not be indexed; the"
            f" first is {card['failures'][0]}"
        )
    return show({"name": name, **card}, as_json)


@index_app.command(
    "search", epilog='Example: workbench index search world "Who employs Dramem Torusin?" --k 3'
)
def index_search(
    name: Annotated[
        str | None, Argument(help="Name or path of an index; default: list the indexes.")
    ] = None,
    query: Annotated[
        str | None,
        Argument(
            help="A question or a claim, searched as a bag of words; default: show the index's"
            " sources."
        ),
    ] = None,
    k: Annotated[int, Option("--k", "-k", min=1, help="Number of passages.")] = 5,
    mode: Annotated[
        Literal["text", "dense", "hybrid"], Option(help="Search by words, vectors, or both.")
    ] = "text",
    root: Root = ROOT,
    as_json: Json = False,
) -> int:
    """Search an index, show its sources, or list the indexes."""
    if name is None:
        columns = ("name", "status", "passages", "pages", "encoder")
        rows = [
            {
                **{column: card.get(column) for column in columns},
                "source": card["source"].get("spec"),
            }
            for card in list_indexes(root)
        ]
        return show({"indexes": rows}, as_json)
    with stdout_kept_clean():
        index = open_index(name, root)
        if query is not None:
            passages = index.search([query], k, mode=mode)[0]
    if query is None:
        size = sum(path.stat().st_size for path in index.folder.rglob("*") if path.is_file())
        card = {"name": name, "folder": str(index.folder), **index.card}
        show({**card, "megabytes": round(size / 1e6, 1)}, as_json)
        return 0
    result = {
        "name": name,
        "query": query,
        "mode": mode,
        "k": k,
        "passages": [asdict(passage) for passage in passages],
    }
    show(result, as_json, _print_passages)
    return 0


def _print_passages(result: JsonMapping) -> None:
    cells = [
        (f"{row['score']:.3f}", row["id"], row["title"], row["text"]) for row in result["passages"]
    ]
    print_table("", ("score", "id", "title", "text"), cells or [(ABSENT, "", "", "nothing found")])


def _progress() -> Callable[[str, int, int], None]:
    """Return a function that prints progress on stderr every ten seconds."""
    printed_at = time.monotonic()

    def update(task: str, rows: int, passages: int) -> None:
        nonlocal printed_at
        if time.monotonic() - printed_at >= 10:
            printed_at = time.monotonic()
            print(f"{task}: {rows:,} rows, {passages:,} passages", file=sys.stderr)

    return update
