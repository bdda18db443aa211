"""The demo: train the tiny policy with TruthRL's ternary and binary reward, and compare them."""

import random
import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.experiments.evaluate import compare, graded_answers
from workbench.experiments.run import Entry, Run, plan_run
from workbench.methods.bench import bench
from workbench.metrics import share_of_oracle
from workbench.metrics.plots import learning_curves, outcomes_by_tier
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.folder import lock, read_json
from workbench.types import JsonMapping, JsonObject, Question, WorkbenchError
from workbench.util.grouping import group_by
from workbench.util.subprocess import INTERRUPTED, start
from workbench.util.threads import DEFAULT_THREADS
from workbench.world.facts import TIERS

REWARDS = ("ternary", "binary")
SHOWN_PER_TIER = 2


def run_demo(out: Path, seed: int = 1, threads: int = DEFAULT_THREADS) -> dict[str, JsonObject]:
    """Train the tiny policy once with each reward, and print result tables and sample answers.

    A run takes about a minute. The runs, in `out/ternary` and `out/binary`, are trained at the same
    time. Two figures are written to `out`. The same call resumes a killed demo, and shows a
    finished demo again. If a run does not finish, the demo stops and shows no results.

    Args:
        out: folder of the demo.
        seed: seed of both runs.
        threads: number of CPU threads; each run uses half of them.

    Returns:
        Name of the reward ("ternary", "binary") -> summary of its run: the content of its
        summary.json, with `status` ("done" if it finished) and the evaluations `before` and
        `after`. If too many responses of the ternary run failed, "binary" is missing.

    Raises:
        WorkbenchError: a run failed.
    """
    from rich.console import Console

    console = Console(width=max(Console().width, 104))  # narrower tables truncate the intervals
    summaries = train_both(out, seed, threads)
    if any(summary["status"] != "done" for summary in summaries.values()):
        return summaries
    reports = {
        "initial policy": summaries["ternary"]["before"],
        **{reward: summaries[reward]["after"] for reward in REWARDS},
    }
    for mode in ("greedy", "sampled"):
        console.print(results_table(reports, mode))
    console.print(oracle_line(reports), soft_wrap=True)
    console.print(answers_table(out / "ternary"))
    for path in write_figures(out, reports):
        console.print(f"figure: {path}", soft_wrap=True)
    console.print(
        f"stored runs: {out / 'ternary'} and {out / 'binary'} (rollouts.jsonl has every rollout"
        " with its reward)"
    )
    folder = shlex.quote(str(out / REWARDS[0]))
    console.print(f"next: workbench inspect --run {folder}", soft_wrap=True)
    return summaries


def train_both(out: Path, seed: int, threads: int) -> dict[str, JsonObject]:
    """Train the two runs of the demo at the same time, the second one in a subprocess."""
    first, second = REWARDS
    here, there, each = out / first, out / second, threads // 2 or 1
    summary = unfinished = {"status": "interrupted"}
    with tempfile.TemporaryDirectory() as folder, lock(out):
        for run, reward in ((here, first), (there, second)):  # before one of them starts
            demo_plan(run, reward, seed, each).check(run)
        print(f"TruthRL on the tiny policy → {here} and {there}", file=sys.stderr)
        print("the first step follows an evaluation of the initial policy", file=sys.stderr)
        job = {"out": str(there), "reward": second, "seed": seed, "threads": each}
        process = start(demo_run, job, Path(folder, "log.txt"))
        try:
            summary = demo_run(here, first, seed, each)
            if summary["status"] == "done":
                process.wait()
        except KeyboardInterrupt:  # while this process waits for the other one
            pass
        finally:
            process.interrupt()  # without effect on a process that has ended
            code = process.wait()
        # printed at the end, so that the lines of the two runs are not mixed
        print(process.log.read_text(), end="", file=sys.stderr)
        if code not in (0, *INTERRUPTED):
            raise WorkbenchError(f"the run with the {second} reward failed: {process.last_line()}")
    if summary["status"] == "too_many_failures":
        return {first: summary}  # the second run was only interrupted
    return {first: summary, second: read_json(there / "summary.json") or unfinished}


def demo_run(out: Path | str, reward: str, seed: int, threads: int) -> JsonObject:
    """Train the tiny policy with one reward, evaluate it on the test split; return the summary.

    The arguments are those of `demo_plan`.
    """
    return demo_plan(Path(out), reward, seed, threads).train(Path(out))


def demo_plan(out: Path, reward: str, seed: int, threads: int) -> Run:
    """Return a run of the demo, which is not trained yet.

    Args:
        out: folder of the run.
        reward: "ternary" or "binary".
        seed: seed of the training.
        threads: number of CPU threads; a run that has begun keeps its number.
    """
    begun = (read_json(out / "config.json") or {}).get("threads")
    settings = [f"truthrl.reward={reward}", "truthrl.eval_split=test", "truthrl.eval_samples=2"]
    entry = Entry("truthrl", seed, settings=settings, threads=begun or threads)
    return plan_run(entry, out.parent)


def results_table(reports: Mapping[str, JsonMapping], mode: str) -> Any:
    """Return a table, printable by rich, of outcome rates by tier and policy.

    Args:
        reports: name of the policy -> its evaluation report.
        mode: "greedy" or "sampled" answers.
    """
    from rich.table import Table

    how = "greedy" if mode == "greedy" else "sampled at T=1"
    rows = compare(reports, mode, TIERS).to_dict("records")
    table = Table(
        title=f"{reports['initial policy']['n']} test questions, {how} [95 % intervals]",
        title_justify="left",
    )
    for column in rows[0]:
        table.add_column(
            column, justify="left" if column in ("tier", "policy") else "right", no_wrap=True
        )
    first, *_, last = reports
    for row in rows:
        tier, *cells = row.values()
        table.add_row(
            tier if row["policy"] == first else "", *cells, end_section=row["policy"] == last
        )
    return table


def oracle_line(reports: Mapping[str, JsonMapping]) -> str:
    """Return a sentence with each reward's gain in truthfulness, in percent of an oracle's gain.

    The oracle answers like the initial policy, but abstains where this policy is wrong. The
    sentence ends like "ternary +45%, binary -3%".

    Args:
        reports: evaluation reports of "initial policy", "ternary" and "binary".
    """
    initial = reports["initial policy"]["greedy"]
    listed = ", ".join(
        f"{reward} {share:+.0%}"
        for reward in REWARDS
        if (share := share_of_oracle(initial, reports[reward]["greedy"])) is not None
    )
    return (
        "Share of the distance from the initial policy to an oracle that abstains exactly where"
        f" this policy is wrong: {listed}"
    )


def fixed_questions() -> list[Question]:
    """Return a fixed sample of test questions: two of each tier, about different people."""
    by_tier = group_by(bench("tiny").questions("test"), lambda question: question.meta["tier"])
    by_person = {
        tier: group_by(by_tier[tier], lambda question: question.title)
        for tier in TIERS
        if tier in by_tier
    }
    rng = random.Random("demo")
    return [
        rng.choice(people[person])
        for people in by_person.values()
        for person in rng.sample(list(people), SHOWN_PER_TIER)
    ]


def answers(run: Path) -> list[dict[str, str]]:
    """Return the greedy answers to `fixed_questions` before and after a training.

    There is a dict for each question: its "tier", its text ("question"), the gold answer ("truth")
    and the answers "before" and "after" the training.

    Args:
        run: folder of the training.
    """
    tiny, questions = bench("tiny"), fixed_questions()
    before, after = (graded_answers(tiny, policy, questions) for policy in (tiny.policy, str(run)))
    return [
        {
            "tier": question.meta["tier"],
            "question": question.text,
            "truth": question.answers[0],
            "before": first.response.text.strip(),
            "after": second.response.text.strip(),
        }
        for question, first, second in zip(questions, before, after, strict=True)
    ]


def answers_table(run: Path) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(title="Greedy answers before and after (ternary)", title_justify="left")
    rows = answers(run)
    for column in rows[0]:
        table.add_column(column, overflow="fold")
    for row in rows:
        # Text: a model's answer is not markup
        table.add_row(*map(Text, row.values()))
    return table


def write_figures(out: Path, reports: Mapping[str, JsonMapping]) -> list[Path]:
    """Write the two figures of the demo as self-contained HTML pages, and return their paths.

    outcomes.html shows the outcome rates by tier. learning-curves.html shows the curves of the two
    runs.

    Args:
        out: folder of the demo, which has the runs.
        reports: name of the policy -> its evaluation report.
    """
    runs = {reward: metrics_rows(out / reward) for reward in REWARDS}
    figures = {
        out / "outcomes.html": outcomes_by_tier(reports),
        out / "learning-curves.html": learning_curves(runs),
    }
    for path, figure in figures.items():
        figure.write_html(path)
    return list(figures)
