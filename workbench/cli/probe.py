"""`workbench probe`: print the boundary of a policy's knowledge."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Option

from workbench.cli.frame import (
    Actors,
    ActorThreads,
    Address,
    Bench,
    Engine,
    Json,
    Kinds,
    Lang,
    Limit,
    Policy,
    Questions,
    Seed,
    app,
    complain,
    ended_by_signal,
    percent,
    print_mapping,
    show,
    stdout_kept_clean,
)
from workbench.cli.judge_options import judge_options
from workbench.experiments.probe import probe_policy
from workbench.metrics import RATES
from workbench.metrics.boundary import SHARES
from workbench.types import JsonMapping, JsonObject, WorkbenchError
from workbench.util.actors import Actors as Workers
from workbench.verdicts.llm_judge import NamedJudge

OF_MAJORITY = RATES[: len(SHARES)]  # the rates of the samples' majority answers


@app.command(epilog="Example: workbench probe --policy runs/truthrl --k 16 --limit 200 --json")
@judge_options(local=True)
def probe(
    policy: Policy = None,
    bench: Bench = "tiny",
    k: Annotated[
        int, Option("--k", "-k", min=1, max=4096, help="Number of samples per question.")
    ] = 64,
    split: Annotated[
        Literal["validation", "test", "ood", "rl"], Option(help="Questions to ask.")
    ] = "validation",
    kinds: Kinds = None,
    seed: Seed = 0,
    limit: Limit = None,
    temperature: Annotated[float, Option(help="Sampling temperature.")] = 1.0,
    out: Annotated[
        Path | None,
        Option(
            help="Folder of the probe; an unfinished probe is resumed. Default: a folder in"
            " runs/probe, named by the settings."
        ),
    ] = None,
    threads: ActorThreads = None,
    questions: Questions = None,
    lang: Lang = "en",
    judge: NamedJudge | None = None,
    engine: Engine = "hf",
    actors: Actors = None,
    address: Address = None,
    as_json: Json = False,
) -> int:
    """Measure the boundary of a policy's knowledge.

    The policy answers every question K times. The report shows which questions it never answers
    correctly, and how certain it is of its answers.
    """
    if actors is None and address is not None:
        raise WorkbenchError(
            "--address names a Ray cluster but --actors is missing: add --actors N, or leave"
            " --address out"
        )
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
            judge=judge,
            engine=engine,
            actors=None if actors is None else Workers(actors, address),
        )
    code = show(result, as_json, _print)
    if result["failed"]:
        complain(
            f"{result['failed']} samples could not be graded, so {result['unsettled']} questions"
            " are undecided"
        )
    return code


def _print(result: JsonMapping) -> None:
    """Print the rates of a probe in percent.

    Two tables are by number of samples. A third is by number of training documents with the fact.
    """
    tables: JsonObject = {
        "majority of the samples, in %": [
            {"samples": size, **{rate: percent(row[rate]) for rate in OF_MAJORITY}}
            for size, row in result["majority"].items()
        ],
        "label 'out of knowledge' compared with facts in no document, in %": [
            {"samples": size, "labelled": row["labelled"]}
            | {name: percent(row[name]) for name in ("precision", "recall")}
            for size, row in (result["agreement"] or {"by_k": {}})["by_k"].items()
        ],
        "samples by number of documents with the fact, in %": [
            {"documents": count, "questions": row["n"]}
            | {share: percent(row[share]) for share in SHARES}
            for count, row in (result["exposure"] or {}).items()
        ],
    }
    scalars = {name: result[name] for name in ("policy", "split", "n", "k", "aurc")}
    scalars["out of knowledge"] = f"{result['ook']} ({percent(result['ook_share'])} %)"
    print_mapping(scalars | {name: table for name, table in tables.items() if table})
    complain(f"one row per question: {result['out']}/probe.jsonl")
