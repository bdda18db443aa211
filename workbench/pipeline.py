"""Assemble extraction, verification, rewards and token credit into one function, `Grade`."""

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

# the sections that the reader gets, and the model's thoughts
ANSWER_SECTIONS, THINK_SECTIONS = frozenset({"answer", "body"}), frozenset({"think"})
SECTIONS = ANSWER_SECTIONS | THINK_SECTIONS


def grade(
    verify: Sequence[Verify], rewards: Mapping[str, RewardFn], extract: Extract | None = None
) -> Grade:
    """Return a function that extracts, checks and rewards a batch of responses.

    Each stage is called once per batch, in the order given. Failures stay on their own row:

    * A check that fails, or a verdict whose `p` is not finite, becomes a failed verdict. The
      rewards of this row that need it are missing.
    * If extraction fails, the row's `error` is set, and the checks get the row without claims.
    * If a reward function raises or returns an unusable value, the row gets a failed reward.

    Args:
        verify: checks of the responses and their claims.
        rewards: reward functions by the name of their method.
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
    """Return a `Grade` that runs the needed checks of a judge.

    Claims are extracted only if a check needs them.

    Args:
        needed: names of the checks, keys of `Checks.verify` or "single_pass".
        sections: sections ("think", "answer", "body") whose claims are checked; other claims are
            dropped.
        gold_optional: give no outcome to questions without gold answers. By default, their outcome
            is a failure.

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
            f"this judge has no check {', '.join(missing)}: it has {known}; name a language model"
            " as the judge with --judge URL, or choose another method"
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
    """Return `extract` limited to claims of `sections`, which keep their ids."""

    def only(extraction: Claims) -> Claims:
        claims = tuple(claim for claim in extraction.claims if claim.section in sections)
        dropped = {f"claim:{c.id}" for c in extraction.claims if c.section not in sections}
        verdicts = tuple(v for v in extraction.verdicts if v.target not in dropped)
        return replace(extraction, claims=claims, verdicts=verdicts)

    if sections >= SECTIONS:  # nothing to drop
        return extract
    return lambda responses: list(map(only, extract(responses)))


def _with_gold(outcome: Verify) -> Verify:
    """Return `outcome` limited to questions with gold answers; the others get no verdict."""

    def run(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        with_gold = [bool(response.question.answers) for response, _ in batch]
        # one call for all questions with gold answers
        checked = iter(
            outcome([pair for pair, has_gold in zip(batch, with_gold, strict=True) if has_gold])
        )
        return [next(checked) if has_gold else Checked() for has_gold in with_gold]

    return run


def rescore(feedback: Feedback, rewards: Mapping[str, RewardFn]) -> Feedback:
    """Compute `rewards` again from the stored claims and verdicts, without calling a judge.

    The row keeps its rewards under other names.
    """
    new = {name: _reward(name, score, feedback) for name, score in rewards.items()}
    return replace(feedback, rewards={**feedback.rewards, **new})


def _reward(name: str, score: RewardFn, feedback: Feedback) -> Reward:
    """Return the reward with its token rewards; a failure if the method made a mistake."""
    try:
        reward = score(feedback)
        problem = _mistake(reward) or _mistake(reward := assign_token_rewards(feedback, reward))
    except OverflowError:  # `fsum` raises it instead of returning an infinite sum
        problem = "overflows: choose smaller settings"
    except Exception as error:  # of a method from another package: it must not end the whole job
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}, line {frame.lineno}"
        problem = f"raised {type(error).__name__} ({error}) in {place}: correct the method"
    if not problem:
        return reward
    message = f"the reward '{name}' of the row '{feedback.response.id}' {problem}"
    return Reward(None, error=Failure("reward", "bad_reward", message))


def _mistake(reward: object) -> str:
    """Describe why a method's return value cannot be used; "" if it can."""
    if not isinstance(reward, Reward):
        return f"is {reward!r:.40}: return a workbench.types.Reward"
    if reward.value is None:
        return "" if reward.error else "has neither a value nor an error: return one of them"
    events = [event.value for event in reward.events]
    for value in (reward.value, *reward.parts.values(), *events, *reward.tokens):
        if not isinstance(value, int | float):  # such as a tensor, which JSON cannot store
            return f"has a {type(value).__name__} as a value: convert it to a float"
        if not abs(value) <= LARGEST:  # true for NaN
            return (
                f"has a value of {value}: it must be finite and at most {LARGEST:g}; choose smaller"
                " settings, or correct the method"
            )
    if events and not math.isclose(math.fsum(events), reward.value, rel_tol=1e-6, abs_tol=1e-6):
        # the tokens would get another reward than the response
        return f"is {reward.value}, but its events sum to {math.fsum(events)}: make them equal"
    return ""


def _with_sentence(response: Response, extraction: Claims) -> Claims:
    """Make a text without words ("1921", "!!!") one sentence, so that its row counts as read.

    If the text has words, but the extractor returned no sentences, the extraction failed.
    """
    text = response.text
    if extraction.sentences or extraction.error or not text.strip():
        return extraction
    found = [text[slice(*span)] for span in sentences(text, response.prefill)]
    if any(any(map(str.isalpha, one)) for one in found):
        message = f"the extractor returned no sentences for a text with {len(found)}: return them"
        return replace(extraction, error=Failure("extract", "no_sentences", message))
    return replace(extraction, sentences=((len(text) - len(text.lstrip()), len(text.rstrip())),))


def _finite(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Replace verdicts whose p is NaN or infinite by failed verdicts, which rewards do not use."""
    return tuple(v if v.p is None or math.isfinite(v.p) else _failed(v) for v in verdicts)


def _failed(verdict: Verdict) -> Verdict:
    message = (
        f"p of '{verdict.target}' ({verdict.aspect}) is {verdict.p}: the verifier '{verdict.by}'"
        " must return a finite number"
    )
    failure = verdict.error or Failure("verify", "not_finite", message, str(verdict.p))
    return replace(verdict, label=None, p=None, informativeness=None, error=failure)
