"""`workbench metrics`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from workbench.cli.frame import (
    ABSENT,
    Json,
    JudgeModel,
    Seed,
    app,
    complain,
    ended_by_signal,
    exit_code,
    print_mapping,
    print_table,
    show,
    stdout_kept_clean,
    text,
)
from workbench.llm_judge import LLMJudge, llm_judge
from workbench.metrics import compare_files, read_rows
from workbench.metrics.hacks import hacks as hacks_of
from workbench.metrics.pairs import Pairs, pair_files
from workbench.metrics.preferences import REASONS
from workbench.metrics.rows import file_of
from workbench.plots import write_pages
from workbench.plots.hacks import hack_shares
from workbench.plots.rlfh import figures as figures_of
from workbench.score.estimate import estimate_pairs
from workbench.types import WorkbenchError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

LEFT_OUT = {
    "no_claims": "no claims",
    "unverified": "claims not verified",
    "not_judged": "not judged",
}
EXAMPLE = "Example: workbench metrics runs/after/rollouts.jsonl runs/before/rollouts.jsonl --json"


@app.command("metrics", epilog=EXAMPLE)
def metrics(
    feedback: Annotated[Path, typer.Argument(help="JSONL of feedback rows, or a run's folder.")],
    other: Annotated[
        Path | None,
        typer.Argument(help="A second one to compare with: differences are FEEDBACK − OTHER."),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="File whose median number of claims is VeriScore's K (default: both files)."
        ),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(
            help="Feedback whose right answers over-refusal is measured on (default: OTHER)."
        ),
    ] = None,
    preferences: Annotated[
        Path | None, typer.Option(help="A judge's preferences between both files, in both orders.")
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help=(
                "The win rate: a language model behind an OpenAI-compatible endpoint says which of"
                " both files' answers is "
                "better, in both orders. Its key: WORKBENCH_JUDGE_KEY or, for api.openai.com,"
                " OPENAI_API_KEY."
            ),
        ),
    ] = None,
    judge_model: JudgeModel = None,
    judge_cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=(
                "Keeps the judge's replies; by default NAME.judge.sqlite beside FEEDBACK's"
                " NAME.jsonl."
            ),
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the judge's calls, tokens and cost; ask and write nothing."
        ),
    ] = False,
    k: Annotated[int, typer.Option(min=1, help="K of recall@K and F1@K.")] = 32,
    gamma: Annotated[
        int, typer.Option(min=0, help="Claims below which FactScore's penalty sets in.")
    ] = 10,
    vague: Annotated[
        Literal["incorrect", "excluded"], typer.Option(help="How precision counts vague claims.")
    ] = "incorrect",
    sections: Annotated[
        list[str] | None,
        typer.Option(
            "--section", help="Count only claims of this section (think, answer, body); repeatable."
        ),
    ] = None,
    confidence: Annotated[
        str,
        typer.Option(
            help='"tokens", or the aspect of the verdicts whose p is the confidence (truth, …).'
        ),
    ] = "tokens",
    weights: Annotated[
        str, typer.Option(help="Truthfulness' weights of accuracy, abstention and hallucination.")
    ] = "1,0,1",
    figures: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Folder for RLFH's figures 4 to 9 as HTML: before OTHER, after FEEDBACK; with"
                " --hacks, for theirs."
            )
        ),
    ] = None,
    hacks: Annotated[
        bool,
        typer.Option(
            "--hacks",
            help="Also count, by step, what only serves the reward: repetitions, other subjects, …",
        ),
    ] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> int:
    """Measure the factuality of judged responses, with 95% intervals and paired tests."""
    if figures is not None and other is None and not hacks:
        raise typer.BadParameter(
            "the figures compare two files: name OTHER, the feedback before training; or --hacks"
            " for those of one run",
            param_hint="--figures",
        )
    asked = llm_judge(judge, judge_model, None, judge_cache)
    paired = _paired(asked, feedback, other, {"--dry-run": dry_run}, preferences)
    if paired and dry_run:
        show(estimate_pairs(paired), as_json, print_mapping)
        return 0
    try:
        with ended_by_signal(), stdout_kept_clean():
            asked = _ready(asked, feedback, paired) if asked and paired else None
            result = compare_files(
                feedback,
                other,
                reference=reference,
                base=base,
                preferences=preferences,
                judge=asked.ask if asked else None,
                k=k,
                gamma=gamma,
                vague=vague,
                sections=sections or (),
                confidence=confidence,
                weights=_weights(weights),
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
    if asked:
        result["judge"] = _judge(asked, result["judge"])
    show(result, as_json, _print)
    return exit_code(result)


def _paired(
    asked: LLMJudge | None,
    feedback: Path,
    other: Path | None,
    about: Mapping[str, bool],
    preferences: Path | None,
) -> Pairs | None:
    """The pairs that a judge is asked about; a WorkbenchError for options that cannot work
    together, before it is.
    """
    if asked is None:
        if given := [option for option, wanted in about.items() if wanted]:
            raise WorkbenchError(
                f"{given[0]} is about a judge at a URL: name one with --judge URL, or leave it out"
            )
        return None
    if other is None:
        raise WorkbenchError(
            "--judge says which of two files' answers are better: name OTHER, the file to compare"
            " with"
        )
    if preferences is not None:
        raise WorkbenchError(
            "--judge and --preferences both say which answers are preferred: choose one"
        )
    return pair_files(feedback, other)


def _ready(asked: LLMJudge, feedback: Path, paired: Pairs) -> LLMJudge:
    """The judge with a file for its replies; one that has none yet is tried out, so that a wrong
    address is told at once.
    """
    file = file_of(feedback)
    asked = replace(asked, cache=asked.cache or file.with_name(f"{file.stem}.judge.sqlite"))
    if (
        not all(pair.identical for pair in paired.pairs)
        and asked.cache
        and not asked.cache.exists()
    ):
        asked.try_out()
    return asked


def _judge(asked: LLMJudge, used: Mapping[str, Any]) -> dict[str, Any]:
    """The judge's model, calls and tokens, and its cache."""
    kept = asked.cache and asked.cache.exists()
    return {
        "model": asked.model,
        **used,
        "cache": str(asked.cache) if kept else None,
    }


def _weights(argument: str) -> tuple[float, ...]:
    try:
        weights = tuple(float(part) for part in argument.split(","))
    except ValueError:
        weights = ()
    if len(weights) != 3 or not all(abs(value) < float("inf") for value in weights):
        raise typer.BadParameter(
            f"'{argument}' is not three numbers such as 1,0,1", param_hint="--weights"
        )
    return weights


def _figures(
    feedback: Path, other: Path | None, result: Mapping[str, Any], sections: Any
) -> dict[str, Figure]:
    """By file name: those that compare two files, and where hacks were counted, theirs over the
    steps of each.
    """
    drawn = (
        {}
        if other is None
        else figures_of(read_rows(other, sections), read_rows(feedback, sections))
    )
    if "hacks" not in result:
        return drawn
    counted = {_label(feedback, other): result["hacks"]} | (
        {_label(other, feedback): result["other_hacks"]} if other else {}
    )
    return drawn | {"hacks": hack_shares(counted)}


def _label(path: Path, other: Path | None) -> str:
    """What a file is called beside another: a run by its folder's name, and by its whole path
    where they share that.
    """
    names = [
        one.parent.name or one.name if one.suffix else one.name
        for one in (path, other)
        if one is not None
    ]
    return str(path) if len(names) > len(set(names)) else names[0]


def _print(result: Mapping[str, Any]) -> None:
    other, tests = result.get("other", {}), result.get("paired", {})
    names = [
        name
        for name, cell in result.items()
        if isinstance(cell, Mapping) and "value" in cell and name not in REASONS
    ]
    if "win_rate" in result and all(
        report[name]["value"] is None for report in (result, other) for name in names if report
    ):
        names = []  # preferences need no verdicts: answers that nobody judged have these alone
    title = (
        f"{result['n']} responses to {result['questions']} questions; VeriScore's K is"
        f" {text(result['veriscore_k'])}"
    )
    columns = (
        ("metric", "value", "other", "difference [95%]", "p", "n")
        if other
        else ("metric", "value [95%]", "n")
    )
    rows: list[tuple[str, ...]] = []
    for name in names:
        if other:
            test = tests.get(name, {})
            p = ABSENT if test.get("p") is None else f"{test['p']:.3f}"
            values = (_value(result[name]), _value(other.get(name, {})))
            rows.append(
                (name, *values, _value(test, "diff") + _interval(test), p, text(test.get("n")))
            )
        else:
            rows.append(
                (name, _value(result[name]) + _interval(result[name]), text(result[name].get("n")))
            )
    if rows:
        print_table(title, columns, rows)
    if "win_rate" in result:
        _print_preferences(result)
    counts = [("", result), *((("other", other),) if other else ())]
    states = tuple(LEFT_OUT.get(state, state) for state in result["excluded"])
    print_table(
        "excluded from the claim metrics",
        ("file", *states),
        [(name or "all", *map(text, report["excluded"].values())) for name, report in counts],
    )
    outcomes = {"scored": "scored", "failed": "failed", "no_gold": "no gold answer"}
    print_table(
        "outcomes",
        ("file", *outcomes.values()),
        [
            (name or "all", *(text(report["outcomes"][key]) for key in outcomes))
            for name, report in counts
        ],
    )
    for name, report in counts:
        which = name or "the file"
        if failed := report["failed"]:
            complain(
                f"{failed} of {report['n']} rows of {which} failed: a failure is recorded on them"
            )
        if unjudged := report["excluded"]["not_judged"]:
            complain(
                f"excluded: not judged: {unjudged} of {report['n']} rows of {which}; `workbench"
                " score` judges them"
            )
        if report["duplicate_ids"]:
            complain(
                f"{report['duplicate_ids']} rows of {which} have an id that came before, and count"
                " once more"
            )
    for key, title in (
        ("hacks", "hacks of the reward"),
        ("other_hacks", "hacks of the reward, other"),
    ):
        if by_step := result.get(key):
            print_table(
                title, tuple(by_step[0]), [tuple(map(_short, row.values())) for row in by_step]
            )
    for name in names:
        if reason := result[name].get("reason"):
            complain(f"{name}: {reason}")


def _print_preferences(result: Mapping[str, Any]) -> None:
    """What a judge prefers, beside the lengths that it may go by."""
    pairs, mean = result["pairs"], result["words"]
    title = (
        f"preferred to the other's, of {pairs['n']} pairs: {pairs['won']} won, {pairs['tied']}"
        f" tied, {pairs['lost']} lost"
    )
    if mean["other"] is not None:
        title += f"; {mean['feedback']:.1f} words against {mean['other']:.1f}"
    cells = {name: result[name] for name in REASONS}
    print_table(
        title,
        ("", "value [95%]", "questions"),
        [(name, _value(cell) + _interval(cell), text(cell["n"])) for name, cell in cells.items()],
    )
    if pairs["incomplete"]:
        complain(
            f"left out of the win rate: {pairs['incomplete']} pairs without a verdict in both"
            " orders"
        )
    if pairs.get("repeated"):
        complain(
            f"left out of the win rate: {pairs['repeated']} sample numbers of a question and step"
            " that stand twice in a file"
        )
    if pairs.get("other_question"):
        complain(
            f"left out of the win rate: {pairs['other_question']} pairs whose question has another"
            " text in each file"
        )
    judge = result.get("judge", {})
    for kind, count in judge.get("failures", {}).items():
        complain(f"{count} × {kind}: {judge['reasons'][kind][:400]}")
    if reason := result["win_rate"].get("reason"):
        complain(f"win_rate: {reason}")


def _short(value: float | None) -> str:
    return f"{value:.3f}" if isinstance(value, float) else text(value)


def _value(cell: Mapping[str, Any], key: str = "value") -> str:
    return ABSENT if cell.get(key) is None else f"{cell[key]:.3f}"


def _interval(cell: Mapping[str, Any]) -> str:
    return "" if cell.get("low") is None else f" [{cell['low']:.3f}, {cell['high']:.3f}]"
