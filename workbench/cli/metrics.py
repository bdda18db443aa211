"""`workbench metrics`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.frame import (
    ABSENT,
    DryRun,
    Json,
    Seed,
    app,
    complain,
    ended_by_signal,
    print_mapping,
    print_table,
    show,
    stdout_kept_clean,
    text,
)
from workbench.cli.judge_options import judge_options
from workbench.metrics import compare_files, read_rows
from workbench.metrics.claims import K
from workbench.metrics.hacks import hacks as hacks_of
from workbench.metrics.pairs import REASONS, Pairs, pair_files
from workbench.metrics.plots import write_pages
from workbench.metrics.plots.hacks import hack_shares
from workbench.metrics.plots.rlfh import figures as figures_of
from workbench.metrics.rows import file_of
from workbench.scoring.estimate import estimate_pairs
from workbench.types import JsonMapping, WorkbenchError
from workbench.verdicts.llm_judge import LLMJudge

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HACKS = ("hacks", "other_hacks")  # reward hacks by step
UNPAIRED = {
    "incomplete": "pairs without a verdict in both orders",
    "repeated": "samples of a question and step that occur twice in a file",
    "other_question": "pairs whose question text differs between the files",
}
EXAMPLE = "Example: workbench metrics runs/after/rollouts.jsonl runs/before/rollouts.jsonl --json"


@app.command("metrics", epilog=EXAMPLE)
@judge_options(store=False)
def metrics(
    feedback: Annotated[Path, typer.Argument(help="JSONL of feedback rows, or a run's folder.")],
    other: Annotated[
        Path | None,
        typer.Argument(help="A second one to compare with; differences are FEEDBACK − OTHER."),
    ] = None,
    judge: LLMJudge | None = None,
    dry_run: DryRun = False,
    k: Annotated[int, typer.Option(min=1, help="K of recall@K and F1@K.")] = K,
    sections: Annotated[
        list[str] | None,
        typer.Option(
            "--section", help="Count only claims of this section (think, answer, body); repeatable."
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Folder for RLFH's figures 4 to 9 as HTML: OTHER before, FEEDBACK after training;"
                " with --hacks, for the figures of the hacks."
            )
        ),
    ] = None,
    hacks: Annotated[
        bool,
        typer.Option(
            "--hacks",
            help="Also count reward hacks by step: repetitions, other subjects, …",
        ),
    ] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> int:
    """Measure the factuality of judged responses.

    Metrics have 95 % intervals, and two files are compared by paired tests. With --judge, a
    language model also states which of two answers it prefers.
    """
    if figures is not None and other is None and not hacks:
        raise typer.BadParameter(
            "the figures compare two files: name OTHER, the feedback before training, or use"
            " --hacks for one run",
            param_hint="--figures",
        )
    pairs = pair_files(feedback, other) if judge else None
    if dry_run:  # before the cache file is created
        if pairs is None:
            raise WorkbenchError(
                "--dry-run needs a judge: name one with --judge URL, or leave out --dry-run"
            )
        return show(estimate_pairs(pairs), as_json, print_mapping)
    try:
        with ended_by_signal(), stdout_kept_clean():
            if judge and pairs:
                judge = _with_cache(judge, feedback, pairs)
            result = compare_files(
                feedback,
                other,
                judge=judge.ask if judge else None,
                k=k,
                sections=sections or (),
                seed=seed,
            )
            if hacks:
                result["hacks"] = hacks_of(feedback)
                result |= {"other_hacks": hacks_of(other)} if other is not None else {}
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


def _with_cache(judge: LLMJudge, feedback: Path, pairs: Pairs) -> LLMJudge:
    """The judge with a cache file; a new one is called once, to test its address."""
    file = file_of(feedback)
    cache = judge.cache or file.with_name(f"{file.stem}.judge.sqlite")
    judge = replace(judge, cache=cache)
    if not cache.exists() and not all(pair.identical for pair in pairs.pairs):
        judge.try_out()
    return judge


def _figures(
    feedback: Path, other: Path | None, result: JsonMapping, sections: Sequence[str]
) -> dict[str, Figure]:
    """Figures by file name: the comparison of two files, and the hacks by step if counted."""
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
    other, tests = result.get("other", {}), result.get("paired", {})
    names = [
        name
        for name, cell in result.items()
        if isinstance(cell, Mapping) and "value" in cell and name not in REASONS
    ]
    rows: list[tuple[str, ...]]
    columns: tuple[str, ...]
    if other:
        rows = [
            (name, _value(result[name]), _value(other[name]), *_test(tests[name])) for name in names
        ]
        columns = ("metric", "value", "other", "difference [95 %]", "p", "n")
    else:
        rows = [(name, _with_interval(result[name]), text(result[name]["n"])) for name in names]
        columns = ("metric", "value [95 %]", "n")
    title = (
        f"{result['n']} responses to {result['questions']} questions; VeriScore's K is"
        f" {text(result['veriscore_k'])}"
    )
    print_table(title, columns, rows)
    if "win_rate" in result:
        _print_preferences(result)
    files = {"the file": result, **({"other": other} if other else {})}
    counts = {
        key: [{"": name, **report[key]} for name, report in files.items()]
        for key in ("excluded", "outcomes")
    }
    print_mapping({**counts, **{key: result[key] for key in HACKS if key in result}})
    for name, report in files.items():
        _complain_of_rows(name, report)
    for name in names:
        if reason := result[name].get("reason"):
            complain(f"{name}: {reason}")


def _complain_of_rows(name: str, report: JsonMapping) -> None:
    of = f"of {report['n']} rows of {name}"
    if failed := report["failed"]:
        complain(f"{failed} {of} failed: each records a failure")
    if unjudged := report["excluded"]["not_judged"]:
        complain(f"excluded: not judged: {unjudged} {of}; `workbench score` judges them")
    if repeated := report["duplicate_ids"]:
        complain(f"{repeated} {of} repeat an earlier id; they are counted again")


def _print_preferences(result: JsonMapping) -> None:
    """Print the win rate with the lengths of the answers, which may explain it."""
    pairs, mean = result["pairs"], result["words"]
    title = (
        f"preference for FEEDBACK, of {pairs['n']} pairs: {pairs['won']} won, {pairs['tied']} tied,"
        f" {pairs['lost']} lost; {text(mean['feedback'])} words against {text(mean['other'])}"
    )
    rows = [(name, _with_interval(result[name]), text(result[name]["n"])) for name in REASONS]
    print_table(title, ("", "value [95 %]", "questions"), rows)
    for name, reason in UNPAIRED.items():
        if pairs[name]:
            complain(f"left out of the win rate: {pairs[name]} {reason}")
    judge = result["judge"]
    for kind, count in judge["failures"].items():
        complain(f"{count} × {kind}: {judge['reasons'][kind][:400]}")
    if reason := result["win_rate"].get("reason"):
        complain(f"win_rate: {reason}")


def _value(cell: JsonMapping, key: str = "value") -> str:
    return ABSENT if cell[key] is None else f"{cell[key]:.3f}"


def _with_interval(cell: JsonMapping, key: str = "value") -> str:
    bounds = "" if cell["low"] is None else f" [{cell['low']:.3f}, {cell['high']:.3f}]"
    return _value(cell, key) + bounds


def _test(cell: JsonMapping) -> tuple[str, str, str]:
    return _with_interval(cell, "diff"), _value(cell, "p"), text(cell["n"])
