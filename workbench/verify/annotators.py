"""Other annotators in the place of a bench's check of facts: RLFH (arXiv 2406.12221, section
4.5, table 3) compares who gives the verdicts that a policy learns from."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from workbench.answers import final_answer, is_abstention
from workbench.entailment.verifier import Verifier
from workbench.generate import Policy, generate
from workbench.types import (
    Checked,
    Claim,
    Claims,
    Cost,
    Failure,
    Passage,
    Question,
    Response,
    Verdict,
    Verify,
)
from workbench.verify.claims import HEDGED, open_claims, searched, unfound
from workbench.verify.local import local_facts
from workbench.world.parser import Parsed, Parser, parser_of
from workbench.world.schema import RELATIONS, YES_NO
from workbench.world.world import World

KEPT = 50_000  # verdicts of an annotator that are remembered
REPLY = 12  # tokens that a reply may have: a name, a year, "I do not know."
# and one that thinks first: the fact as it is recalled, then "yes." or "no.", all in tags
THOUGHT = 48

Row = tuple[Response, Claims]
Key = tuple[str, str]  # a question's id and a claim's words
# what a claim states -> the question that decides it, if there is one
Ask = Callable[[Parsed], str | None]
# and the bare answer to it -> a label, None where it cannot be read
Read = Callable[[Parsed, str], str | None]


def annotated(verify: Verify, annotator: Verify, kept: int = KEPT) -> Verify:
    """`verify` with the labels of `annotator`: what it says of a claim's truth, with its p,
    evidence and failures.

    Informativeness and whom a claim is about stay those of `verify`, and so does the verdict on
    a claim that was judged as it was extracted. The annotator sees each claim alone, without its
    response, and is asked once for the same claim in answer to the same question; it forgets the
    oldest verdicts beyond `kept`, and failed ones at once. What asking cost is the row's that
    asked first; the passages that a verdict rests on go with it to every row.
    """
    known: dict[Key, Checked] = {}

    def run(batch: Sequence[Row]) -> list[Checked]:
        exact = verify(batch)
        questions = {
            _key(response, claim): response.question
            for response, found in batch
            for claim in open_claims(found)
        }
        new = [key for key in questions if key not in known]
        fresh = dict(
            zip(new, annotator([_alone(questions[key], key[1]) for key in new]), strict=True)
        )
        said = known | fresh
        known.update((key, one) for key, one in fresh.items() if one.verdicts[0].error is None)
        for oldest in list(known)[: max(0, len(known) - kept)]:
            del known[oldest]
        # each is taken out by the first row with its claim
        costs = {key: one.cost for key, one in fresh.items()}
        return [_relabelled(row, one, said, costs) for row, one in zip(batch, exact, strict=True)]

    return run


def by_verifier(verifier: Verifier, world: World) -> Verify:
    """The local verifier, reading the pages of whom the question asks about, outdated editions
    among them.

    Where there is no page, nothing supports a claim and nothing contradicts it: it is vague
    *(ours)*, as RLFH names what its materials leave open. As a failure it would take every
    unknown person out of training.
    """
    verify, pages = local_facts(verifier), _pages(world)

    def of(question: Question) -> Question:
        return replace(
            question,
            passages=tuple(
                page for title in question.title.split(";") for page in pages.get(title, ())
            ),
        )

    def run(batch: Sequence[Row]) -> list[Checked]:
        asked = [of(response.question) for response, _ in batch]
        rows = [
            (replace(response, question=own), found)
            for (response, found), own in zip(batch, asked, strict=True)
        ]
        used = [
            searched(response, [own.passages])
            for (response, _), own in zip(batch, asked, strict=True)
        ]
        return [
            replace(
                one,
                verdicts=tuple(map(_left_open, one.verdicts)),
                passages=read if one.verdicts else (),
            )
            for one, read in zip(verify(rows), used, strict=True)
        ]

    return run


def by_yes_or_no(policy: Policy, world: World) -> Verify:
    """A policy that judges claims from memory *(ours: the paper's annotators read passages)*: is
    it so, yes or no?

    It is asked as the world's own yes/no questions are, with room to think first. A claim that
    the world has no such question for is vague, and so is one that the policy does not know.
    """
    yes, no = YES_NO["en"]
    system = world.questions("ood", ["yes_no"])[0].system

    def ask(stated: Parsed) -> str | None:
        forms = RELATIONS[stated.relation].checks.get("en")
        return forms[0].format(s=stated.subject, o=stated.object) if forms else None

    def read(stated: Parsed, reply: str) -> str | None:
        return {yes: "correct", no: "wrong"}.get(reply.casefold())

    return _by_policy(policy, parser_of(world), ask, read, "self", system=system, room=THOUGHT)


def by_recall(policy: Policy, world: World) -> Verify:
    """A policy that judges claims from memory *(ours)*, asked anew: is its greedy answer what
    the claim states?

    It does not see the claim, hence cannot simply agree to it. What it does not know is vague.
    """
    parser = parser_of(world)

    def ask(stated: Parsed) -> str | None:
        return RELATIONS[stated.relation].asks["en"][0].format(s=stated.subject)

    def read(stated: Parsed, reply: str) -> str | None:
        value = parser.value(RELATIONS[stated.relation].object, reply)
        return None if value is None else "correct" if value == stated.object else "wrong"

    return _by_policy(policy, parser, ask, read, "recall")


def _by_policy(
    policy: Policy,
    parser: Parser,
    ask: Ask,
    read: Read,
    name: str,
    *,
    system: str = "",
    room: int = REPLY,
) -> Verify:
    """Claims that state one fact of the world, by the policy's greedy replies; all questions go
    out in one call, each once.
    """

    def run(batch: Sequence[Row]) -> list[Checked]:
        start = time.perf_counter()
        stated = [
            [(claim, _stated(parser, claim)) for claim in open_claims(found)] for _, found in batch
        ]
        texts = {one: ask(one) for row in stated for _, one in row if one is not None}
        asked = list(dict.fromkeys(text for text in texts.values() if text is not None))
        questions = [Question(text, text, system=system) for text in asked]
        said = dict(
            zip(asked, generate(policy, questions, max_new_tokens=room, greedy=True), strict=True)
        )

        def verdict(claim: Claim, one: Parsed | None) -> Verdict:
            text = texts[one] if one is not None else None
            plain = Verdict(f"claim:{claim.id}", "fact", "vague", by=name)
            return (
                plain if one is None or text is None else _read(plain, one, text, said[text], read)
            )

        cost = Cost(seconds=(time.perf_counter() - start) / max(1, len(batch)))
        return [Checked(tuple(verdict(claim, one) for claim, one in row), cost) for row in stated]

    return run


def _read(verdict: Verdict, stated: Parsed, question: str, reply: Response, read: Read) -> Verdict:
    """The verdict with what a reply says of a claim; one that says nothing of it, or is still
    thinking, is a failure.
    """
    evidence = ({"question": question, "reply": reply.text.strip()},)
    if is_abstention(reply.text, prefill=reply.prefill):
        return replace(verdict, evidence=evidence)
    answer = final_answer(reply.text, prefill=reply.prefill)
    label = None if answer is None else read(stated, answer.strip(" .!"))
    if label is None:
        error = Failure(
            "verify", "unparsed", f"the reply to '{question}' does not answer it", reply.text
        )
        return replace(verdict, label=None, error=error)
    return replace(
        verdict, label=HEDGED[label] if stated.stance == "hedged" else label, evidence=evidence
    )


def _stated(parser: Parser, claim: Claim) -> Parsed | None:
    """The one fact that a claim states; None where it is vague, or no statement about the world."""
    facts = parser.parse(claim.text).claims
    return facts[0] if len(facts) == 1 and facts[0].object is not None else None


def _pages(world: World) -> Mapping[str, Sequence[Passage]]:
    pages: dict[str, list[Passage]] = {}
    for page in world.pages:
        pages.setdefault(page.title, []).append(Passage(page.id, page.title, page.text))
    return pages


def _left_open(verdict: Verdict) -> Verdict:
    missing = verdict.error is not None and verdict.error.kind == "no_passages"
    return unfound(replace(verdict, error=None)) if missing else verdict


def _key(response: Response, claim: Claim) -> Key:
    return response.question.id, claim.text


def _alone(question: Question, text: str) -> Row:
    return Response("", question, text), Claims((), (Claim(0, text, "body"),))


def _relabelled(
    row: Row, exact: Checked, said: Mapping[Key, Checked], costs: dict[Key, Cost]
) -> Checked:
    """`exact` with the labels of what was `said` of its claims, its passages, and the costs that
    no row before it has taken.
    """
    response, found = row
    keys = {f"claim:{claim.id}": _key(response, claim) for claim in open_claims(found)}

    def other(verdict: Verdict) -> Verdict:
        if verdict.aspect != "fact" or verdict.error is not None or verdict.target not in keys:
            return verdict
        judged = said[keys[verdict.target]].verdicts[0]
        rating = verdict.informativeness if judged.error is None else None
        return replace(judged, target=verdict.target, informativeness=rating)

    own = [costs.pop(key, Cost()) for key in keys.values()]
    passages = {page.id: page for key in keys.values() for page in said[key].passages}
    return Checked(
        tuple(map(other, exact.verdicts)),
        sum(own, exact.cost),
        (*exact.passages, *(page for page in passages.values() if page not in exact.passages)),
    )
