"""Definitions of "failed", "lacking" and "not judged" for stored rows, shared by all commands.

* A row has *failed* if at least one `Failure` is stored on it: of the extraction, a check or a
  reward.
* A row *lacks* something if its input has no gold answer, no checklist or no verdict that a reward
  needs. Missing inputs are stored like failures but not counted as failures.
* A row is *not judged* if no claims were extracted and no verdict was given.

A claim that its judge cannot read is not a failure: its verdict has the reason in its evidence.

`max_failed` is the largest accepted share of responses without a reward, among those graded
together so far: a step in training, a call of `trl_reward`, a file in `score`, an evaluation
(greedy and sampled answers together). Without rewards, every failure on a row counts. For collected
samples, a sample counts if it has an error itself or if all its verdicts failed.

The functions take rows in the stored form (`Feedback.to_row`). Handwritten rows may lack fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from workbench.types import (
    LACKING,
    OBJECTION,
    OBJECTIONS,
    THRESHOLD,
    UNFOUND,
    UNPARSED,
    USELESS,
    JsonMapping,
    Verdict,
    WorkbenchError,
)


def unparsed(target: str, reason: str, by: str, label: str = "vague") -> Verdict:
    """Return the verdict on a claim that its judge cannot read.

    P(true) is 0 and the informativeness is the lowest, so no method rewards an unreadable claim
    more than no claim.

    Args:
        reason: a key of `REASONS`.
    """
    return Verdict(
        target, "fact", label, p=0.0, informativeness=USELESS, evidence=({UNPARSED: reason},), by=by
    )


def unjudged(verdict: JsonMapping) -> dict[str, str]:
    """Return why a claim was compared with no evidence: `{UNPARSED or UNFOUND: reason}` of its
    stored verdict, or {}.
    """
    items = verdict.get("evidence") or ()
    evidence = items if isinstance(items, (list, tuple)) else ()
    return {
        key: str(item[key])
        for item in evidence
        if isinstance(item, Mapping)
        for key in (UNPARSED, UNFOUND)
        if key in item
    }


def remarks(verdict: JsonMapping) -> list[str]:
    """Return the judge's remarks on a claim as text: objections of a rule, and a P(true) close to
    the threshold.
    """
    lines = []
    for item in verdict.get("evidence") or ():
        if OBJECTION in item:
            objection = OBJECTIONS.get(item[OBJECTION], item[OBJECTION])
            lines.append(f"{objection}: {item.get('text', '')}")
        elif THRESHOLD in item:
            lines.append(f"close to the threshold: correct from P(true) {item[THRESHOLD]:g} on")
    return lines


def is_remark(item: JsonMapping) -> bool:
    """Return whether an item of a verdict's evidence is a remark and not a passage."""
    return OBJECTION in item or THRESHOLD in item


class TooManyFailures(WorkbenchError):
    """The share of responses that could not be graded is above `max_failed`."""

    code = 4


def too_many(unscored: int, graded: int, max_failed: float) -> bool:
    """Return whether more than the share `max_failed` of the graded responses has no reward."""
    return unscored > max_failed * graded


def check_failed(problems: Sequence[str], count: int, max_failed: float, what: str) -> None:
    """Check the share of failed responses among `count`.

    Args:
        problems: the reason of each failure.
        what: noun and verb of the message, such as "responses could not be judged".

    Raises:
        TooManyFailures: the share is above `max_failed`.
    """
    if too_many(len(problems), count, max_failed):
        raise TooManyFailures(
            f"{len(problems)} of {count} {what} ({problems[0]}): fix the cause and run the same"
            " command again, or raise max_failed"
        )


def failures(row: JsonMapping) -> list[JsonMapping]:
    """Return the failures `{stage, kind, message, raw}` of a row, each once, the extraction's
    first.
    """
    return [error for error in _errors(row) if error.get("kind") not in LACKING]


def failed(row: JsonMapping) -> bool:
    """Return whether a row has a failure."""
    return bool(failures(row))


def is_logged(name: str) -> bool:
    """Return whether a reward is a number logged by a trainer ("trl:NAME", "verl:NAME"), not a
    method's reward.
    """
    return ":" in name


def lacking(row: JsonMapping) -> set[str]:
    """Return what the input of a row lacks, as values of `LACKING`."""
    return {LACKING[error["kind"]] for error in _errors(row) if error.get("kind") in LACKING}


def judged(row: JsonMapping) -> bool:
    """Return whether a row was judged, or a judge tried and failed. Lacking inputs do not count.

    An empty response has no claims, so a method's reward shows that it was judged; a trainer's
    logged number does not. In a handwritten row (without `schema`), an empty list of claims or
    verdicts means that there are none, so the row was judged.
    """
    if any(row.get(name) for name in ("sentences", "claims", "outcome")):
        return True
    if _is_failure(row.get("error")):
        return True
    if "schema" not in row and ("claims" in row or "verdicts" in row):
        return True
    if any(not v.get("error") or _is_failure(v["error"]) for v in _verdicts(row)):
        return True
    return not str(row.get("response") or "").strip() and any(
        isinstance(reward, Mapping) and reward.get("value") is not None
        for name, reward in _rewards(row).items()
        if not is_logged(name)
    )


def _is_failure(error: object) -> bool:
    """Return whether a stored error is a failure and not a lacking input."""
    return bool(error) and not (isinstance(error, Mapping) and error.get("kind") in LACKING)


def _verdicts(row: JsonMapping) -> list[JsonMapping]:
    """Return the verdicts of a row that are objects; readers of rows report the others."""
    verdicts = row.get("verdicts")
    items = verdicts if isinstance(verdicts, (list, tuple)) else ()
    return [verdict for verdict in items if isinstance(verdict, Mapping)]


def _rewards(row: JsonMapping) -> JsonMapping:
    rewards = row.get("rewards")
    return rewards if isinstance(rewards, Mapping) else {}


def _errors(row: JsonMapping) -> list[JsonMapping]:
    """Return the errors of a row, each once: a reward repeats the error of a verdict it needs."""

    def entries() -> Iterator[object]:
        yield row.get("error")
        for entry in (*_verdicts(row), *_rewards(row).values()):
            yield entry.get("error") if isinstance(entry, Mapping) else None

    errors: list[JsonMapping] = []
    for error in entries():
        if isinstance(error, Mapping) and error not in errors:
            errors.append(error)
    return errors
