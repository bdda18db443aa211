"""Check claims, checklists, reasoning and final answers with a language model, the judge.

Each check sends all prompts of a batch to the judge in one call.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from workbench.claims.statements import makes_claims
from workbench.judge import read_reply, render
from workbench.retrieval import Search
from workbench.text import DOUBT, answer_text, in_answer, sentences, thinking
from workbench.types import (
    Batch,
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
from workbench.util.patterns import regex
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
    """Return a function that labels claims by a language model (RLFH, arXiv 2406.12221, §3.1).

    The judge gets one request per claim, with the claim's passages and the gold answers (tables 4
    and 6). It replies correct, vague or wrong. In a hedged sentence, correct becomes
    "hedged_correct" and wrong becomes "hedged_wrong". The verdicts have `aspect="fact"`. Claims
    that the extractor has already labelled are skipped.

    * If the retrieval of passages fails for a claim, its verdict has an error (`stage="retrieve"`).
    * If the search finds no passage for a claim, the claim is vague. No request is sent.
    * If the informativeness ratings fail, the labels stay. One more verdict, with
      `aspect="informativeness"`, has the error.

    Args:
        judge: the language model.
        search: finds passages for questions without passages. None: the retrieval fails for the
            claims of these questions.
        k: maximum number of passages for a claim.
        informativeness: if True, one more request per response rates all its claims from 1 to 5.
    """

    by = _name(judge)

    def verify(batch: Batch) -> list[Checked]:
        rows = [open_claims(extraction) for _, extraction in batch]
        numbered_claims = [
            (number, claim) for number, claims in enumerate(rows) for claim in claims
        ]
        results = retrieve(
            [(batch[number][0], claim) for number, claim in numbered_claims], search, k
        )
        passages = {
            (number, claim.id): own
            for (number, claim), own in zip(numbered_claims, results, strict=True)
        }
        # keys are (row, claim); with the claim None, the prompt rates all claims of the row
        prompts: dict[tuple[int, int | None], Prompt] = {}
        for number, (response, _) in enumerate(batch):
            question, texts = response.question, [claim.text for claim in rows[number]]
            known = f"{question.text} {' / '.join(question.answers)}"
            gold = [Passage("", "Reference answer", known)] if question.answers else []
            for claim in rows[number]:
                own = passages[number, claim.id]
                if own and not isinstance(own, Failure):
                    prompts[number, claim.id] = render(
                        "verify",
                        question=question.text,
                        claims=[claim.text],
                        passages=[*own, *gold],
                    )
            if informativeness and texts:
                prompts[number, None] = render(
                    "inform", question=question.text, response=response.text, claims=texts
                )
        replies, costs = _ask(judge, prompts), [Cost()] * len(batch)
        for (number, _), reply in replies.items():
            costs[number] += reply.cost

        def fact(number: int, claim: Claim) -> Verdict:
            response, extraction = batch[number]
            verdict, own = Verdict(f"claim:{claim.id}", "fact", by=by), passages[number, claim.id]
            if isinstance(own, Failure):
                return replace(verdict, error=own)
            if not own:
                return unfound(replace(verdict, by="rule"))
            reply = replies[number, claim.id]
            verdict = _labelled(replace(verdict, p=reply.p), read_reply("verify", reply))
            if not (label := verdict.label):
                return verdict
            # the judge reads the claim without its sentence, so a rule detects the hedge
            label = HEDGED.get(label, label) if is_hedged(response, extraction, claim) else label
            return replace(verdict, label=label, evidence=cite(claim.text, own))

        def checked(number: int) -> Checked:
            claims = rows[number]
            verdicts = [fact(number, claim) for claim in claims]
            if informativeness and claims:
                ratings = read_reply("inform", replies[number, None], len(claims))
                # a failed rating has its own verdict, so that the labels stay usable
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
    """Return a function that looks up each checklist item in the answer (KLCF, §2.3).

    A question's checklist has the facts that an answer should have, one per item. A language model
    labels each item consistent, contradictory or missing in the answer, with one request per
    response. The verdict on the first item has `aspect="checklist"` and `target="item:0"`. A
    question without a checklist gets no verdict. Source: arXiv 2509.23765.
    """

    def targets(response: Response, _: Claims) -> tuple[dict[str, str], str]:
        items = enumerate(response.question.checklist)
        text = answer_text(response.text, response.prefill)
        return {f"item:{number}": item for number, item in items}, text

    return _compare(judge, targets)


def claim_checklist(judge: Judge) -> Verify:
    """Return a function that looks up each claim of an answer in the question's checklist.

    A language model labels each claim consistent, contradictory or missing in the checklist, with
    one request per response. If the question has no checklist, every claim is labelled missing. The
    verdict on the claim with the id 3 has `aspect="checklist"` and `target="claim:3"`. With the
    setting `klcf.truth=missing`, KLCF's truthfulness reward counts only the missing claims.
    """

    def targets(response: Response, extraction: Claims) -> tuple[dict[str, str], str]:
        texts = {
            f"claim:{claim.id}": claim.text
            for claim in filter(in_answer(response), extraction.claims)
        }
        return texts, "\n".join(response.question.checklist)

    return _compare(judge, targets)


def _compare(
    judge: Judge, targets: Callable[[Response, Claims], tuple[dict[str, str], str]]
) -> Verify:
    """Return a function that labels texts consistent, contradictory or missing in another text.

    There is one request per response. If the other text is empty, every label is missing, without a
    request. For a response, `targets` returns a dict from target ("item:0") to the text to label,
    and the other text.
    """

    def verify(batch: Batch) -> list[Checked]:
        rows = [targets(response, extraction) for response, extraction in batch]
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
            labels: Sequence[str | Failure] = ["missing"] * len(items)
            if reply:
                parsed, by = read_reply("checklist", reply, len(items)), _name(judge)
                labels = [parsed] * len(items) if isinstance(parsed, Failure) else parsed
            verdicts = (
                _labelled(Verdict(target, "checklist", by=by), label)
                for target, label in zip(items, labels, strict=True)
            )
            checked.append(Checked(tuple(verdicts), reply.cost if reply else Cost()))
        return checked

    return verify


# a clause may make a claim although the whole sentence does not ("Okay, she was born in Paris")
_CLAUSE_END = regex(r"[,;:，；：]|\s[-–—]\s|—")


def is_idle(thought: str) -> bool:
    """Return whether a thinking section is empty or states nothing ("Hmm, let me think.") *(ours)*.

    A text with a statement or a number is not idle, even after an opening word, as in "Okay, she
    was born in Paris".
    """
    return not any(_says(thought[start:end]) for start, end in sentences(thought))


def _says(sentence: str) -> bool:
    clauses = (clause for clause in _CLAUSE_END.split(sentence) if len(clause.split()) > 1)
    return (
        any(map(str.isdigit, sentence)) or makes_claims(sentence) or any(map(makes_claims, clauses))
    )


def reasoning(judge: Judge) -> Verify:
    """Return a function that labels the reasoning of responses good or poor by a language model.

    Source: TruthRL, arXiv 2509.25760, section 4.6 and table 12. The judge gets the question, the
    gold answers and the thinking section, but not the answer. A thinking section that is missing or
    states nothing (`is_idle`: "Hmm, let me think.") is poor, without a request *(ours)*. The
    verdicts have `aspect="reasoning"`.
    """

    def prompt(response: Response) -> Prompt | None:
        thought, question = thinking(response.text, response.prefill), response.question
        if is_idle(thought):
            return None
        return render(
            "reasoning", question=question.text, response=thought, answers=question.answers or None
        )

    def verify(batch: Batch) -> list[Checked]:
        prompts = [prompt(response) for response, _ in batch]
        poor = Verdict("reasoning", "reasoning", "poor", by="rule")
        return _one_call(judge, "reasoning", prompts, [poor] * len(batch))

    return verify


def judged_outcome(judge: Judge, in_doubt: bool = False) -> Verify:
    r"""Return a function that labels the final answer by a language model.

    The judge compares the final answer, not the whole response, with the gold answers. It replies
    correct, uncertain or incorrect. If the system prompt mentions `\boxed`, only the content of the
    box is the final answer. In these cases, no request is sent:

    * An abstention is uncertain.
    * A missing or retracted final answer is incorrect.
    * If the question has no gold answers, the verdict has an error.

    Args:
        judge: the language model.
        in_doubt: if True, rules decide first. The judge is called only if their probability that
            the answer is correct is from .1 to .9.
    """

    def rule_verdict(response: Response) -> Verdict | None:
        if not in_doubt:
            return without_comparison(response, None)
        verdict = by_rule(response, None)
        doubtful = verdict.p is not None and DOUBT[0] <= verdict.p <= DOUBT[1]
        return None if doubtful else verdict

    def prompt(response: Response) -> Prompt:
        question, answer = response.question, committed_answer(response, None) or ""
        return render(
            "outcome", question=question.dated_text, response=answer, answers=question.answers
        )

    def verify(batch: Batch) -> list[Checked]:
        verdicts = [rule_verdict(response) for response, _ in batch]
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
    """Return one result for each prompt: its verdict, with the label that the judge replies.

    A verdict whose prompt is None is returned unchanged. All prompts are sent in one call.
    """
    checked = [Checked((verdict,)) for verdict in verdicts]
    present = {number: prompt for number, prompt in enumerate(prompts) if prompt}
    for number, reply in _ask(judge, present).items():
        verdict = replace(verdicts[number], by=_name(judge), p=reply.p)
        checked[number] = Checked((_labelled(verdict, read_reply(task, reply)),), reply.cost)
    return checked


def _labelled(verdict: Verdict, label: str | Failure) -> Verdict:
    if isinstance(label, Failure):
        return replace(verdict, label=None, error=label)
    return replace(verdict, label=label)


def _ask(judge: Judge, prompts: Mapping[K, Prompt]) -> dict[K, Reply]:
    """Send all prompts to the judge in one call; return each reply under the key of its prompt."""
    return dict(zip(prompts, judge([*prompts.values()]) if prompts else (), strict=True))


def _name(judge: Judge) -> str:
    """Return the name of a judge, for the field `by` of verdicts."""
    return str(getattr(judge, "name", "judge"))
