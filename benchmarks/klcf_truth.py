"""On whose claims a truthfulness model has to learn (KLCF, arXiv 2509.23765, section 2.3.1): the
base's own, or anybody's.

    python benchmarks/klcf_truth.py --results benchmarks/results/klcf_truth.json --out
    runs/klcf_truth

The paper tunes the model on claims that the base itself has made, so that it learns where the
base's knowledge ends. Here the same base learns from three sets of claims about the same people,
with the recipe's own settings, and each model has to tell apart what the base claims about other
people, true and false in equal numbers:

- `own`: what the base claimed, as `workbench train klcf` prepares it;
- `tuned`: what another policy claimed, the fine-tuned one, asked and labelled in the same way;
- `world`: true sentences of the world and the same with another person's value, of each person
  as many as `own` has.

Stated before the first run: the AUC of `own` is higher than that of `world` by at least .02 (B1)
and than that of `tuned` by at least .02 (B2), each with an interval of 95 % over the people, the
seeds together, that lies above 0. What is stored is written as it comes; a call that was killed
goes on.
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
from workbench.runs.folder import read_json, versions
from workbench.training.reward_model import train_reward_model
from workbench.training.scorer import MODEL, Judged, load_reward_model
from workbench.types import Question
from workbench.util.jsonl import write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.world.facts import Fact
from workbench.world.render import state
from workbench.world.world import load_world

OWN, LEAST, RESAMPLES = "own", 0.02, 2000
STATED = {"B1": "world", "B2": "tuned"}


def claimed(
    policy: str | None, place: Bench, questions: Sequence[Question], out: Path, seed: int
) -> list[Labelled]:
    """What a policy, by default the base, claims of the questions' people, labelled."""
    source = source_of(place, policy)
    prepare(TINY.prepare, source, questions, place.checks, out, seed=seed)
    return read_prepared(out, source, questions).truth


def from_the_world(own: Sequence[Labelled], seed: int) -> list[Labelled]:
    """Of each person as many true and as many false claims as `own` has, drawn with replacement."""
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
    """A model of an arm's claims about the people that are learnt from; its values of what the
    base claims of the others.
    """
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
        **told([(value, row) for row, value in scored]),
    }


def told(found: Sequence[tuple[float, Judged]]) -> dict[str, Any]:
    pairs = [(value, row.segments[0].target) for value, row in found]
    return {"claims": len(pairs), **calibration(pairs), **accuracy_and_f1(pairs)}


def auc(values: np.ndarray, true: np.ndarray) -> float:
    """The share of pairs of a true and a false claim in which the true one has the higher value;
    half of it where equal.
    """
    apart_TF = values[true][:, None] - values[~true][None, :]
    return float((apart_TF > 0).mean() + (apart_TF == 0).mean() / 2)


def difference(runs: Sequence[Mapping[str, Any]], arm: str, seed: int = 0) -> dict[str, float]:
    """AUC of `own` less that of another arm, the mean over the seeds, with the interval of a
    bootstrap over people: one that is held out under several seeds is drawn for all of them at
    once, so that seeds of the same people say no more than one."""
    by = {(run["arm"], run["seed"]): run["scored"] for run in runs}
    seeds = sorted({run["seed"] for run in runs})
    number_of = {
        name: n for n, name in enumerate(sorted({row[0] for run in runs for row in run["scored"]}))
    }
    shares = np.full(len(number_of), 1 / len(number_of))
    drawn_RP = np.random.default_rng(seed).multinomial(len(number_of), shares, size=RESAMPLES)
    times_RP = np.concatenate([np.ones_like(drawn_RP[:1]), drawn_RP])  # first everybody, once
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
