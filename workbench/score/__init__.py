"""`workbench score`: a file of responses to feedback, row by row; and what goes with such files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.jsonl import taken_back
from workbench.judge import Totals, money
from workbench.judge.shared import Shared
from workbench.recipes import reward_fns
from workbench.runs.folder import lock
from workbench.score import setup
from workbench.score.estimate import Counter, estimate
from workbench.score.evidence import evidence
from workbench.score.ray import there
from workbench.score.record import check_free
from workbench.score.run import Plan, run
from workbench.score.setup import Options, cache_path, check, check_output_space
from workbench.score.survey import Reader, Survey
from workbench.score.tally import Tally
from workbench.store import stored_questions
from workbench.types import WorkbenchError

__all__ = ["Options", "estimate_file", "score_file"]

Watch = Callable[["Tally", int], None]  # told the running totals and how many rows are done
# told how many rows there are, and what counts the judge's calls
Progress = Callable[[int, "Totals | None"], Watch]


def score_file(options: Options, progress: Progress | None = None) -> dict[str, Any]:
    """Score the rows of a file into feedback rows; returns the summary, as `workbench score
    --json` prints it.

    Raises:
        WorkbenchError: before anything is asked or written, for whatever in the options or the
        input cannot work.
    """
    check(options)
    with taken_back(cache_path(options).parent), lock(options.out.parent), ExitStack() as closing:
        check_output_space(options)
        reader, survey, plan, settings = _prepare(options, closing)
        watch = progress(len(survey.ids), plan.totals) if progress else lambda tally, done: None
        summary = run(
            reader,
            survey,
            plan,
            options.out,
            settings,
            engine=there(options, plan) if options.engine == "ray" else None,
            max_failed=options.max_failed,
            overwrite=options.overwrite,
            watch=watch,
        )
    cache = cache_path(options)
    return {
        **summary,
        "price": _price(summary["cost"], options),
        "cache": str(cache) if options.remote and cache.exists() else None,
    }


def estimate_file(options: Options) -> dict[str, Any]:
    """What scoring the file would take: calls, tokens and price. Nothing is asked and nothing is
    written.
    """
    check(options)
    counter = Counter()
    reader, survey, plan, _ = _prepare(options, ExitStack(), counter)
    costs = estimate(
        reader, survey, plan if options.remote else replace(plan, checks=None), counter
    )
    return {**costs, "price": _price(costs, options)}


def _prepare(
    options: Options, closing: ExitStack, counter: Counter | None = None
) -> tuple[Reader, Survey, Plan, dict[str, Any]]:
    """The input as surveyed, how it is to be scored, and the settings; with a `counter` in the
    place of the judge.

    What has to be closed, whatever comes of it, is left to `closing`.
    """
    configs = setup.methods(options)
    plan, checks = Plan(reward_fns(configs)), setup.checks_of(options) if options.exact else None
    reader = Reader(
        options.source,
        options.columns,
        setup.tokenizer(options.tokenizer),
        checks.recognise if checks else None,
    )
    reader.known = stored_questions(options.out.parent)
    survey = reader.survey()
    if not survey.ids:
        raise WorkbenchError(_nothing_to_score(options.source, survey))
    needs_judge = survey.judged > 0
    if needs_judge and (checks or options.remote or counter is None):
        search = None if options.exact else evidence(options)
        threads, new = setup.workers(options, survey), not setup.cache_path(options).exists()
        judge = setup.endpoint(options, threads) if options.remote and counter is None else None
        shared = Shared(judge) if judge else None
        if judge and shared:
            closing.callback(setup.close, judge, shared, options, new)
        configs, plan = setup.plan(
            options, configs, checks or setup.checks_of(options, search, shared or counter)
        )
        setup.check_evidence(survey, plan.needed, options)
        if search and counter is None:
            check_free(
                options.out, setup.identity(options, configs, needs_judge), options.overwrite
            )
            search.prepare()
        plan = replace(
            plan,
            retrieved=search.take if search else list,
            workers=threads,
            totals=judge.totals if judge else None,
            asked={name: one for name, one in (("judge", shared), ("search", search)) if one},
        )
    return reader, survey, plan, setup.identity(options, configs, needs_judge)


def _nothing_to_score(source: Path, survey: Survey) -> str:
    """Why no row of a file can be scored, with a remedy that fits: names of columns only where
    there are columns.
    """
    if not survey.problems:
        return (
            f"{source}: the file is empty: name one with rows of questions and responses with --in"
            " FILE"
        )
    line, problem = survey.problems[0]
    remedy = "" if problem.startswith("not ") else ": --map response=COLUMN names columns"
    return f"{source}:{line}: {problem}; no row can be scored{remedy}"


def _price(cost: dict[str, Any], options: Options) -> float | None:
    """What the tokens cost at the prices given for a million of them."""
    if options.price is None:
        return None
    return round(money(cost["tokens_in"], cost["tokens_out"], options.price), 6)
