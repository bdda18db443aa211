"""`workbench metrics`: print the factuality metrics of one or two feedback files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Option

from workbench.cli.frame import (
    ABSENT,
    Cell,
    DryRun,
    Json,
    Seed,
    app,
    complain,
    ended_by_signal,
    percent,
    print_mapping,
    print_table,
    show,
    stdout_kept_clean,
    text,
)
from workbench.cli.judge_options import judge_options
from workbench.experiments.compare import known_metrics
from workbench.metrics import RATES, SIMPLEQA, compare_files, read_rows
from workbench.metrics.claims import K
from workbench.metrics.hacks import SHARES
from workbench.metrics.hacks import hacks as hacks_of
from workbench.metrics.marks import NOT_SHARES, mark_prompts
from workbench.metrics.pairs import REASONS, pair_files
from workbench.metrics.plots import write_pages
from workbench.metrics.plots.hacks import hack_shares
from workbench.metrics.plots.rlfh import figures as figures_of
from workbench.metrics.rows import file_of
from workbench.runs.naming import short_names
from workbench.scoring.estimate import estimate_calls, estimate_pairs
from workbench.types import JsonMapping, JsonObject, WorkbenchError
from workbench.verdicts.llm_judge import LLMJudge

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HACKS = ("hacks", "other_hacks")  # reward hacks by step
UNPAIRED = {
    "incomplete": "pairs without a verdict in both orders",
    "repeated": "samples of a question and step that occur twice in a file",
    "other_question": "pairs whose question text differs between the files",
}
EXAMPLE = "Example: workbench metrics runs/after.jsonl runs/before.jsonl --json"


@app.command("metrics", epilog=EXAMPLE)
@judge_options(store=False)
def metrics(
    feedback: Annotated[
        Path,
        Argument(help="JSONL of feedback rows, or a run (its evaluation after training is read)."),
    ],
    other: Annotated[
        Path | None, Argument(help="A second file or run; differences are FEEDBACK − OTHER.")
    ] = None,
    judge: LLMJudge | None = None,
    dry_run: DryRun = False,
    k: Annotated[int, Option(min=1, help="K of recall@K and F1@K.")] = K,
    sections: Annotated[
        list[str] | None,
        Option(
            "--section", help="Count only claims of this section (think, answer, body); repeatable."
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        Option(
            help="Folder for figures as HTML: RLFH's figures 4 to 9 (OTHER before training,"
            " FEEDBACK after), and with --hacks the reward hacks by step."
        ),
    ] = None,
    hacks: Annotated[
        bool,
        Option(
            "--hacks",
            help="Also count reward hacks by step: repeated claims, claims off the subject, …",
        ),
    ] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> int:
    """Measure the factuality of judged responses.

    Metrics over at least five questions have 95 % intervals. Two files are compared by paired
    tests. With --judge, a language model also judges the answers. With one file, the model rates
    the coherence and the helpfulness of each answer. With two files, it states which of two answers
    it prefers.
    """
    if figures is not None and other is None and not hacks:
        raise BadParameter(
            "the figures compare two files: also name OTHER, the feedback before training, or use"
            " --hacks for figures of one file",
            param_hint="--figures",
        )
    if dry_run:  # before the cache file is created
        if judge is None:
            raise WorkbenchError(
                "--dry-run needs a judge: name one with --judge URL, or leave out --dry-run"
            )
        return show(_estimate(feedback, other), as_json)
    try:
        with ended_by_signal(), stdout_kept_clean():
            if judge:
                judge = _with_cache(judge, feedback, other)
            result = compare_files(
                feedback,
                other,
                judge=judge.ask if judge else None,
                k=k,
                sections=sections or (),
                seed=seed,
                several_steps=hacks,
            )
            if hacks:
                result["hacks"] = hacks_of(feedback)
                if other is not None:
                    result["other_hacks"] = hacks_of(other)
            if figures is not None:
                result["figures"] = write_pages(
                    _figures(feedback, other, result, sections or ()), figures
                )
    except KeyboardInterrupt:
        return 130
    if judge:
        # no file is written if the answers of all pairs are equal
        file = judge.cache
        cache = str(file) if file and file.exists() else None
        result["judge"] = {"model": judge.model, **result["judge"], "cache": cache}
    return show(result, as_json, _print)


def _estimate(feedback: Path, other: Path | None) -> JsonObject:
    """Return the number of calls and tokens that the judge needs.

    The judge marks the answers of one file, or compares the answers of two files.
    """
    if other is not None:
        return estimate_pairs(pair_files(feedback, other))
    return {"dry_run": True, **estimate_calls([prompt for _, prompt in mark_prompts(feedback)])}


def _with_cache(judge: LLMJudge, feedback: Path, other: Path | None) -> LLMJudge:
    """Return the judge with a cache file, by default next to the feedback.

    If this file does not exist yet, the judge is called once, as a test.
    """
    calls, file = _estimate(feedback, other)["calls"], file_of(feedback)
    cache = judge.cache or file.with_name(f"{file.stem}.judge.sqlite")
    judge = replace(judge, cache=cache)
    if not cache.exists() and calls:
        judge.try_out()
    return judge


def _figures(
    feedback: Path, other: Path | None, result: JsonMapping, sections: Sequence[str]
) -> "dict[str, Figure]":
    """Return figures by file name: the comparison of two files, and the reward hacks by step."""
    figures: dict[str, Figure] = {}
    if other is not None:
        figures |= figures_of(read_rows(other, sections), read_rows(feedback, sections))
    if "hacks" in result:
        counted = {str(feedback): result["hacks"]}
        if other is not None:
            counted[str(other)] = result["other_hacks"]
        figures["hacks"] = hack_shares(counted)
    return figures


def _print(result: JsonMapping) -> None:
    other = result.get("other")
    # outcome rates come first, then metrics of claims
    names = sorted(
        (name for name in known_metrics(result) if name not in REASONS),
        key=lambda name: name not in (*RATES, *SIMPLEQA),
    )
    reports = [result] if other is None else [result, other]
    paths = [report["file"] for report in reports]
    labels = short_names(paths)
    rows: list[tuple[str, ...]]
    if other:
        tests = result["paired"]
        rows = [
            (name, *paired_cells(name, tests[name]))
            for name in names
            if "reason" not in tests[name]
        ]
        columns = ("metric", *labels, "difference [95 %]", "p", "questions")
        title = f"paired over {result['common']} common questions"
    else:
        rows = _metric_rows(result, names)
        columns = ("metric", "value [95 %]", "questions")
        title = f"{result['n']} responses to {result['questions']} questions"
    k = f"; VeriScore's K is {result['veriscore_k']}" if result["veriscore_k"] else ""
    print_table(f"{' and '.join(paths)}: {title}{k}; shares in percent", columns, rows)
    if "win_rate" in result:
        _print_preferences(result, labels)
    counts = {
        key: [{"": name, **report[key]} for name, report in zip(labels, reports, strict=True)]
        for key in ("excluded", "outcomes")
    }
    hacks = {
        f"{key}, shares in percent": [
            {name: _value(name, step[name]) if name in SHARES else step[name] for name in step}
            for step in result[key]
        ]
        for key in HACKS
        if key in result
    }
    print_mapping(counts | hacks)
    for report in reports:
        _complain_of_rows(report)
    _complain_of_metrics(result)
    judge = result.get("judge", {"failures": {}})
    for kind, count in judge["failures"].items():
        complain(f"{count} × {kind}: {judge['reasons'][kind][:400]}")


def _complain_of_metrics(result: JsonMapping) -> None:
    """Print on stderr which metrics have no value, and why."""
    reasons: dict[str, list[str]] = {}
    for name, cell in [*result.items(), *result.get("paired", {}).items()]:
        if isinstance(cell, Mapping) and "reason" in cell and name not in REASONS:
            reasons.setdefault(cell["reason"], []).append(name)
    for reason, names in reasons.items():
        complain(f"{', '.join(names)}: {reason}")


def _complain_of_rows(report: JsonMapping) -> None:
    of = f"of {report['n']} rows of {report['file']}"
    if failed := report["failed"]:
        complain(f"{failed} {of} failed: the reason is stored in each of these rows")
    if unjudged := report["excluded"]["not_judged"]:
        complain(f"excluded, because not judged: {unjudged} {of}; `workbench score` judges them")
    if repeated := report["duplicate_ids"]:
        complain(f"{repeated} {of} repeat an earlier id; they are counted again")
    if report["steps"] > 1:
        complain(
            f"{report['file']} has training rollouts of {report['steps']} steps, so the values are"
            " averages over as many policies; `workbench compare RUN` shows a run's evaluations"
        )


def _print_preferences(result: JsonMapping, labels: Sequence[str]) -> None:
    """Print how often the judge preferred the first file's answers, and the mean lengths."""
    pairs, mean = result["pairs"], result["words"]
    title = (
        f"preference for {labels[0]}, of {pairs['n']} pairs: {pairs['won']} won, {pairs['tied']}"
        f" tied, {pairs['lost']} lost; {text(mean['feedback'])} words against {text(mean['other'])}"
    )
    print_table(title, ("", "percent [95 %]", "questions"), _metric_rows(result, REASONS))
    for name, reason in UNPAIRED.items():
        if pairs[name]:
            complain(f"left out of the win rate: {pairs[name]} {reason}")
    if reason := result["win_rate"].get("reason"):
        complain(f"win_rate: {reason}")


def _metric_rows(result: JsonMapping, names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return a table's rows: the name of a metric, its value, and the number of questions."""
    return [(name, _value(name, result[name]), text(result[name]["n"])) for name in names]


def _value(name: str, cell: Cell) -> str:
    return percent(cell, 1 if name in NOT_SHARES else 100, digits=1)


def paired_cells(name: str, cell: JsonMapping) -> tuple[str, ...]:
    """Return the table cells for the paired test of a metric.

    The cells are the metric's two values, their difference with its interval, the p-value and the
    number of questions. An interval or p-value of None is left out.

    Args:
        name: name of the metric.
        cell: the result of the test, with the keys "value", "other", "diff", "low", "high", "p" and
            "n".
    """
    return (
        _value(name, cell["value"]),
        _value(name, cell["other"]),
        _value(name, {**cell, "value": cell["diff"]}),
        ABSENT if cell["p"] is None else f"{cell['p']:.3f}",
        text(cell["n"]),
    )
