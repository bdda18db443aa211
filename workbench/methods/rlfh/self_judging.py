"""Checks in which the policy itself labels the claims of its responses *(ours)*.

The annotators of RLFH's table 3 (arXiv 2406.12221) read passages, as `by_yes_or_no` does. With
`by_recall`, the policy judges from memory.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from workbench.policies.generate import Policy, generate
from workbench.text import final_answer, is_abstention
from workbench.types import (
    Batch,
    Checked,
    Claim,
    Cost,
    Failure,
    Passage,
    Question,
    Response,
    Verdict,
    Verify,
)
from workbench.verdicts.claims import HEDGED, cite, open_claims
from workbench.world.parser import Parsed, parser_of
from workbench.world.schema import RELATIONS, YES_NO
from workbench.world.two_facets import excerpt
from workbench.world.world import World

REPLY = 12  # most tokens of a reply: a name, a year, "I do not know."

# claim -> the question whose answer decides whether it is true; None if there is no such question
Ask = Callable[[Parsed], Question | None]
# claim, answer -> label of the claim; None if the answer cannot be read
Read = Callable[[Parsed, str], str | None]


def by_yes_or_no(policy: Policy, world: World) -> Verify:
    """Return a check that asks the policy a yes/no question about each claim, with a passage.

    For "Ana Bo was born in Mirel", the question is "Was Ana Bo born in Mirel?". The passage is the
    sentence about Ana Bo's birthplace on her current page. The answer "yes" gives the label
    "correct", "no" gives "wrong".

    A claim is labelled "vague" if the policy abstains, if the claim does not state exactly one
    fact, if there is no yes/no question for it, or if its subject has no page. If the answer is
    neither "yes" nor "no", the verdict is a failure.

    Args:
        world: the closed world. Its names serve to parse claims. The passages are from its pages.
    """
    labels = dict(zip(YES_NO["en"], ("correct", "wrong"), strict=True))
    pages = {page.title: page for page in world.pages if not page.stale}

    def ask(stated: Parsed) -> Question | None:
        forms = RELATIONS[stated.relation].checks.get("en")
        page = pages.get(stated.subject)
        if not forms or page is None:
            return None
        fact = world.by[stated.subject][stated.relation]
        passage = excerpt(page, [page.fact_ids.index(fact.id)])
        text = forms[0].format(s=stated.subject, o=stated.object)
        return Question(text, text, passages=(passage,))

    def read(stated: Parsed, answer: str) -> str | None:
        return labels.get(answer.casefold())

    return _by_policy(policy, world, ask, read, "self")


def by_recall(policy: Policy, world: World) -> Verify:
    """Return a check that compares each claim with the policy's answer to an open question.

    For "Ana Bo was born in 1950", the question could be "When was Ana Bo born?". It does not
    contain the claimed value, so the policy cannot simply agree.

    A claim is labelled "vague" if the policy abstains, or if the claim does not state exactly one
    fact. If the answer cannot be read, the verdict is a failure.

    Args:
        world: the closed world. Its names serve to parse claims and answers.
    """
    parser = parser_of(world)

    def ask(stated: Parsed) -> Question:
        text = RELATIONS[stated.relation].asks["en"][0].format(s=stated.subject)
        return Question(text, text)

    def read(stated: Parsed, answer: str) -> str | None:
        value = parser.value(RELATIONS[stated.relation].object, answer)
        return None if value is None else "correct" if value == stated.object else "wrong"

    return _by_policy(policy, world, ask, read, "recall")


def _by_policy(policy: Policy, world: World, ask: Ask, read: Read, name: str) -> Verify:
    """Return a check that asks the policy one question about each claim, with greedy decoding.

    A claim is labelled "vague" if it does not state exactly one fact of the world, or if `ask`
    returns no question for it. The distinct questions of a batch are answered in one call.

    Args:
        ask: claim -> question; None if there is no question.
        read: claim, answer -> label of the claim; None if the answer cannot be read.
        name: the name of the judge in the verdicts.
    """
    parser = parser_of(world)

    def question_of(claim: Claim) -> tuple[Parsed, Question] | None:
        facts = parser.parse(claim.text).claims
        asked = ask(facts[0]) if len(facts) == 1 and facts[0].object is not None else None
        return None if asked is None else (facts[0], asked)

    def run(batch: Batch) -> list[Checked]:
        start = time.perf_counter()
        rows = [
            [(claim, question_of(claim)) for claim in open_claims(extraction)]
            for _, extraction in batch
        ]
        # a dict, because the order of a set is not reproducible, and it determines the batches
        questions = {pair[1].id: pair[1] for row in rows for _, pair in row if pair}
        responses = generate(policy, list(questions.values()), max_new_tokens=REPLY, greedy=True)
        replies = dict(zip(questions, responses, strict=True))

        def verdict(claim: Claim, pair: tuple[Parsed, Question] | None) -> Verdict:
            vague = Verdict(f"claim:{claim.id}", "fact", "vague", by=name)
            return _by_reply(vague, pair[0], replies[pair[1].id], read) if pair else vague

        cost = Cost(seconds=(time.perf_counter() - start) / max(1, len(batch)))
        return [
            Checked(
                tuple(verdict(*one) for one in row),
                cost,
                _passages(pair[1] for _, pair in row if pair),
            )
            for row in rows
        ]

    return run


def _passages(questions: Iterable[Question]) -> tuple[Passage, ...]:
    """Return the passages of the questions, without duplicates."""
    return tuple({page.id: page for one in questions for page in one.passages}.values())


def _by_reply(vague: Verdict, stated: Parsed, reply: Response, read: Read) -> Verdict:
    """Return the verdict on a claim, from the policy's reply to a question about the claim.

    If the reply has no readable answer, the verdict is a failure.

    Args:
        vague: the verdict if the policy abstains.
        stated: the fact that the claim states.
    """
    question = reply.question
    evidence = (
        {"question": question.text, "reply": reply.text.strip()},
        *cite(question.text, question.passages),
    )
    verdict = replace(vague, evidence=evidence)
    if is_abstention(reply.text, prefill=reply.prefill):
        return verdict
    answer = final_answer(reply.text, prefill=reply.prefill)
    label = None if answer is None else read(stated, answer.strip(" .!"))
    if label is None:
        message = f"the reply to '{question.text}' does not answer it"
        error = Failure("verify", "unparsed", message, reply.text)
        return replace(vague, label=None, error=error)
    return replace(verdict, label=HEDGED[label] if stated.stance == "hedged" else label)
