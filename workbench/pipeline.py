"""Assemble extraction, verification, rewards and token credit into one function.

The function has the type `Grade`: it takes responses and returns a row (`Feedback`) for each.
"""

import math
import traceback
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

from workbench.credit.attribute import LARGEST, assign_token_rewards
from workbench.text.sentences import sentences
from workbench.types import (
    OF_CLAIMS,
    Batch,
    Checked,
    Checks,
    Claims,
    Extract,
    Failure,
    Feedback,
    Grade,
    Response,
    Reward,
    RewardFn,
    Verdict,
    Verify,
    WorkbenchError,
)

# "body" is a response without tags, which is an answer as a whole
ANSWER_SECTIONS, THINK_SECTIONS = frozenset({"answer", "body"}), frozenset({"think"})
SECTIONS = ANSWER_SECTIONS | THINK_SECTIONS


def grade(
    verify: Sequence[Verify], rewards: Mapping[str, RewardFn], extract: Extract | None = None
) -> Grade:
    """Return a function that grades responses: it extracts claims, runs checks, computes rewards.

    The function returns one row (`Feedback`) per response. For each batch, it calls the extraction
    once, and then each check once, in the order of `verify`. A failure affects only its own row:

    * If extraction fails, the row's `error` is set, and the checks get the row without claims.
    * If a check fails, its verdict has an `error`, and rewards that need this verdict are None.
    * If a reward function raises or returns an unusable value, the reward is None and its `error`
      is set.

    Args:
        verify: checks, functions that give verdicts on the responses and their claims.
        rewards: name of the method -> reward function.
        extract: finds the claims; None skips extraction.
    """

    def run(responses: Sequence[Response]) -> list[Feedback]:
        extractions = extract(responses) if extract else [Claims()] * len(responses)
        assert len(extractions) == len(responses), (len(extractions), len(responses))
        if extract:
            extractions = list(map(_with_sentence, responses, extractions))
        batch = list(zip(responses, extractions, strict=True))
        rows = [
            Feedback(
                response,
                claims.sentences,
                claims.claims,
                _finite(claims.verdicts),
                error=claims.error,
                cost=claims.cost,
            )
            for response, claims in batch
        ]
        for check in verify:  # one call per batch, so that a judge can send its requests together
            checked = check(batch)
            assert len(checked) == len(batch), (len(checked), len(batch))
            rows = [
                replace(
                    row,
                    verdicts=row.verdicts + _finite(result.verdicts),
                    cost=row.cost + result.cost,
                    passages=row.passages + result.passages,
                )
                for row, result in zip(rows, checked, strict=True)
            ]
        return [rescore(row, rewards) for row in rows]

    return run


def assemble(
    checks: Checks,
    needed: Sequence[str],
    rewards: Mapping[str, RewardFn],
    sections: AbstractSet[str] = SECTIONS,
    *,
    gold_optional: bool = False,
) -> Grade:
    """Return a function that grades a batch of responses with the checks in `needed`.

    The returned function gives one row (`Feedback`) per response, with verdicts and rewards. Claims
    are extracted only if a check needs them.

    Args:
        checks: the judge: its claim extractors, and its checks by name.
        needed: names of the checks to run, such as "fact" and "outcome". The name "single_pass" is
            not a check: it selects an extractor that also labels the claims.
        rewards: name of the method -> reward function.
        sections: sections ("think", "answer", "body") whose claims are checked; other claims are
            dropped.
        gold_optional: what the check "outcome" does for a question without gold answers. True: it
            gives no verdict. False: it gives a verdict with an `error`.

    Raises:
        WorkbenchError: the judge does not have one of the checks.
    """
    # "single_pass" is not a check but an extractor that also gives the verdicts
    names = [name for name in needed if name != "single_pass"]
    extract = checks.extract
    if "single_pass" in needed:
        if checks.single_pass is None:
            raise WorkbenchError(
                "this judge cannot extract and label claims in one call (rlfh.mode=single_pass):"
                " set rlfh.mode=pipeline"
            )
        extract = checks.single_pass
    if missing := [name for name in names if name not in checks.verify]:
        known = ", ".join(sorted(checks.verify))
        raise WorkbenchError(
            f"this judge has no check {', '.join(missing)}: it has {known}; correct the name, or"
            " choose another judge, such as --judge URL, or another method"
        )
    verify = [
        _with_gold(check) if gold_optional and name == "outcome" else check
        for name in names
        for check in [checks.verify[name]]
    ]
    # extraction may cost a call to a judge, so it is skipped if no check reads claims
    return grade(
        verify, rewards, _of_sections(extract, sections) if OF_CLAIMS.intersection(needed) else None
    )


def _of_sections(extract: Extract, sections: AbstractSet[str]) -> Extract:
    """Return an extractor that drops the claims outside `sections`, and their verdicts.

    The other claims keep their ids.
    """

    def only(extraction: Claims) -> Claims:
        claims = tuple(claim for claim in extraction.claims if claim.section in sections)
        dropped = {f"claim:{c.id}" for c in extraction.claims if c.section not in sections}
        verdicts = tuple(v for v in extraction.verdicts if v.target not in dropped)
        return replace(extraction, claims=claims, verdicts=verdicts)

    if sections >= SECTIONS:
        return extract
    return lambda responses: list(map(only, extract(responses)))


def _with_gold(outcome: Verify) -> Verify:
    """Return a check that runs `outcome` only for questions with gold answers.

    Other questions get no verdict.
    """

    def run(batch: Batch) -> list[Checked]:
        with_gold = [bool(response.question.answers) for response, _ in batch]
        checked = iter(
            outcome([pair for pair, has_gold in zip(batch, with_gold, strict=True) if has_gold])
        )
        return [next(checked) if has_gold else Checked() for has_gold in with_gold]

    return run


def rescore(feedback: Feedback, rewards: Mapping[str, RewardFn]) -> Feedback:
    """Return `feedback` with new rewards, computed from its stored claims and verdicts.

    No judge is called. Rewards with the names in `rewards` are replaced; all others are kept.
    """
    new = {name: _reward(name, score, feedback) for name, score in rewards.items()}
    return replace(feedback, rewards={**feedback.rewards, **new})


def _reward(name: str, score: RewardFn, feedback: Feedback) -> Reward:
    """Return the reward of the method `name`, with its token rewards.

    If `score` raises or returns an unusable value, the reward is None and its `error` is set.
    """
    try:
        reward = score(feedback)
        problem = _mistake(reward) or _mistake(reward := assign_token_rewards(feedback, reward))
    except OverflowError:  # `fsum` raises it instead of returning an infinite sum
        problem = "overflows: choose smaller settings"
    except Exception as error:  # a method of another package must not end the whole job
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}, line {frame.lineno}"
        problem = f"raised {type(error).__name__} ({error}) in {place}: correct the method"
    if not problem:
        return reward
    message = f"the reward '{name}' of the row '{feedback.response.id}' {problem}"
    return Reward(None, error=Failure("reward", "bad_reward", message))


def _mistake(reward: object) -> str:
    """Return why the return value of a reward function cannot be used; "" if it can."""
    if not isinstance(reward, Reward):
        return f"is {reward!r:.40}: return a workbench.types.Reward"
    if reward.value is None:
        return "" if reward.error else "has neither a value nor an error: return one of them"
    events = [event.value for event in reward.events]
    for value in (reward.value, *reward.parts.values(), *events, *reward.tokens):
        if not isinstance(value, int | float):  # such as a tensor, which JSON cannot store
            return f"has a {type(value).__name__} as a value: convert it to a float"
        if not abs(value) <= LARGEST:  # also true for NaN
            return (
                f"has a value of {value}: it must be finite and at most {LARGEST:g}; choose smaller"
                " settings, or correct the method"
            )
    if events and not math.isclose(math.fsum(events), reward.value, rel_tol=1e-6, abs_tol=1e-6):
        # otherwise the token rewards would add up to another value than the response's reward
        return f"is {reward.value}, but its events sum to {math.fsum(events)}: make them equal"
    return ""


def _with_sentence(response: Response, extraction: Claims) -> Claims:
    """Return `extraction`, corrected if it has no sentences although the text is not empty.

    If the text has letters, the extraction gets an `error`. Otherwise ("1921", "!!!") the whole
    text becomes one sentence: a row without sentences would count as not extracted.
    """
    text = response.text
    if extraction.sentences or extraction.error or not text.strip():
        return extraction
    found = [text[slice(*span)] for span in sentences(text, response.prefill)]
    if any(any(map(str.isalpha, one)) for one in found):
        message = f"the extractor returned no sentences, but the response has {len(found)}"
        return replace(extraction, error=Failure("extract", "no_sentences", message))
    return replace(extraction, sentences=((len(text) - len(text.lstrip()), len(text.rstrip())),))


def _finite(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Return the verdicts; each verdict whose p is NaN or infinite becomes a failed verdict."""
    return tuple(v if v.p is None or math.isfinite(v.p) else _failed(v) for v in verdicts)


def _failed(verdict: Verdict) -> Verdict:
    message = (
        f"p of '{verdict.target}' ({verdict.aspect}) is {verdict.p}: the verifier '{verdict.by}'"
        " must return a finite number"
    )
    failure = verdict.error or Failure("verify", "not_finite", message, str(verdict.p))
    return replace(verdict, label=None, p=None, informativeness=None, error=failure)
