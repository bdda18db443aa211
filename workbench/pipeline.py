"""Extract, verify, reward and attribute as one callable: all that a trainer sees."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from workbench.credit.attribute import assign_token_rewards
from workbench.types import (
    OF_CLAIMS,
    Checked,
    Checks,
    Claims,
    Cost,
    Extract,
    Failure,
    Feedback,
    Grade,
    Response,
    RewardFn,
    Verdict,
    Verify,
    WorkbenchError,
)

# where a response speaks to its reader, and to itself
SAID, THOUGHT = frozenset({"answer", "body"}), frozenset({"think"})
SECTIONS = SAID | THOUGHT


def grade(
    verify: Sequence[Verify], rewards: Mapping[str, RewardFn], extract: Extract | None = None
) -> Grade:
    """Extract and check a batch of responses, each stage in one call, and pay each method's
    reward in the order given.

    Without `extract` the verifiers get no claims. What could not be checked is a failed verdict
    and spoils the rewards of its own row alone; a failed extraction is the row's error, and the
    verifiers see that row without claims. An exception in a reward function is a mistake in that
    function and is raised. A verdict whose p is not finite is a failed one.
    """

    def run(responses: Sequence[Response]) -> list[Feedback]:
        extractions = extract(responses) if extract else [Claims()] * len(responses)
        assert len(extractions) == len(responses), (len(extractions), len(responses))
        if extract:
            extractions = [
                _read(response, claims)
                for response, claims in zip(responses, extractions, strict=True)
            ]
        batch = list(zip(responses, extractions, strict=True))
        rows = [_begin(response, claims) for response, claims in batch]
        for check in verify:
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
    where_given: bool = False,
) -> Grade:
    """The `needed` checks, by name, of those that a judge can do, as one `Grade`; claims of
    other sections are not asked about.

    Claims are read only where a check looks at them. With `where_given`, a question without gold
    answers has no outcome, which is otherwise a failure.

    Raises:
        WorkbenchError: the judge cannot do one of the checks.
    """
    names = [name for name in needed if name != "single_pass"]
    extract = checks.extract
    if "single_pass" in needed:
        if checks.single_pass is None:
            raise WorkbenchError(
                "the judge at hand reads claims only one step at a time: set rlfh.mode=pipeline"
            )
        extract = checks.single_pass
    if missing := [name for name in names if name not in checks.verify]:
        known = ", ".join(sorted(checks.verify))
        raise WorkbenchError(
            f"the judge at hand has no check {', '.join(missing)}: it has {known}; name a language "
            "model as the judge with --judge URL, or choose another method"
        )
    verify = [
        (
            _with_gold(checks.verify[name])
            if where_given and name == "outcome"
            else checks.verify[name]
        )
        for name in names
    ]
    return grade(
        verify, rewards, _of_sections(extract, sections) if OF_CLAIMS.intersection(needed) else None
    )


def _of_sections(extract: Extract, sections: AbstractSet[str]) -> Extract:
    """`extract`, but for the claims of other sections: they are not asked about. Those that are
    kept keep their ids.
    """

    def only(read: Claims) -> Claims:
        kept = tuple(claim for claim in read.claims if claim.section in sections)
        left_out = {f"claim:{claim.id}" for claim in read.claims if claim.section not in sections}
        return replace(
            read, claims=kept, verdicts=tuple(v for v in read.verdicts if v.target not in left_out)
        )

    if sections >= SECTIONS:
        return extract
    return lambda responses: [only(read) for read in extract(responses)]


def _with_gold(outcome: Verify) -> Verify:
    """`outcome` for the questions that have gold answers; the others get no verdict."""

    def run(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        with_gold = [bool(response.question.answers) for response, _ in batch]
        checked = iter(
            outcome([pair for pair, has_gold in zip(batch, with_gold, strict=True) if has_gold])
        )
        return [next(checked) if has_gold else Checked() for has_gold in with_gold]

    return run


def rescore(feedback: Feedback, rewards: Mapping[str, RewardFn]) -> Feedback:
    """Pay the given methods anew from the row alone, without asking anyone; the rewards of other
    methods stay.
    """
    paid = {
        method: assign_token_rewards(feedback, pay(feedback)) for method, pay in rewards.items()
    }
    return replace(feedback, rewards={**feedback.rewards, **paid})


def _read(response: Response, extraction: Claims) -> Claims:
    """A response in which no sentence was found is one sentence, so that a row without sentences
    is one that nobody read.
    """
    text = response.text
    if extraction.sentences or extraction.error or not text.strip():
        return extraction
    return replace(extraction, sentences=((len(text) - len(text.lstrip()), len(text.rstrip())),))


def _begin(response: Response, extraction: Claims) -> Feedback:
    verdicts = _finite(extraction.verdicts)
    return Feedback(
        response,
        extraction.sentences,
        extraction.claims,
        verdicts,
        error=extraction.error,
        cost=Cost() + extraction.cost,
    )


def _finite(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """The verdicts, with a failure in the place of those whose p is NaN or infinite: no reward
    may be made of that.
    """
    return tuple(v if v.p is None or math.isfinite(v.p) else _failed(v) for v in verdicts)


def _failed(verdict: Verdict) -> Verdict:
    message = (
        f"p of '{verdict.target}' ({verdict.aspect}) is {verdict.p}: the verifier '{verdict.by}'"
        " has to give a number"
    )
    failure = verdict.error or Failure("verify", "not_finite", message, str(verdict.p))
    return replace(verdict, label=None, p=None, informativeness=None, error=failure)
