"""`workbench world …`: show and export the closed world, and train the tiny policy."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Context, Option

from workbench.cli.frame import (
    Json,
    Threads,
    WorldSeed,
    add_group,
    show,
    stdout_kept_clean,
)
from workbench.experiments.tiny.build import build_policy
from workbench.util.threads import DEFAULT_THREADS
from workbench.world.export import export_world
from workbench.world.show import describe


def world(
    context: Context,
    entity: Annotated[
        str | None, Option(help="Name of an entity; default: show counts of the world.")
    ] = None,
    seed: WorldSeed = 0,
    as_json: Json = False,
) -> None:
    """Show counts of the closed world, or all facts about one entity."""
    if context.invoked_subcommand is None:
        show(describe(entity, seed), as_json)


world_app = add_group(
    "world",
    "Show and export the closed world, and train a tiny model on it.",
    'world --entity "Dramem Torusin" --json',
    world,
)


@world_app.command("export", epilog="Example: workbench world export --out runs/world")
def world_export(
    out: Annotated[
        Path, Option(help="New folder for the files, or the folder of an earlier export.")
    ],
    seed: WorldSeed = 0,
    as_json: Json = False,
) -> None:
    """Write entities, facts, pages, questions and training documents as JSONL files."""
    with stdout_kept_clean():
        counts = export_world(out, seed)
    if not as_json:
        print(f"written to {out}: rows by file")
    show(counts, as_json)


@world_app.command("build", epilog="Example: workbench world build --out runs/policy --size small")
def world_build(
    out: Annotated[Path, Option(help="Folder of the model.")],
    seed: WorldSeed = 0,
    threads: Threads = DEFAULT_THREADS,
    size: Annotated[
        Literal["full", "small"],
        Option(help="Size of the model and of its world."),
    ] = "full",
    as_json: Json = False,
) -> None:
    """Train the tiny policy on the world's documents.

    The tiny policy is a small language model. `workbench train` starts from it with --bench tiny.
    """
    with stdout_kept_clean():
        card = build_policy(out, seed, threads, size)
    show(card, as_json, lambda _: print((out / "README.md").read_text()))
