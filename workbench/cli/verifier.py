"""`workbench verifier …`: calibrate and evaluate local verifiers."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from workbench.cli.frame import (
    Json,
    Threads,
    add_group,
    print_mapping,
    show,
    stdout_kept_clean,
)
from workbench.types import JsonMapping
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.verifier import evaluate_verifier, read_rows
from workbench.verifier.card import calibrate_named
from workbench.verifier.named import choose_verifier, load_named, with_known_labels

EXAMPLE = "verifier evaluate --data pairs.jsonl --json"
verifier_app = add_group("verifier", "Calibrate and evaluate local verifiers of claims.", EXAMPLE)
Data = Annotated[
    Path,
    Option(
        help="JSONL (or .gz) of {premise, claim, label, source}; the label is support, contradict"
        " or neutral."
    ),
]


@verifier_app.command(
    "calibrate",
    epilog="Example: workbench verifier calibrate cross-encoder/nli-deberta-v3-base --data"
    " dev.jsonl.gz --out runs/deberta",
)
def verifier_calibrate(
    name: Annotated[
        str, Argument(help="Folder or hub name of a sequence classifier: NLI, or supported or not.")
    ],
    data: Data,
    out: Annotated[
        Path, Option(help="Folder for temperature, thresholds and card, to be named by --verifier.")
    ],
    classes: Annotated[
        str,
        Option(
            help="The model's classes in order if its config does not name them, such as"
            " unsupported,supported."
        ),
    ] = "",
    threads: Threads = DEFAULT_THREADS,
    as_json: Json = False,
) -> None:
    """Fit a model's temperature and thresholds on labelled pairs of premise and claim.

    The model's weights do not change. The temperature, the thresholds and the measured accuracy are
    written to card.json in the folder --out.
    """
    with stdout_kept_clean():
        loaded = load_named(name, tuple(filter(None, map(str.strip, classes.split(",")))))
        card = calibrate_named(loaded, data, out, threads)
    show(card, as_json, lambda card: _print(card["dev"]))


@verifier_app.command("evaluate", epilog=f"Example: workbench {EXAMPLE}")
def verifier_evaluate(
    data: Data,
    verifier: Annotated[
        str | None,
        Option(
            help="A folder of `workbench verifier`, or a sequence classifier's folder or hub name;"
            " default: the packaged verifier."
        ),
    ] = None,
    threads: Threads = DEFAULT_THREADS,
    as_json: Json = False,
) -> None:
    """Measure a verifier's accuracy, calibration and speed on labelled pairs."""
    rows = read_rows(data)
    with stdout_kept_clean():
        loaded = choose_verifier(verifier)
        with use_threads(threads):
            result = evaluate_verifier(loaded, with_known_labels(rows, loaded))
    show({"verifier": loaded.name, "threads": threads, **result}, as_json, _print)


def _print(result: JsonMapping) -> None:
    scalars = {name: value for name, value in result.items() if not isinstance(value, dict | list)}
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
