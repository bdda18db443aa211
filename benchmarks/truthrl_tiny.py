"""Compare TruthRL's ternary and binary reward on the tiny bench, over several seeds.

    python benchmarks/truthrl_tiny.py --split test --seeds 1 2 3 --out runs/truthrl-tiny \\
        --results benchmarks/results/truthrl_tiny.json

Choose settings with `--split validation --set truthrl.learning_rate=…`; the test split is only for
the final run. Runs are stored in `--out` and not repeated.
"""

import argparse
import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np

from workbench.experiments.evaluate import evaluation_grade, report, use_threads
from workbench.experiments.run import Entry, plan_run
from workbench.methods.bench import bench
from workbench.metrics import RATES, outcome_of, share_of_oracle
from workbench.metrics.bootstrap import Sums, paired
from workbench.metrics.confidence import in_order
from workbench.policies.generate import generate
from workbench.runs.folder import versions
from workbench.types import Feedback
from workbench.util.jsonl import write_json

REWARDS = ("ternary", "binary")
SAMPLES = 4


def graded(policy: str, split: str, seed: int) -> dict[str, list[Feedback]]:
    """Return the greedy and sampled feedback of a policy on the questions of the split."""
    tiny = bench("tiny")
    loaded, asked, grade = tiny.load(policy), tiny.questions(split), evaluation_grade(tiny.checks)
    return {
        "greedy": grade(generate(loaded, asked, max_new_tokens=tiny.max_new_tokens, greedy=True)),
        "sampled": grade(
            generate(loaded, asked, max_new_tokens=tiny.max_new_tokens, samples=SAMPLES, seed=seed)
        ),
    }


def pooled(runs: list[dict[str, list[Feedback]]], split: str, label: str, seeds: list[int]) -> dict:
    """Return one report over all seeds; all responses to a question are resampled together."""
    both = {
        mode: [feedback for run in runs for feedback in run[mode]] for mode in ("greedy", "sampled")
    }
    return report(both["greedy"], both["sampled"], policy=label, split=split, seeds=seeds)


def print_rates(label: str, found: dict) -> None:
    """Print accuracy / abstention / hallucination / truthfulness, then accuracy / abstention by
    tier.
    """
    for mode in ("greedy", "sampled"):
        rates = " / ".join(f"{found[mode][rate]['value']:.3f}" for rate in RATES)
        tiers = [
            f"{tier} {cell['accuracy']['value']:.3f} / {cell['abstention']['value']:.3f}"
            for tier, cell in found[mode]["by_tier"].items()
        ]
        print(f"{label:8} {mode:8} {rates}   {'   '.join(tiers)}")


def paired_difference(
    a: Sequence[Sequence[Feedback]], b: Sequence[Sequence[Feedback]]
) -> dict[str, float | None]:
    """Return `{diff, low, high, p, n}` of truthfulness, a minus b, on the questions that both
    answered.

    `a[s]` and `b[s]` are the graded responses of seed s. A question counts once per seed, with the
    mean of its responses; seeds and questions are resampled. The test is
    `workbench.metrics.bootstrap.paired`.
    """
    assert len(a) == len(b), (len(a), len(b))
    means = [[question_means(run) for run in runs] for runs in (a, b)]
    ids = sorted(set().union(*means[0]) & set().union(*means[1]))
    sides = []
    for runs in means:
        tops = np.array([[run.get(question, 0.0)] for run in runs for question in ids])
        bottoms = np.array([[float(question in run)] for run in runs for question in ids])
        sums = Sums(tuple(ids) * len(runs), ("truthfulness",), tops, bottoms)
        sides.append((sums, in_order(())))
    return paired(sides[0], sides[1], resamples=2000, seed=0, runs=len(a))["truthfulness"]


def question_means(feedbacks: Sequence[Feedback]) -> dict[str, float]:
    """Return the mean truthfulness of each question with at least one scored response."""
    values: dict[str, list[float]] = {}
    for one in feedbacks:
        if outcome := outcome_of(one):
            value = {"correct": 1.0, "incorrect": -1.0}.get(outcome, 0.0)
            values.setdefault(one.response.question.id, []).append(value)
    return {question: sum(found) / len(found) for question, found in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--rewards", nargs="+", choices=REWARDS, default=list(REWARDS))
    parser.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="truthrl.FIELD=VALUE"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()

    with use_threads(given.threads):
        runs: dict[str, list] = {
            "start": [graded("sft", given.split, seed) for seed in given.seeds]
        }
        summaries = []
        for reward in given.rewards:
            runs[reward] = []
            for seed in given.seeds:
                out = given.out / f"{reward}-{seed}"
                settings = [f"truthrl.reward={reward}", "truthrl.eval_samples=0", *given.overrides]
                entry = Entry("truthrl", seed, settings=settings, threads=given.threads)
                summaries.append(plan_run(entry, given.out).train(out))
                runs[reward].append(graded(str(out), given.split, seed))

    reports = {
        label: pooled(found, given.split, label, given.seeds) for label, found in runs.items()
    }
    for label, found in reports.items():
        print_rates(label, found)
    results = {
        "date": date.today().isoformat(),
        "split": given.split,
        "seeds": given.seeds,
        "threads": given.threads,
        "overrides": given.overrides,
        "config": summaries[0]["config"],
        "world_hash": summaries[0]["world_hash"],
        "policy_hash": summaries[0]["policy_hash"],
        "versions": versions(),
        "reports": reports,
        "share_of_oracle": {
            reward: share_of_oracle(reports["start"]["greedy"], reports[reward]["greedy"])
            for reward in given.rewards
        },
        "share_of_oracle_by_seed": {
            reward: [
                share_of_oracle(
                    report(one["greedy"], [])["greedy"], report(two["greedy"], [])["greedy"]
                )
                for one, two in zip(runs["start"], runs[reward], strict=True)
            ]
            for reward in given.rewards
        },
        "seconds_of_a_run": [summary["seconds"] for summary in summaries],
    }
    if set(given.rewards) == set(REWARDS):
        results["ternary_minus_binary"] = {
            mode: paired_difference(
                [run[mode] for run in runs["ternary"]], [run[mode] for run in runs["binary"]]
            )
            for mode in ("greedy", "sampled")
        }
    output = (
        "share_of_oracle",
        "share_of_oracle_by_seed",
        "ternary_minus_binary",
        "seconds_of_a_run",
    )
    print(json.dumps({key: results.get(key) for key in output}, indent=1))
    if given.results:
        given.results.parent.mkdir(parents=True, exist_ok=True)
        write_json(given.results, results)


if __name__ == "__main__":
    main()
