"""Verdicts of a judge: facts, checklists, reasoning and outcomes. All calls of a batch go out in
one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from workbench.claims.statements import makes_claims
from workbench.judge import read as read_text
from workbench.judge import render
from workbench.retrieval import Search
from workbench.text import DOUBT, answer_text, in_answer, is_abstention, sentences, thinking
from workbench.types import (
    Checked,
    Claim,
    Claims,
    Cost,
    Failure,
    Judge,
    Prompt,
    Reply,
    Response,
    Verdict,
    Verify,
)
from workbench.verdicts.claims import (
    HEDGED,
    cite,
    is_hedged,
    open_claims,
    retrieve,
    searched,
    unfound,
)
from workbench.verdicts.outcome import by_rule, committed_answer, without_comparison

K = TypeVar("K")


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

    by = _name(judge)

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        rows = [open_claims(found) for _, found in batch]
        asked = [(number, claim) for number, claims in enumerate(rows) for claim in claims]
        results = retrieve([(batch[number][0], claim) for number, claim in asked], search, k)
        passages = {
            (number, claim.id): own for (number, claim), own in zip(asked, results, strict=True)
        }
        prompts: dict[tuple[int, int | None], Prompt] = {}  # without a claim: the rating of all
        for number, (response, _) in enumerate(batch):
            question, texts = response.question.text, [claim.text for claim in rows[number]]
            for claim in rows[number]:
                own = passages[number, claim.id]
                if own and not isinstance(own, Failure):
                    prompts[number, claim.id] = render(
                        "verify", question=question, claims=[claim.text], passages=own
                    )
            if informativeness and texts:
                prompts[number, None] = render(
                    "inform", question=question, response=response.text, claims=texts
                )
        replies, costs = _ask(judge, prompts), [Cost()] * len(batch)
        for (number, _), reply in replies.items():
            costs[number] += reply.cost

        def fact(number: int, claim: Claim) -> Verdict:
            response, found = batch[number]
            verdict, own = Verdict(f"claim:{claim.id}", "fact", by=by), passages[number, claim.id]
            if isinstance(own, Failure):
                return replace(verdict, error=own)
            if not own:
                return unfound(replace(verdict, by="rule"))
            verdict = _labelled(verdict, _read("verify", replies[number, claim.id]))
            if not (label := verdict.label):
                return verdict
            label = HEDGED.get(label, label) if is_hedged(response, found, claim) else label
            return replace(verdict, label=label, evidence=cite(claim.text, own))

        def checked(number: int) -> Checked:
            claims = rows[number]
            verdicts = [fact(number, claim) for claim in claims]
            if informativeness and claims:
                ratings = _read("inform", replies[number, None], len(claims))
                if isinstance(ratings, Failure):
                    verdicts.append(Verdict("response", "informativeness", by=by, error=ratings))
                else:
                    verdicts = [
                        replace(verdict, informativeness=rating)
                        for verdict, rating in zip(verdicts, ratings, strict=True)
                    ]
            own = [passages[number, claim.id] for claim in claims]
            return Checked(tuple(verdicts), costs[number], searched(batch[number][0], own))

        return [checked(number) for number in range(len(batch))]

    return verify


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
        rows = [compared(response, found) for response, found in batch]
        prompts = {
            number: render(
                "checklist",
                question=batch[number][0].question.text,
                response=text,
                items=[*items.values()],
            )
            for number, (items, text) in enumerate(rows)
            if items and text.strip()
        }
        replies, checked = _ask(judge, prompts), []
        for number, (items, _) in enumerate(rows):
            reply, by = replies.get(number), "rule"
            labels: Any = ["missing"] * len(items)
            if reply:
                by, labels = _name(judge), _read("checklist", reply, len(items))
            if isinstance(labels, Failure):
                labels = [labels] * len(items)
            verdicts = (
                _labelled(Verdict(target, "checklist", by=by), label)
                for target, label in zip(items, labels, strict=True)
            )
            checked.append(Checked(tuple(verdicts), reply.cost if reply else Cost()))
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
    judge: Judge, require_box: bool | None = False, in_doubt: bool = False
) -> Verify:
    """As `outcome`, but a judge says whether an answer that commits to something agrees with the
    gold answers.

    No call is made for an abstention, a missing final answer, or a question without gold answers
    (a failure). The judge sees the final answer, not the text before it. With `in_doubt` rules
    decide, and the judge is asked only where the `p` of the rules lies in `answers.DOUBT`.
    """

    def ruled(response: Response) -> Verdict | None:
        if not in_doubt:
            return without_comparison(response, require_box)
        verdict = by_rule(response, require_box)
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
    checked = [Checked((verdict,)) for verdict in verdicts]
    asked = {number: prompt for number, prompt in enumerate(prompts) if prompt}
    for number, reply in _ask(judge, asked).items():
        verdict = replace(verdicts[number], by=_name(judge))
        checked[number] = Checked((_labelled(verdict, _read(task, reply)),), reply.cost)
    return checked


def _labelled(verdict: Verdict, label: str | Failure) -> Verdict:
    if isinstance(label, Failure):
        return replace(verdict, label=None, error=label)
    return replace(verdict, label=label)


def _ask(judge: Judge, prompts: Mapping[K, Prompt]) -> dict[K, Reply]:
    """The replies by the keys of their prompts, which all go out in one call."""
    return dict(zip(prompts, judge([*prompts.values()]) if prompts else (), strict=True))


def _name(judge: Judge) -> str:
    """The value of `by` in this judge's verdicts."""
    return str(getattr(judge, "name", "judge"))


def _read(task: str, reply: Reply, count: int | None = None) -> Any:
    """A reply as `workbench.judge.read` reads it, or the failure that it is or contains."""
    return reply.error or read_text(task, reply.text or "", count)
