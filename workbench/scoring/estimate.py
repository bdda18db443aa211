"""Estimate how many calls and tokens the judge needs for a file (`--dry-run`).

Prompts are rendered and counted, but not sent.
"""

import collections
import itertools
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from workbench.claims import rules
from workbench.judge import elements
from workbench.metrics.pairs import Pairs
from workbench.scoring.options import Options, check
from workbench.scoring.run import prepare
from workbench.types import Claims, Extract, Failure, JsonObject, Prompt, Reply, Response, Verdict

SAMPLE = 200  # rows whose prompts are rendered; larger files are extrapolated
CHARACTERS = 4  # per token, roughly
# assumed tokens of a reply with one label, of a label in a list, and of a list of claims (per token
# of the response)
SHORT, PER_LABEL, PER_CLAIM = 8, 4, 1.5

_NOT_SENT = Failure("judge", "dry_run", "the prompt was not sent")


class Counter:
    """Stand-in for the judge in a dry run: count distinct prompts and estimate their tokens.

    No prompt is sent. Every reply is a failure.
    """

    name = "dry run"

    def __init__(self) -> None:
        self.calls: collections.Counter[str] = collections.Counter()
        self.tokens_in = self.tokens_out = 0.0
        self._seen: set[int] = set()  # hashes, because the prompts of a file may not fit in memory

    def __call__(self, prompts: Sequence[Prompt]) -> list[Reply]:
        for prompt in prompts:
            if hash(prompt) not in self._seen:
                self._seen.add(hash(prompt))
                self.calls[prompt.task] += 1
                self.tokens_in += len(prompt.text) / CHARACTERS
                self.tokens_out += _reply_tokens(prompt)
        return [Reply(None, _NOT_SENT)] * len(prompts)


def _reply_tokens(prompt: Prompt) -> float:
    if prompt.task in ("extract", "single_pass"):
        response = next(part.text for part in elements(prompt.text) if part.tag == "response")
        return SHORT + PER_CLAIM * len(response) / CHARACTERS
    listed = sum(part.tag in ("claim", "item") for part in elements(prompt.text))
    return SHORT + PER_LABEL * listed if prompt.task in ("inform", "checklist") else SHORT


def estimate_file(options: Options) -> JsonObject:
    """Estimate the judge's calls and tokens for scoring a file. Nothing is sent or written.

    The result has these entries:

    * `dry_run`: True
    * `rows`: rows that can be scored; `malformed`: rows that cannot
    * `judged`: rows that need the judge
    * `claims`, `calls`, `tokens_in`, `tokens_out`: estimated totals
    * `by_task`: task of the judge, such as "extract" or "verify" -> estimated calls

    If more than about 200 (`SAMPLE`) rows need the judge, the totals are extrapolated from a
    sample. Calls that the cache would answer are counted too.
    """
    check(options)
    # rules extract the claims in place of the judge; tokens are estimated from characters
    counter = Counter()
    job = prepare(options, ExitStack(), counter)
    survey, checks = job.survey, job.plan.checks if options.remote else None
    claims, sampled = 0, 0
    if checks:
        guessing = replace(
            checks,
            extract=_guess(checks.extract),
            single_pass=checks.single_pass and _guess(checks.single_pass, judged=True),
        )
        fresh = (one.response for one in job.reader.items(dict(survey.ids)) if not one.replay)
        # evenly spaced rows, because files are often sorted by kind or length
        responses = list(itertools.islice(fresh, 0, None, -(-survey.judged // SAMPLE)))
        graded = replace(job.plan, checks=guessing).grade()(responses)
        claims, sampled = sum(len(feedback.claims) for feedback in graded), len(responses)
    scale = survey.judged / sampled if sampled else 0.0
    return {
        "dry_run": True,
        "rows": len(survey.ids),
        "judged": survey.judged,
        "malformed": survey.malformed,
        "claims": round(claims * scale),
        "calls": round(counter.calls.total() * scale),
        "by_task": {task: round(calls * scale) for task, calls in counter.calls.items()},
        "tokens_in": round(counter.tokens_in * scale),
        "tokens_out": round(counter.tokens_out * scale),
    }


def estimate_pairs(paired: Pairs) -> JsonObject:
    """Estimate the judge's calls and tokens for comparing pairs of answers. Nothing is sent.

    The result is `{dry_run, pairs, calls, tokens_in, tokens_out}`. Calls that the cache would
    answer are counted too. `pairs` has these counts:

    * `n`: all pairs; `identical`: pairs with identical answers, which need no call

    The other counts are of answers without a pair:

    * `only_feedback`, `only_other`: the answer is only in the first or only in the second file
    * `repeated`: question id, step and sample number occur more than once in a file
    * `other_question`: the question ids are equal, but the texts of the questions differ
    """
    identical = sum(pair.identical for pair in paired.pairs)
    counts = {"n": len(paired.pairs), "identical": identical, **paired.left_out}
    prompts = [prompt for pair in paired.pairs for prompt in pair.prompts]
    return {"dry_run": True, "pairs": counts, **estimate_calls(prompts)}


def estimate_calls(prompts: Sequence[Prompt]) -> JsonObject:
    """Estimate the calls and tokens for prompts: `{calls, tokens_in, tokens_out}`.

    Equal prompts count once.
    """
    counter = Counter()
    counter(prompts)
    return {
        "calls": counter.calls.total(),
        "tokens_in": round(counter.tokens_in),
        "tokens_out": round(counter.tokens_out),
    }


def _guess(extract: Extract, judged: bool = False) -> Extract:
    """Return an extractor for a dry run, which finds claims by rules and counts prompts.

    The prompts are counted by also calling `extract`, whose judge is the `Counter`. With `judged`,
    each claim gets the verdict "vague", because in RLFH's single-pass mode an extractor returns
    claims with verdicts.
    """

    def run(responses: Sequence[Response]) -> list[Claims]:
        extract(responses)
        guessed = rules()(responses)
        if not judged:
            return guessed
        return [
            replace(
                claims,
                verdicts=tuple(
                    Verdict(f"claim:{claim.id}", "fact", "vague", informativeness=1, by="dry run")
                    for claim in claims.claims
                ),
            )
            for claims in guessed
        ]

    return run
