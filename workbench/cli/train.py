"""`workbench demo`, `train` and `evaluate`: train policies and evaluate them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from workbench.cli.frame import (
    Bench,
    Engine,
    Json,
    Kinds,
    Lang,
    Limit,
    Overrides,
    Questions,
    Seed,
    Threads,
    app,
    complain,
    exit_code,
    percent,
    print_table,
    show,
    stdout_kept_clean,
)
from workbench.cli.judge_options import judge_options
from workbench.experiments.compare import known_metrics
from workbench.experiments.demo import run_demo
from workbench.experiments.evaluate import evaluate_policy
from workbench.experiments.inference import Inference
from workbench.experiments.run import Entry, plan_run
from workbench.methods import TRAINED
from workbench.metrics import RATES, SIMPLEQA
from workbench.types import JsonMapping
from workbench.util.threads import DEFAULT_THREADS
from workbench.verdicts.llm_judge import NamedJudge


@app.command(epilog="Example: workbench demo --seed 2 --out runs/demo-2")
def demo(
    out: Annotated[Path, Option(help="Folder of the demo.")] = Path("runs/demo"),
    seed: Seed = 1,
    threads: Threads = DEFAULT_THREADS,
) -> int:
    """Train the tiny policy with TruthRL's two rewards, and compare the results.

    With the ternary reward, an abstention earns more than a wrong answer. With the binary reward,
    both earn the same.
    """
    return exit_code(run_demo(out, seed, threads))


@app.command(
    epilog="Example: workbench train truthrl --out runs/truthrl --set truthrl.reward=binary"
)
@judge_options(local=True)
def train(
    method: Annotated[
        str,
        Argument(metavar="METHOD", help=f"One of {', '.join(TRAINED)}; see `workbench methods`."),
    ],
    out: Annotated[Path, Option(help="Folder of the run; an unfinished run is resumed.")],
    bench: Bench = "tiny",
    seed: Seed = 0,
    steps: Annotated[
        int | None, Option(min=1, help="Steps of the last stage; default: the method's.")
    ] = None,
    threads: Annotated[
        int | None,
        Option(min=1, help="CPU threads; default: 2, or the number that the run was started with."),
    ] = None,
    overrides: Overrides = None,
    questions: Questions = None,
    policy: Annotated[
        str | None,
        Option(help="Folder or public name of the initial policy; default: the bench's policy."),
    ] = None,
    judge: NamedJudge | None = None,
    as_json: Json = False,
) -> int:
    """Train a policy with a method, and evaluate it before and after."""
    with stdout_kept_clean():
        entry = Entry(
            method, seed, bench, overrides or (), steps, questions, threads, policy=policy
        )
        summary = plan_run(entry, out.parent, judge=judge).train(out)
    return show(summary, as_json, _print_summary)


@app.command(epilog="Example: workbench evaluate runs/truthrl --split test --json")
@judge_options(local=True)
def evaluate(
    policy: Annotated[
        str,
        Argument(
            help="A run's folder, a model's folder or public name; on the bench tiny also sft"
            " or base."
        ),
    ],
    split: Annotated[Literal["validation", "test", "ood"], Option(help="Questions to ask.")],
    bench: Bench = "tiny",
    samples: Annotated[
        int,
        Option(
            min=0,
            help="Sampled answers per question, besides the greedy answer; their rates are Avg@k.",
        ),
    ] = 4,
    temperature: Annotated[
        float, Option(min=0.01, help="Temperature of the sampled answers.")
    ] = 1.0,
    inference: Annotated[
        Inference | None,
        Option(
            help="Also report a baseline at inference time: the best sample by the local verifier,"
            " the majority of the samples or an abstention, or chain of verification."
        ),
    ] = None,
    seed: Seed = 0,
    limit: Limit = None,
    kinds: Kinds = None,
    threads: Threads = DEFAULT_THREADS,
    questions: Questions = None,
    lang: Lang = "en",
    judge: NamedJudge | None = None,
    engine: Engine = "hf",
    out: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="New JSONL file for the greedy answers, which `workbench metrics` compares.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Measure a policy's accuracy, abstention and hallucination, with intervals."""
    with stdout_kept_clean():
        report = evaluate_policy(
            policy,
            split,
            bench,
            samples,
            seed,
            limit,
            kinds or None,
            threads,
            questions,
            lang,
            judge=judge,
            engine=engine,
            out=out,
            temperature=temperature,
            inference=inference,
        )
    if missing := report.get("missing_kinds"):
        complain(
            f"note: '{policy}' was trained on questions of the kinds {', '.join(missing)}, which"
            " were not asked; --kind chooses kinds"
        )
    return show(report, as_json, _print_report)


def _print_report(report: JsonMapping) -> None:
    for decoding in ("greedy", "sampled", "inferred"):
        scores = report.get(decoding) or {}
        if scores.get("n"):  # `--samples 0` samples nothing
            tiers = {"all": scores, **scores.get("by_tier", {})}
            how = {
                "sampled": f"sampled (Avg@{report['samples']}, T {report['temperature']:g})",
                "inferred": report.get("inference", ""),
            }.get(decoding, decoding)
            title = f"{report['policy']} on {report['split']}: {how}, percent [95 % interval]"
            metrics = metrics_with_values(tiers.values())
            rows = [
                (tier, str(row["n"]), *(percent(row.get(m)) for m in metrics))
                for tier, row in tiers.items()
            ]
            print_table(title, ("tier", "n", *metrics), rows)


def _print_summary(summary: JsonMapping) -> None:
    reports = [summary.get(when) or {} for when in ("before", "after")]
    before, after = (report.get("greedy", {}) for report in reports)
    title = f"{summary['method']}, seed {summary['seed']}: greedy answers"
    if n := reports[1].get("n"):
        title += f" to {n} questions of split {reports[1]['split']}"
    title += ", percent [95 % interval]"
    metrics = metrics_with_values((before, after))
    rows = [(m, percent(before.get(m)), percent(after.get(m))) for m in metrics]
    print_table(title, ("", "before", "after"), rows)


def metrics_with_values(tables: Iterable[JsonMapping]) -> list[str]:
    """Return the names of the outcome rates that have a value in at least one of the tables.

    An outcome rate is, for example, "accuracy". If no outcome rate has a value, return the names of
    the claim metrics that have one, such as "factscore".

    Args:
        tables: mappings from the name of a metric to its cell, a mapping with the key "value".
    """
    present = {name for table in tables for name in known_metrics(table)}
    of_claims = ("factscore", "factscore_on_subject", "off_subject", "responded")
    # in the order of RATES, whatever the order in the reports
    return list(filter(present.__contains__, (*RATES, *SIMPLEQA))) or list(
        filter(present.__contains__, of_claims)
    )
