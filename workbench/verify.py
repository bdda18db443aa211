"""Responses to verdicts: what was checked, and what was found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.answers import final_answer, is_abstention, matches
from workbench.types import Checked, Claims, Failure, Response, Verdict, Verify

OUTCOMES = ("correct", "uncertain", "incorrect")


def outcome(require_box: bool = False, abstentions: Iterable[str] = ()) -> Verify:
    r"""The outcome of TruthRL (arXiv 2509.25760, section 3), decided by the rules of `workbench.answers`.

    An abstention is `uncertain`, whatever the gold answer; the right answer, or "invalid question" for a false
    premise, is `correct`; all else is `incorrect`, no final answer included. The paper's judge gives 1 or 0 against the
    gold answer; looking for an abstention first is ours. A question without gold answers is a failure for all its
    responses, the abstentions too: to score only those would favour them.

    `require_box` accepts an answer only in `\boxed{}`; `abstentions` adds phrases, as in `answers.ABSTENTIONS`.
    """
    phrases = tuple(abstentions)

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        return [Checked((_outcome(response, require_box, phrases),)) for response, _ in batch]

    return verify


def _outcome(response: Response, require_box: bool, abstentions: tuple[str, ...]) -> Verdict:
    question = response.question
    if not question.answers:
        failure = Failure("verify", "no_gold", f"question '{question.id}' has no gold answers to compare with")
        return Verdict("outcome", "answer", by="rule", error=failure)
    answer = final_answer(response.text, require_box)
    if answer is None:
        label = "incorrect"
    elif is_abstention(answer, abstentions):
        label = "uncertain"
    else:
        label = "correct" if matches(answer, question.answers, question.kind, question.text) else "incorrect"
    return Verdict("outcome", "answer", label, by="rule")
