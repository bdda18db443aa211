"""`workbench score`, `agree` and `import`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from workbench.cli.frame import (
    ABSENT,
    Address,
    Json,
    StoreName,
    app,
    complain,
    ended_by_signal,
    exit_code,
    parse_columns,
    print_mapping,
    print_table,
    show,
    stdout_kept_clean,
    text,
)
from workbench.methods import METHODS
from workbench.runs.store import ROLLOUTS
from workbench.scoring import Options, estimate_file, score_file
from workbench.scoring.agree import agreement
from workbench.scoring.imports import import_completions
from workbench.scoring.run import progress_bar
from workbench.types import REASONS

_FIELDS = tuple(
    "id question question_id response answers title passages checklist group sample step finish"
    " kind claims outcome prefill".split()
)
SHOWN = 10  # malformed rows that are reported one by one
NAMED = 5  # failed rows that are named
KINDS = 5  # of failures that are explained


COLUMNS = '{"id", "question", "response", "answers", "title", "passages", "checklist"}'

Source = Annotated[
    Path,
    typer.Option(
        "--in",
        help=(
            f"JSONL or Parquet of {COLUMNS}; rows with claims and verdicts are paid without any"
            " judge."
        ),
    ),
]
Method = Annotated[
    str,
    typer.Option(
        metavar="|".join((*METHODS, "all", "none")),
        help="Whose reward is paid; none: claims and verdicts only.",
    ),
]
JudgeName = Annotated[
    str | None,
    typer.Option(
        metavar="world|local|URL",
        help="The closed world, the model in this package (the default), or an endpoint.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The endpoint's model."),
]
KeyName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=(
            "Environment variable that holds the endpoint's key; by default WORKBENCH_JUDGE_KEY or,"
            " for api.openai.com, OPENAI_API_KEY. A key goes over https or to this machine alone."
        ),
    ),
]
VerifierName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=(
            "Of the judge local another model: a `workbench verifier` folder, or an NLI classifier."
        ),
    ),
]
Passages = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help='Evidence: JSONL or Parquet of {"text", "title"}.'),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        metavar="words|NAME",
        help="What rewards are paid to; by default the row's own tokens, or words.",
    ),
]
Columns = Annotated[
    str,
    typer.Option(
        "--map", metavar="response=output,…", help="The file's names of columns, where they differ."
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="METHOD.FIELD=VALUE", help="Change a field of a method; repeatable."
    ),
]
MaxFailed = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        help="Stop when more than this share of the rows has failed, or cannot be scored.",
    ),
]


@app.command(
    epilog=(
        "Example: workbench score --in answers.jsonl --out runs/feedback.jsonl --method rlfh"
        " --judge world"
    )
)
def score(
    source: Source,
    out: Annotated[
        Path, typer.Option(help="JSONL of feedback rows; an unfinished one is continued.")
    ],
    method: Method = "all",
    judge: JudgeName = None,
    model: Model = None,
    in_doubt: Annotated[
        bool,
        typer.Option(
            "--judge-in-doubt",
            help="Rules decide outcomes; the endpoint is asked where they doubt.",
        ),
    ] = False,
    verifier: VerifierName = None,
    passages: Passages = None,
    store: StoreName = None,
    tokenizer: Tokenizer = None,
    columns: Columns = "",
    overrides: Overrides = None,
    max_failed: MaxFailed = 0.2,
    concurrency: Annotated[int, typer.Option(min=1, help="Judge calls under way at a time.")] = 64,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds that a judge call may take.")
    ] = 60.0,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keeps the judge's replies; by default NAME.judge.sqlite beside --out NAME.jsonl.",
        ),
    ] = None,
    engine: Annotated[
        Literal["local", "ray"],
        typer.Option(
            help="Where rows are scored: in this process, or in Ray's actors (extra ray)."
        ),
    ] = "local",
    actors: Annotated[
        int | None,
        typer.Option(min=1, help="Ray's actors; by default one for each CPU of this machine."),
    ] = None,
    address: Address = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print calls and tokens; ask and write nothing.")
    ] = False,
    api_key_env: KeyName = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Begin anew where the output has other settings.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Turn responses into claims, verdicts and rewards, row by row."""
    options = Options(
        source,
        out,
        method=method,
        judge=judge,
        model=model,
        passages=passages,
        store=store,
        tokenizer=tokenizer,
        columns=parse_columns(columns, _FIELDS),
        overrides=overrides or [],
        max_failed=max_failed,
        concurrency=concurrency,
        timeout=timeout,
        cache=cache,
        overwrite=overwrite,
        in_doubt=in_doubt,
        api_key_env=api_key_env,
        engine=engine,
        actors=actors,
        address=address,
        verifier=verifier,
    )
    try:
        with ended_by_signal(), stdout_kept_clean(), progress_bar() as watch:
            summary = estimate_file(options) if dry_run else score_file(options, watch)
    except KeyboardInterrupt:  # before the first row
        return 130
    _report(source, summary)
    _explain(summary, max_failed)
    for name, lacking in summary.get("left_out", {}).items():
        complain(f"{name} is left out: this judge has no check {', '.join(lacking)}")
    show(summary, as_json, _print_summary)
    return exit_code(summary) or (
        3 if not dry_run and (summary["malformed"] or summary["unscored"]) else 0
    )


@app.command(epilog="Example: workbench agree annotator.jsonl judge.jsonl --json")
def agree(
    first: Annotated[
        Path, typer.Argument(metavar="A", help="A feedback file or a run's folder: the reference.")
    ],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another about the same responses.")],
    as_json: Json = False,
) -> None:
    """Say how far two feedback files agree on claims and outcomes: accuracy, Cohen's kappa, and
    scores by label.
    """
    report = agreement(first, second)
    show(report, as_json, _print_agreement)


@app.command(
    "import", epilog="Example: workbench import trl runs/grpo/completions --out runs/logged.jsonl"
)
def import_logged(
    kind: Annotated[Literal["trl", "verl"], typer.Argument(help="What wrote the file.")],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A file of logged completions, or a folder of such files."
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="JSONL of feedback rows, which `workbench score` takes.")
    ],
    as_json: Json = False,
) -> int:
    """Turn completions that TRL or verl logged into feedback rows, with their logged rewards."""
    summary = import_completions(kind, file, out)
    _report(file, summary)
    show(summary, as_json, print_mapping)
    return 3 if summary["malformed"] else 0


def _report(source: Path, summary: Mapping[str, Any]) -> None:
    """Rows that could not be read, one line each, on stderr."""
    problems: Sequence[Mapping[str, Any]] = summary.get("problems", ())
    for problem in problems[:SHOWN]:
        complain(f"{source}:{problem['line']}: {problem['problem']}")
    if (more := summary["malformed"] - len(problems[:SHOWN])) > 0:
        complain(f"{source}: {more} more rows could not be read")


def _explain(summary: Mapping[str, Any], max_failed: float) -> None:
    """What went wrong most often, in the words of its first failure; what was lacking; and why
    it was stopped, on stderr.
    """
    counts: Mapping[str, int] = summary.get("failures", {})
    for kind in sorted(counts, key=lambda kind: -counts[kind])[:KINDS]:
        complain(f"{counts[kind]} × {kind}: {summary['reasons'][kind][:400]}")
    unjudged: Mapping[str, int] = summary.get("unjudged", {})
    if unparsed := summary.get("unparsed", 0) - unjudged.get("script", 0):
        complain(
            f"not in the closed world's grammar: {unparsed} of the claims, in their own words and"
            " vague or wrong; text that is not about this world needs --judge local or a URL"
        )
    for reason in ("script", "words"):
        if count := unjudged.get(reason):
            hint = "; another judge is named by --judge URL" if reason == "script" else ""
            complain(f"{REASONS[reason]}: {count} of the claims, which are vague{hint}")
    if summary.get("unscored"):
        why = f" ({text(summary['lacking'])})" if summary["lacking"] else ""
        complain(
            f"unscored, without having failed: {summary['unscored']} of {summary['rows']} rows{why}"
        )
    if summary.get("status") == "too_many_failures":
        complain(
            f"stopped: of {summary['rows']} rows, {summary['failed']} failed and"
            f" {summary['unscored']} could not be scored: more than --max-failed {max_failed:g}"
            " allows; mend that and run the same command again"
        )


def _print_summary(summary: Mapping[str, Any]) -> None:
    """Everything that is not empty, with the rewards by method and the first failed rows."""
    shown = {
        name: value
        for name, value in summary.items()
        if name not in ("problems", "reasons", "failed_rows") and value not in ({}, None)
    }
    if rewards := summary.get("rewards"):
        shown["rewards"] = [{"method": name, **cell} for name, cell in rewards.items()]
    if failed := summary.get("failed_rows"):
        shown["the first failed rows"] = failed[:NAMED]
    print_mapping(shown)
    if summary.get("status") == "done" and "out" in summary:
        print(f"next: {_next(Path(summary['out']))}")


def _next(out: Path) -> str:
    """What to do with scored rows: look at them, where they lie as a run does, else measure
    them.
    """
    if out.name == ROLLOUTS:
        return f"workbench inspect --run {shlex.quote(str(out.parent))}"
    return f"workbench metrics {shlex.quote(str(out))}"


def _print_agreement(report: Mapping[str, Any]) -> None:
    left_out = {reason: count for reason, count in report["excluded"].items() if count}
    print(f"{report['rows']} responses compared; left out: {text(left_out)}")
    for name, cell in report.items():
        if isinstance(cell, Mapping) and cell.get("n"):
            rows = [
                (label, *map(_shown, scores.values())) for label, scores in cell["labels"].items()
            ]
            title = (
                f"{name}: n {cell['n']}, accuracy {_shown(cell['accuracy'])}, kappa"
                f" {_shown(cell['kappa'])}"
            )
            print_table(title, ("label", "A", "B", "precision", "recall", "F1"), rows)


def _shown(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
