"""Whether the thinking of a response is sound (TruthRL's reasoning reward, arXiv 2509.25760, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.answers import thinking
from workbench.types import Checked, Claims, Judge, Response, Verdict, Verify
from workbench.verify.ask import ask, name, read, split, total

REASONING = ("good", "poor")


def reasoning(judge: Judge) -> Verify:
    """Aspect "reasoning": good or poor, with question, response and gold answers shown to the judge.

    A response that does not think aloud is poor, without a call *(ours)*.
    """

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        from workbench.judge import render

        prompts = [
            [render("reasoning", question=r.question.text, response=r.text, answers=r.question.answers or None)]
            if thinking(r.text, r.prefill)
            else []
            for r, _ in batch
        ]
        checked = []
        for answers in ask(judge, prompts):
            label, error = split(read("reasoning", answers[0])) if answers else ("poor", None)
            by = name(judge) if answers else "rule"
            checked.append(Checked((Verdict("reasoning", "reasoning", label, by=by, error=error),), total(answers)))
        return checked

    return verify
