"""What a tiny policy can do with passages, thoughts and outlines: on people outside the world
and on the world's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.answers import final_answer, is_abstention, thinking
from workbench.answers.outline import STRUCTURES, read_outline
from workbench.tiny.skills import READINGS, Pair, SkillWriter, numbered
from workbench.types import SUPPORTED, Feedback, Question, Response
from workbench.world import schema
from workbench.world.facts import Fact
from workbench.world.oracle import Oracle
from workbench.world.parser import Parser, parser_of
from workbench.world.questions import SHORT_KINDS
from workbench.world.world import World

REASONED = ("two_hop", "comparison", "false_premise", "yes_no", "list")
SHORT, LONG = 16, 112  # new tokens that a short answer, and any other, may take

# questions, new tokens -> greedy answers, graded
Ask = Callable[[Sequence[Question], int], list[Feedback]]
Rates = dict[str, Any]  # n, accuracy, abstention: shares, None where there is nothing to share


def skill_rates(
    ask: Ask, world: World, split: str, seed: int = 0, count: int = 300
) -> dict[str, Any]:
    """Every skill on one split; what is asked about people outside the world differs between
    splits too.

    `reading` by kind, `reasoned` for all questions, for those whose facts are in the documents
    ("covered") and for those whose facts are all well known ("known"), `thinking` and
    `long_form` with and without passages.
    """
    drawn = f"{split}-{seed}"
    texts = {
        "from memory": world.questions(split, ["long_form"]),
        "from passages": paired_questions(world, count, drawn),
    }
    return {
        "reading": {
            kind: rates(ask(reading_questions(world, kind, count, drawn), SHORT))
            for kind in READINGS
        }
        | ({} if split == "validation" else {"page": rates(ask(page_questions(world), SHORT))}),
        "reasoned": reasoned(ask(reasoned_questions(world, split), LONG), world),
        "thinking": thought_rates(ask(thought_questions(world, split), LONG), world),
        "long_form": {
            f"{place}, {form}": long_form(
                ask([replace(question, system=system) for question in asked], LONG), world
            )
            for place, asked in texts.items()
            for form, system in (("plain", ""), ("outlined", schema.OUTLINE))
        },
    }


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


def reasoned(feedbacks: Sequence[Feedback], world: World) -> dict[str, dict[str, Rates]]:
    """Rates by kind of question: of all, of the covered, and of those that rest on well-known
    facts alone.
    """

    def known(feedback: Feedback) -> bool:
        return all(
            _fact(world, fact_id).tier == "known"
            for fact_id in feedback.response.question.meta["fact_ids"]
        )

    groups: dict[str, Callable[[Feedback], bool]] = {
        "all": lambda feedback: True,
        "covered": lambda feedback: feedback.response.question.meta["covered"],
        "known": known,
    }
    kinds = dict.fromkeys(feedback.response.question.kind for feedback in feedbacks)
    return {
        kind: {
            name: rates(f for f in feedbacks if f.response.question.kind == kind and belongs(f))
            for name, belongs in groups.items()
        }
        for kind in kinds
    }


def thought_questions(world: World, split: str) -> list[Question]:
    return [
        replace(question, system=schema.THINK) for question in world.questions(split, SHORT_KINDS)
    ]


def thought_rates(feedbacks: Sequence[Feedback], world: World) -> dict[str, Any]:
    """Accuracy by tier of short questions that are thought about first, and `copied`: of the
    thoughts that state what is asked, the share whose answer is what they state."""
    parser = parser_of(world)
    copies = [
        copied
        for feedback in feedbacks
        if (copied := _copied(parser, world, feedback.response)) is not None
    ]
    tiers = sorted({feedback.response.question.meta["tier"] for feedback in feedbacks})
    return {
        "copied": share(copies),
        "stated": len(copies),
        "by_tier": {
            tier: rates(f for f in feedbacks if f.response.question.meta["tier"] == tier)
            for tier in tiers
        },
    }


def _copied(parser: Parser, world: World, response: Response) -> bool | None:
    asked = _fact(world, response.question.meta["fact_ids"][0])
    stated = [
        claim.object
        for claim in parser.parse(thinking(response.text), asked.subject).claims
        if (claim.subject, claim.relation) == (asked.subject, asked.relation)
        and claim.object is not None
    ]
    said = (final_answer(response.text) or "").rstrip(". ")
    return (
        parser.value(schema.RELATIONS[asked.relation].object, said) == stated[-1]
        if stated
        else None
    )


def paired_questions(world: World, count: int, seed: int | str) -> list[Question]:
    """Questions about two people whom no training mentions, with numbered passages about them
    and, now and then, a third.
    """
    writer = SkillWriter(world.ephemeral(held_out=True), f"measure-pairs-{seed}")
    return [_paired(f"pair-{number}", writer.pair()) for number in range(count)]


def _paired(name: str, pair: Pair) -> Question:
    objects = tuple({fact.object for fact in facts} for facts in pair.facts)
    title = ";".join(facts[0].subject for facts in pair.facts)
    return Question(
        name,
        pair.question,
        title=title,
        passages=numbered(pair.passages),
        kind="long_form",
        meta={"objects": objects, "sources": pair.sources},
    )


def long_form(feedbacks: Sequence[Feedback], world: World) -> dict[str, Any]:
    """Shares of answers in the right form, of facets covered and declined, of claims that hold,
    and how many claims there are.

    The form is right when every sentence, of one at least, is the world's and, where a plan is
    asked for, it is one whose points are the facets in order, on the passages about them. A
    facet is covered when the answer states something about its subject. With passages a claim
    holds when they state it of one of the two; from memory, when it is true of one of them.
    """
    parser = Parser(world, world.ephemeral(held_out=True).free)
    oracle = Oracle(world)
    read = [_facets(parser, oracle, feedback.response) for feedback in feedbacks]
    return {
        "n": len(read),
        "form": share(text.form for text in read),
        "facets": share(flag for text in read for flag in text.covered),
        "declined": share(flag for text in read for flag in text.declined),
        "claims": sum(len(text.held) for text in read) / len(read) if read else None,
        "supported": share(flag for text in read for flag in text.held),
    }


@dataclass(frozen=True)
class Facets:
    """What a text on two facets comes to: its form; by facet whether it says something, and
    whether it declines; by claim whether it holds."""

    form: bool
    covered: list[bool]
    declined: list[bool]
    held: list[bool]


def _facets(parser: Parser, oracle: Oracle, response: Response) -> Facets:
    names, meta = response.question.title.split(";"), response.question.meta
    parse = parser.parse(response.text)
    refused = [response.text[slice(*parse.sentences[number])] for number in parse.refusals]
    if "objects" in meta:
        objects: Mapping[str, set[str]] = dict(zip(names, meta["objects"], strict=True))
        held = [claim.object in objects.get(claim.subject, ()) for claim in parse.claims]
    else:
        held = [
            claim.subject in names and oracle.label(claim) in SUPPORTED for claim in parse.claims
        ]
    whole = bool(parse.sentences) and not parse.unparsed and response.finish == "stop"
    return Facets(
        form=whole
        and (
            _planned(response, names)
            if response.question.system == schema.OUTLINE
            else "[" not in response.text
        ),
        covered=[any(claim.subject == name for claim in parse.claims) for name in names],
        declined=[any(name in sentence for sentence in refused) for name in names],
        held=held,
    )


def _planned(response: Response, names: Sequence[str]) -> bool:
    outline = read_outline(response.text)
    if (
        outline is None
        or outline.structure not in STRUCTURES
        or [point.text for point in outline.points] != list(names)
    ):
        return False
    sources = response.question.meta.get("sources")
    return sources is None or [point.source for point in outline.points] == list(sources)
