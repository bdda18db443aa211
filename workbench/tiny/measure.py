"""What a tiny policy knows, measured against the world: by tier, by kind, in both languages, in
questions and biographies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.evaluate import report
from workbench.generate import Policy, generate
from workbench.grade import grade
from workbench.policy import load_policy
from workbench.tiny.skill_rates import LONG, SHORT, rates, skill_rates
from workbench.types import SUPPORTED, Feedback, Question, Response
from workbench.verify import outcome
from workbench.world.oracle import Oracle
from workbench.world.questions import SHORT_KINDS
from workbench.world.world import World


def measure(
    policy: Policy | str, world: World, split: str, samples: int = 4, seed: int = 0
) -> dict[str, Any]:
    """Rates on one split: `short` and `l2` as evaluation reports, `partial`, `exposure`,
    `biography` and all `skill_rates`.
    """
    loaded = load_policy(policy) if isinstance(policy, str) else policy
    scored = grade([outcome()], {})

    def greedy(questions: Sequence[Question], new_tokens: int) -> list[Feedback]:
        return scored(generate(loaded, questions, max_new_tokens=new_tokens, greedy=True))

    def reported(greedy: Sequence[Feedback], drawn: Sequence[Feedback] = ()) -> dict[str, Any]:
        return report(greedy, drawn, split=split, seeds=(seed,))

    short = world.questions(split, SHORT_KINDS)
    answered = greedy(short, SHORT)
    drawn = scored(generate(loaded, short, max_new_tokens=SHORT, samples=samples, seed=seed))
    return {
        "short": reported(answered, drawn),
        "partial": {
            name: {
                "greedy": rates(_partial(answered, covered)),
                "sampled": rates(_partial(drawn, covered)),
            }
            for name, covered in (("covered", True), ("gaps", False))
        },
        "exposure": by_exposure(world, answered),
        "l2": reported(greedy(world.questions(split, SHORT_KINDS, "l2"), SHORT)),
        "biography": lives(loaded, world, split, seed),
        **skill_rates(greedy, world, split, seed),
    }


def _partial(feedbacks: Iterable[Feedback], covered: bool) -> Iterator[Feedback]:
    """Of the answers about partly known people, those whose fact the documents state, or do not."""
    for feedback in feedbacks:
        meta = feedback.response.question.meta
        if meta["tier"] == "partial" and meta["covered"] == covered:
            yield feedback


def lives(policy: Policy | str, world: World, split: str, seed: int = 0) -> dict[str, Any]:
    """`biographies` of the people of a split, greedy and sampled."""
    loaded = load_policy(policy) if isinstance(policy, str) else policy
    asked = world.questions(split, ["biography"])
    return {
        mode: biographies(
            world, generate(loaded, asked, max_new_tokens=LONG, greedy=mode == "greedy", seed=seed)
        )
        for mode in ("greedy", "sampled")
    }


def by_exposure(world: World, feedbacks: Sequence[Feedback]) -> list[tuple[int, float, int]]:
    """(exposures of the asked fact in one pass, both languages; share answered correctly;
    questions), by exposures.
    """
    counts: dict[int, list[bool]] = {}
    for feedback in feedbacks:
        (fact_id,) = feedback.response.question.meta["fact_ids"]
        exposures = sum(world.exposures.get(fact_id, {}).values())
        verdict = feedback.verdict("outcome")
        counts.setdefault(exposures, []).append(verdict is not None and verdict.label == "correct")
    return [
        (exposures, sum(right) / len(right), len(right))
        for exposures, right in sorted(counts.items())
    ]


def biographies(
    world: World, responses: Sequence[Response]
) -> dict[str, Mapping[str, float | int | None]]:
    """By tier: share of claims that are true of the person asked about (what is true of somebody
    else is not), claims per biography, share of sentences not understood, and share declined."""
    oracle = Oracle(world)
    tiers: dict[str, dict[str, int]] = {}
    for response in responses:
        counts = tiers.setdefault(
            response.question.meta["tier"],
            dict.fromkeys(("n", "declined", "claims", "true", "broken", "sentences"), 0),
        )
        parse = oracle.parser.parse(response.text, response.question.title)
        labels = [oracle.label(claim) for claim in parse.claims]
        counts["n"] += 1
        counts["declined"] += bool(parse.refusals) and not labels
        counts["claims"] += len(labels)
        about = [response.question.title in (claim.subject, claim.object) for claim in parse.claims]
        counts["true"] += sum(
            a and label in SUPPORTED for a, label in zip(about, labels, strict=True)
        )
        counts["broken"] += len(parse.unparsed)
        counts["sentences"] += len(parse.sentences)
    return {
        tier: {
            "n": c["n"],
            "true": c["true"] / c["claims"] if c["claims"] else None,
            "claims": c["claims"] / c["n"],
            "broken": c["broken"] / c["sentences"] if c["sentences"] else None,
            "declined": c["declined"] / c["n"],
        }
        for tier, c in sorted(tiers.items())
    }
