"""The outcome of a response: its final answer against the gold answers, by rules or by a judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from workbench.answers import DOUBT, final_answer, is_abstention, probability
from workbench.judge import render
from workbench.types import (
    Checked,
    Claims,
    Failure,
    Judge,
    Prompt,
    Reply,
    Response,
    Verdict,
    Verify,
)
from workbench.verify.ask import ask, name, read, split, total


def outcome(require_box: bool | None = False, abstentions: Iterable[str] = ()) -> Verify:
    r"""The outcome of TruthRL (arXiv 2509.25760, section 3), decided by the rules of
    `workbench.answers`.

    An abstention is `uncertain`, whatever the gold answer; the right answer, or "invalid
    question" for a false premise, is `correct`; all else is `incorrect`, no final answer
    included. The paper's judge gives 1 or 0 against the gold answer; looking for an abstention
    first is ours. A question without gold answers is a failure for all its responses, the
    abstentions too: to score only those would favour them. `p` of an answer that commits to
    something is how probable it is that people would call it right (see `answers.probability`).

    `require_box` accepts an answer only in `\boxed{}`, None where the question's system prompt
    names that; `abstentions` adds phrases, as in `answers.ABSTENTIONS`.
    """
    phrases = tuple(abstentions)

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        return [Checked((_by_rule(response, require_box, phrases),)) for response, _ in batch]

    return verify


def judged_outcome(
    judge: Judge,
    require_box: bool | None = False,
    abstentions: Iterable[str] = (),
    in_doubt: bool = False,
) -> Verify:
    """As `outcome`, but a judge says whether an answer that commits to something agrees with the
    gold answers.

    What needs no judge is not asked: an abstention, no final answer at all, a question without
    gold answers (a failure). The judge sees the final answer, not what led to it. With
    `in_doubt` rules decide, and the judge is asked only where the `p` of theirs lies in
    `answers.DOUBT`.
    """
    phrases = tuple(abstentions)

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        rule = _where_sure if in_doubt else _undisputed
        ruled = [rule(response, require_box, phrases) for response, _ in batch]
        prompts = [
            [] if verdict else [_prompt(response, require_box)]
            for (response, _), verdict in zip(batch, ruled, strict=True)
        ]
        replies = ask(judge, prompts)
        return [
            Checked((verdict,)) if verdict else Checked((_by_judge(judge, row),), total(row))
            for verdict, row in zip(ruled, replies, strict=True)
        ]

    return verify


def _answer(response: Response, require_box: bool | None) -> str | None:
    boxed = r"\boxed" in response.question.system if require_box is None else require_box
    return final_answer(response.text, boxed, response.prefill)


def _undisputed(
    response: Response, require_box: bool | None, abstentions: tuple[str, ...]
) -> Verdict | None:
    """The verdict where no answer has to be compared with the gold answers."""
    question = response.question
    verdict = Verdict("outcome", "answer", by="rule")
    if not question.answers:
        failure = Failure(
            "verify", "no_gold", f"question '{question.id}' has no gold answers to compare with"
        )
        return replace(verdict, error=failure)
    answer = _answer(response, require_box)
    if answer is None:
        return replace(verdict, label="incorrect")
    return replace(verdict, label="uncertain") if is_abstention(answer, abstentions) else None


def _by_rule(response: Response, require_box: bool | None, abstentions: tuple[str, ...]) -> Verdict:
    if undisputed := _undisputed(response, require_box, abstentions):
        return undisputed
    question, answer = response.question, _answer(response, require_box) or ""
    p = probability(answer, question.answers, question.kind, question.text)
    return Verdict("outcome", "answer", "correct" if p > DOUBT[1] else "incorrect", p, by="rule")


def _where_sure(
    response: Response, require_box: bool | None, abstentions: tuple[str, ...]
) -> Verdict | None:
    verdict = _by_rule(response, require_box, abstentions)
    return None if verdict.p is not None and DOUBT[0] <= verdict.p <= DOUBT[1] else verdict


def _prompt(response: Response, require_box: bool | None) -> Prompt:
    answer = _answer(response, require_box) or ""
    return render(
        "outcome",
        question=response.question.text,
        response=answer,
        answers=response.question.answers,
    )


def _by_judge(judge: Judge, replies: Sequence[Reply]) -> Verdict:
    label, error = split(read("outcome", replies[0]))
    return Verdict("outcome", "answer", label, by=name(judge), error=error)
