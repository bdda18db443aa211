"""`workbench klcf …`: prepare KLCF's training data."""

from pathlib import Path
from typing import Annotated

from typer import Option

from workbench.cli.frame import (
    Bench,
    Json,
    Kinds,
    Limit,
    Overrides,
    Policy,
    Questions,
    Seed,
    Threads,
    add_group,
    ended_by_signal,
    print_table,
    show,
    stdout_kept_clean,
    text,
)
from workbench.cli.judge_options import judge_options
from workbench.experiments.prepare import prepare_klcf
from workbench.types import JsonMapping
from workbench.util.threads import DEFAULT_THREADS
from workbench.verdicts.llm_judge import NamedJudge

klcf_app = add_group(
    "klcf",
    "Prepare KLCF's training data: checklists and labelled claims of the base model.",
    "klcf prepare --out runs/prepared",
)


@klcf_app.command(
    "prepare", epilog="Example: workbench klcf prepare --out runs/prepared --samples 8 --limit 100"
)
@judge_options(local=True)
def klcf_prepare(
    out: Annotated[Path, Option(help="Folder of the preparation, which is resumed if unfinished.")],
    bench: Bench = "tiny",
    policy: Policy = None,
    samples: Annotated[
        int | None, Option(min=1, help="Number of sampled responses per question.")
    ] = None,
    limit: Limit = None,
    kinds: Kinds = None,
    seed: Seed = 0,
    overrides: Overrides = None,
    threads: Threads = DEFAULT_THREADS,
    questions: Questions = None,
    judge: NamedJudge | None = None,
    as_json: Json = False,
) -> int:
    """Prepare checklists and labelled claims for KLCF.

    The base model answers the training questions, and the claims of its answers are verified. From
    these claims, the command makes checklists for the questions, and labelled claims to train the
    truthfulness model.
    """
    options = {
        "klcf.prepare.samples": samples,
        "klcf.prepare.questions": limit,
        "klcf.kinds": ",".join(kinds) if kinds else None,
    }
    settings = [f"{name}={value}" for name, value in options.items() if value is not None]
    with ended_by_signal(), stdout_kept_clean():
        result = prepare_klcf(
            out,
            bench,
            policy=policy,
            seed=seed,
            overrides=[*(overrides or []), *settings],
            threads=threads,
            questions=questions,
            judge=judge,
        )
    return show(result, as_json, _print)


def _print(result: JsonMapping) -> None:
    if result["status"] == "done":
        stages = ("samples", "claims", "checklists", "truth", "known")
        rows = [(stage, text(result[stage])) for stage in stages if result[stage]]
        print_table(f"{result['questions']} questions, prepared in {result['out']}", ("", ""), rows)
