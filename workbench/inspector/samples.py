"""Sample responses: a worked example, and generated answers about the closed world."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from functools import lru_cache

from workbench.claims import rules
from workbench.inspector.examples import words, worked_example
from workbench.pipeline import grade
from workbench.types import Checks, Feedback, Passage, Question, Response, WorkbenchError
from workbench.verdicts import outcome
from workbench.verdicts.checks import local_checks, world_checks
from workbench.world import load_world
from workbench.world.facts import Fact
from workbench.world.render import ask, biography, state
from workbench.world.world import World

WORKED = "Worked example"
SAMPLES = 4  # answers to each question

# share of wrong, hedged and vague statements in the four answers, by tier
ERROR_RATES = {"known": 0.1, "half": 0.35, "partial": 0.5, "unknown": 0.85}
_PEOPLE = {
    "known": "a known person",
    "half": "a half-known person",
    "partial": "a partly known person",
    "unknown": "an unknown person",
}
_WORLD = {
    f"Closed world: {kind} about {_PEOPLE[tier]}": (tier, kind)
    for kind in ("question", "biography")
    for tier in ERROR_RATES
}
NAMES = (WORKED, *_WORLD)

# question, answer, sources and gold answers of the form; the sources contradict one claim and
# leave another open
EXAMPLE = (
    "What is the Eiffel Tower known for?",
    (
        "The Eiffel Tower stands in Paris. It was built for the World Fair of 1925. About seven"
        " million people visit the tower every year. Its restaurant opened with a concert."
    ),
    (
        "The Eiffel Tower stands in Paris. It was built for the World Fair of 1889 and is 330"
        " metres tall.\n\nGustave Eiffel's company built the tower out of iron. About seven million"
        " people visit it every year."
    ),
    "",
)


@lru_cache(maxsize=32)
def sample(name: str, seed: int = 0) -> tuple[Feedback, ...]:
    """The answers of a sample with all checks, without rewards; the first is the one to show.

    Raises:
        WorkbenchError: there is no sample of this name.
    """
    if name == WORKED:
        return (worked_example(),)
    if name not in NAMES:
        raise WorkbenchError(f"no sample '{name[:60]}': choose one of the list")
    world = load_world()
    tier, kind = _WORLD[name]
    rng = random.Random(f"{name} {seed}")
    people = [
        entity
        for entity in world.entities.values()
        if (entity.kind, entity.tier) == ("person", tier) and entity.split in ("validation", "test")
    ]
    person = rng.choice(people)
    facts = list(world.by[person.name].values())
    target = rng.choice(facts) if kind == "question" else None
    question = _question(world, person.name, facts, target, rng)
    responses = []
    for number in range(SAMPLES):
        wrong = ERROR_RATES[tier] * (0.6 + number / 2)
        text = _answer(world, facts, target, pronoun=person.pronoun, wrong=wrong, rng=rng)
        responses.append(
            Response(
                f"{question.id}/{number}",
                question,
                text,
                question.id,
                number,
                offsets=words(text),
                source="words",
            )
        )
    checks = world_checks(world)
    verify = [check for need, check in checks.verify.items() if need != "claim_checklist"]
    return tuple(grade(verify, {}, checks.extract)(responses))


def _question(
    world: World, person: str, facts: list[Fact], target: Fact | None, rng: random.Random
) -> Question:
    important = sorted(facts, key=lambda fact: -fact.importance)[:3]
    kind, gold = ("single", target.forms["en"]) if target else ("biography", ())
    return Question(
        f"{kind}/{person}",
        ask(target, "en", rng) if target else f"Write a biography of {person}.",
        answers=tuple(gold),
        title=person,
        passages=tuple(
            Passage(page.id, f"{page.title} ({page.edition})", page.text)
            for page in world.pages
            if page.title == person
        ),
        checklist=tuple(state(fact, "en", rng) for fact in important),
        kind=kind,
    )


def _answer(
    world: World,
    facts: list[Fact],
    target: Fact | None,
    pronoun: str,
    wrong: float,
    rng: random.Random,
) -> str:
    stated = [_mistaken(world, fact, rng) if rng.random() < wrong else fact for fact in facts]
    text = biography(stated, "en", rng, pronoun, hedged=wrong / 2, vague=0.12)
    if target is None:
        return text
    final = next(fact for fact in stated if fact.relation == target.relation)
    stance = "hedged" if wrong > 0.5 else "asserted"
    return f"<think>{text}</think><answer>{state(final, 'en', rng, stance=stance)}</answer>"


def _mistaken(world: World, fact: Fact, rng: random.Random) -> Fact:
    """The fact with the object of another fact of this relation."""
    same_relation = (other for other in world.facts if other.relation == fact.relation)
    other = rng.choice([other for other in same_relation if other.object != fact.object])
    return replace(fact, object=other.object, forms=other.forms)


def pasted(question: str, answer: str, sources: str, gold: str, judge: str) -> Feedback:
    """Check a pasted answer by "world", "local" (the small entailment model) or "none" (claims).

    Sources are separated by empty lines, gold answers by line breaks.

    Raises:
        WorkbenchError: there is no answer, or the sources for the local verifier are missing.
    """
    if not answer.strip():
        also = " and its sources" if judge == "local" else ""
        raise WorkbenchError(f"there is no answer to score: fill in the answer{also}")
    texts = [text.strip() for text in re.split(r"\n\s*\n", sources) if text.strip()]
    passages = tuple(
        Passage(f"source-{number}", f"Source {number}", text)
        for number, text in enumerate(texts, 1)
    )
    if judge == "local" and not passages:
        raise WorkbenchError(
            "there are no sources: the local verifier checks the answer against sources, so paste"
            " at least one, or choose another judge"
        )
    checks = Checks(rules(), {"outcome": outcome()})
    if judge != "none":
        checks = local_checks() if judge == "local" else world_checks(load_world())
    answers = tuple(line.strip() for line in gold.splitlines() if line.strip())
    full = Question("pasted", question.strip(), answers, passages=passages)
    if checks.recognise:
        full = checks.recognise(full)
    response = Response("pasted/0", full, answer, "pasted", offsets=words(answer), source="words")
    # a pasted answer has no checklist, so the closed world's checks of it would be empty
    needs = ("fact", "outcome", "reasoning") if judge == "world" else checks.verify
    verify = [check for need, check in checks.verify.items() if need in needs]
    return grade(verify, {}, checks.extract)([response])[0]
