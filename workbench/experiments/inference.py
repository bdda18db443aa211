"""Baselines that improve answers at inference time and do not change the policy's weights.

They are best of n by a verifier, abstention by self-consistency, and chain of verification (CoVe,
arXiv 2309.11495).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

from workbench.methods.baselines.method import factscore
from workbench.methods.bench import Bench
from workbench.methods.truthrl.probing import vote
from workbench.metrics.boundary import Probed
from workbench.pipeline import ANSWER_SECTIONS, assemble
from workbench.text import answer_text
from workbench.training.pairs import ABSTENTION, phrase
from workbench.types import Feedback, Grade, Question, Response, WorkbenchError
from workbench.util.grouping import group_by
from workbench.verdicts.llm_judge import LocalJudge

Inference = Literal["best_of_n", "self_consistency", "cove"]
Write = Callable[[Sequence[Question]], Sequence[Response]]

AGREED = 0.5  # self-consistency abstains if the majority's share of the samples is smaller (ours)
MOST_CHECKS = 5  # verification questions of a draft (ours)
PLAN = (
    "Question: {question}\nDraft answer: {draft}\n\nWrite questions that check the facts of the"
    " draft answer, one per line. Each must be understood without the draft. Write nothing else."
)
REVISE = (
    "Question: {question}\nDraft answer: {draft}\n\nChecks of its facts:\n{checks}\n\nWrite the"
    " final answer to the question. Leave out or correct what the checks contradict."
)


def best_of_n(samples: Sequence[Feedback], verify: Grade) -> list[Feedback]:
    """Return for each question the sample with the highest score.

    Args:
        samples: graded samples of all questions.
        verify: function that grades the same responses again and gives each a reward "score", such
            as the result of `verifier_grade`. A sample without a score counts as the worst.

    Raises:
        WorkbenchError: no sample has a score.
    """
    scores = [one.rewards["score"].value for one in verify([one.response for one in samples])]
    if samples and scores.count(None) == len(scores):
        raise WorkbenchError(
            "best_of_n: no answer has a claim that the local verifier could check: choose"
            " questions with long answers and passages, or another --inference"
        )
    score = {
        id(one): -1.0 if value is None else value
        for one, value in zip(samples, scores, strict=True)
    }
    return [max(group, key=lambda one: score[id(one)]) for group in _groups(samples)]


def _groups(samples: Sequence[Feedback]) -> Iterable[list[Feedback]]:
    """Return the samples of each question as a list."""
    return group_by(samples, lambda one: one.response.question.id).values()


def verifier_grade(bench: Bench) -> Grade:
    """Return a function that grades responses by the local verifier.

    Each graded response has a reward "score": the share of its claims that the verifier supports;
    None without claims.
    """
    # the bench's own judge would not be a fair choice, because it grades the chosen answers
    store = bench.named_judge.store if bench.named_judge else None
    local = LocalJudge(store=store).checks(bench.search and bench.search())
    checks = replace(bench.checks, verify={"fact": local.verify["fact"]})
    return assemble(checks, ["fact"], {"score": factscore()}, ANSWER_SECTIONS)


def self_consistency(samples: Sequence[Feedback], grade: Grade) -> list[Feedback]:
    """Return for each question the first sample with the majority answer, or an abstention.

    The abstention is returned if the majority's share of the samples is below .5 (`AGREED`). Only
    samples with a judged outcome count. If a question has no such sample, its first sample is
    returned.

    Args:
        samples: graded samples of all questions.
        grade: function that grades the abstentions.
    """
    chosen: list[Feedback | Response] = []
    for group in _groups(samples):
        votes = tuple(map(vote, group))
        top = Probed("", votes).majority
        if top is None:
            chosen.append(group[0])
        elif top.confidence < AGREED:
            first = group[0].response
            text = phrase(first.question, ABSTENTION)
            response = replace(first, text=text, prefill="", token_ids=(), offsets=())
            chosen.append(replace(response, logprobs=(), finish="stop"))
        else:
            graded = [one for one, own in zip(group, votes, strict=True) if own.outcome]
            chosen.append(next(one for one in graded if vote(one).answer == top.answer))
    abstentions = iter(grade([one for one in chosen if isinstance(one, Response)]))
    return [next(abstentions) if isinstance(one, Response) else one for one in chosen]


def cove(write: Write, drafts: Sequence[Response]) -> list[Response]:
    """Revise each draft by chain of verification (arXiv 2309.11495) in its factored form.

    The policy writes questions that check the draft. It answers each question without seeing the
    draft. Then it writes the final answer from the draft and these checks. The prompts are ours.

    Args:
        write: function that returns the policy's responses to a list of questions.
        drafts: the policy's first answers.
    """
    texts = [_answer(draft) for draft in drafts]
    asked = [draft.question for draft in drafts]

    def prompt(question: Question, text: str, name: str) -> Question:
        return replace(question, id=f"{question.id}/{name}", text=text, system="")

    plans = write(
        [
            prompt(question, PLAN.format(question=question.text, draft=text), "plan")
            for question, text in zip(asked, texts, strict=True)
        ]
    )
    lists = [
        [line.strip() for line in _answer(plan).splitlines() if line.strip()] for plan in plans
    ]
    checks = [
        prompt(question, line, f"check{number}")
        for question, lines in zip(asked, lists, strict=True)
        for number, line in enumerate(lines[:MOST_CHECKS])
    ]
    # factored: the policy answers the checks without seeing its draft, which it would only repeat
    replies = iter(write(checks) if checks else ())
    found = [
        "\n".join(f"- {line} {_answer(next(replies))}" for line in lines[:MOST_CHECKS])
        for lines in lists
    ]
    revised = write(
        [
            replace(question, text=REVISE.format(question=question.text, draft=text, checks=check))
            for question, text, check in zip(asked, texts, found, strict=True)
        ]
    )
    return [replace(one, question=own) for one, own in zip(revised, asked, strict=True)]


def _answer(response: Response) -> str:
    return answer_text(response.text, response.prefill).strip()
