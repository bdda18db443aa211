"""Exact verdicts of the closed world. They cost nothing and are never mistaken about what they
can read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from workbench.answers import answer_text, in_answer, is_abstention
from workbench.extract.world import broken, topic_of
from workbench.types import (
    BY_PASSAGES,
    KNOWLEDGE,
    REFUTED,
    SUPPORTED,
    USELESS,
    Checked,
    Claims,
    Failure,
    Question,
    Response,
    Verdict,
    Verify,
)
from workbench.verify.claims import open_claims
from workbench.verify.relevance import Subject, Told, subject_of
from workbench.world import schema
from workbench.world.facts import Fact
from workbench.world.oracle import Oracle
from workbench.world.parser import Parsed
from workbench.world.world import World

IMPORTANT = 3  # least importance of a fact that belongs on a checklist *(ours)*


def world_facts(world: World) -> Verify:
    """Aspect "fact": all that is not a fact of the world is wrong; informativeness is the
    importance of what is stated, and 1 for a claim that repeats an earlier one of its section or
    is about nothing that the question is about *(ours)*. Which of the two it is, a verdict of
    the aspect "subject" says of each such claim: "asked" or "other".

    Answers to questions whose `meta["evidence"]` is "passages" are held against the passages of
    the question instead: what these leave open is vague, whatever the world knows.
    """
    oracle = _oracle(world)

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        return [Checked(tuple(_facts(_judging(oracle, row[0].question), *row))) for row in batch]

    return verify


def world_checklist(world: World) -> Verify:
    """Aspect "checklist" on `item:i`: the answer states the item's fact, states another object
    for it, or does not say.

    The items are the question's checklist, else `world_checklist_items`. An answer that says
    both contradicts *(ours)*.
    """
    oracle = _oracle(world)

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        return [Checked(tuple(_items(oracle, response))) for response, _ in batch]

    return verify


def world_claim_checklist(world: World) -> Verify:
    """Aspect "checklist" on `claim:i`: the claims of the answer against the checklist as a
    whole.
    """
    oracle = _oracle(world)

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        return [
            Checked(tuple(_claims(oracle, response, extraction))) for response, extraction in batch
        ]

    return verify


def world_reasoning(world: World) -> Verify:
    """Aspect "reasoning": good if the thinking makes a true claim about what is asked and none
    that is wrong *(ours)*.

    Idle talk, vague claims and those that cannot be read make no thinking good, nor do true
    claims beside the question; that of an abstention is poor (TruthRL, arXiv 2509.25760, table
    8).
    """
    oracle = _oracle(world)

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        return [
            Checked((_reasoning(oracle, response, extraction),)) for response, extraction in batch
        ]

    return verify


def world_boundary(world: World) -> Verify:
    """Aspect "out_of_knowledge", counted: unknown where a fact that the question rests on is in
    none of the world's documents.

    It is the exact reference for a probe's labels, of policies that have learnt from these
    documents.
    """

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        return [Checked((_boundary(world, response.question),)) for response, _ in batch]

    return verify


def world_question(world: World, question: Question) -> Question:
    """The question with what the world knows of it: gold answers, kind, title and checklist
    where it has none itself.

    It is recognised by its text, one about a single fact in any of the world's words for it; a
    question that the world does not ask still gets as title the entity that it names.
    """
    known = _asked(world).get(_plain(question.text))
    if known is None:
        named = question.title or ";".join(_named(world, question.text))
        return replace(question, title=named)
    known = replace(
        question,
        answers=question.answers or known.answers,
        title=question.title or known.title,
        kind=known.kind if question.kind == "single" else question.kind,
        meta={**known.meta, **question.meta},
    )
    return replace(known, checklist=question.checklist or world_checklist_items(world, known))


def world_checklist_items(world: World, question: Question) -> tuple[str, ...]:
    """What a good answer to an open question tells: the facts of the entities asked about of
    importance 3 and more.

    Empty for the kinds of question that have a short answer.
    """
    if question.kind not in ("biography", "long_form"):
        return ()
    lang = question.meta.get("lang", "en")
    subjects = [name for name in question.title.split(";") if name in world.by]
    facts = [
        fact
        for name in subjects
        for fact in world.by[name].values()
        if fact.importance >= IMPORTANT
    ]
    return tuple(_sentence(fact, lang) for fact in facts)


def _sentence(fact: Fact, lang: str) -> str:
    return (
        schema.RELATIONS[fact.relation]
        .states[lang][0]
        .format(s=fact.subject, o=fact.forms[lang][0])
    )


@lru_cache(maxsize=4)
def _oracle(world: World) -> Oracle:
    return Oracle(world)


@lru_cache(maxsize=4)
def _asked(world: World) -> dict[str, Question]:
    questions = world.all_questions
    reworded = {
        text: question for question in reversed(questions) for text in _reworded(world, question)
    }
    return {_plain(text): question for text, question in reworded.items()} | {
        _plain(q.text): q for q in reversed(questions)
    }


def _reworded(world: World, question: Question) -> Iterator[str]:
    """A question about a single fact in the other words that the world has for it."""
    facts = question.meta["fact_ids"]
    if question.kind in ("single", "numeric") and len(facts) == 1:
        fact = _by_id(world)[facts[0]]
        yield from (
            text.format(s=fact.subject)
            for text in schema.RELATIONS[fact.relation].asks[question.meta["lang"]]
        )


def _judging(oracle: Oracle, question: Question) -> Oracle:
    """The oracle that judges the answers to a question."""
    return (
        oracle.by_passages(question.passages)
        if question.meta.get("evidence") == BY_PASSAGES
        else oracle
    )


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _named(world: World, text: str) -> Iterator[str]:
    """The people that a text names or, where it names none, its other entities; in the order of
    their mention.
    """
    names = [match[0] for match in _names(world).finditer(text)]
    people = [name for name in names if world.entities[name].kind == "person"]
    yield from dict.fromkeys(people or names)


@lru_cache(maxsize=4)
def _names(world: World) -> re.Pattern[str]:
    longest_first = sorted(world.entities, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b")


def _topic(oracle: Oracle, question: Question) -> str | None:
    return topic_of(oracle.parser, question)


def _facts(oracle: Oracle, response: Response, extraction: Claims) -> Iterator[Verdict]:
    """A verdict for each claim that the extraction has not judged itself, as it does where it
    cannot read one.

    A claim that cannot be read is a failure only where neither the question nor any other claim
    is about this world.
    """
    topic, claims = _topic(oracle, response.question), open_claims(extraction)
    so_far = Told(_subject(oracle, response.question, topic))
    parses = [oracle.parser.parse(claim.text, topic) for claim in claims]
    ours = (
        topic is not None
        or len(claims) < len(extraction.claims)
        or any(parse.claims for parse in parses)
    )
    for claim, parse, verdict in zip(
        claims, parses, oracle.judge([claim.text for claim in claims], topic), strict=True
    ):
        target = f"claim:{claim.id}"
        if verdict.error:
            reason = parse.unparsed[0].reason if parse.unparsed else "form"
            yield broken(target, reason) if ours else replace(verdict, target=target)
            continue
        subject = so_far.useless(claim.section, parse.claims)
        yield replace(
            verdict, target=target, informativeness=USELESS if subject else verdict.informativeness
        )
        if subject:
            yield Verdict(target, "subject", subject, by="world")


def _subject(oracle: Oracle, question: Question, topic: str | None) -> Subject:
    """What the question is about: the entities of its title or, where it has none, those that it
    names.
    """
    names = oracle.parser.names
    titled = [
        names[part]
        for piece in question.title.split(";")
        if (part := piece.strip().casefold()) in names
    ]
    named = titled or list(_named(oracle.world, question.text)) or ([topic] if topic else [])
    return subject_of(question, named, _by_id(oracle.world))


@lru_cache(maxsize=4)
def _by_id(world: World) -> dict[str, Fact]:
    return {fact.id: fact for fact in world.facts}


def _states(oracle: Oracle, text: str, question: Question) -> list[Parsed]:
    """The facts, true or not, that a text states; vague statements state none."""
    return [
        parsed
        for parsed in oracle.parser.parse(text, _topic(oracle, question)).claims
        if parsed.object is not None
    ]


def _compare(wanted: Sequence[Parsed], said: Sequence[Parsed]) -> str:
    """What `said` has to say about all that is `wanted`: the worst of its parts, and silence
    about one is silence.
    """
    labels = []
    for fact in wanted:
        objects = {
            parsed.object
            for parsed in said
            if (parsed.subject, parsed.relation) == (fact.subject, fact.relation)
        }
        labels.append(
            "missing"
            if not objects
            else "consistent"
            if objects == {fact.object}
            else "contradictory"
        )
    return next(label for label in ("contradictory", "missing", "consistent") if label in labels)


def _items(oracle: Oracle, response: Response) -> Iterator[Verdict]:
    question = response.question
    said = _states(oracle, answer_text(response.text, response.prefill), question)
    for number, item in enumerate(
        question.checklist or world_checklist_items(oracle.world, question)
    ):
        verdict = Verdict(f"item:{number}", "checklist", evidence=({"item": item},), by="world")
        wanted = _states(oracle, item, question)
        yield (
            replace(verdict, label=_compare(wanted, said))
            if wanted
            else replace(verdict, error=_unreadable(item))
        )


def _claims(oracle: Oracle, response: Response, extraction: Claims) -> Iterator[Verdict]:
    question = response.question
    items = question.checklist or world_checklist_items(oracle.world, question)
    listed = [parsed for item in items for parsed in _states(oracle, item, question)]
    for claim in filter(in_answer(response), extraction.claims):
        stated = _states(oracle, claim.text, question)
        # what is vague, or cannot be read, says nothing of any item
        label = _compare(stated, listed) if stated else "missing"
        yield Verdict(f"claim:{claim.id}", "checklist", label, by="world")


def _reasoning(oracle: Oracle, response: Response, extraction: Claims) -> Verdict:
    verdict = Verdict("reasoning", "reasoning", by="world")
    thought = {f"claim:{claim.id}" for claim in extraction.claims if claim.section == "think"}
    judged = [v for v in _facts(oracle, response, extraction) if v.target in thought]
    facts = [
        v for v in (*extraction.verdicts, *judged) if v.target in thought and v.aspect == "fact"
    ]
    if error := extraction.error or next((v.error for v in facts if v.error), None):
        return replace(verdict, error=error)
    # said before, or about another subject
    useless = {v.target for v in judged if v.aspect == "subject"}
    helps = any(v.label in SUPPORTED and v.target not in useless for v in judged)
    abstains = is_abstention(response.text, prefill=response.prefill)
    good = helps and all(v.label not in REFUTED for v in facts) and not abstains
    return replace(verdict, label="good" if good else "poor")


def _boundary(world: World, question: Question) -> Verdict:
    verdict, known = (
        Verdict("response", "out_of_knowledge", by="world"),
        _asked(world).get(_plain(question.text)),
    )
    shown = world.shown(known) if known else None
    if shown is None:
        reason = (
            f"question '{question.id}' is none of the closed world's, which cannot tell whether it"
            " can be known"
        )
        return replace(verdict, error=Failure("verify", "not_probed", reason))
    known_label, unknown_label = KNOWLEDGE
    return replace(verdict, label=known_label if shown else unknown_label)


def _unreadable(text: str) -> Failure:
    return Failure("verify", "unparsed", "this is not a statement about the world", text)
