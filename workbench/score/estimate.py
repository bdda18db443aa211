"""What a scoring would take, without asking anyone: the prompts are written and counted instead
of sent.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from workbench.extract import rules
from workbench.judge import elements
from workbench.metrics.pairs import Pairs
from workbench.score.run import Plan
from workbench.score.survey import Reader, Survey
from workbench.types import Claims, Extract, Failure, Prompt, Reply, Response, Verdict

SAMPLE = 200  # rows whose prompts are written; more are counted by their share
CHARACTERS = 4  # of a token, roughly
# tokens of a one-label reply, of one label in a list; of a claim list per token read
SHORT, PER_LABEL, PER_CLAIM = 8, 4, 1.5

_REFUSED = Failure("judge", "dry_run", "nothing was asked")


class Counter:
    """A judge that is never asked: it counts prompts, each of them once, and what their replies
    would hold.
    """

    name = "nobody"

    def __init__(self) -> None:
        self.calls: collections.Counter[str] = collections.Counter()
        self.tokens_in = self.tokens_out = 0.0
        self._seen: set[int] = set()

    def __call__(self, prompts: Sequence[Prompt]) -> list[Reply]:
        for prompt in prompts:
            if hash(prompt) not in self._seen:
                self._seen.add(hash(prompt))
                self.calls[prompt.task] += 1
                self.tokens_in += len(prompt.text) / CHARACTERS
                self.tokens_out += _reply_tokens(prompt)
        return [Reply(None, _REFUSED)] * len(prompts)


def _reply_tokens(prompt: Prompt) -> float:
    if prompt.task in ("extract", "single_pass"):
        response = next(part.text for part in elements(prompt.text) if part.tag == "response")
        return SHORT + PER_CLAIM * len(response) / CHARACTERS
    listed = sum(part.tag in ("claim", "item") for part in elements(prompt.text))
    return SHORT + PER_LABEL * listed if prompt.task in ("inform", "checklist") else SHORT


def estimate(reader: Reader, survey: Survey, plan: Plan, counter: Counter) -> dict[str, Any]:
    """Calls and tokens for the rows that a judge has to see. Claims are guessed by rules, tokens
    from characters; what a cache already holds is counted too."""
    claims, sampled = 0, 0
    every = -(-survey.judged // SAMPLE)
    if plan.checks:
        together = plan.checks.single_pass
        checks = replace(
            plan.checks,
            extract=_guess(plan.checks.extract),
            single_pass=together and _guess(together, judged=True),
        )
        guessing = replace(plan, checks=checks)
        fresh = (item.response for item in reader.items(dict(survey.ids)) if not item.replay)
        responses = list(itertools.islice(fresh, 0, None, every))
        graded = guessing.grade()(responses)
        claims, sampled = sum(len(feedback.claims) for feedback in graded), len(responses)
    scale = survey.judged / sampled if sampled else 0.0
    return {
        "dry_run": True,
        "rows": len(survey.ids),
        "judged": survey.judged,
        "malformed": survey.malformed,
        "claims": round(claims * scale),
        "calls": round(sum(counter.calls.values()) * scale),
        "by_task": {task: round(calls * scale) for task, calls in counter.calls.items()},
        "tokens_in": round(counter.tokens_in * scale),
        "tokens_out": round(counter.tokens_out * scale),
    }


def estimate_pairs(paired: Pairs) -> dict[str, Any]:
    """What it would take to ask which of two answers is better; what a cache already holds is
    counted too.
    """
    counter = Counter()
    counter([prompt for pair in paired.pairs for prompt in pair.prompts])
    return {
        "dry_run": True,
        "pairs": {
            "n": len(paired.pairs),
            "identical": sum(pair.identical for pair in paired.pairs),
            **paired.left_out,
        },
        "calls": counter.calls.total(),
        "tokens_in": round(counter.tokens_in),
        "tokens_out": round(counter.tokens_out),
    }


def _guess(extract: Extract, judged: bool = False) -> Extract:
    """`extract` is asked, for its calls to be counted; the claims are those of the rules, with
    verdicts if it judges them.
    """

    def run(responses: Sequence[Response]) -> list[Claims]:
        extract(responses)
        return [_judged(claims) if judged else claims for claims in rules()(responses)]

    return run


def _judged(claims: Claims) -> Claims:
    """So that they are not asked about again."""
    verdicts = (
        Verdict(f"claim:{claim.id}", "fact", "vague", informativeness=1, by="nobody")
        for claim in claims.claims
    )
    return replace(claims, verdicts=tuple(verdicts))
