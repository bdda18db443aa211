"""What a tiny policy knows and can do, measured against the world for its model card: by tier, by
kind, in both languages, in questions, thoughts, passages and whole texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from workbench.experiments.evaluate import evaluation_grade, report
from workbench.experiments.tiny.skills import READINGS, SkillWriter, numbered
from workbench.pipeline import grade
from workbench.policies.generate import Policy, generate
from workbench.text import final_answer, is_abstention
from workbench.types import Feedback, JsonObject, Question
from workbench.verdicts import outcome
from workbench.verdicts.checks import world_checks
from workbench.world import schema
from workbench.world.facts import Fact
from workbench.world.questions import SHORT_KINDS, select
from workbench.world.world import World

REASONED = ("two_hop", "comparison", "false_premise", "yes_no", "list")
SHORT, LONG = 16, 112  # new tokens that a short answer, and any other, may take

Rates = JsonObject  # n, accuracy, abstention: shares, None where there is nothing to share


def measure(
    policy: Policy,
    world: World,
    split: str,
    samples: int = 4,
    seed: int = 0,
    count: int = 300,
) -> JsonObject:
    """Rates on one split.

    * `short` and `l2`: short questions in both languages, as evaluation reports them.
    * `partial` and `exposure`: what is covered of partly known people, and accuracy by exposures.
    * `biography` and `two_facets`: `texts` about one person, and about two.
    * `reading`: `count` questions with passages of each kind, about people outside the world.
    * `reasoned`: questions of more than one step.
    """
    scored = grade([outcome()], {})

    def ask(questions: Sequence[Question], new_tokens: int) -> list[Feedback]:
        return scored(generate(policy, questions, max_new_tokens=new_tokens, greedy=True))

    def reported(greedy: Sequence[Feedback], drawn: Sequence[Feedback] = ()) -> JsonObject:
        return report(greedy, drawn, split=split, seeds=(seed,))

    short = world.questions(split, SHORT_KINDS)
    answered = ask(short, SHORT)
    drawn = scored(generate(policy, short, max_new_tokens=SHORT, samples=samples, seed=seed))
    readings = {kind: reading_questions(world, kind, count, f"{split}-{seed}") for kind in READINGS}
    if split != "validation":
        readings["page"] = page_questions(world)
    planned = [
        replace(question, system=schema.OUTLINE)
        for question in select(world.two_facets, split, None, "en")
    ]
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
        "l2": reported(ask(world.questions(split, SHORT_KINDS, "l2"), SHORT)),
        "biography": texts(policy, world, world.questions(split, ["biography"]), seed),
        "two_facets": texts(policy, world, planned, seed),
        "reading": {kind: rates(ask(asked, SHORT)) for kind, asked in readings.items()},
        "reasoned": reasoned(ask(reasoned_questions(world, split), LONG)),
    }


def texts(policy: Policy, world: World, questions: Sequence[Question], seed: int = 0) -> JsonObject:
    """The report of whole texts, whose claims the world judges, greedy and sampled."""
    judge = evaluation_grade(world_checks(world))
    greedy, sampled = (
        judge(generate(policy, questions, max_new_tokens=LONG, greedy=greedy, seed=seed))
        for greedy in (True, False)
    )
    return report(greedy, sampled, seeds=(seed,))


def _partial(feedbacks: Iterable[Feedback], covered: bool) -> Iterator[Feedback]:
    """Of the answers about partly known people, those whose fact the documents state, or do not."""
    for feedback in feedbacks:
        meta = feedback.response.question.meta
        if meta["tier"] == "partial" and meta["covered"] == covered:
            yield feedback


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


def rates(feedbacks: Iterable[Feedback]) -> Rates:
    """Share of right answers (None where there are none to give) and of abstentions."""
    listed = list(feedbacks)
    right = [feedback.verdict("outcome") for feedback in listed]
    labels = [verdict.label for verdict in right if verdict is not None and verdict.error is None]
    passed = [is_abstention(final_answer(feedback.response.text) or "") for feedback in listed]
    return {
        "n": len(listed),
        "accuracy": share(label == "correct" for label in labels) if labels else None,
        "abstention": share(passed),
    }


def share(flags: Iterable[bool]) -> float | None:
    held = list(flags)
    return sum(held) / len(held) if held else None


def reading_questions(world: World, kind: str, count: int, seed: int | str) -> list[Question]:
    """Questions with passages about people whom no training mentions; those of kind "none" have
    no answer.
    """
    writer = SkillWriter(world.ephemeral(held_out=True), f"measure-{kind}-{seed}")
    asked = []
    for number in range(count):
        reading = writer.reading(kind)
        answers = () if reading.target is None else reading.target.forms["en"]
        asked.append(
            Question(
                f"{kind}-{number}", reading.question, answers, passages=numbered(reading.passages)
            )
        )
    return asked


def page_questions(world: World) -> list[Question]:
    """Questions about people of whom the world has a page and no document, with that page. They
    are of no split, and asked once, with the test split."""
    pages = {page.title: page.text for page in world.pages if not page.stale}
    asked = [
        question
        for question in world.questions("ood", SHORT_KINDS)
        if question.meta["tier"] == "page_only"
    ]
    return [replace(question, passages=numbered([pages[question.title]])) for question in asked]


def reasoned_questions(world: World, split: str) -> list[Question]:
    """Questions of more than one step about the people of a split, and the true twins of the
    false premises.
    """
    people = {
        name
        for name, entity in world.entities.items()
        if entity.kind == "person" and entity.split == split
    }
    beyond = split if split == "validation" else "ood"
    asked = [q for q in world.questions(beyond, REASONED) if q.title.split(";")[0] in people]
    return [*asked, *(_true_twin(world, q) for q in asked if q.kind == "false_premise")]


def _true_twin(world: World, question: Question) -> Question:
    """The same question with the true profession: who calls everything invalid is wrong here."""
    profession, target = (_fact(world, fact_id) for fact_id in question.meta["fact_ids"])
    form = schema.FALSE_PREMISE_ASKS.index(target.relation)
    text = schema.FALSE_PREMISE["en"][form].format(
        s=profession.subject, o=profession.forms["en"][0]
    )
    return replace(
        question,
        id=f"{question.id}-true",
        text=text,
        answers=target.forms["en"],
        kind="true_premise",
    )


def _fact(world: World, fact_id: str) -> Fact:
    return world.facts[int(fact_id.removeprefix("f"))]


def reasoned(feedbacks: Sequence[Feedback]) -> dict[str, Rates]:
    """Rates by kind of question."""
    kinds = dict.fromkeys(feedback.response.question.kind for feedback in feedbacks)
    return {
        kind: rates(one for one in feedbacks if one.response.question.kind == kind)
        for kind in kinds
    }
