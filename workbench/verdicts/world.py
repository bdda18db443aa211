"""Exact checks of the closed world. They cost nothing and judge all text that they can parse."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from workbench.claims.world import broken, topic_of
from workbench.text import answer_text, in_answer, is_abstention
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
from workbench.verdicts.claims import open_claims
from workbench.world import schema
from workbench.world.facts import Fact
from workbench.world.oracle import Oracle
from workbench.world.parser import Parsed
from workbench.world.world import World

IMPORTANT = 3  # lowest importance of a checklist's facts *(ours)*


def world_facts(world: World) -> Verify:
    """Return the check of aspect "fact": a claim that is not a fact of the world is wrong.

    Informativeness is the importance of the facts. It is 1 for a claim that repeats an earlier one
    of its section or is off-subject *(ours)*; a verdict of the aspect "subject" tells which:
    "asked" or "other".

    If the question's `meta["evidence"]` is "passages", the question's passages decide instead of
    the world: a claim that they leave open is vague.
    """

    def judged(oracle: Oracle, response: Response, extraction: Claims) -> Iterator[Verdict]:
        question = response.question
        if question.meta.get("evidence") == BY_PASSAGES:
            oracle = oracle.by_passages(question.passages)
        return _facts(oracle, response, extraction)

    return _each_row(world, judged)


def world_checklist(world: World) -> Verify:
    """Return the check of aspect "checklist" on `item:i`: the answer states the item's fact,
    another object for it, or neither.

    The items are the question's checklist, or `world_checklist_items`. An answer that states both
    is contradictory *(ours)*.
    """
    return _each_row(world, _items)


def world_claim_checklist(world: World) -> Verify:
    """Return the check of aspect "checklist" on `claim:i`, against the whole checklist."""
    return _each_row(world, _claims)


def world_reasoning(world: World) -> Verify:
    """Return the check of aspect "reasoning": good if the thinking has a true claim about the
    question's subject and no wrong claim *(ours)*.

    Vague, unparsable and off-subject claims do not make reasoning good. The reasoning of an
    abstention is poor (TruthRL, arXiv 2509.25760, table 8).
    """
    return _each_row(world, lambda *row: (_reasoning(*row),))


def world_boundary(world: World) -> Verify:
    """Return the check of aspect "out_of_knowledge": unknown if a fact of the question is in no
    document of the world.

    It is the exact reference for the labels of a probe, for policies trained on these documents.
    """
    return _each_row(
        world, lambda oracle, response, _: (_boundary(oracle.world, response.question),)
    )


def _each_row(
    world: World, check: Callable[[Oracle, Response, Claims], Iterable[Verdict]]
) -> Verify:
    oracle = _oracle(world)
    return lambda batch: [Checked(tuple(check(oracle, *row))) for row in batch]


def world_question(world: World, question: Question) -> Question:
    """Return the question with missing reference data: gold answers, kind, title and checklist.

    Questions are recognised by their text; one about a single fact in any of the world's wordings.
    Another question gets the entities that it names as its title.
    """
    known = _questions_by_text(world).get(_plain(question.text))
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
    """Return the facts that a good answer to an open question states: those of the question's
    entities with importance 3 or more.

    Questions with a short answer have no items.
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
    return tuple(
        schema.RELATIONS[fact.relation]
        .states[lang][0]
        .format(s=fact.subject, o=fact.forms[lang][0])
        for fact in facts
    )


@lru_cache(maxsize=4)
def _oracle(world: World) -> Oracle:
    return Oracle(world)


@lru_cache(maxsize=4)
def _questions_by_text(world: World) -> dict[str, Question]:
    questions = world.all_questions
    reworded = {
        text: question for question in reversed(questions) for text in _reworded(world, question)
    }
    return {_plain(text): question for text, question in reworded.items()} | {
        _plain(q.text): q for q in reversed(questions)
    }


def _reworded(world: World, question: Question) -> Iterator[str]:
    """Yield the other wordings of a question about a single fact."""
    facts = question.meta["fact_ids"]
    if question.kind in ("single", "numeric") and len(facts) == 1:
        fact = _by_id(world)[facts[0]]
        yield from (
            text.format(s=fact.subject)
            for text in schema.RELATIONS[fact.relation].asks[question.meta["lang"]]
        )


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _named(world: World, text: str) -> Iterator[str]:
    """Yield the people that a text names, or its other entities, in the order of their mention."""
    names = [match[0] for match in _names(world).finditer(text)]
    people = [name for name in names if world.entities[name].kind == "person"]
    yield from dict.fromkeys(people or names)


@lru_cache(maxsize=4)
def _names(world: World) -> re.Pattern[str]:
    longest_first = sorted(world.entities, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b")


def _facts(oracle: Oracle, response: Response, extraction: Claims) -> Iterator[Verdict]:
    """Yield a verdict for each claim that the extraction has not judged.

    A claim that cannot be parsed is a failure only if neither the question nor another claim is
    about this world.
    """
    topic, claims = topic_of(oracle.parser, response.question), open_claims(extraction)
    relevance = _Relevance(oracle, response.question, topic)
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
        useless = relevance.useless(claim.section, parse.claims)
        yield replace(
            verdict, target=target, informativeness=USELESS if useless else verdict.informativeness
        )
        if useless:
            yield Verdict(target, "subject", useless, by="world")


class _Relevance:
    """Finds claims with the lowest informativeness (RLFH, arXiv 2406.12221, section 3.1.3: repeated
    or useless).

    A question is about the entities of its title, or those that its text names, and about the
    subjects of its answer's facts. `bridges` are the facts that lead to another entity: Ada and
    "employer" in "In which city is the employer of Ada based?".
    """

    def __init__(self, oracle: Oracle, question: Question, topic: str | None) -> None:
        names, facts = oracle.parser.names, _by_id(oracle.world)
        parts = [piece.strip().casefold() for piece in question.title.split(";")]
        titled = [names[part] for part in parts if part in names]
        named = titled or list(_named(oracle.world, question.text)) or ([topic] if topic else [])
        known = [facts[name] for name in question.meta.get("fact_ids") or () if name in facts]
        subjects = {fact.subject for fact in known}
        self.named, self.reached = frozenset(named), {*named, *subjects}
        self.bridges = {(fact.subject, fact.relation) for fact in known if fact.object in subjects}
        self.stated: set[tuple[str, str, str, str | None]] = set()

    def useless(self, section: str, stated: Sequence[Parsed]) -> str | None:
        """Return "other" for an off-subject claim, "asked" for a repeated one, None for a useful
        one.

        Call it for the claims of a response in their order. A vague claim repeats any claim on the
        same relation. Truth does not matter: a response that names the wrong employer and its city
        is about the question. If the question's subject is unknown, no claim is "other".
        """
        facts = {(section, parsed.subject, parsed.relation, parsed.object) for parsed in stated}
        repeats = facts <= self.stated
        self.stated |= facts | {(*fact[:3], None) for fact in facts}
        self.reached |= {
            p.object for p in stated if p.object and (p.subject, p.relation) in self.bridges
        }
        # a claim on a book that the subject wrote is about the subject
        about = any(p.subject in self.reached or p.object in self.named for p in stated)
        if self.reached and not about:
            return "other"
        return "asked" if repeats else None


@lru_cache(maxsize=4)
def _by_id(world: World) -> dict[str, Fact]:
    return {fact.id: fact for fact in world.facts}


def _states(oracle: Oracle, text: str, question: Question) -> list[Parsed]:
    """Return the facts, true or not, that a text states; vague statements have none."""
    return [
        parsed
        for parsed in oracle.parser.parse(text, topic_of(oracle.parser, question)).claims
        if parsed.object is not None
    ]


def _compare(expected: Sequence[Parsed], stated: Sequence[Parsed]) -> str:
    """Return the worst label of the expected facts, given the stated ones."""
    labels = set()
    for fact in expected:
        objects = {
            p.object for p in stated if (p.subject, p.relation) == (fact.subject, fact.relation)
        }
        if not objects:
            labels.add("missing")
        else:
            labels.add("consistent" if objects == {fact.object} else "contradictory")
    return next(label for label in ("contradictory", "missing", "consistent") if label in labels)


def _items(oracle: Oracle, response: Response, _: Claims) -> Iterator[Verdict]:
    question = response.question
    stated = _states(oracle, answer_text(response.text, response.prefill), question)
    for number, item in enumerate(
        question.checklist or world_checklist_items(oracle.world, question)
    ):
        verdict = Verdict(f"item:{number}", "checklist", evidence=({"item": item},), by="world")
        expected = _states(oracle, item, question)
        if expected:
            yield replace(verdict, label=_compare(expected, stated))
        else:
            message = "this is not a statement about the world"
            yield replace(verdict, error=Failure("verify", "unparsed", message, item))


def _claims(oracle: Oracle, response: Response, extraction: Claims) -> Iterator[Verdict]:
    question = response.question
    items = question.checklist or world_checklist_items(oracle.world, question)
    listed = [parsed for item in items for parsed in _states(oracle, item, question)]
    for claim in filter(in_answer(response), extraction.claims):
        stated = _states(oracle, claim.text, question)
        # a vague or unparsable claim states no item
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
    # repeated or off-subject claims
    useless = {v.target for v in judged if v.aspect == "subject"}
    helps = any(v.label in SUPPORTED and v.target not in useless for v in judged)
    abstains = is_abstention(response.text, prefill=response.prefill)
    good = helps and all(v.label not in REFUTED for v in facts) and not abstains
    return replace(verdict, label="good" if good else "poor")


def _boundary(world: World, question: Question) -> Verdict:
    verdict = Verdict("response", "out_of_knowledge", by="world")
    known = _questions_by_text(world).get(_plain(question.text))
    exposures = world.shown(known) if known else None
    if exposures is None:
        reason = (
            f"question '{question.id}' is not part of the closed world, so its boundary is unknown"
        )
        return replace(verdict, error=Failure("verify", "not_probed", reason))
    return replace(verdict, label=KNOWLEDGE[0] if exposures else KNOWLEDGE[1])
