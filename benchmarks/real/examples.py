"""Store some answers of the runs of `findings.py truthrl_real` or `rlfh_real`, for the notebook.

    python -m benchmarks.real.examples truthrl_real --policy FOLDER --runs FOLDER

`benchmarks/results/NAME` gets graded greedy answers of the initial and trained policies to the same
drawn test questions, and a group of rollouts. For TruthRL, it is a group of a ternary run with all
three outcomes. For RLFH, it is the group of the last step whose judge calls most false claims
correct. Ids are `start-N`, `ARM_SEED-N` and `rollout-N`.
"""

import argparse
import random
import shutil
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from benchmarks.findings import FILES, graded, start_folder
from benchmarks.real.exact import exact_terms
from benchmarks.reproduce import RESULTS
from workbench.experiments.queue import ROOT, queue_runs
from workbench.experiments.run import Run, plan_run
from workbench.runs.store import append_feedback, iter_feedback, read_passages
from workbench.types import Feedback

QUESTIONS = {"truthrl_real": 40, "rlfh_real": 12}
ASKED = "test"


def named(policy: str, number: int, feedback: Feedback) -> Feedback:
    """Return the row with the id `POLICY-NUMBER`."""
    return replace(feedback, response=replace(feedback.response, id=f"{policy}-{number}"))


def mixed_group(folder: Path) -> list[Feedback]:
    """Return the first group of a run's rollouts with all three outcomes; exit if there is none."""
    groups: dict[tuple[int | None, str], list[Feedback]] = {}
    for one in iter_feedback(folder):
        groups.setdefault((one.response.step, one.response.question.id), []).append(one)
    for group in groups.values():
        if len({one.verdict("outcome").label for one in group}) == 3:
            return group
    raise SystemExit(f"{folder}: no group has all three outcomes")


def overrated(folder: Path) -> list[Feedback]:
    """Return the group of the last step whose judge calls most false claims correct."""
    rows, groups = list(iter_feedback(folder)), dict[str, list[Feedback]]()
    for one in rows:
        if one.response.step == rows[-1].response.step:
            groups.setdefault(one.response.question.id, []).append(one)
    excess = {
        name: sum(exact_terms(one).get("overrated", (0.0, 0.0))[0] for one in group)
        for name, group in groups.items()
    }
    return groups[max(excess, key=excess.__getitem__)]


def with_passages(folder: Path, rows: Iterable[Feedback]) -> list[Feedback]:
    """Return the rows with the passages that their verdicts cite."""
    stored = read_passages(folder)
    return [
        replace(
            row,
            passages=tuple(
                stored[name]
                for name in dict.fromkeys(
                    item["passage"]
                    for verdict in row.verdicts
                    for item in verdict.evidence
                    if "passage" in item
                )
                if name in stored
            ),
        )
        for row in rows
    ]


def drawn(folder: Path, questions: Iterable[str]) -> list[Feedback]:
    """Return the rows of the questions, in their order."""
    rows = {one.response.question.id: one for one in iter_feedback(folder)}
    return with_passages(folder, [rows[question] for question in questions])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=list(QUESTIONS))
    parser.add_argument("--policy", required=True)
    parser.add_argument("--runs", type=Path, default=ROOT)
    given = parser.parse_args()
    planned = [
        plan_run(replace(run.entry, policy=given.policy), given.runs)
        for run in queue_runs(FILES / f"{given.name}_runs.toml", given.runs)
    ]
    runs = {f"{run.entry.name}_{run.entry.seed}": run for run in planned if run.summary}
    shown = "ternary_2" if given.name == "truthrl_real" else "verifier_1"
    if shown not in runs:
        parser.error(f"run {shown} of {given.name} is not finished in {given.runs}: train it first")
    asked = tomllib.loads((FILES / f"{given.name}.toml").read_text())["asked"][ASKED]

    def folder(run: Run, policy: str, answers: Path) -> Path:
        # all arms are judged by the first run's judge, as `findings.py` does
        return graded(planned[0].bench, policy, asked, run.config.prompts.system, answers)

    first = planned[0]
    folders = {"start": folder(first, first.identity["policy"], start_folder(first, given.runs))}
    folders |= {
        name: folder(run, str(run.folder), run.folder / "answers") for name, run in runs.items()
    }
    every = sorted(one.response.question.id for one in iter_feedback(folders["start"]))
    questions = random.Random(0).sample(every, QUESTIONS[given.name])
    rows = {name: drawn(own, questions) for name, own in folders.items()}
    rows["rollout"] = (
        mixed_group(runs[shown].folder)
        if given.name == "truthrl_real"
        else with_passages(runs[shown].folder, overrated(runs[shown].folder))
    )
    out = RESULTS / given.name
    shutil.rmtree(out, ignore_errors=True)
    append_feedback(
        out,
        [named(name, number, one) for name, own in rows.items() for number, one in enumerate(own)],
    )


if __name__ == "__main__":
    main()
