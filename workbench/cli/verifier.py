"""`workbench verifier …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.frame import Json, Seed, Threads, app, print_mapping, show, stdout_kept_clean
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.verifier import evaluate_verifier, read_rows
from workbench.verifier.card import calibrate_named
from workbench.verifier.named import choose_verifier, load_named, with_known_labels
from workbench.verifier.train import TrainConfig, train_verifier

verifier_app = typer.Typer(no_args_is_help=True)
app.add_typer(
    verifier_app,
    name="verifier",
    help=(
        "The local verifier: a small model that says whether passages support a claim. Train one,"
        " measure one."
    ),
    epilog="Example: workbench verifier evaluate --data pairs.jsonl --json",
)

VERIFIER = (
    "A folder of `workbench verifier`, or a sequence classifier's folder or name on the hub;"
    " without it, the one shipped."
)
Data = Annotated[
    Path,
    typer.Option(
        help=(
            "JSONL (.gz too) of {premise, claim, label, source}; label support, contradict or"
            " neutral."
        )
    ),
]


@verifier_app.command(
    "train",
    epilog=(
        "Example: workbench verifier train --data train.jsonl.gz --dev dev.jsonl.gz --out"
        " runs/verifier"
    ),
)
def verifier_train(
    data: Data,
    out: Annotated[
        Path,
        typer.Option(help="Folder for the verifier and its card; an unfinished one is resumed."),
    ],
    dev: Annotated[
        Path | None,
        typer.Option(help="Rows to calibrate and measure on; without it, a tenth of the data."),
    ] = None,
    epochs: Annotated[float, typer.Option(min=0.01, help="Passes over the data.")] = 3.5,
    lr: Annotated[float, typer.Option(min=0.0, help="Learning rate at its peak.")] = 2e-4,
    dropout: Annotated[float, typer.Option(min=0.0, max=0.9, help="Dropout in the encoder.")] = 0.1,
    seed: Seed = 0,
    threads: Threads = DEFAULT_THREADS,
    as_json: Json = False,
) -> None:
    """Fine-tune the packaged MiniLM on labelled pairs; keep what changed in a few megabytes,
    with a card.
    """
    config = TrainConfig(epochs=epochs, lr=lr, dropout=dropout, seed=seed, threads=threads)
    with stdout_kept_clean():
        card = train_verifier(data, dev, out, config)
    show(card, as_json, lambda found: _print(found["dev"]))


@verifier_app.command(
    "calibrate",
    epilog=(
        "Example: workbench verifier calibrate cross-encoder/nli-deberta-v3-base --data"
        " dev.jsonl.gz --out runs/deberta"
    ),
)
def verifier_calibrate(
    name: Annotated[
        str,
        typer.Argument(
            help="A sequence classifier, NLI or supported-or-not: a folder or a name on the hub."
        ),
    ],
    data: Data,
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for its temperature, thresholds and card: what --verifier then names."
        ),
    ],
    classes: Annotated[
        str,
        typer.Option(
            help="Its classes in their order, where it does not name them: unsupported,supported."
        ),
    ] = "",
    threads: Threads = DEFAULT_THREADS,
    as_json: Json = False,
) -> None:
    """Fit temperature and thresholds of another model on labelled pairs, and write its card; its
    weights stay.
    """
    with stdout_kept_clean():
        loaded = load_named(
            name, tuple(part.strip() for part in classes.split(",") if part.strip())
        )
        card = calibrate_named(loaded, data, out, threads)
    show(card, as_json, lambda found: _print(found["dev"]))


@verifier_app.command(
    "evaluate", epilog="Example: workbench verifier evaluate --data pairs.jsonl --json"
)
def verifier_evaluate(
    data: Data,
    verifier: Annotated[str | None, typer.Option(help=VERIFIER)] = None,
    threads: Threads = DEFAULT_THREADS,
    as_json: Json = False,
) -> None:
    """Accuracy by source and class, calibration, and speed of a verifier on labelled pairs."""
    rows = read_rows(data)
    with stdout_kept_clean():
        loaded = choose_verifier(verifier)
        with use_threads(threads):
            result = evaluate_verifier(loaded, with_known_labels(rows, loaded))
    show({"verifier": loaded.name, "threads": threads, **result}, as_json, _print)


def _print(result: Any) -> None:
    scalars = {name: value for name, value in result.items() if not isinstance(value, (dict, list))}
    columns = ("n", "accuracy", "balanced_accuracy")
    sources = [
        {"source": source, **{name: cell[name] for name in columns}}
        for source, cell in result["by_source"].items()
    ]
    tables = {
        name: [{"gold": gold, **row} for gold, row in result[name].items()]
        for name in ("confusion", "labels")
    }
    quality = {"support vs rest": result["support"], "ECE": result["calibration"]["ece"]}
    print_mapping({**scalars, **quality, "by_source": sources, **tables})
