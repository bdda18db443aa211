"""Verdicts of a judge: facts, checklists, reasoning and outcomes. All calls of a batch go out in
one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from workbench.answers import (
    DOUBT,
    answer_text,
    in_answer,
    is_abstention,
    sentences,
    thinking,
)
from workbench.extract.statements import makes_claims
from workbench.judge import read as read_text
from workbench.judge import render
from workbench.knowledge import Search
from workbench.types import (
    Checked,
    Claim,
    Claims,
    Cost,
    Failure,
    Judge,
    Passage,
    Prompt,
    Reply,
    Response,
    Verdict,
    Verify,
)
from workbench.verify.claims import (
    HEDGED,
    cite,
    is_hedged,
    open_claims,
    retrieve,
    searched,
    unfound,
)
from workbench.verify.outcome import by_rule, committed_answer, without_comparison


def facts(
    judge: Judge, search: Search | None = None, k: int = 5, informativeness: bool = True
) -> Verify:
    """Aspect "fact": verify each claim against its passages in its own call, and rate all claims
    of a response in one more (RLFH, arXiv 2406.12221, section 3.1).

    The passages are the `k` best of the question's own if it has any, else of those that
    `search` finds for the claim in the pages that its title names. The judge says correct, vague
    or wrong; in a hedged sentence the first and the last become the hedged labels. A claim
    without passages is a failure of stage "retrieve". A claim that shares no word with any
    passage of the store is vague, without a call. A claim that was judged as it was extracted is
    not judged again. If the rating fails, the labels stand, and a failed verdict on the response,
    "informativeness", says why there is no rating.
    """

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        rows = [(response, found, open_claims(found)) for response, found in batch]
        asked = [(response, claim) for response, _, claims in rows for claim in claims]
        results = iter(retrieve(asked, search, k))
        passages = [[next(results) for _ in claims] for *_, claims in rows]
        prompts = [
            _fact_prompts(response, claims, own, informativeness)
            for (response, _, claims), own in zip(rows, passages, strict=True)
        ]
        replies = _ask(judge, prompts)
        by = _name(judge)
        return [
            _facts(*row, own, answers, by, informativeness)
            for row, own, answers in zip(rows, passages, replies, strict=True)
        ]

    return verify


def _fact_prompts(
    response: Response,
    claims: Sequence[Claim],
    passages: Sequence[Sequence[Passage] | Failure],
    informativeness: bool,
) -> list[Prompt]:
    """One prompt for each claim that has passages, then one that rates all claims."""
    question = response.question.text
    prompts = [
        render("verify", question=question, claims=[claim.text], passages=own)
        for claim, own in zip(claims, passages, strict=True)
        if own and not isinstance(own, Failure)
    ]
    if informativeness and claims:
        texts = [claim.text for claim in claims]
        prompts.append(render("inform", question=question, response=response.text, claims=texts))
    return prompts


def _facts(
    response: Response,
    found: Claims,
    claims: Sequence[Claim],
    passages: Sequence[Sequence[Passage] | Failure],
    replies: Sequence[Reply],
    by: str,
    informativeness: bool,
) -> Checked:
    if not claims:
        return Checked()
    answers = iter(replies)
    verdicts = []
    for claim, own in zip(claims, passages, strict=True):
        verdict = Verdict(f"claim:{claim.id}", "fact", by=by)
        if isinstance(own, Failure):
            verdict = replace(verdict, error=own)
        elif not own:
            verdict = unfound(replace(verdict, by="rule"))
        else:
            verdict = _labelled(verdict, _read("verify", next(answers)))
            if label := verdict.label:
                label = HEDGED.get(label, label) if is_hedged(response, found, claim) else label
                verdict = replace(verdict, label=label, evidence=cite(claim.text, own))
        verdicts.append(verdict)
    if informativeness:
        ratings = _read("inform", replies[-1], len(claims))
        if isinstance(ratings, Failure):
            verdicts.append(Verdict("response", "informativeness", by=by, error=ratings))
        else:
            verdicts = [
                replace(verdict, informativeness=rating)
                for verdict, rating in zip(verdicts, ratings, strict=True)
            ]
    return Checked(tuple(verdicts), _total(replies), searched(response, passages))


def checklist(judge: Judge) -> Verify:
    """Aspect "checklist" on `item:i`: what the answer says of each item of the question's
    checklist, in one call a response (KLCF, arXiv 2509.23765, section 2.3).

    An answer that is empty misses every item, without a call. A question without a checklist
    gets no verdict.
    """

    def compared(response: Response, _: Claims) -> tuple[dict[str, str], str]:
        items = enumerate(response.question.checklist)
        text = answer_text(response.text, response.prefill)
        return {f"item:{number}": item for number, item in items}, text

    return _compare(judge, compared)


def claim_checklist(judge: Judge) -> Verify:
    """Aspect "checklist" on `claim:i`: what the whole checklist says of each claim of the answer,
    in one call a response. A variant of KLCF's truthfulness reward needs it.
    """

    def compared(response: Response, found: Claims) -> tuple[dict[str, str], str]:
        claims = filter(in_answer(response), found.claims)
        texts = {f"claim:{claim.id}": claim.text for claim in claims}
        return texts, "\n".join(response.question.checklist)

    return _compare(judge, compared)


def _compare(
    judge: Judge, compared: Callable[[Response, Claims], tuple[dict[str, str], str]]
) -> Verify:
    """Compare targets (by name) with a text in one call a response; an empty text misses every
    target.
    """

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        rows = [(response, *compared(response, found)) for response, found in batch]
        prompts = [
            [
                render(
                    "checklist", question=one.question.text, response=text, items=[*items.values()]
                )
            ]
            if items and text.strip()
            else []
            for one, items, text in rows
        ]
        checked = []
        for (_, items, _), replies in zip(rows, _ask(judge, prompts), strict=True):
            labels = _read("checklist", replies[0], len(items)) if replies else "missing"
            if isinstance(labels, str | Failure):
                labels = [labels] * len(items)
            by = _name(judge) if replies else "rule"
            verdicts = (
                _labelled(Verdict(target, "checklist", by=by), label)
                for target, label in zip(items, labels, strict=True)
            )
            checked.append(Checked(tuple(verdicts), _total(replies)))
        return checked

    return verify


_CLAUSE_END = re.compile(r"[,;:，；：]|\s[-–—]\s|—")


def is_idle(thought: str) -> bool:
    """Whether a thought is empty or only talks about thinking ("Hmm, let me think."): no
    sentence of it states or counts anything, nor does the text after an opening word ("Okay, she
    was born in Paris"). In doubt, a thought is not idle *(ours)*."""
    return not any(_says(thought[start:end]) for start, end in sentences(thought))


def _says(sentence: str) -> bool:
    clauses = (clause for clause in _CLAUSE_END.split(sentence) if len(clause.split()) > 1)
    return (
        any(map(str.isdigit, sentence)) or makes_claims(sentence) or any(map(makes_claims, clauses))
    )


def reasoning(judge: Judge) -> Verify:
    """Aspect "reasoning": good or poor (TruthRL, arXiv 2509.25760, section 4.6 and table 12). The
    judge sees the question, the gold answers and the reasoning, but not the answer.

    Poor without a call *(ours)*: a response that does not think aloud, or idly (`is_idle`), and
    one that abstains (table 8: the reasoning of uncertain responses scores 0).
    """

    def prompt(response: Response) -> Prompt | None:
        thought, question = thinking(response.text, response.prefill), response.question
        if is_idle(thought) or is_abstention(response.text, prefill=response.prefill):
            return None
        gold = question.answers or None
        return render("reasoning", question=question.text, response=thought, answers=gold)

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        prompts = [prompt(response) for response, _ in batch]
        poor = Verdict("reasoning", "reasoning", "poor", by="rule")
        return _one_call(judge, "reasoning", prompts, [poor] * len(batch))

    return verify


def judged_outcome(
    judge: Judge,
    require_box: bool | None = False,
    abstentions: Iterable[str] = (),
    in_doubt: bool = False,
) -> Verify:
    """As `outcome`, but a judge says whether an answer that commits to something agrees with the
    gold answers.

    No call is made for an abstention, a missing final answer, or a question without gold answers
    (a failure). The judge sees the final answer, not the text before it. With `in_doubt` rules
    decide, and the judge is asked only where the `p` of the rules lies in `answers.DOUBT`.
    """
    phrases = tuple(abstentions)

    def ruled(response: Response) -> Verdict | None:
        if not in_doubt:
            return without_comparison(response, require_box, phrases)
        verdict = by_rule(response, require_box, phrases)
        doubtful = verdict.p is not None and DOUBT[0] <= verdict.p <= DOUBT[1]
        return None if doubtful else verdict

    def prompt(response: Response) -> Prompt:
        question, answer = response.question, committed_answer(response, require_box) or ""
        gold = question.answers
        return render("outcome", question=question.text, response=answer, answers=gold)

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        verdicts = [ruled(response) for response, _ in batch]
        prompts = [
            None if verdict else prompt(response)
            for (response, _), verdict in zip(batch, verdicts, strict=True)
        ]
        blank = Verdict("outcome", "answer")
        return _one_call(judge, "outcome", prompts, [verdict or blank for verdict in verdicts])

    return verify


def _one_call(
    judge: Judge, task: str, prompts: Sequence[Prompt | None], verdicts: Sequence[Verdict]
) -> list[Checked]:
    """The given verdict of each row, with the judge's label where the row has a prompt."""
    rows = _ask(judge, [[prompt] if prompt else [] for prompt in prompts])
    by = _name(judge)
    return [
        Checked((_labelled(replace(verdict, by=by), _read(task, replies[0])),), _total(replies))
        if replies
        else Checked((verdict,))
        for verdict, replies in zip(verdicts, rows, strict=True)
    ]


def _labelled(verdict: Verdict, label: str | Failure) -> Verdict:
    if isinstance(label, Failure):
        return replace(verdict, label=None, error=label)
    return replace(verdict, label=label)


def _ask(judge: Judge, prompts: Sequence[Sequence[Prompt]]) -> list[list[Reply]]:
    """The replies to each row's prompts; those of all rows go out in one call."""
    flat = [prompt for row in prompts for prompt in row]
    replies = judge(flat) if flat else []
    assert len(replies) == len(flat), (len(replies), len(flat))
    remaining = iter(replies)
    return [[next(remaining) for _ in row] for row in prompts]


def _total(replies: Iterable[Reply]) -> Cost:
    return sum((reply.cost for reply in replies), Cost())


def _name(judge: Judge) -> str:
    """The value of `by` in this judge's verdicts."""
    return str(getattr(judge, "name", "judge"))


def _read(task: str, reply: Reply, count: int | None = None) -> Any:
    """A reply as `workbench.judge.read` reads it, or the failure that it is or contains."""
    return reply.error or read_text(task, reply.text or "", count)
