"""Whether the thinking of a response is sound (TruthRL's reasoning reward, arXiv 2509.25760,
section 4.6 and table 12).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.answers import is_abstention, sentences, thinking
from workbench.extract.statements import makes_claims
from workbench.judge import render
from workbench.types import Checked, Claims, Judge, Prompt, Response, Verdict, Verify
from workbench.verify.ask import ask, name, read, split, total

_CLAUSE_END = re.compile(r"[,;:，；：]|\s[-–—]\s|—")


def is_idle(thought: str) -> bool:
    """Whether a thought is empty or only talks about thinking ("Hmm, let me think."): no
    sentence of it states or counts anything, nor does what follows an opening word ("Okay, she
    was born in Paris"). What is doubtful is not idle *(ours)*."""
    return not any(_says(thought[start:end]) for start, end in sentences(thought))


def _says(sentence: str) -> bool:
    clauses = (clause for clause in _CLAUSE_END.split(sentence) if len(clause.split()) > 1)
    return (
        any(map(str.isdigit, sentence)) or makes_claims(sentence) or any(map(makes_claims, clauses))
    )


def reasoning(judge: Judge) -> Verify:
    """Aspect "reasoning": good or poor. The judge sees the question, the gold answers and the
    reasoning, but not the answer.

    Poor without a call *(ours)*: a response that does not think aloud, or idly (`is_idle`), and
    one that abstains (table 8: the reasoning of uncertain responses scores 0).
    """

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        checked = []
        for answers in ask(judge, [_prompts(response) for response, _ in batch]):
            label, error = split(read("reasoning", answers[0])) if answers else ("poor", None)
            by = name(judge) if answers else "rule"
            checked.append(
                Checked(
                    (Verdict("reasoning", "reasoning", label, by=by, error=error),), total(answers)
                )
            )
        return checked

    return verify


def _prompts(response: Response) -> list[Prompt]:
    thought, question = thinking(response.text, response.prefill), response.question
    if is_idle(thought) or is_abstention(response.text, prefill=response.prefill):
        return []
    return [
        render(
            "reasoning", question=question.text, response=thought, answers=question.answers or None
        )
    ]
