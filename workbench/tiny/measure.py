"""What a tiny policy knows, measured against the world: by tier, by kind, in both languages, in questions and biographies."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.evaluate import report
from workbench.generate import Policy, generate
from workbench.grade import grade
from workbench.policy import load_policy
from workbench.types import SUPPORTED, Feedback, Question, Response
from workbench.verify import outcome
from workbench.world.documents import reading
from workbench.world.oracle import Oracle
from workbench.world.questions import SHORT_KINDS
from workbench.world.world import World

REASONED = ("two_hop", "comparison", "false_premise", "yes_no", "list")
LONG = 112  # new tokens that a biography or a reasoned answer may take
SHORT = 12


def measure(policy: Policy | str, world: World, split: str, samples: int = 4, seed: int = 0) -> dict[str, Any]:
    """Rates on one split: `short` and `l2` as evaluation reports, `biography`, `reading`, and the other kinds' accuracies."""
    loaded = load_policy(policy) if isinstance(policy, str) else policy
    scored = grade([outcome()], {})

    def greedy(questions: Sequence[Question], new_tokens: int) -> list[Feedback]:
        return scored(generate(loaded, questions, max_new_tokens=new_tokens, greedy=True))

    def rates(greedy: Sequence[Feedback], drawn: Sequence[Feedback] = ()) -> dict[str, Any]:
        return report(greedy, drawn, split=split, seeds=(seed,))

    beyond = split if split == "validation" else "ood"
    people = {name for name, entity in world.entities.items() if entity.kind == "person" and entity.split == split}
    short = world.questions(split, SHORT_KINDS)
    answered = greedy(short, SHORT)
    reasoned = greedy([q for q in world.questions(beyond, REASONED) if q.title.split(";")[0] in people], LONG)
    lives = world.questions(split, ["biography"])
    return {
        "short": rates(answered, scored(generate(loaded, short, max_new_tokens=SHORT, samples=samples, seed=seed))),
        "exposure": by_exposure(world, answered),
        "l2": rates(greedy(world.questions(split, SHORT_KINDS, "l2"), SHORT)),
        "reasoned": rates(reasoned)["greedy"]["by_kind"],
        "reasoned_known": rates([f for f in reasoned if f.response.question.meta["covered"]])["greedy"]["by_kind"],
        "reading": rates(greedy(readings(world, 300, seed), SHORT))["greedy"],
        "biography": {
            mode: biographies(world, generate(loaded, lives, max_new_tokens=LONG, greedy=mode == "greedy", seed=seed))
            for mode in ("greedy", "sampled")
        },
    }


def by_exposure(world: World, feedbacks: Sequence[Feedback]) -> list[tuple[int, float, int]]:
    """(exposures of the asked fact in one pass, both languages; share answered correctly; questions), by exposures."""
    counts: dict[int, list[bool]] = {}
    for feedback in feedbacks:
        (fact_id,) = feedback.response.question.meta["fact_ids"]
        exposures = sum(world.exposures.get(fact_id, {}).values())
        verdict = feedback.verdict("outcome")
        counts.setdefault(exposures, []).append(verdict is not None and verdict.label == "correct")
    return [(exposures, sum(right) / len(right), len(right)) for exposures, right in sorted(counts.items())]


def readings(world: World, count: int, seed: int) -> list[Question]:
    """Questions with a passage in the prompt that answers them, about people who are not in the world."""
    rng = random.Random(f"readings-{seed}")
    documents = [reading(world.ephemeral, "en", rng, missing=0.0) for _ in range(count)]
    return [
        Question(f"reading-{number}", document.prompt, (document.text.rstrip("."),), kind="single", meta={"tier": "reading"})
        for number, document in enumerate(documents)
    ]


def biographies(world: World, responses: Sequence[Response]) -> dict[str, Mapping[str, float | int | None]]:
    """By tier: share of claims that are true of the person asked about (what is true of somebody else is not), claims per
    biography, share of sentences not understood, and share declined."""
    oracle = Oracle(world)
    tiers: dict[str, dict[str, int]] = {}
    for response in responses:
        counts = tiers.setdefault(
            response.question.meta["tier"], dict.fromkeys(("n", "declined", "claims", "true", "broken", "sentences"), 0)
        )
        parse = oracle.parser.parse(response.text, response.question.title)
        labels = [oracle.label(claim) for claim in parse.claims]
        counts["n"] += 1
        counts["declined"] += bool(parse.refusals) and not labels
        counts["claims"] += len(labels)
        about = [response.question.title in (claim.subject, claim.object) for claim in parse.claims]
        counts["true"] += sum(a and label in SUPPORTED for a, label in zip(about, labels, strict=True))
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
