"""Check claims by the facts of the closed world, without a language model.

The verdicts are exact for all text that the world's parser can read.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from workbench.claims.world import broken, topic_of
from workbench.text import answer_text, in_answer
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
from workbench.world.render import thought
from workbench.world.world import World

_oracle = lru_cache(maxsize=4)(Oracle)
IMPORTANT = 3  # lowest importance of a checklist's facts *(ours)*


def world_facts(world: World) -> Verify:
    """Return a function that labels claims by the facts of the closed world (`aspect="fact"`).

    A claim that is not a fact of the world is wrong. Its informativeness, from 1 to 5, is the
    highest importance of the facts that it states.

    A claim is irrelevant if it is about another subject than the question, or repeats earlier
    claims of its section (thinking or answer) *(ours)*. An irrelevant claim has the informativeness
    1 and a second verdict, with `aspect="subject"`. The label of this verdict names the subject of
    the claim: "other", or "asked" (the question's subject) for a repetition.

    If the question's `meta["evidence"]` is "passages", claims are compared with the question's
    passages instead of the facts. A claim that the passages neither state nor contradict is vague.
    """

    def verdicts(oracle: Oracle, response: Response, extraction: Claims) -> Iterator[Verdict]:
        question = response.question
        if question.meta.get("evidence") == BY_PASSAGES:
            oracle = oracle.by_passages(question.passages)
        return _facts(oracle, response, extraction)

    return _each_row(world, verdicts)


def world_checklist(world: World) -> Verify:
    """Return a function that looks up each checklist item in the answer (`aspect="checklist"`).

    An item states a fact: subject, relation and object. Its label is one of these:

    * consistent: the answer states the same fact.
    * contradictory: the answer states another object, alone or together with the right one
      *(ours)*.
    * missing: the answer states no object.

    The items are the question's checklist or, if it has none, the important facts of its entities
    (`world_checklist_items`). The verdict on the first item has `target="item:0"`.
    """
    return _each_row(world, _items)


def world_claim_checklist(world: World) -> Verify:
    """Return a function that looks up each claim of an answer in the question's checklist.

    A claim is consistent if the checklist states the same fact, contradictory if the checklist
    states another object for the same subject and relation, and missing otherwise. The verdict on
    the claim with the id 3 has `aspect="checklist"` and `target="claim:3"`.
    """
    return _each_row(world, _claims)


def world_reasoning(world: World) -> Verify:
    """Return a function that labels the thinking section good or poor (`aspect="reasoning"`).

    Reasoning is good if it has a true claim about the question's subject and no wrong claim
    *(ours)*.
    """
    return _each_row(world, _reasoning)


def world_boundary(world: World) -> Verify:
    """Return a function that labels questions "known" or "unknown" (`aspect="out_of_knowledge"`).

    A question is "unknown" if it needs a fact that no pre-training document of the world states.
    The label is exact for policies trained on these documents. A question that is not of this world
    gets a verdict with an error.
    """
    return _each_row(world, _boundary)


def _each_row(
    world: World, check: Callable[[Oracle, Response, Claims], Iterable[Verdict]]
) -> Verify:
    oracle = _oracle(world)  # the checks of a world share it
    return lambda batch: [Checked(tuple(check(oracle, *row))) for row in batch]


def world_question(world: World, question: Question) -> Question:
    """Return a question with the world's gold answers, kind, title, checklist and `meta` added.

    Values that the question already has are kept. A question of the world is recognised by its
    text. A question about a single fact is also recognised in the other wordings that the world has
    for it. A question that is not recognised only gets a title: the people (or, without people, the
    other entities) in its text, as in "Ana Bo;Toma Fel".
    """
    known = _questions_by_text(world).get(_plain(question.text))
    if known is None:
        return replace(question, title=question.title or ";".join(_entities(world, question.text)))
    known = replace(
        question,
        answers=question.answers or known.answers,
        title=question.title or known.title,
        kind=known.kind if question.kind == "single" else question.kind,
        meta={**known.meta, **question.meta},
    )
    return replace(known, checklist=question.checklist or world_checklist_items(world, known))


def world_checklist_items(world: World, question: Question) -> tuple[str, ...]:
    """Return the checklist of a long-form question: the important facts of its entities.

    Each item is a sentence that states a fact with an importance of at least 3 (`IMPORTANT`).
    Questions with a short answer have no items.
    """
    if question.kind not in ("biography", "long_form"):
        return ()
    lang = question.meta.get("lang", "en")
    return tuple(
        thought(fact, lang)
        for name in question.titles
        for fact in world.by.get(name, {}).values()
        if fact.importance >= IMPORTANT
    )


@lru_cache(maxsize=4)
def _questions_by_text(world: World) -> dict[str, Question]:
    questions = world.all_questions
    # reversed, so that the first of several questions with the same text is used
    wordings = {_plain(text): q for q in reversed(questions) for text in _wordings(world, q)}
    return wordings | {_plain(q.text): q for q in reversed(questions)}


def _wordings(world: World, question: Question) -> Iterator[str]:
    """Yield all wordings of a question about a single fact; nothing for other questions."""
    facts = question.meta["fact_ids"]
    if question.kind in ("single", "numeric") and len(facts) == 1:
        fact = _by_id(world)[facts[0]]
        yield from (
            text.format(s=fact.subject)
            for text in schema.RELATIONS[fact.relation].asks[question.meta["lang"]]
        )


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _entities(world: World, text: str) -> list[str]:
    """Return the names of people in a text, in order; without people, those of other entities."""
    names = [match[0] for match in _names(world).finditer(text)]
    people = [name for name in names if world.entities[name].kind == "person"]
    return list(dict.fromkeys(people or names))


@lru_cache(maxsize=4)
def _names(world: World) -> re.Pattern[str]:
    longest_first = sorted(world.entities, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b")


def _facts(oracle: Oracle, response: Response, extraction: Claims) -> Iterator[Verdict]:
    """Yield the verdicts on the claims that the extractor has not labelled.

    A claim that cannot be parsed is vague, or wrong if its subject or object does not exist. If
    neither the question nor another claim is about this world, its verdict has an error instead.
    """
    # the topic resolves pronouns at the start of a claim
    topic, claims = topic_of(oracle.parser, response.question), open_claims(extraction)
    relevance = _Relevance(oracle, response.question, topic)
    parses = [oracle.parser.parse(claim.text, topic) for claim in claims]
    # otherwise a claim that cannot be parsed is about something else, and no verdict is possible
    about_world = (
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
            yield broken(target, reason) if about_world else replace(verdict, target=target)
            continue
        useless = relevance.useless(claim.section, parse.claims)
        yield replace(
            verdict, target=target, informativeness=USELESS if useless else verdict.informativeness
        )
        if useless:
            yield Verdict(target, "subject", useless, by="world")


class _Relevance:
    """Finds repeated claims and claims about another subject (RLFH, arXiv 2406.12221, §3.1.3).

    A question is about the entities in its title, or in its text if it has no title. It is also
    about the subjects of the facts that its answer needs. `bridges` are the facts that lead to
    another entity: (Ada, "employer") in "In which city is the employer of Ada based?".
    """

    def __init__(self, oracle: Oracle, question: Question, topic: str | None) -> None:
        names, facts = oracle.parser.names, _by_id(oracle.world)
        parts = map(str.casefold, question.titles)
        title = [names[part] for part in parts if part in names]
        named = title or _entities(oracle.world, question.text) or ([topic] if topic else [])
        known = [facts[id] for id in question.meta.get("fact_ids") or () if id in facts]
        subjects = {fact.subject for fact in known}
        self.named, self.reached = frozenset(named), {*named, *subjects}
        self.bridges = {(fact.subject, fact.relation) for fact in known if fact.object in subjects}
        self.stated: set[tuple[str, str, str, str | None]] = set()

    def useless(self, section: str, stated: Sequence[Parsed]) -> str | None:
        """Return "other" for a claim about another subject, "asked" for a repetition, else None.

        Call this method for the claims of a response in their order.

        * A repetition states only facts that earlier claims of the same section state. A vague
          claim repeats any earlier claim with the same subject and relation.
        * For "In which city is the employer of Ada based?", a claim may name a wrong employer. A
          claim about this employer, such as its city, is not "other".
        * If the question's subject is unknown, no claim is "other".

        Args:
            section: the section in which the claim stands: "think", "answer" or "body".
            stated: the facts that the claim states.
        """
        facts = {(section, parsed.subject, parsed.relation, parsed.object) for parsed in stated}
        repeats = facts <= self.stated
        # a vague claim has the object None
        self.stated |= facts | {(*fact[:3], None) for fact in facts}
        self.reached |= {
            p.object for p in stated if p.object and (p.subject, p.relation) in self.bridges
        }
        # a claim about a book by the subject is about the subject
        about = any(p.subject in self.reached or p.object in self.named for p in stated)
        if self.reached and not about:
            return "other"
        return "asked" if repeats else None


@lru_cache(maxsize=4)
def _by_id(world: World) -> dict[str, Fact]:
    return {fact.id: fact for fact in world.facts}


def _states(oracle: Oracle, text: str, question: Question) -> list[Parsed]:
    """Return the facts that a text states, whether true or false; vague statements are left out."""
    return [
        parsed
        for parsed in oracle.parser.parse(text, topic_of(oracle.parser, question)).claims
        if parsed.object is not None
    ]


def _compare(expected: Sequence[Parsed], stated: Sequence[Parsed]) -> str:
    """Compare each expected fact with the stated facts, and return the worst label.

    The labels are "contradictory" (worst), "missing" and "consistent".
    """
    labels = set()  # an item with several facts gets the label of its worst fact
    for fact in expected:
        objects = {
            p.object for p in stated if (p.subject, p.relation) == (fact.subject, fact.relation)
        }
        right = "consistent" if objects == {fact.object} else "contradictory"
        labels.add(right if objects else "missing")
    return min(labels, key=("contradictory", "missing", "consistent").index)


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
            message = "this checklist item is not a statement about the closed world: reword it"
            yield replace(verdict, error=Failure("verify", "unparsed", message, item))


def _claims(oracle: Oracle, response: Response, extraction: Claims) -> Iterator[Verdict]:
    question = response.question
    items = question.checklist or world_checklist_items(oracle.world, question)
    expected = [parsed for item in items for parsed in _states(oracle, item, question)]
    for claim in filter(in_answer(response), extraction.claims):
        stated = _states(oracle, claim.text, question)
        # a vague or unparsable claim does not state an item
        label = _compare(stated, expected) if stated else "missing"
        yield Verdict(f"claim:{claim.id}", "checklist", label, by="world")


def _reasoning(oracle: Oracle, response: Response, extraction: Claims) -> Iterator[Verdict]:
    verdict = Verdict("reasoning", "reasoning", by="world")
    thought = {f"claim:{claim.id}" for claim in extraction.claims if claim.section == "think"}
    judged = [v for v in _facts(oracle, response, extraction) if v.target in thought]
    facts = [
        v for v in (*extraction.verdicts, *judged) if v.target in thought and v.aspect == "fact"
    ]
    if error := extraction.error or next((v.error for v in facts if v.error), None):
        yield replace(verdict, error=error)
        return
    # repeated or off-subject claims
    useless = {v.target for v in judged if v.aspect == "subject"}
    helps = any(v.label in SUPPORTED and v.target not in useless for v in judged)
    good = helps and all(v.label not in REFUTED for v in facts)
    yield replace(verdict, label="good" if good else "poor")


def _boundary(oracle: Oracle, response: Response, _: Claims) -> Iterator[Verdict]:
    world, question = oracle.world, response.question
    verdict = Verdict("response", "out_of_knowledge", by="world")
    known = _questions_by_text(world).get(_plain(question.text))
    exposures = world.shown(known) if known else None
    if exposures is None:
        message = (
            f"question '{question.id}' is not part of the closed world, so it is unknown whether"
            " the policy was trained on its facts"
        )
        yield replace(verdict, error=Failure("verify", "not_probed", message))
    else:
        yield replace(verdict, label=KNOWLEDGE[0] if exposures else KNOWLEDGE[1])
