"""`workbench score`, `agree` and `import`: compute rewards, compare labels, read trainers' logs."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from workbench.cli.frame import (
    Address,
    DryRun,
    Json,
    Overrides,
    app,
    complain,
    ended_by_signal,
    parse_columns,
    print_mapping,
    print_table,
    show,
    stdout_kept_clean,
    text,
)
from workbench.cli.judge_options import (
    JudgeCache,
    JudgeModel,
    JudgeOption,
    JudgeTokens,
    StoreName,
    VerifierName,
)
from workbench.methods import METHODS
from workbench.runs.store import ROLLOUTS
from workbench.scoring import Options, estimate_file, score_file
from workbench.scoring.agree import agreement
from workbench.scoring.imports import import_completions
from workbench.scoring.run import progress_bar
from workbench.types import REASONS, JsonMapping

_FIELDS = tuple(
    "id question question_id response answers title passages checklist group sample step finish"
    " kind claims outcome prefill".split()
)
# maximum numbers of malformed rows, failed rows and kinds of failures to print
MALFORMED, FAILED, KINDS = 10, 5, 5
# earlier names of options
RENAMED = {"model": "judge-model", "cache": "judge-cache"}
COLUMNS = '{"id", "question", "response", "answers", "title", "passages", "checklist"}'

Source = Annotated[
    Path,
    Option(
        "--in",
        help=f"JSONL, JSON, CSV, TSV or Parquet of {COLUMNS}. If a row has claims, none are"
        " extracted. Rows with verdicts need no judge.",
    ),
]
Method = Annotated[
    str,
    Option(
        metavar="|".join((*METHODS, "all", "none")),
        help="Method of the reward; none: claims and verdicts only.",
    ),
]
JudgeName = Annotated[
    str | None,
    Option(
        metavar="world|local|URL|local+URL",
        help="The closed world's exact judge, the packaged verifier (local, the default), an"
        " OpenAI-compatible endpoint, or local+URL: the endpoint judges the claims that the"
        " verifier calls correct, or whose language or script it cannot read.",
    ),
]
KeyName = Annotated[
    str | None,
    Option(
        metavar="NAME",
        help="Environment variable with the endpoint's key; default: WORKBENCH_JUDGE_KEY or, for"
        " api.openai.com, OPENAI_API_KEY. Keys are sent over https or to this machine only.",
    ),
]
Passages = Annotated[
    Path | None,
    Option(metavar="FILE", help='Evidence: JSONL, JSON, CSV, TSV or Parquet of {"text", "title"}.'),
]
Tokenizer = Annotated[
    str | None,
    Option(
        metavar="words|NAME",
        help="Tokenizer for per-token rewards; default: the row's own tokens, else words.",
    ),
]
Columns = Annotated[
    str,
    Option(
        "--map",
        metavar="response=output,…",
        help="Column names of the file, where they differ from the field names.",
    ),
]
MaxFailed = Annotated[
    float,
    Option(
        min=0, max=1, help="Stop when a larger share of the rows failed or could not be scored."
    ),
]


@app.command(
    context_settings={"token_normalize_func": lambda name: RENAMED.get(name, name)},
    epilog="Example: workbench score --in answers.jsonl --out runs/feedback.jsonl --method rlfh"
    " --judge world",
)
def score(
    source: Source,
    out: Annotated[Path, Option(help="JSONL of feedback rows; an unfinished file is resumed.")],
    method: Method = "all",
    judge: JudgeName = None,
    model: JudgeModel = None,
    judge_option: JudgeOption = None,
    judge_tokens: JudgeTokens = None,
    in_doubt: Annotated[
        bool,
        Option(
            "--judge-in-doubt", help="Rules decide clear outcomes; the endpoint judges the others."
        ),
    ] = False,
    verifier: VerifierName = None,
    passages: Passages = None,
    store: StoreName = None,
    tokenizer: Tokenizer = None,
    columns: Columns = "",
    overrides: Overrides = None,
    max_failed: MaxFailed = 0.2,
    concurrency: Annotated[int, Option(min=1, help="Number of concurrent judge calls.")] = 64,
    timeout: Annotated[
        float | None,
        Option(
            min=0.1,
            help="Timeout of a judge call in seconds; default: 60, or 600 for a server on this"
            " machine.",
        ),
    ] = None,
    cache: JudgeCache = None,
    engine: Annotated[
        Literal["local", "ray"],
        Option(help="Score rows in this process, or in Ray actors (extra ray)."),
    ] = "local",
    actors: Annotated[
        int | None,
        Option(min=1, help="Number of Ray actors; default: one per CPU of this machine."),
    ] = None,
    address: Address = None,
    dry_run: DryRun = False,
    api_key_env: KeyName = None,
    overwrite: Annotated[
        bool, Option("--overwrite", help="Replace an output with other settings.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Score responses: extract claims, verify them and compute rewards."""
    options = Options(
        source,
        out,
        method=method,
        judge=judge,
        model=model,
        judge_option=judge_option or (),
        judge_tokens=judge_tokens,
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
    except KeyboardInterrupt:  # before the first row; later, the summary's status is "interrupted"
        return 130
    _report(source, summary)
    _explain(summary, max_failed)
    for name, lacking in summary.get("left_out", {}).items():
        hint = "" if options.remote else "; an endpoint has more checks (--judge URL)"
        complain(f"{name} is left out: this judge has no check {', '.join(lacking)}{hint}")
    code = show(summary, as_json, _print_summary)
    # rows without a reward must not look like success to a script
    return code or (3 if not dry_run and (summary["malformed"] or summary["unscored"]) else 0)


@app.command(epilog="Example: workbench agree annotator.jsonl judge.jsonl --json")
def agree(
    first: Annotated[
        Path, Argument(metavar="A", help="The reference: a feedback file or a run's folder.")
    ],
    second: Annotated[
        Path, Argument(metavar="B", help="A feedback file or run with the same responses.")
    ],
    as_json: Json = False,
) -> None:
    """Compare the labels of two feedback files.

    For claims and for outcomes, the command prints accuracy, Cohen's kappa, and precision, recall
    and F1 of each label. File A is the reference.
    """
    show(agreement(first, second), as_json, _print_agreement)


@app.command(
    "import", epilog="Example: workbench import trl runs/grpo/completions --out runs/logged.jsonl"
)
def import_logged(
    kind: Annotated[Literal["trl", "verl"], Argument(help="Program that wrote the file.")],
    file: Annotated[
        Path,
        Argument(metavar="FILE", help="File of logged completions, or a folder of such files."),
    ],
    out: Annotated[Path, Option(help="JSONL of feedback rows, an input of `workbench score`.")],
    as_json: Json = False,
) -> int:
    """Convert completions and rewards in logs of TRL or verl to feedback rows.

    A feedback row is a JSON object with a response, its claims, verdicts and rewards. The rows
    that this command writes have no claims and verdicts yet.
    """
    summary = import_completions(kind, file, out)
    _report(file, summary)
    if without := summary.get("without_gold"):
        complain(f"{without} of {summary['rows']} rows have no gold answer in gts or answers")
    if left_out := summary["not_rewards"]:
        complain(f"columns left out, because they are not rewards: {', '.join(left_out)}")
    show(summary, as_json)
    return 3 if summary["malformed"] else 0


def _report(source: Path, summary: JsonMapping) -> None:
    """Print on stderr the rows of the input that could not be read, one per line."""
    problems: Sequence[JsonMapping] = summary.get("problems", ())[:MALFORMED]
    for problem in problems:
        complain(f"{source}:{problem['line']}: {problem['problem']}")
    if (more := summary["malformed"] - len(problems)) > 0:
        complain(f"{source}: {more} more rows could not be read")


def _explain(summary: JsonMapping, max_failed: float) -> None:
    """Print on stderr the most frequent failures, missing inputs, and why scoring stopped."""
    counts: Mapping[str, int] = summary.get("failures", {})
    for kind in sorted(counts, key=lambda kind: -counts[kind])[:KINDS]:
        complain(f"{counts[kind]} × {kind}: {summary['reasons'][kind][:400]}")
    unjudged: Mapping[str, int] = summary.get("unjudged", {})
    by_local = ("script", "language", "denial", "instruction", "circular", "fragment")
    if unparsed := summary.get("unparsed", 0) - sum(unjudged.get(name, 0) for name in by_local):
        complain(
            f"no statements about the closed world: {unparsed} of the claims, which are labelled"
            " vague or wrong; for texts about other subjects, use --judge local or a URL"
        )
    for reason in (*by_local, "words"):
        if count := unjudged.get(reason):
            hint = "; name another judge with --judge URL" if reason in by_local[:3] else ""
            complain(f"{REASONS[reason]}: {count} of the claims, which are labelled vague{hint}")
    for method, count in summary.get("untagged", {}).items():
        hint = "; --set klcf.form=false rewards answers without tags" if method == "klcf" else ""
        complain(f"{method}: {count} of the answers lack the think and answer tags{hint}")
    if summary.get("unscored"):
        why = f" ({text(summary['lacking'])})" if summary["lacking"] else ""
        complain(f"unscored, inputs missing: {summary['unscored']} of {summary['rows']} rows{why}")
    if summary.get("status") == "too_many_failures":
        complain(
            f"stopped: of {summary['rows']} rows, {summary['failed']} failed and"
            f" {summary['unscored']} could not be scored: more than --max-failed {max_failed:g}"
            " allows; fix the cause and run the same command again, with --overwrite if a file of"
            " passages or a setting changed"
        )


def _print_summary(summary: JsonMapping) -> None:
    """Print a summary's non-empty entries, its rewards by method, and the first failed rows."""
    left_out = ("problems", "reasons", "failed_rows")
    entries = {k: v for k, v in summary.items() if k not in left_out and v not in ({}, None)}
    if rewards := summary.get("rewards"):
        entries["rewards"] = [{"method": name, **cell} for name, cell in rewards.items()]
    if failed := summary.get("failed_rows"):
        entries["first failed rows"] = failed[:FAILED]
    print_mapping(entries)
    if summary.get("status") == "done" and "out" in summary:
        out = Path(summary["out"])
        run = out.parent if out.name == ROLLOUTS else out
        print(f"next: workbench inspect --run {shlex.quote(str(run))}")


def _print_agreement(report: JsonMapping) -> None:
    excluded = {reason: count for reason, count in report["excluded"].items() if count}
    print(f"{report['rows']} responses compared; left out: {text(excluded)}")
    for name, cell in report.items():
        if isinstance(cell, Mapping) and cell.get("n"):
            labels = cell["labels"].items()
            rows = [(label, *map(text, scores.values())) for label, scores in labels]
            title = ", ".join(f"{key} {text(cell[key])}" for key in ("n", "accuracy", "kappa"))
            columns = ("label", "A", "B", "precision", "recall", "F1")
            print_table(f"{name}: {title}", columns, rows)
