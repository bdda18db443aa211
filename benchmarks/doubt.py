"""Measure whether policies leave out, or hedge, the claims that they are often wrong about.

    python benchmarks/doubt.py --policy start=runs/conflicting/sft rlfh=RUN/policy rlfh=RUN/policy
    --results benchmarks/results/doubt.json

Biographies of half-known and partly known people are sampled at temperature 1. A fact is *mostly
wrong* if the first policy states it wrongly in more than half of its samples, otherwise *mostly
correct*. If a policy knows what it is wrong about when it begins a sentence, it can leave these
facts out, or hedge them. Policies with equal names are pooled.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

ROOT_FOLDER = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT_FOLDER))

from benchmarks.abilities import Biography, read_biography  # noqa: E402
from benchmarks.tables import markdown  # noqa: E402
from workbench.policies.generate import generate  # noqa: E402
from workbench.policies.load import load_policy  # noqa: E402
from workbench.runs.folder import versions  # noqa: E402
from workbench.util.grouping import group_by  # noqa: E402
from workbench.util.jsonl import write_json  # noqa: E402
from workbench.util.threads import DEFAULT_THREADS, use_threads  # noqa: E402
from workbench.world.world import World, load_world  # noqa: E402

SEED = 0
SAMPLES = 16
RESAMPLES = 200
LEAST = 4  # samples that must state a fact, else its share is not used
TIERS = ("half", "partial")
# upper bounds of the first policy's share of correct statements
GROUPS = {"mostly wrong": 0.5, "mostly correct": 1.01}
Key = tuple[str, str]  # subject, relation


class Said:
    """What sampled biographies state, by fact about their subject."""

    def __init__(self, biographies: Iterable[Biography]) -> None:
        self.texts = Counter[str]()  # person -> biographies with claims
        self.true: dict[Key, list[bool]] = {}
        self.hedged: dict[Key, list[bool]] = {}
        for one in biographies:
            person = one.response.question.title
            self.texts[person] += bool(one.claims)
            first = dict[Key, int]()  # a biography may state a fact twice
            for place, claim in enumerate(one.claims):
                if claim.subject == person:
                    first.setdefault((person, claim.relation), place)
            for key, place in first.items():
                self.true.setdefault(key, []).append(one.true[place])
                self.hedged.setdefault(key, []).append(one.claims[place].stance == "hedged")


def sampled(folders: Sequence[str], world: World, split: str) -> dict[str, list[Biography]]:
    """Return tier -> biographies, sampled from the policies in these folders."""
    questions = [one for one in world.questions(split, ["biography"]) if one.meta["tier"] in TIERS]
    responses = [
        response
        for folder in folders
        for response in generate(
            load_policy(folder), questions, max_new_tokens=112, samples=SAMPLES, seed=SEED
        )
    ]
    return group_by([read_biography(world, one) for one in responses], lambda one: one.tier)


def correct_shares(said: Said) -> dict[Key, float]:
    """Return the share of correct statements of each fact that enough samples state."""
    return {key: mean(true) for key, true in said.true.items() if len(true) >= LEAST}


def rates(said: Said, shares: Mapping[Key, float], people: Sequence[str]) -> dict[str, Any]:
    """Return group -> number of facts, and means over facts of the shares of biographies.

    `stated`: of the biographies of the fact's person with claims, those that state it. `hedged` and
    `correct`: of the statements of the fact.
    """
    by_person = group_by(shares, lambda key: key[0])
    found, lower = {}, 0.0
    for group, upper in GROUPS.items():
        keys = [
            key
            for person in people
            for key in by_person.get(person, [])
            if lower <= shares[key] < upper and said.texts[person]
        ]
        stated = [len(said.true.get(key, ())) / said.texts[key[0]] for key in keys]
        told = [key for key in keys if key in said.true]
        found[group] = {
            "facts": len(keys),
            "stated": mean(stated) if stated else None,
            "hedged": mean(mean(said.hedged[key]) for key in told) if told else None,
            "correct": mean(mean(said.true[key]) for key in told) if told else None,
        }
        lower = upper
    return found


def factscore(biographies: Sequence[Biography], shares: Mapping[Key, float], least: float) -> float:
    """Return the FactScore without claims about facts whose share is below `least`."""
    scores = []
    for one in biographies:
        kept = [
            true
            for claim, true in zip(one.claims, one.true, strict=True)
            if shares.get((claim.subject, claim.relation), 1.0) >= least
        ]
        scores += [mean(kept)] if kept else []
    return mean(scores)


def measure(policies: Mapping[str, Sequence[str]], world: World, split: str) -> dict[str, Any]:
    """Return name -> tier -> FactScore and the rates of each group of facts.

    The 95 % interval of `stated` is a bootstrap over people.
    """
    results: dict[str, Any] = {}
    shares: dict[str, dict[Key, float]] = {}
    for name, folders in policies.items():
        for tier, biographies in sampled(folders, world, split).items():
            said = Said(biographies)
            own = shares.setdefault(tier, correct_shares(said))
            people = sorted(said.texts)
            groups = rates(said, own, people)
            rng = random.Random(SEED)
            drawn = [rates(said, own, rng.choices(people, k=len(people))) for _ in range(RESAMPLES)]
            for group, row in groups.items():
                values = [one[group]["stated"] for one in drawn if one[group]["facts"]]
                if values:
                    row["low"], row["high"] = np.quantile(values, (0.025, 0.975)).tolist()
            results.setdefault(name, {})[tier] = {
                "factscore": factscore(biographies, own, 0.0),
                "selected": factscore(biographies, own, GROUPS["mostly wrong"]),
                "groups": groups,
            }
    return results


def table(results: Mapping[str, Any]) -> str:
    """Return a table of stored results, with a row for each policy and tier."""
    rows = []
    for name, tiers in results["policies"].items():
        for tier in TIERS:
            one = tiers[tier]
            groups = [one["groups"][group] for group in GROUPS]
            rows.append(
                [
                    name,
                    tier,
                    f"{one['factscore']:.3f}",
                    f"{one['selected']:.3f}",
                    *(
                        f"{row['stated']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
                        for row in groups
                    ),
                    *(
                        " / ".join(f"{row[key]:.2f}" for row in groups)
                        for key in ("hedged", "correct")
                    ),
                ]
            )
    first = next(iter(results["policies"].values()))
    counts = ", ".join(
        f"{first[tier]['groups'][kind]['facts']} {kind} facts of {tier} people"
        for tier in TIERS
        for kind in GROUPS
    )
    return (
        f"{results['date']}, {results['split']} split, {results['samples']} samples a person:"
        f" {counts}.\n\n"
        + markdown(
            [
                "policy",
                "people",
                "FactScore",
                "without mostly wrong facts",
                "stated, mostly wrong",
                "stated, mostly correct",
                "hedged, wrong / correct",
                "true, wrong / correct",
            ],
            rows,
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy", required=True, nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--split", default="validation", choices=("rl", "validation", "test"))
    parser.add_argument("--threads", type=int, default=DEFAULT_THREADS)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    named: dict[str, list[str]] = {}
    for one in given.policy:
        name, folder = one.split("=", 1)
        named.setdefault(name, []).append(folder)
    world = load_world()
    with use_threads(given.threads):
        policies = measure(named, world, given.split)
    results = {
        "date": date.today().isoformat(),
        "versions": versions(),
        "world_hash": world.hash,
        "split": given.split,
        "samples": SAMPLES,
        "seed": SEED,
        "policies": policies,
    }
    print(table(results))
    if given.results:
        write_json(given.results, results)


if __name__ == "__main__":
    main()
