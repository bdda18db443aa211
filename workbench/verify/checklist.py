"""A checklist against an answer, or an answer's claims against the checklist (KLCF, arXiv
2509.23765, section 2.3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.answers import answer_text, in_answer
from workbench.judge import render
from workbench.types import Checked, Claims, Cost, Judge, Prompt, Response, Verdict, Verify
from workbench.verify.ask import ask, each, name, read, split, total

Targets = tuple[list[str], list[str]]  # names and texts of what is checked


def checklist(judge: Judge) -> Verify:
    """Aspect "checklist" on `item:i`: what the answer says of each item of the question's
    checklist, in one call a response.

    An answer that is empty misses every item, without a call; a question without a checklist
    gets no verdict.
    """

    def targets(response: Response, extraction: Claims) -> Targets:
        items = response.question.checklist
        return [f"item:{number}" for number in range(len(items))], list(items)

    return _compare(
        judge,
        targets,
        lambda response: [answer_text(response.text, response.prefill)],
        lambda texts: not texts[0].strip(),
    )


def claim_checklist(judge: Judge) -> Verify:
    """Aspect "checklist" on `claim:i`: the variant of the truthfulness reward asks of what
    claims the checklist is silent.

    The claims of the answer are held against the checklist as a whole, in one call a response.
    """

    def targets(response: Response, extraction: Claims) -> Targets:
        claims = list(filter(in_answer(response), extraction.claims))
        return [f"claim:{claim.id}" for claim in claims], [claim.text for claim in claims]

    return _compare(
        judge, targets, lambda response: list(response.question.checklist), lambda texts: not texts
    )


def _compare(
    judge: Judge,
    targets: Callable[[Response, Claims], Targets],
    material: Callable[[Response], list[str]],
    silent: Callable[[list[str]], bool],
) -> Verify:
    """One call a response: what its material says of each target. Where it is silent, every
    target is missing.
    """

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        wanted = [targets(response, extraction) for response, extraction in batch]
        materials = [material(response) for response, _ in batch]
        prompts = [
            [] if not texts or silent(lines) else [_prompt(response, lines, texts)]
            for (response, _), (_, texts), lines in zip(batch, wanted, materials, strict=True)
        ]
        replies = ask(judge, prompts)
        checked = []
        for (names, _), answers in zip(wanted, replies, strict=True):
            labels = (
                read("checklist", answers[0], len(names)) if answers else ["missing"] * len(names)
            )
            by = name(judge) if answers else "rule"
            verdicts = (
                Verdict(target, "checklist", label, by=by, error=error)
                for target, (label, error) in zip(
                    names, map(split, each(labels, len(names))), strict=True
                )
            )
            checked.append(Checked(tuple(verdicts), total(answers) if answers else Cost()))
        return checked

    return verify


def _prompt(response: Response, material: Sequence[str], items: Sequence[str]) -> Prompt:
    return render(
        "checklist", question=response.question.text, response="\n".join(material), items=items
    )
