"""One meaning for the words that rows are counted by, in `score`, `metrics`, `agree` and
wherever else a row is looked at.

A row has *failed* if at least one Failure is recorded on it: of its extraction, of a check, or
of a reward's arithmetic. What the input gives nothing for is recorded in the same form and is no
failure: such a row merely has *no gold answer*, no checklist, or no verdict that a reward asks
for. A row is *not judged* if nobody has read it for claims or given a verdict.

What a response itself causes is neither: a claim that its judge cannot read has a verdict, with
the reason among its evidence.

One meaning of `max_failed`, too: the share of responses without a reward, of those graded
together so far (of a step in training, of a call in `trl_reward`), above which whoever asked for
them stops. Where no reward is asked for, of a file in `score` and of an evaluation (greedy and
sampled together), any failure on a row counts; of samples that are only collected, a sample that
has an error itself, or whose verdicts have all failed.

All take a row as it is stored (`Feedback.to_row`), or as a person may write one, with what it
has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.types import (
    LACKING,
    OBJECTION,
    OBJECTIONS,
    THRESHOLD,
    UNFOUND,
    UNPARSED,
    USELESS,
    Verdict,
    WorkbenchError,
)


def unparsed(target: str, reason: str, by: str, label: str = "vague") -> Verdict:
    """The verdict on a claim that its judge cannot read, for one of `REASONS`: it is of no use
    and, as nothing says that it is true, P(true) is 0. So no method pays more for it than for
    saying nothing."""
    return Verdict(
        target, "fact", label, p=0.0, informativeness=USELESS, evidence=({UNPARSED: reason},), by=by
    )


def unjudged(verdict: Mapping[str, Any]) -> dict[str, str]:
    """Why nobody compared a claim with anything: `{UNPARSED or UNFOUND: reason}` of its stored
    verdict, else nothing.
    """
    items = verdict.get("evidence") or ()
    known = (
        [item for item in items if isinstance(item, Mapping)]
        if isinstance(items, (list, tuple))
        else []
    )
    return {key: str(item[key]) for item in known for key in (UNPARSED, UNFOUND) if key in item}


def remarks(verdict: Mapping[str, Any]) -> list[str]:
    """What else its judge says of a claim, in words: why a rule speaks against it, and how close
    it was.
    """
    said = []
    for item in verdict.get("evidence") or ():
        if OBJECTION in item:
            said.append(
                f"{OBJECTIONS.get(item[OBJECTION], item[OBJECTION])}: {item.get('text', '')}"
            )
        elif THRESHOLD in item:
            said.append(f"close to the threshold: correct from P(true) {item[THRESHOLD]:g} on")
    return said


def is_remark(item: Mapping[str, Any]) -> bool:
    return OBJECTION in item or THRESHOLD in item


class TooManyFailures(WorkbenchError):
    """So many responses could not be graded that to go on with the rest would not be sound."""

    code = 4


def too_many(unscored: int, graded: int, max_failed: float) -> bool:
    return unscored > max_failed * graded


def check_failed(problems: Sequence[str], count: int, max_failed: float, what: str) -> None:
    """Raise TooManyFailures where more than the share `max_failed` of `count` responses failed;
    `problems` holds the reason of each failure, `what` says what could not be done with them.
    """
    if too_many(len(problems), count, max_failed):
        raise TooManyFailures(
            f"{len(problems)} of {count} {what} ({problems[0]}): mend that and run the same command"
            " again, or raise max_failed"
        )


def failures(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The failures recorded on a row, `{stage, kind, message, raw}`: its extraction's first,
    each once.
    """
    return [error for error in recorded(row) if error.get("kind") not in LACKING]


def failed(row: Mapping[str, Any]) -> bool:
    return bool(failures(row))


def is_logged(name: str) -> bool:
    """Whether a reward is a number that a trainer logged ("trl:NAME", "verl:NAME"), and no
    method's.
    """
    return ":" in name


def lacking(row: Mapping[str, Any]) -> set[str]:
    """What the input of a row gives nothing for, in the words of `LACKING`."""
    return {LACKING[error["kind"]] for error in recorded(row) if error.get("kind") in LACKING}


def judged(row: Mapping[str, Any]) -> bool:
    """Whether anything was found out about a row, or tried and failed. That there was no gold
    answer is not a finding.

    Of an empty response, in which there is nothing to find, a method's reward counts; a
    trainer's logged number ("trl:NAME") does not. Of a row written by hand (without `schema`),
    an empty list of claims or verdicts says that there are none.
    """
    if any(row.get(name) for name in ("sentences", "claims", "outcome")):
        return True
    if _is_finding(row.get("error")):
        return True
    if "schema" not in row and ("claims" in row or "verdicts" in row):
        return True
    if any(not verdict.get("error") or _is_finding(verdict["error"]) for verdict in _verdicts(row)):
        return True
    own = (
        reward
        for name, reward in _rewards(row)
        if not is_logged(name) and not str(row.get("response") or "").strip()
    )
    return any(isinstance(reward, Mapping) and reward.get("value") is not None for reward in own)


def _is_finding(error: Any) -> bool:
    """Whether an error says that something was tried and failed."""
    return bool(error) and not (isinstance(error, Mapping) and error.get("kind") in LACKING)


def _verdicts(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Those that are in a form to be read; what else stands in their place is for whoever reads
    the row to name.
    """
    verdicts = row.get("verdicts")
    return (
        [verdict for verdict in verdicts if isinstance(verdict, Mapping)]
        if isinstance(verdicts, (list, tuple))
        else []
    )


def recorded(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All errors of a row, each once: a reward repeats that of the verdict it needed."""
    errors: list[Mapping[str, Any]] = []
    for error in _errors(row):
        if isinstance(error, Mapping) and error not in errors:
            errors.append(error)
    return errors


def _errors(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any] | None]:
    yield row.get("error")
    for verdict in _verdicts(row):
        yield verdict.get("error")
    for _, reward in _rewards(row):
        yield reward.get("error") if isinstance(reward, Mapping) else None


def _rewards(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    rewards = row.get("rewards")
    yield from rewards.items() if isinstance(rewards, Mapping) else ()
