"""Measure what a policy of the closed world can do before reinforcement learning.

    python benchmarks/abilities.py --policy runs/conflicting/sft --results abilities.json

A reward can only reinforce what is sampled: shorter and longer biographies, hedged sentences,
refusals. Answers are sampled at temperature 1. Each ability has a range, which the build of the
policy aims at; `ok` says whether the measured rate is in it.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

ROOT_FOLDER = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT_FOLDER))

from benchmarks.klcf_truth import auc  # noqa: E402
from benchmarks.tables import markdown  # noqa: E402
from workbench.policies.generate import Policy, generate  # noqa: E402
from workbench.policies.load import load_policy  # noqa: E402
from workbench.text import is_abstention  # noqa: E402
from workbench.text.matching import matches  # noqa: E402
from workbench.types import Question, Response  # noqa: E402
from workbench.util.jsonl import write_json  # noqa: E402
from workbench.util.threads import use_threads  # noqa: E402
from workbench.world.parser import Parsed, parser_of  # noqa: E402
from workbench.world.questions import SHORT_KINDS  # noqa: E402
from workbench.world.world import World, load_world  # noqa: E402

SAMPLES = 8  # biographies of each person, answers to each question
FEW = 4  # most claims of a short biography

# ability -> smallest and largest rate
RANGES = {
    "groups of 8 whose numbers of claims differ by 2 (half, partial)": (0.6, 1.0),
    "biographies with at most 4 claims": (0.15, 0.4),
    "hedged claims": (0.05, 0.15),
    "hedged claims, known people": (0.0, 0.05),
    "FactScore, known people": (0.97, 1.0),
    "FactScore, half-known people": (0.7, 0.85),
    "FactScore, partly known people": (0.55, 0.75),
    "AUC of the value's probability, half-known people": (0.8, 1.0),
    "sentences with two claims": (0.3, 0.6),
    "biographies of another person, unknown people": (0.02, 0.05),
    "biographies declined, unknown people": (0.1, 0.6),
    "short answers right, known people, greedy": (0.98, 1.0),
    "short answers abstained, known people": (0.0, 0.01),
    "short answers abstained, unknown people": (0.1, 0.3),
    "short answers abstained, gaps of partly known people": (0.1, 0.3),
}


@dataclass(frozen=True)
class Life:
    """A sampled biography with its claims, and for each claim whether it is true."""

    response: Response
    claims: Sequence[Parsed]
    true: Sequence[bool]
    sentences: int

    @property
    def tier(self) -> str:
        return str(self.response.question.meta["tier"])

    @property
    def about_another(self) -> bool:
        return bool(self.claims) and all(
            claim.subject != self.response.question.title
            for claim in self.claims
            if claim.relation != "author"
        )


def lives(policy: Policy, world: World, questions: Sequence[Question]) -> list[Life]:
    """Sample biographies, and parse them."""
    sampled = generate(
        policy, questions, max_new_tokens=112, samples=SAMPLES, seed=0, logprobs=True
    )
    found = []
    for response in sampled:
        title = response.question.title
        parse = parser_of(world).parse(response.text, title)
        claims = [claim for claim in parse.claims if claim.object is not None]
        true = [is_true(world, claim, title) for claim in claims]
        found.append(Life(response, claims, true, len(parse.sentences)))
    return found


def is_true(world: World, claim: Parsed, title: str) -> bool:
    """Whether a claim is true and about the person `title`."""
    fact = world.by[claim.subject].get(claim.relation)
    return title in (claim.subject, claim.object) and bool(fact) and fact.object == claim.object


def value_probability(life: Life, claim: Parsed) -> float | None:
    """Return the policy's probability of the value that a claim states; None if it is not found."""
    response, value = life.response, str(claim.object)
    start = response.text.find(value, *claim.span)
    inside = [
        logprob
        for logprob, (low, high) in zip(response.logprobs, response.offsets, strict=True)
        if start >= 0 and low < start + len(value) and high > start
    ]
    return float(np.exp(sum(inside))) if inside else None


def rate(values: Iterable[bool | float]) -> float:
    return mean(map(float, values))


def of_biographies(found: Sequence[Life]) -> dict[str, float]:
    by = {tier: [one for one in found if one.tier == tier] for tier in {one.tier for one in found}}
    covered = [*by["known"], *by["half"], *by["partial"]]
    told = [one for one in covered if one.claims]
    groups: dict[str, list[int]] = {}
    for one in (*by["half"], *by["partial"]):
        groups.setdefault(one.response.question.id, []).append(len(one.claims))
    pairs = [
        (probability, true)
        for one in by["half"]
        for claim, true in zip(one.claims, one.true, strict=True)
        if (probability := value_probability(one, claim)) is not None
    ]

    def factscore(tier: str) -> float:
        return rate(rate(one.true) for one in by[tier] if one.claims)

    def hedged(some: Sequence[Life]) -> float:
        return rate(claim.stance == "hedged" for one in some for claim in one.claims)

    compound = []
    for one in told:
        numbers = [claim.sentence for claim in one.claims]
        compound += [numbers.count(number) > 1 for number in set(numbers)]
    probabilities, true = np.array(pairs).T
    values = (
        rate(max(counts) - min(counts) >= 2 for counts in groups.values()),
        rate(len(one.claims) <= FEW for one in told),
        hedged(covered),
        hedged(by["known"]),
        *(factscore(tier) for tier in ("known", "half", "partial")),
        auc(probabilities, true.astype(bool)),
        rate(compound),
        rate(one.about_another for one in by["unknown"]),
        rate(is_abstention(one.response.text) for one in by["unknown"]),
    )
    return dict(zip(RANGES, values, strict=False))


def of_short_answers(policy: Policy, world: World, split: str) -> dict[str, float]:
    """Return the rates of short answers."""
    questions = world.questions(split, SHORT_KINDS)
    sampled = generate(policy, questions, max_new_tokens=16, samples=4, seed=0)
    known = [question for question in questions if question.meta["tier"] == "known"]
    greedy = generate(policy, known, max_new_tokens=16, greedy=True)

    def abstained(tier: str) -> float:
        return rate(
            is_abstention(one.text)
            for one in sampled
            if one.question.meta["tier"] == tier
            and (tier != "partial" or not one.question.meta["covered"])
        )

    values = (
        rate(matches(one.text, one.question.answers) for one in greedy),
        *(abstained(tier) for tier in ("known", "unknown", "partial")),
    )
    return dict(zip(list(RANGES)[-4:], values, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy", required=True)
    parser.add_argument("--split", default="validation", choices=("validation", "test"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    world = load_world()
    with use_threads(given.threads):
        policy = load_policy(given.policy)
        found = lives(policy, world, world.questions(given.split, ["biography"]))
        rates = of_biographies(found) | of_short_answers(policy, world, given.split)
    results: dict[str, Any] = {
        name: {
            "rate": value,
            "range": RANGES[name],
            "ok": RANGES[name][0] <= value <= RANGES[name][1],
        }
        for name, value in rates.items()
    }
    for one in found[:: len(found) // 12]:
        print(one.tier, "|", one.response.text, file=sys.stderr)
    rows = [
        [name, f"{one['rate']:.3f}", "{} to {}".format(*one["range"]), "yes" if one["ok"] else "no"]
        for name, one in results.items()
    ]
    print(markdown(["ability", "rate", "range", "in range"], rows))
    if given.results:
        write_json(given.results, {"split": given.split, "abilities": results})


if __name__ == "__main__":
    main()
