"""Write answers with an outline by a language model, as training data for FoRAG.

Source: arXiv 2406.13779, section 3.1. The model first writes an outline from the passages, then an
answer that follows the outline. A reply that cannot be parsed is a failure; it is not repaired.
"""

from collections.abc import Sequence
from dataclasses import replace

from workbench.credit.tokens import words
from workbench.judge.templates import render
from workbench.judge.wire import planned_outline, read_reply
from workbench.text.outline import Outline, written_outline
from workbench.types import Failure, Feedback, Judge, Prompt, Question, Reply, Response, Write


def outlines(judge: Judge) -> Write:
    """Return a function that answers questions by a language model, each after an outline.

    The function takes questions and returns a `Feedback` for each. The text of a response has the
    form `[Structure] … [Outline] … [Answer] …` and is written from the question's passages. The
    function calls the judge twice: first for the outlines of all questions, then for the answers to
    the questions whose outline could be parsed. If a reply cannot be parsed, the response's text is
    empty and `Feedback.error` is set.
    """

    def write(questions: Sequence[Question]) -> list[Feedback]:
        outlined = judge(
            [render("outline", question=q.text, passages=q.passages) for q in questions]
        )
        # a failed outline needs no second call
        plans = [_plan(r, len(q.passages)) for r, q in zip(outlined, questions, strict=True)]
        readable = {i: plan for i, plan in enumerate(plans) if isinstance(plan, Outline)}
        prompts = [_expand(questions[i], plan) for i, plan in readable.items()]
        answers = dict(zip(readable, judge(prompts) if prompts else [], strict=True))
        return [
            _feedback(question, plans[i], outlined[i], answers.get(i))
            for i, question in enumerate(questions)
        ]

    return write


def _plan(reply: Reply, passages: int) -> Outline | Failure:
    outline = read_reply("outline", reply, passages)
    return outline if isinstance(outline, Failure) else planned_outline(outline)


def _expand(question: Question, plan: Outline) -> Prompt:
    points = [
        f"{number}. {point.text} [{point.source}]"
        for number, point in enumerate(plan.points, start=1)
    ]
    outline = "\n".join([plan.structure, *points])
    return render("expand", question=question.text, passages=question.passages, outline=outline)


def _feedback(
    question: Question, plan: Outline | Failure, planning: Reply, expanding: Reply | None
) -> Feedback:
    whole, cost = plan, planning.cost
    if isinstance(plan, Outline) and expanding:
        answer = read_reply("expand", expanding, len(question.passages))
        whole = answer if isinstance(answer, Failure) else replace(plan, answer=answer)
        cost += expanding.cost
    error = whole if isinstance(whole, Failure) else None
    text = "" if isinstance(whole, Failure) else written_outline(whole)
    response = Response(
        f"{question.id}/0", question, text, question.id, offsets=words(text), source="words"
    )
    return Feedback(response, error=error, cost=cost)
