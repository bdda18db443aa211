"""Compare training sets of KLCF's truthfulness model (arXiv 2509.23765, section 2.3.1).

    python benchmarks/klcf_truth.py --results benchmarks/results/klcf_truth.json --out
    runs/klcf_truth

The paper trains the model on the base's own claims, so that it learns the limits of the base's
knowledge. Here the same base is trained on three sets of claims about the same people, with the
recipe's settings. Each model then separates equal numbers of true and false claims of the base
about other people:

- `own`: the base's claims, as `workbench train klcf` prepares them;
- `tuned`: the fine-tuned policy's claims, sampled and labelled in the same way;
- `world`: true sentences of the world, and the same with another person's value, as many per person
  as in `own`.

Statements fixed before the first run: the AUC of `own` is at least .02 higher than that of `world`
(K10) and than that of `tuned` (K11). Each difference has a 95 % interval above 0, over people, with
the seeds together. Results are written as they come; a killed command resumes.
"""

import argparse
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from workbench.methods.bench import Bench, bench
from workbench.methods.held_out import calibration, split_held_out
from workbench.methods.klcf.checklists import Labelled
from workbench.methods.klcf.facts import LABELS
from workbench.methods.klcf.method import TINY
from workbench.methods.klcf.prepare import prepare
from workbench.methods.klcf.prepared import read_prepared, source_of
from workbench.methods.klcf.truth import accuracy_and_f1, balanced, scorer_of, truth_examples
from workbench.methods.method import training_questions
from workbench.policies.load import load_tokenizer
from workbench.runs.folder import policy_hash, read_json, versions
from workbench.training.reward_model import train_reward_model
from workbench.training.scorer import MODEL, Judged, load_reward_model
from workbench.types import Question
from workbench.util.jsonl import write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.world.facts import Fact
from workbench.world.render import state
from workbench.world.world import load_world

OWN, LEAST, RESAMPLES = "own", 0.02, 2000
STATED = {"K10": "world", "K11": "tuned"}


def claimed(
    policy: str | None, place: Bench, questions: Sequence[Question], out: Path, seed: int
) -> list[Labelled]:
    """Return the labelled claims of a policy (None: the base) about the people of the questions."""
    source = source_of(place, policy)
    prepare(TINY.prepare, source, questions, place.checks, out, seed=seed)
    return read_prepared(out, source, questions).truth


def from_the_world(own: Sequence[Labelled], seed: int) -> list[Labelled]:
    """Return as many true and false claims per person as `own` has, drawn with replacement."""
    world, rng = load_world(), random.Random(f"world-claims-{seed}")
    facts: dict[str, list[Fact]] = {}
    values: dict[str, list[Fact]] = {}
    for fact in world.facts:
        facts.setdefault(fact.subject, []).append(fact)
        values.setdefault(fact.relation, []).append(fact)

    def said(question: Question, label: str) -> Labelled:
        fact = rng.choice(facts[question.title])
        if label == LABELS[1]:
            other = rng.choice([one for one in values[fact.relation] if one.object != fact.object])
            fact = replace(fact, object=other.object, forms=other.forms)
        return Labelled(question, state(fact, "en", rng), label)

    return [said(row.question, row.label) for row in own]


def one_run(arm: str, place: Bench, out: Path, seed: int) -> dict[str, Any]:
    """Train a model on an arm's claims, and score the base's claims about held-out people."""
    questions = training_questions(TINY.prompts, place, answered=False)
    base = source_of(place, None).base
    specials = tuple(load_tokenizer(base).all_special_tokens)
    own = claimed(None, place, questions, out / OWN, seed)
    seen, held = split_held_out(truth_examples(own, specials), TINY.held_out, seed)
    rows = {
        OWN: lambda: own,
        "world": lambda: from_the_world(own, seed),
        "tuned": lambda: claimed("sft", place, questions, out / "tuned", seed),
    }[arm]()
    kept = {row.question.id for row in seen}
    learnt = [row for row in truth_examples(rows, specials) if row.question.id in kept]
    folder = out / f"model-{arm}"
    if train_reward_model(TINY.truth_model, learnt, base, folder, seed=seed) != "done":
        raise SystemExit("interrupted: the same call goes on")
    asked = balanced(held)
    values = scorer_of(load_reward_model(folder / MODEL))(asked)
    scored = [(row, value) for row, value in zip(asked, values, strict=True) if value is not None]
    return {
        "arm": arm,
        "seed": seed,
        "learnt": dict(Counter(str(row.segments[0].target) for row in learnt)),
        "scored": [
            [row.question.id, round(value, 6), row.segments[0].target] for row, value in scored
        ],
        **scores([(value, row) for row, value in scored]),
    }


def scores(found: Sequence[tuple[float, Judged]]) -> dict[str, Any]:
    pairs = [(value, row.segments[0].target) for value, row in found]
    return {"claims": len(pairs), **calibration(pairs), **accuracy_and_f1(pairs)}


def auc(values: np.ndarray, true: np.ndarray) -> float:
    """Return the share of (true, false) pairs in which the true claim scores higher; ties count
    half.
    """
    of_true, of_false = values[true], np.sort(values[~true])
    lower, not_higher = (np.searchsorted(of_false, of_true, side) for side in ("left", "right"))
    return float((lower + not_higher).mean() / 2 / len(of_false))


def difference(runs: Sequence[Mapping[str, Any]], arm: str, seed: int = 0) -> dict[str, float]:
    """Return the AUC of `own` minus that of another arm: the mean over seeds, with an interval.

    The interval is a bootstrap over people. A person who is held out under several seeds is drawn
    for all of them together, because such seeds are not independent.
    """
    by = {(run["arm"], run["seed"]): run["scored"] for run in runs}
    seeds = sorted({run["seed"] for run in runs})
    number_of = {
        name: n for n, name in enumerate(sorted({row[0] for run in runs for row in run["scored"]}))
    }
    shares = np.full(len(number_of), 1 / len(number_of))
    drawn_RP = np.random.default_rng(seed).multinomial(len(number_of), shares, size=RESAMPLES)
    times_RP = np.concatenate([np.ones_like(drawn_RP[:1]), drawn_RP])  # row 0: each person once
    found = np.zeros(RESAMPLES + 1)
    for number in seeds:
        mine, other = by[OWN, number], by[arm, number]
        assert [(row[0], row[2]) for row in mine] == [(row[0], row[2]) for row in other], (
            "the same claims for both"
        )
        where = np.array([number_of[row[0]] for row in mine])
        values_2C = np.array([[row[1] for row in rows] for rows in (mine, other)])
        true_C = np.array([row[2] == 1 for row in mine])
        for turn, times_P in enumerate(times_RP):
            rows = np.repeat(np.arange(len(where)), times_P[where])
            a, b = (auc(values[rows], true_C[rows]) for values in values_2C)
            found[turn] += (a - b) / len(seeds)
    low, high = np.quantile(found[1:], (0.025, 0.975))
    return {
        "value": round(float(found[0]), 4),
        "low": round(float(low), 4),
        "high": round(float(high), 4),
    }


def verdict(found: Mapping[str, float]) -> str:
    if found["low"] > 0 and found["value"] >= LEAST:
        return "holds"
    return "fails" if found["high"] < LEAST else "unclear"


def measured(
    results: Path | None,
    out: Path,
    seeds: Sequence[int],
    make: Callable[..., dict[str, Any]] = one_run,
) -> dict[str, Any]:
    place = bench("tiny")
    about = {"threads": DEFAULT_THREADS, "versions": versions(), "world_hash": place.hash}
    about["policy_hash"] = policy_hash(place.path("sft"))
    stored = (results and read_json(results)) or {}
    goes_on = all(stored.get(key) == value for key, value in about.items())
    found: dict[str, Any] = (
        stored if goes_on else {"date": date.today().isoformat(), **about, "runs": []}
    )
    done = {(run["arm"], run["seed"]) for run in found["runs"]}
    for seed, arm in product(seeds, (OWN, *STATED.values())):
        if (arm, seed) not in done:
            run = make(arm, place, out / str(seed), seed)
            print(
                f"{arm}, seed {seed}: AUC {run['auc']:.3f}, accuracy {run['accuracy']:.3f}, ECE"
                f" {run['ece']:.3f}",
                flush=True,
            )
            found["runs"].append(run)
            if results:
                write_json(results, found)
    found["findings"] = []
    for name, arm in STATED.items():
        contrast = difference(found["runs"], arm)
        found["findings"].append(
            {"id": name, "minus": arm, **contrast, "verdict": verdict(contrast)}
        )
    if results:
        write_json(results, found)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/klcf_truth"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    given = parser.parse_args()
    with use_threads(DEFAULT_THREADS):
        for one in measured(given.results, given.out, given.seeds)["findings"]:
            print(
                "{id} {verdict}: own − {minus} {value:+.3f} [{low:+.3f}, {high:+.3f}]".format_map(
                    one
                )
            )


if __name__ == "__main__":
    main()
