"""Measure whether policies leave out, or hedge, the facts that they mostly state wrongly.

    python benchmarks/doubt.py --policy start=data/tiny-policy/sft
    rlfh=RUN/policy rlfh=RUN/policy --results benchmarks/results/doubt.json

Biographies of half-known and partly known people are sampled at temperature 1. A fact is *mostly
wrong* if most statements of it by the first policy are wrong, otherwise *mostly correct*. A fact
that the first policy seldom states is neither. The AUC tells how well a policy's probability of a
stated value separates true from wrong claims. Policies with equal names are pooled. The people of
the split "rl" are those of the training questions.
"""

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

ROOT_FOLDER = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT_FOLDER))

from benchmarks.abilities import (  # noqa: E402
    SEED,
    Biography,
    about,
    read_biography,
    value_auc,
    with_intervals,
)
from benchmarks.tables import markdown  # noqa: E402
from workbench.policies.generate import generate  # noqa: E402
from workbench.policies.load import load_policy  # noqa: E402
from workbench.util.grouping import group_by  # noqa: E402
from workbench.util.jsonl import write_json  # noqa: E402
from workbench.util.threads import DEFAULT_THREADS, use_threads  # noqa: E402
from workbench.world.parser import Parsed  # noqa: E402
from workbench.world.world import World, load_world  # noqa: E402

SAMPLES = 16
LEAST = 4  # statements that a fact needs to be mostly wrong or mostly correct
TIERS = ("half", "partial")
GROUPS = ("wrong", "correct")
Shares = Mapping[tuple[str, str], float]  # (subject, relation) -> share of correct statements


def sampled(folders: Sequence[str], world: World, split: str) -> dict[str, list[Biography]]:
    """Return tier -> biographies, sampled from the policies in these folders."""
    questions = [one for one in world.questions(split, ["biography"]) if one.meta["tier"] in TIERS]
    biographies = [
        read_biography(world, response)
        for folder in folders
        for response in generate(
            load_policy(folder),
            questions,
            max_new_tokens=112,
            samples=SAMPLES,
            seed=SEED,
            logprobs=True,
        )
    ]
    return group_by(biographies, lambda one: one.tier)


def first_statements(biography: Biography) -> dict[str, tuple[Parsed, bool]]:
    """Return relation -> the first claim about the biography's subject, and whether it is true."""
    found: dict[str, tuple[Parsed, bool]] = {}
    for claim, true in zip(biography.claims, biography.true, strict=True):
        if claim.subject == biography.response.question.title:
            found.setdefault(claim.relation, (claim, true))
    return found


def correct_shares(biographies: Iterable[Biography]) -> Shares:
    """Return the share of correct statements of each fact with at least `LEAST` statements."""
    stated = defaultdict[tuple[str, str], list[bool]](list)
    for one in biographies:
        for relation, (_, true) in first_statements(one).items():
            stated[one.response.question.title, relation].append(true)
    return {key: mean(true) for key, true in stated.items() if len(true) >= LEAST}


def group_of(share: float) -> str:
    """Return the group of a fact with this share of correct statements by the first policy."""
    return "wrong" if share < 0.5 else "correct"


def rates(biographies: Iterable[Biography], shares: Shares) -> dict[str, float]:
    """Return rates of biographies; NaN without any case.

    * `answered`: share of biographies with claims. The others do not count below.
    * `factscore`: mean share of true claims; `selected`: the same without mostly wrong facts.
    * `stated GROUP`: share of the group's facts that a biography states.
    * `hedged GROUP`, `true GROUP`: shares of these statements.
    """
    found = defaultdict[str, list[float]](list)
    relations = group_by(shares, lambda key: key[0])
    for one in biographies:
        found["answered"].append(bool(one.claims))
        if not one.claims:
            continue
        person, stated = one.response.question.title, first_statements(one)
        found["factscore"].append(mean(one.true))
        kept = [
            true
            for claim, true in zip(one.claims, one.true, strict=True)
            if group_of(shares.get((claim.subject, claim.relation), 1.0)) == "correct"
        ]
        if kept:
            found["selected"].append(mean(kept))
        for key in relations.get(person, ()):
            group = group_of(shares[key])
            claim, true = stated.get(key[1], (None, False))
            found[f"stated {group}"].append(claim is not None)
            if claim is not None:
                found[f"hedged {group}"].append(claim.stance == "hedged")
                found[f"true {group}"].append(true)
    names = [f"{rate} {group}" for rate in ("stated", "hedged", "true") for group in GROUPS]
    return {
        name: mean(map(float, found[name])) if found[name] else math.nan
        for name in ("answered", "factscore", "selected", *names)
    }


def _rates_of(
    people: Sequence[str], by_person: Mapping[str, Sequence[Biography]], shares: Shares
) -> dict[str, float]:
    biographies = [one for person in people for one in by_person[person]]
    return {**rates(biographies, shares), "auc": value_auc(biographies)}


def measure(policies: Mapping[str, Sequence[str]], world: World, split: str) -> dict[str, Any]:
    """Return the number of people, that of facts by tier and group, and each policy's rates."""
    results: dict[str, Any] = {}
    people: set[str] = set()
    shares: dict[str, Shares] = {}  # by tier, of the first policy
    for name, folders in policies.items():
        for tier, biographies in sampled(folders, world, split).items():
            own = shares.setdefault(tier, correct_shares(biographies))
            by_person = group_by(biographies, lambda one: one.response.question.title)
            people.update(by_person)
            results.setdefault(name, {})[tier] = with_intervals(
                partial(_rates_of, by_person=by_person, shares=own), sorted(by_person)
            )
    facts = {
        tier: {group: sum(group_of(share) == group for share in own.values()) for group in GROUPS}
        for tier, own in shares.items()
    }
    return {"people": len(people), "facts": facts, "policies": results}


def table(results: Mapping[str, Any]) -> str:
    """Return a table of stored results, with a row for each policy and tier."""
    rows = []
    for name, tiers in results["policies"].items():
        for tier in TIERS:
            of = tiers[tier]
            stated = [of[f"stated {group}"] for group in GROUPS]
            rows.append(
                [
                    name,
                    tier,
                    f"{of['answered']['value']:.2f}",
                    *(f"{of[rate]['value']:.3f}" for rate in ("factscore", "selected")),
                    *(
                        f"{one['value']:.2f} [{one['low']:.2f}, {one['high']:.2f}]"
                        for one in stated
                    ),
                    *(
                        " / ".join(f"{of[f'{rate} {group}']['value']:.2f}" for group in GROUPS)
                        for rate in ("hedged", "true")
                    ),
                    f"{of['auc']['value']:.2f}",
                ]
            )
    counts = ", ".join(
        f"{count} mostly {group} facts of {tier} people"
        for tier, groups in results["facts"].items()
        for group, count in groups.items()
    )
    columns = [
        "policy",
        "people",
        "answered",
        "FactScore",
        "without mostly wrong facts",
        "stated, mostly wrong",
        "stated, mostly correct",
        "hedged, wrong / correct",
        "true, wrong / correct",
        "AUC",
    ]
    return (
        f"{results['date']}, {results['split']} split, {results['samples']} samples a person:"
        f" {counts}.\n\n{markdown(columns, rows)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy", required=True, nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--split", default="validation", choices=("validation", "test", "rl"))
    parser.add_argument("--threads", type=int, default=DEFAULT_THREADS)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    pairs = [one.split("=", 1) for one in given.policy]
    named = {
        name: [folder for _, folder in some]
        for name, some in group_by(pairs, lambda one: one[0]).items()
    }
    world = load_world()
    with use_threads(given.threads):
        measured = measure(named, world, given.split)
    results = {**about(world, given.split, given.threads), "samples": SAMPLES, **measured}
    print(table(results))
    if given.results:
        write_json(given.results, results)


if __name__ == "__main__":
    main()
