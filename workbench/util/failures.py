"""Decide whether a stored row failed, lacks an input, or was not judged.

A row is a stored response with its verdicts and rewards (`Feedback.to_row`). Handwritten rows may
lack fields. All commands use these definitions:

* A row has *failed* if it has at least one `Failure` of the extraction, a check or a reward.
* A row *lacks* an input such as a gold answer, a checklist, or a verdict that a reward needs.
  Missing inputs are stored like failures but not counted as failures.
* A row is *not judged* if no claims were extracted and no verdict was given.

A claim that its judge cannot read is not a failure: its verdict has the reason in its evidence.

`max_failed` is the largest accepted share of responses without a reward. The share is computed over
the responses that are graded together: one training step, one call of `trl_reward`, the part of a
file that `score` has graded so far, or one evaluation. If no method computes a reward, responses
with a failure are counted instead. For samples that are collected for training, see
`training.collect`.
"""

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
    """Return the verdict on a claim whose text the judge cannot interpret.

    The verdict has P(true) 0 and the lowest informativeness, 1.

    Args:
        target: the claim, such as "claim:0".
        reason: why the judge cannot interpret it: a key of `REASONS`, such as "pronoun".
        by: name of the judge.
        label: label of the verdict, "vague" or "wrong".
    """
    # so a method never rewards an unreadable claim more than no claim
    return Verdict(
        target, "fact", label, p=0.0, informativeness=USELESS, evidence=({UNPARSED: reason},), by=by
    )


def unjudged(verdict: JsonMapping) -> dict[str, str]:
    """Return why the claim of a stored verdict was not compared with evidence; {} if it was.

    If the judge could not interpret the claim, the result is, for example,
    `{"unparsed": "pronoun"}`. If the judge found no evidence, it is `{"unfound": "words"}`.
    `REASONS` explains the values.
    """
    items = verdict.get("evidence") or ()
    evidence = items if isinstance(items, list | tuple) else ()
    return {
        key: str(item[key])
        for item in evidence
        if isinstance(item, Mapping)
        for key in (UNPARSED, UNFOUND)
        if key in item
    }


def is_off_subject(fact: JsonMapping, subject: JsonMapping) -> bool | None:
    """Return whether a claim is about another subject than the question's; None if not known.

    The label of its "subject" verdict decides. Without one, a claim with the lowest informativeness
    is off the subject, unless the judge could not read the claim.

    Args:
        fact: the claim's "fact" verdict in its stored form.
        subject: the claim's "subject" verdict in its stored form; {} without one.
    """
    if subject.get("label") is not None:
        return bool(subject["label"] == "other")
    rating = fact.get("informativeness")
    return None if rating is None else rating == USELESS and UNPARSED not in unjudged(fact)


def remarks(verdict: JsonMapping) -> list[str]:
    """Return the local verifier's remarks in the evidence of a stored verdict, as English texts.

    A remark is an objection, such as "a rule found no such number or date in the passages: 1987",
    or the note that P(true) is close to the threshold for "correct". Other evidence is ignored.
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
    """Return whether an item of a verdict's evidence is a remark (see `remarks`)."""
    return OBJECTION in item or THRESHOLD in item


def error_line(error: BaseException) -> str:
    """Return an exception's message on one line of at most 300 characters.

    If the message is empty, return the name of the exception's type.
    """
    return " ".join(str(error).split())[:300] or type(error).__name__


class TooManyFailures(WorkbenchError):
    """Raised if the share of responses that could not be graded is above `max_failed`."""

    code = 4


def too_many(unscored: int, graded: int, max_failed: float) -> bool:
    """Return whether the share of responses without a reward is above `max_failed`.

    Args:
        unscored: number of responses without a reward.
        graded: number of all graded responses, with or without a reward.
    """
    return unscored > max_failed * graded


def check_failed(problems: Sequence[str], count: int, max_failed: float, what: str) -> None:
    """Check that the share of failures, `len(problems) / count`, is at most `max_failed`.

    Args:
        problems: the message of each failure.
        count: number of responses, failed or not.
        max_failed: largest accepted share.
        what: noun and verb of the error message, such as "responses could not be judged".

    Raises:
        TooManyFailures: the share is above `max_failed`.
    """
    if too_many(len(problems), count, max_failed):
        raise TooManyFailures(
            f"{len(problems)} of {count} {what} ({problems[0]}): fix the cause and run the same"
            " command again, or raise max_failed"
        )


def failures(row: JsonMapping) -> list[JsonMapping]:
    """Return the distinct failures `{stage, kind, message, raw}` of a stored row.

    A failure of the extraction comes first. Missing inputs, such as a question without a gold
    answer, are stored like failures but left out here.
    """
    return [error for error in _errors(row) if error.get("kind") not in LACKING]


def failed(row: JsonMapping) -> bool:
    """Return whether a stored row has a failure.

    Missing inputs, such as a gold answer, do not count.
    """
    return bool(failures(row))


def is_logged(name: str) -> bool:
    """Return whether the reward `name` was logged by a trainer, not computed by a method.

    The names of logged rewards are "trl:NAME" and "verl:NAME".
    """
    return ":" in name


def lacking(row: JsonMapping) -> set[str]:
    """Return the inputs that a stored row lacks, such as {"no gold answer"} (see `LACKING`)."""
    return {LACKING[error["kind"]] for error in _errors(row) if error.get("kind") in LACKING}


def judged(row: JsonMapping) -> bool:
    """Return whether a stored row was judged: claims were extracted or a verdict was given.

    A row is also judged if the extraction or a check failed. A verdict does not count if it only
    reports a missing input, such as the gold answer. There are two special cases:

    * An empty response has no claims or verdicts. It was judged if a method gave it a reward; a
      reward logged by a trainer does not count.
    * A handwritten row (without `schema`) was judged if it has a list of claims or verdicts, even
      an empty one.
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
    """Return whether a stored error is a failure and not a missing input (see `LACKING`)."""
    return bool(error) and not (isinstance(error, Mapping) and error.get("kind") in LACKING)


def _verdicts(row: JsonMapping) -> list[JsonMapping]:
    """Return the verdicts of a stored row; values that are not JSON objects are left out."""
    verdicts = row.get("verdicts")
    items = verdicts if isinstance(verdicts, list | tuple) else ()
    return [verdict for verdict in items if isinstance(verdict, Mapping)]


def _rewards(row: JsonMapping) -> JsonMapping:
    rewards = row.get("rewards")
    return rewards if isinstance(rewards, Mapping) else {}


def _errors(row: JsonMapping) -> list[JsonMapping]:
    """Return the distinct errors of a row. (A reward repeats the error of a needed verdict.)"""

    def entries() -> Iterator[object]:
        yield row.get("error")
        for entry in (*_verdicts(row), *_rewards(row).values()):
            yield entry.get("error") if isinstance(entry, Mapping) else None

    errors: list[JsonMapping] = []
    for error in entries():
        if isinstance(error, Mapping) and error not in errors:
            errors.append(error)
    return errors
