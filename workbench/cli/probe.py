"""`workbench probe`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from workbench.actors import actors_of
from workbench.cli.frame import (
    Actors,
    Address,
    Bench,
    Engine,
    Json,
    Judge,
    JudgeCache,
    JudgeModel,
    Kinds,
    Lang,
    Limit,
    Policy,
    Questions,
    Seed,
    StoreName,
    ThreadsOfAnActor,
    app,
    complain,
    ended_by_signal,
    exit_code,
    percent,
    print_table,
    show,
    stdout_kept_clean,
    text,
)
from workbench.llm_judge import llm_judge
from workbench.metrics import RATES
from workbench.metrics.boundary import SHARES
from workbench.probe import probe_policy

OF_MAJORITY = RATES[: len(SHARES)]


@app.command(epilog="Example: workbench probe --policy runs/truthrl --k 16 --limit 200 --json")
def probe(
    policy: Policy = None,
    bench: Bench = "tiny",
    k: Annotated[
        int, typer.Option("--k", "-k", min=1, max=4096, help="Samples of each question.")
    ] = 64,
    split: Annotated[
        Literal["validation", "test", "ood", "rl"], typer.Option(help="Which questions to ask.")
    ] = "validation",
    kinds: Kinds = None,
    seed: Seed = 0,
    limit: Limit = None,
    temperature: Annotated[float, typer.Option(help="At which answers are sampled.")] = 1.0,
    out: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Folder of the probe; an unfinished one is resumed. By default one of runs/probe,"
                " by its settings."
            )
        ),
    ] = None,
    threads: ThreadsOfAnActor = None,
    questions: Questions = None,
    lang: Lang = "en",
    judge: Judge = None,
    judge_model: JudgeModel = None,
    store: StoreName = None,
    judge_cache: JudgeCache = None,
    engine: Engine = "hf",
    actors: Actors = None,
    address: Address = None,
    as_json: Json = False,
) -> int:
    """Find the boundary of a policy's knowledge: which questions it never answers right, and how
    sure it is of its answers.
    """
    with ended_by_signal(), stdout_kept_clean():
        result = probe_policy(
            policy,
            split,
            bench,
            k=k,
            out=out,
            temperature=temperature,
            seed=seed,
            limit=limit,
            kinds=kinds or None,
            threads=threads,
            questions=questions,
            lang=lang,
            judge=llm_judge(judge, judge_model, store, judge_cache),
            engine=engine,
            actors=actors_of(actors, address),
        )
    show(result, as_json, _print)
    if result["failed"]:
        complain(
            f"{result['failed']} samples could not be graded, which leaves {result['unsettled']}"
            " questions open"
        )
    return exit_code(result)


def _print(result: Mapping[str, Any]) -> None:
    title = (
        f"{result['policy']} on {result['split']}: {result['n']} questions, {result['k']} samples"
        " each, percent"
    )
    print_table(
        f"{title}\nout of knowledge: {result['ook']} questions ({percent(result['ook_share'])})"
        f" without a correct sample\nAURC of the majority's answers: {text(result['aurc'])}",
        ("majority of", *OF_MAJORITY),
        [
            (f"{size} samples", *(percent(row[rate]) for rate in OF_MAJORITY))
            for size, row in result["majority"].items()
        ],
    )
    if labels := result["agreement"]:
        rows = [
            (size, text(row["labelled"]), percent(row["precision"]), percent(row["recall"]))
            for size, row in labels["by_k"].items()
        ]
        head = (
            f"the label 'out of knowledge' against the {labels['unknown']} questions on facts that"
            " were never shown, percent"
        )
        print_table(head, ("samples", "labelled", "precision", "recall"), rows)
    if shown := result["exposure"]:
        rows = [
            (count, text(row["n"]), *(percent(row[share]) for share in SHARES))
            for count, row in shown.items()
        ]
        print_table(
            "samples by how many documents state the fact, percent",
            ("documents", "questions", *SHARES),
            rows,
        )
    complain(f"a row for each question: {result['out']}/probe.jsonl")
