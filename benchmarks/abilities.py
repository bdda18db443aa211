"""Measure what policies of the closed world can write before reinforcement learning.

    python benchmarks/abilities.py --policy default=data/tiny-policy/sft

A reward can only reinforce what is sampled, such as biographies that leave a doubtful fact out, or
hedge it. So answers are sampled at temperature 1, unless stated otherwise. Each ability has a
range, which the build of the default policy aims at.
"""

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple, TypeVar

import numpy as np

ROOT_FOLDER = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT_FOLDER))

from benchmarks.klcf_truth import auc  # noqa: E402
from benchmarks.tables import markdown  # noqa: E402
from workbench.experiments.tiny.measure import (  # noqa: E402
    LONG,
    SHORT,
    reading_questions,
    reasoned_questions,
    texts,
)
from workbench.experiments.tiny.skills import READINGS  # noqa: E402
from workbench.policies.generate import Policy, generate  # noqa: E402
from workbench.policies.load import load_policy  # noqa: E402
from workbench.runs.folder import versions  # noqa: E402
from workbench.text import final_answer, is_abstention, thinking, well_formed  # noqa: E402
from workbench.text.matching import matches  # noqa: E402
from workbench.types import Response  # noqa: E402
from workbench.util.grouping import group_by  # noqa: E402
from workbench.util.jsonl import write_json  # noqa: E402
from workbench.util.threads import DEFAULT_THREADS, use_threads  # noqa: E402
from workbench.world import schema  # noqa: E402
from workbench.world.parser import Parsed, parser_of  # noqa: E402
from workbench.world.questions import SHORT_KINDS, select  # noqa: E402
from workbench.world.world import World, load_world  # noqa: E402

Unit = TypeVar("Unit")
SEED = 0
RESAMPLES = 200
SAMPLES = 8  # biographies of each person
SHORT_SAMPLES = 4  # short answers to each question
PASSAGES = 100  # questions with passages of each layout
THOUGHTS = (2, 4)  # fewest and most claims of a thought
FEW = 4  # most claims of a short biography
SPREAD = 2  # smallest difference of the numbers of claims in a group of samples


class Ability(NamedTuple):
    """A rate with the range that it should have."""

    text: str
    low: float
    high: float


ABILITIES = {
    "spread": Ability("8 samples differ by 2 claims or more, half and partial", 0.6, 1.0),
    "few": Ability("1 to 4 claims, of biographies with claims", 0.15, 0.4),
    "hedged": Ability("hedged claims", 0.05, 0.15),
    "hedged_known": Ability("hedged claims, known", 0.0, 0.05),
    "factscore_known": Ability("FactScore, known", 0.97, 1.0),
    "factscore_half": Ability("FactScore, half", 0.7, 0.85),
    "factscore_partial": Ability("FactScore, partial", 0.55, 0.75),
    "auc": Ability("AUC of the probability of a claim's value, half", 0.8, 1.0),
    "compound": Ability("sentences with two claims", 0.3, 0.6),
    "off_subject": Ability("biographies of another person, unknown", 0.02, 0.05),
    "declined": Ability("biographies declined, unknown", 0.1, 0.6),
    "correct_known": Ability("short answers correct, known, greedy", 0.98, 1.0),
    "abstained_known": Ability("short answers abstained, known", 0.0, 0.01),
    "abstained_unknown": Ability("short answers abstained, unknown", 0.1, 0.3),
    "abstained_gaps": Ability("short answers abstained, gaps of partial", 0.1, 0.3),
    "abstained_pairs": Ability("comparisons and yes/no abstained, unknown", 0.1, 0.3),
    "thought_form": Ability("short answers after 2 to 4 claims of thought, known", 0.95, 1.0),
    "thought_true": Ability("claims of these thoughts true, known", 0.9, 1.0),
    "read": Ability("questions answered from passages, greedy", 0.9, 1.0),
    "read_none": Ability("passages without the answer: abstained, greedy", 0.6, 1.0),
    "plan_form": Ability("outlined answers in the right form", 0.95, 1.0),
    "plan_facets": Ability("people that outlined answers cover", 0.85, 1.0),
}


@dataclass(frozen=True)
class Biography:
    """A sampled biography with its claims. `true` says which claims are true of its subject."""

    response: Response
    claims: Sequence[Parsed]
    true: Sequence[bool]

    @property
    def tier(self) -> str:
        return str(self.response.question.meta["tier"])

    @property
    def off_subject(self) -> bool:
        """Whether all claims are about other people than the question's."""
        title = self.response.question.title
        return bool(self.claims) and all(
            title not in (claim.subject, claim.object) for claim in self.claims
        )

    @cached_property
    def probabilities(self) -> list[float | None]:
        """The policy's probability of each claim's value; see `value_probability`."""
        return [value_probability(self, claim) for claim in self.claims]


def read_biography(world: World, response: Response) -> Biography:
    """Return a biography with its claims, without vague claims."""
    title = response.question.title
    parse = parser_of(world).parse(response.text, title)
    claims = [claim for claim in parse.claims if claim.object is not None]
    return Biography(response, claims, [_is_true(world, claim, title) for claim in claims])


def _is_true(world: World, claim: Parsed, title: str) -> bool:
    fact = world.by[claim.subject].get(claim.relation)
    about = title in (claim.subject, claim.object)
    return about and fact is not None and fact.object == claim.object


def value_probability(biography: Biography, claim: Parsed) -> float | None:
    """Return the policy's probability of the tokens of a claim's value.

    Return None if the text has another form of the value.
    """
    response, value = biography.response, str(claim.object)
    start = response.text.find(value, *claim.span)
    if start < 0:
        return None
    end = start + len(value)
    tokens = zip(response.logprobs, response.offsets, strict=True)
    return float(
        np.exp(sum(logprob for logprob, (low, high) in tokens if low < end and high > start))
    )


def biography_rates(biographies: Sequence[Biography]) -> dict[str, float]:
    """Return ability -> rate, of the abilities that biographies show; NaN without any case."""
    by_tier = group_by(biographies, lambda one: one.tier)
    known, half, partial, unknown = (
        by_tier.get(tier, []) for tier in ("known", "half", "partial", "unknown")
    )
    covered = [*known, *half, *partial]
    with_claims = [one for one in covered if one.claims]
    samples = group_by([*half, *partial], lambda one: one.response.question.id)
    lengths = [[len(one.claims) for one in group] for group in samples.values()]
    compound = []
    for one in with_claims:
        numbers = [claim.sentence for claim in one.claims]
        compound += [numbers.count(number) > 1 for number in set(numbers)]

    def hedged(some: Sequence[Biography]) -> float:
        return _rate(claim.stance == "hedged" for one in some for claim in one.claims)

    return {
        "spread": _rate(max(group) - min(group) >= SPREAD for group in lengths),
        "few": _rate(len(one.claims) <= FEW for one in with_claims),
        "hedged": hedged(covered),
        "hedged_known": hedged(known),
        **{
            f"factscore_{tier}": _rate(_rate(one.true) for one in some if one.claims)
            for tier, some in (("known", known), ("half", half), ("partial", partial))
        },
        "auc": value_auc(half),
        "compound": _rate(compound),
        "off_subject": _rate(one.off_subject for one in unknown),
        "declined": _rate(is_abstention(one.response.text) for one in unknown),
    }


def value_auc(biographies: Sequence[Biography]) -> float:
    """Return the AUC with which the probability of a claim's value tells true from wrong claims."""
    scored = [
        (probability, true)
        for one in biographies
        for probability, true in zip(one.probabilities, one.true, strict=True)
        if probability is not None
    ]
    if len({true for _, true in scored}) < 2:
        return math.nan
    probabilities, true = (np.array(column) for column in zip(*scored, strict=True))
    return auc(probabilities, true)


def short_rates(greedy: Sequence[Response], sampled: Sequence[Response]) -> dict[str, float]:
    """Return ability -> rate, of the abilities that short answers show; NaN without any case."""

    def abstained(tier: str) -> float:
        gaps = tier == "partial"  # of a partly known person, only questions about gaps count
        return _rate(
            is_abstention(one.text)
            for one in sampled
            if one.question.meta["tier"] == tier and not (gaps and one.question.meta["covered"])
        )

    return {
        "correct_known": _rate(
            matches(one.text, one.question.answers)
            for one in greedy
            if one.question.meta["tier"] == "known"
        ),
        "abstained_known": abstained("known"),
        "abstained_unknown": abstained("unknown"),
        "abstained_gaps": abstained("partial"),
    }


def thought_rates(responses: Sequence[Response], world: World) -> dict[str, list[float]]:
    """Return ability -> value of each response, of thoughts before short answers.

    The share of true claims is that of thoughts with claims.
    """
    found: dict[str, list[float]] = {"thought_form": [], "thought_true": []}
    for one in responses:
        thought = read_biography(world, replace(one, text=thinking(one.text)))
        few, many = THOUGHTS
        found["thought_form"].append(well_formed(one.text) and few <= len(thought.claims) <= many)
        if thought.true:
            found["thought_true"].append(mean(thought.true))
    return found


def skill_rates(policy: Policy, world: World, split: str) -> dict[str, dict[str, float]]:
    """Return ability -> `{value, low, high}` of comparing, thinking, reading and planning."""

    ask = partial(generate, policy, seed=SEED)

    pairs = [
        question
        for question in reasoned_questions(world, split)
        if question.kind in ("comparison", "yes_no") and question.meta["tier"] == "unknown"
    ]
    known = [
        replace(question, system=schema.THINK)
        for question in world.questions(split, SHORT_KINDS)
        if question.meta["tier"] == "known"
    ]
    answers = ask(pairs, max_new_tokens=LONG, samples=SHORT_SAMPLES)
    values: dict[str, list[float]] = {
        "abstained_pairs": [
            _rate(is_abstention(final_answer(one.text) or "") for one in samples)
            for samples in group_by(answers, lambda one: one.question.id).values()
        ],
        **thought_rates(ask(known, max_new_tokens=LONG), world),
        "read": [],
        "read_none": [],
    }
    for kind in READINGS:
        questions = reading_questions(world, kind, PASSAGES, f"{split}-{SEED}")
        for one in ask(questions, max_new_tokens=SHORT, greedy=True):
            if kind == "none":
                values["read_none"].append(is_abstention(one.text))
            else:
                values["read"].append(matches(one.text, one.question.answers))
    planned = [
        replace(question, system=schema.OUTLINE)
        for question in select(world.two_facets, split, None, "en")
    ]
    plans = texts(policy, world, planned)["sampled"]
    return {
        **{name: _mean_with_interval(numbers) for name, numbers in values.items()},
        **{
            f"plan_{name}": {key: plans[name][key] for key in ("value", "low", "high")}
            for name in ("form", "facets")
        },
    }


def _mean_with_interval(values: Sequence[float]) -> dict[str, float]:
    return with_intervals(
        lambda places: {"": mean(values[place] for place in places)}, range(len(values))
    )[""]


def _rate(values: Iterable[bool | float]) -> float:
    numbers = [float(value) for value in values]
    return mean(numbers) if numbers else math.nan


def measure(policy: Policy, world: World, split: str) -> dict[str, dict[str, float]]:
    """Return ability -> `{value, low, high}` of a policy."""
    sampled = generate(
        policy,
        world.questions(split, ["biography"]),
        max_new_tokens=LONG,
        samples=SAMPLES,
        seed=SEED,
        logprobs=True,
    )
    biographies = group_by(
        [read_biography(world, one) for one in sampled], lambda one: one.response.question.title
    )
    questions = world.questions(split, SHORT_KINDS)
    greedy = generate(policy, questions, max_new_tokens=SHORT, greedy=True)
    short = generate(policy, questions, max_new_tokens=SHORT, samples=SHORT_SAMPLES, seed=SEED)
    by_person = [group_by(answers, lambda one: one.question.title) for answers in (greedy, short)]

    def rates(people: Sequence[str]) -> dict[str, float]:
        texts = [one for name in people for one in biographies[name]]
        answers = [[one for name in people for one in group[name]] for group in by_person]
        return biography_rates(texts) | short_rates(*answers)

    return with_intervals(rates, sorted(biographies)) | skill_rates(policy, world, split)


def with_intervals(
    rates: Callable[[Sequence[Unit]], Mapping[str, float]], units: Sequence[Unit]
) -> dict[str, dict[str, float]]:
    """Return rate -> `{value, low, high}`, with a 95 % interval from a bootstrap over units.

    Args:
        rates: units, some of them several times -> named rates, or NaN.
        units: for example names of people.
    """
    rng = random.Random(SEED)
    drawn = [rates(rng.choices(units, k=len(units))) for _ in range(RESAMPLES)]
    found = {}
    for name, value in rates(units).items():
        low, high = np.nanquantile([one[name] for one in drawn], (0.025, 0.975)).tolist()
        found[name] = {"value": value, "low": low, "high": high}
    return found


def about(world: World, split: str, threads: int) -> dict[str, Any]:
    """Return what stored results say of their measurement."""
    return {
        "date": date.today().isoformat(),
        "versions": versions(),
        "world_hash": world.hash,
        "split": split,
        "people": len(world.people(split)),
        "seed": SEED,
        "threads": threads,
    }


def table(results: Mapping[str, Any]) -> str:
    """Return a table of stored rates. A rate outside of its range is marked."""
    rows = []
    for name, (text, low, high) in ABILITIES.items():
        cells = []
        for rates in results["policies"].values():
            one = rates[name]
            interval = f"{one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"
            cells.append(f"{interval}{'' if low <= one['value'] <= high else ' (outside)'}")
        rows.append([text, f"{low:g} to {high:g}", *cells])
    return (
        f"{results['date']}, {results['split']} split, {results['people']} people.\n\n"
        + markdown(["ability", "range", *results["policies"]], rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy", required=True, nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--split", default="validation", choices=("validation", "test"))
    parser.add_argument("--threads", type=int, default=DEFAULT_THREADS)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    world = load_world()
    named = dict(one.split("=", 1) for one in given.policy)
    with use_threads(given.threads):
        policies = {
            name: measure(load_policy(folder), world, given.split) for name, folder in named.items()
        }
    results = {**about(world, given.split, given.threads), "policies": policies}
    print(table(results))
    if given.results:
        write_json(given.results, results)


if __name__ == "__main__":
    main()
