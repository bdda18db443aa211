"""Other annotators in place of a bench's check of facts: RLFH (arXiv 2406.12221, section 4.5,
table 3) compares whose verdicts a policy learns from."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from workbench.policies.generate import Policy, generate
from workbench.text import final_answer, is_abstention
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
    WorkbenchError,
)
from workbench.verdicts.claims import HEDGED, open_claims, searched, unfound
from workbench.verdicts.local import local_facts
from workbench.verifier.verifier import Verifier
from workbench.world.parser import Parsed, parser_of
from workbench.world.schema import RELATIONS, YES_NO
from workbench.world.world import World

REPLY = 12  # tokens of a reply: a name, a year, "I do not know."
# tokens of a reply that thinks first: the fact, then "yes." or "no.", all in tags
THINKING = 48

Row = tuple[Response, Claims]
Key = tuple[str, str]  # a question's id and a claim's words


def annotated(verify: Verify, annotator: Verify) -> Verify:
    """`verify` with the labels of `annotator`: its verdicts on claims, with their p, evidence and
    failures.

    Informativeness and the aspect "subject" stay those of `verify`, and so does the verdict on a
    claim that was judged as it was extracted. The annotator sees each claim alone, without its
    response. It is called once for the same claim in answer to the same question, or again if its
    verdict failed. The cost of a call goes to the first row that needs it; the passages that a
    verdict rests on go to every row.
    """
    known: dict[Key, Checked] = {}

    def run(batch: Sequence[Row]) -> list[Checked]:
        rows = [
            {
                f"claim:{claim.id}": (response.question.id, claim.text)
                for claim in open_claims(found)
            }
            for response, found in batch
        ]
        questions = {response.question.id: response.question for response, _ in batch}
        new = [key for key in {key: 1 for row in rows for key in row.values()} if key not in known]
        alone = [
            (Response("", questions[name], text), Claims((), (Claim(0, text, "body"),)))
            for name, text in new
        ]
        fresh = dict(zip(new, annotator(alone), strict=True))
        judged = known | fresh
        known.update((key, one) for key, one in fresh.items() if one.verdicts[0].error is None)
        costs = {key: one.cost for key, one in fresh.items()}
        return [
            _relabelled(exact, keys, judged, costs)
            for exact, keys in zip(verify(batch), rows, strict=True)
        ]

    return run


def _relabelled(
    exact: Checked, keys: Mapping[str, Key], judged: Mapping[Key, Checked], costs: dict[Key, Cost]
) -> Checked:
    """`exact` with the annotator's labels and passages, and the costs that no row before has
    taken.
    """

    def relabelled(verdict: Verdict) -> Verdict:
        if verdict.aspect != "fact" or verdict.error is not None or verdict.target not in keys:
            return verdict
        other = judged[keys[verdict.target]].verdicts[0]
        rating = verdict.informativeness if other.error is None else None
        return replace(other, target=verdict.target, informativeness=rating)

    passages = {page.id: page for key in keys.values() for page in judged[key].passages}
    return Checked(
        tuple(map(relabelled, exact.verdicts)),
        sum((costs.pop(key, Cost()) for key in keys.values()), exact.cost),
        (*exact.passages, *(page for page in passages.values() if page not in exact.passages)),
    )


def by_verifier(verifier: Verifier, world: World) -> Verify:
    """The local verifier, reading the pages of the entities that the question asks about,
    outdated editions among them.

    Where there is no page, a claim is vague *(ours)*, as RLFH labels what its materials leave
    open. A failure would take every unknown person out of training.
    """
    verify, pages = local_facts(verifier), dict[str, list[Passage]]()
    for page in world.pages:
        pages.setdefault(page.title, []).append(Passage(page.id, page.title, page.text))

    def run(batch: Sequence[Row]) -> list[Checked]:
        own = [
            tuple(page for title in one.question.title.split(";") for page in pages.get(title, ()))
            for one, _ in batch
        ]
        rows = [
            (replace(response, question=replace(response.question, passages=passages)), found)
            for (response, found), passages in zip(batch, own, strict=True)
        ]
        return [
            replace(
                one,
                verdicts=tuple(map(_left_open, one.verdicts)),
                passages=searched(response, [passages]) if one.verdicts else (),
            )
            for one, (response, _), passages in zip(verify(rows), batch, own, strict=True)
        ]

    return run


def _left_open(verdict: Verdict) -> Verdict:
    missing = verdict.error is not None and verdict.error.kind == "no_passages"
    return unfound(replace(verdict, error=None)) if missing else verdict


def by_yes_or_no(policy: Policy, world: World) -> Verify:
    """A policy that judges claims from memory *(ours: the paper's annotators read passages)*: is
    it so, yes or no?

    It is asked as the world's own yes/no questions are, with room to think first. A claim that
    the world has no such question for is vague, and so is one that the policy does not know.
    """
    labels = dict(zip(YES_NO["en"], ("correct", "wrong"), strict=True))
    system = world.questions("ood", ["yes_no"])[0].system

    def ask(stated: Parsed) -> str | None:
        forms = RELATIONS[stated.relation].checks.get("en")
        return forms[0].format(s=stated.subject, o=stated.object) if forms else None

    def read(stated: Parsed, reply: str) -> str | None:
        return labels.get(reply.casefold())

    return _by_policy(policy, world, ask, read, "self", system=system, room=THINKING)


def by_recall(policy: Policy, world: World) -> Verify:
    """A policy that judges claims from memory *(ours)*, asked anew: does its greedy answer agree
    with the claim?

    It does not see the claim, so it cannot simply agree with it. A claim that it does not know is
    vague.
    """
    parser = parser_of(world)

    def ask(stated: Parsed) -> str | None:
        return RELATIONS[stated.relation].asks["en"][0].format(s=stated.subject)

    def read(stated: Parsed, reply: str) -> str | None:
        value = parser.value(RELATIONS[stated.relation].object, reply)
        return None if value is None else "correct" if value == stated.object else "wrong"

    return _by_policy(policy, world, ask, read, "recall")


def _by_policy(
    policy: Policy,
    world: World,
    ask: Callable[[Parsed], str | None],  # the question that decides a claim, if there is one
    read: Callable[[Parsed, str], str | None],  # the label by the answer, if it can be read
    name: str,
    system: str = "",
    room: int = REPLY,
) -> Verify:
    """Judge claims that state one fact of the world by the policy's greedy replies. All questions
    go out in one call, each once. A claim without a question is vague.
    """
    parser = parser_of(world)

    def question(claim: Claim) -> tuple[Parsed, str] | None:
        facts = parser.parse(claim.text).claims
        text = ask(facts[0]) if len(facts) == 1 and facts[0].object is not None else None
        return None if text is None else (facts[0], text)

    def run(batch: Sequence[Row]) -> list[Checked]:
        start = time.perf_counter()
        rows = [[(claim, question(claim)) for claim in open_claims(found)] for _, found in batch]
        texts = list({pair[1]: 1 for row in rows for _, pair in row if pair})
        asked = [Question(text, text, system=system) for text in texts]
        answers = generate(policy, asked, max_new_tokens=room, greedy=True)
        replies = dict(zip(texts, answers, strict=True))

        def verdict(claim: Claim, pair: tuple[Parsed, str] | None) -> Verdict:
            vague = Verdict(f"claim:{claim.id}", "fact", "vague", by=name)
            return _by_reply(vague, *pair, replies[pair[1]], read) if pair else vague

        cost = Cost(seconds=(time.perf_counter() - start) / max(1, len(batch)))
        return [Checked(tuple(verdict(*one) for one in row), cost) for row in rows]

    return run


def _by_reply(
    vague: Verdict,
    stated: Parsed,
    question: str,
    reply: Response,
    read: Callable[[Parsed, str], str | None],
) -> Verdict:
    """The verdict with the label by a reply; a reply without an answer is a failure."""
    verdict = replace(vague, evidence=({"question": question, "reply": reply.text.strip()},))
    if is_abstention(reply.text, prefill=reply.prefill):
        return verdict
    answer = final_answer(reply.text, prefill=reply.prefill)
    label = None if answer is None else read(stated, answer.strip(" .!"))
    if label is None:
        message = f"the reply to '{question}' does not answer it"
        error = Failure("verify", "unparsed", message, reply.text)
        return replace(vague, label=None, error=error)
    return replace(verdict, label=HEDGED[label] if stated.stance == "hedged" else label)


OPPOSITE = {
    "correct": "wrong",
    "wrong": "correct",
    "hedged_correct": "hedged_wrong",
    "hedged_wrong": "hedged_correct",
}


def flipped(verify: Verify, share: float, seed: int = 0) -> Verify:
    """`verify` with a `share` of its "fact" verdicts inverted, as by a poorer annotator: correct
    becomes wrong, wrong becomes correct, vague stays.

    The same claim in answer to the same question is always judged alike.

    Raises:
        WorkbenchError: `share` is not between 0 and 1.
    """
    if not 0 <= share <= 1:
        raise WorkbenchError(f"flips is {share}: it must lie between 0 and 1")

    def inverted(response: Response, claims: Claims, verdict: Verdict) -> Verdict:
        texts = {f"claim:{claim.id}": claim.text for claim in claims.claims}
        key = f"flipped-{seed}-{response.question.id}-{texts.get(verdict.target)}"
        flips = random.Random(key).random() < share
        if verdict.aspect != "fact" or verdict.label not in OPPOSITE or not flips:
            return verdict
        p = None if verdict.p is None else 1 - verdict.p
        return replace(verdict, label=OPPOSITE[verdict.label], p=p, by=f"{verdict.by}, flipped")

    def verify_flipped(batch: Sequence[Row]) -> list[Checked]:
        return [
            replace(one, verdicts=tuple(inverted(*row, verdict) for verdict in one.verdicts))
            for row, one in zip(batch, verify(batch), strict=True)
        ]

    return verify_flipped
