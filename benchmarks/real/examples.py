"""Store some answers of the runs of `findings.py truthrl_real`, for the notebook on real models.

    python -m benchmarks.real.examples --policy FOLDER --out benchmarks/results/truthrl_real

The folder has graded greedy answers of the initial policy and of the trained runs to the same drawn
test questions, and one group of rollouts of a ternary run with the rewards of its tokens. Ids are
`start-N`, `ternary_SEED-N`, `binary_SEED-N` and `rollout-N`.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import replace
from pathlib import Path

from workbench.experiments.evaluate import graded_answers
from workbench.experiments.queue import ROOT, queue_runs
from workbench.experiments.queue.runs import plan_run
from workbench.runs.store import append_feedback, iter_feedback
from workbench.types import Feedback

RUNS = Path(__file__).parents[1] / "findings" / "truthrl_real_runs.toml"
QUESTIONS = 40


def named(policy: str, number: int, feedback: Feedback) -> Feedback:
    """Return the row with the id `POLICY-NUMBER`."""
    return replace(feedback, response=replace(feedback.response, id=f"{policy}-{number}"))


def mixed_group(folder: Path) -> list[Feedback]:
    """Return the first group of a run's rollouts that has all three outcomes.

    Exits with an error if there is none.
    """
    groups: dict[tuple[int | None, str], list[Feedback]] = {}
    for one in iter_feedback(folder):
        groups.setdefault((one.response.step, one.response.question.id), []).append(one)
    for group in groups.values():
        if len({one.verdict("outcome").label for one in group}) == 3:
            return group
    raise SystemExit(f"{folder}: no group has all three outcomes")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy", required=True)
    parser.add_argument("--runs", type=Path, default=ROOT)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    planned = [
        plan_run(replace(run.entry, policy=given.policy), given.runs)
        for run in queue_runs(RUNS, given.runs)
    ]
    runs = {f"{run.entry.name}_{run.entry.seed}": run for run in planned if run.summary}
    place = planned[0].bench
    drawn = random.Random(0).sample(place.questions("test", ["country"]), QUESTIONS)
    policies = {"start": place.policy} | {name: str(run.folder) for name, run in runs.items()}
    rows = {name: graded_answers(place, policy, drawn) for name, policy in policies.items()}
    rows["rollout"] = mixed_group(runs["ternary_2"].folder)
    append_feedback(
        given.out,
        [named(name, number, one) for name, own in rows.items() for number, one in enumerate(own)],
    )


if __name__ == "__main__":
    main()
