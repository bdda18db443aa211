"""Look up the claims and verdicts of a response, to compute its reward.

A lookup raises `Unscored` if a verdict is missing or failed. A reward function made with `scored`
then returns a reward whose value is None.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import fsum

from workbench.types import (
    LACKING,
    SUPPORTED,
    Claim,
    Event,
    Failure,
    Feedback,
    Reward,
    RewardFn,
    Verdict,
)
from workbench.util.grouping import group_by

Table = Mapping[tuple[str, str | None], Verdict]  # (target, aspect) -> verdict, see `table`

# P(true) of a label, for verdicts without a probability *(ours)*. A hedge does not make a claim
# less true.
P_TRUE = {"correct": 1.0, "hedged_correct": 1.0, "vague": 0.5, "hedged_wrong": 0.0, "wrong": 0.0}


class Unscored(Exception):
    """Raised if the reward of a response cannot be computed.

    Attributes:
        failure: why the reward cannot be computed.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def scored(pay: Callable[[Feedback, Table], Reward]) -> RewardFn:
    """Turn a function (feedback, verdicts) -> reward into a reward function: feedback -> reward.

    Args:
        pay: the function. It receives a response with its claims and verdicts (`Feedback`), and the
            verdicts by target and aspect (`table`). If it raises `Unscored`, the reward's value is
            None and its `error` is the failure.
    """

    def reward(feedback: Feedback) -> Reward:
        try:
            return pay(feedback, table(feedback))
        except Unscored as reason:
            return Reward(None, error=reason.failure)

    return reward


def table(feedback: Feedback) -> Table:
    """Return the verdicts on a response as a dict: (target, aspect) -> verdict.

    A key is, for example, ("claim:0", "fact"): the target is the checked object, the aspect is the
    kind of check. If several verdicts have the same key, the first is used. Each target also has a
    key with the aspect None: ("claim:0", None) has the first verdict of any aspect on claim 0.
    """
    first: dict[tuple[str, str | None], Verdict] = {}
    for verdict in feedback.verdicts:
        first.setdefault((verdict.target, verdict.aspect), verdict)
        first.setdefault((verdict.target, None), verdict)
    return first


def unscored(kind: str, message: str, raw: str = "") -> Unscored:
    return Unscored(Failure("reward", kind, message, raw))


def find(verdicts: Table, target: str, *aspects: str | None) -> Verdict:
    """Return the verdict on a target, for the first of `aspects` that has a verdict.

    For example, `find(verdicts, "claim:0", "truth", "fact")` returns the claim's "truth" verdict.
    If there is no "truth" verdict, it returns the "fact" verdict.

    Args:
        verdicts: the verdicts of one response, from `table`.
        target: the object of the verdict, such as "claim:0" or "outcome".
        aspects: aspects in order of preference; None matches any aspect.

    Raises:
        Unscored: there is no such verdict, or it failed.
    """
    verdict = _first(verdicts, target, aspects)
    if verdict is None:
        named = " or ".join(f"'{aspect}'" for aspect in aspects if aspect)
        what = f"{named} verdict on the {target}" if named else f"verdict on the {target}"
        raise unscored("no_verdict", f"no {what}: score again with a judge that gives one")
    if verdict.error is not None:
        raise Unscored(verdict.error)
    return verdict


def check_not_failed(verdicts: Table, target: str, *aspects: str) -> None:
    """Raise `Unscored` if the verdict on a target failed. A missing verdict is accepted.

    A verdict is accepted too if its error only records a missing input, such as gold answers. The
    kinds of these errors are the keys of `LACKING`.

    Args:
        aspects: aspects in order of preference; only the first available verdict is checked.
    """
    # Rewards call this for verdicts that do not change their value: if the judge failed, the
    # response has no reward.
    verdict = _first(verdicts, target, aspects)
    if verdict is not None and verdict.error is not None and verdict.error.kind not in LACKING:
        raise Unscored(verdict.error)


def _first(verdicts: Table, target: str, aspects: Sequence[str | None]) -> Verdict | None:
    found = (verdicts.get((target, aspect)) for aspect in aspects)
    return next(filter(None, found), None)


def label(verdict: Verdict, declared: Collection[str]) -> str:
    """Return the label of a verdict.

    Args:
        declared: the accepted labels, such as ("correct", "uncertain", "incorrect").

    Raises:
        Unscored: the label is None or not in `declared`.
    """
    if verdict.label is None or verdict.label not in declared:
        message = (
            f"the verdict on {verdict.target} has label {verdict.label!r}: it must be one of"
            f" {', '.join(declared)}"
        )
        raise unscored("undeclared_label", message, str(verdict.label))
    return verdict.label


def probability(verdict: Verdict) -> float:
    """Return P(true) of a verdict: its `p`, or else the value of its label in `P_TRUE`.

    These values are 1 for "correct", .5 for "vague" and 0 for "wrong". Hedged labels have the same
    values as labels without a hedge.

    Raises:
        Unscored: `p` is not in [0, 1], or the verdict has neither `p` nor such a label.
    """
    if verdict.p is None:
        return P_TRUE[label(verdict, P_TRUE)]
    if not 0 <= verdict.p <= 1:
        raise unscored(
            "not_a_probability",
            f"the verdict on {verdict.target} has p = {verdict.p}: it must be between 0 and 1",
            str(verdict.p),
        )
    return verdict.p


def supported(verdict: Verdict) -> float:
    """Return 1 if the label of a claim's verdict is "correct" or "hedged_correct" *(ours)*, else 0.

    Raises:
        Unscored: the label is not a label of claims.
    """
    return float(label(verdict, P_TRUE) in SUPPORTED)


def claims(feedback: Feedback, wanted: Callable[[Claim], bool]) -> list[Claim]:
    """Return the claims of a response for which `wanted` returns True.

    Raises:
        Unscored: extraction failed or was not run, two claims have the same id, or a claim or
            sentence has an invalid position.
    """
    if feedback.error is not None:
        raise Unscored(feedback.error)
    # extraction finds at least a sentence in a response that is not empty
    if not feedback.sentences and not feedback.claims and feedback.response.text.strip():
        raise unscored(
            "not_extracted",
            "no claims were extracted from this response: remove the field verdicts from its row,"
            " and score the row again",
        )
    if flaw := _flaw(feedback):
        raise unscored("bad_claims", f"{flaw}: extract the claims again")
    return [claim for claim in feedback.claims if wanted(claim)]


def _flaw(feedback: Feedback) -> str:
    """Describe the first inconsistency between claims, sentences and response; "" if none."""
    size, count = len(feedback.response.text), len(feedback.sentences)
    # verdicts refer to claims by id, so two claims with the same id would share a verdict
    if len({claim.id for claim in feedback.claims}) < len(feedback.claims):
        return "two claims have the same id"
    if any(not 0 <= start <= end <= size for start, end in feedback.sentences):
        return "a sentence lies outside the response"
    for claim in feedback.claims:
        if claim.sentence is not None and not 0 <= claim.sentence < count:
            return (
                f"claim {claim.id} names sentence {claim.sentence}, but there are {count} (from 0)"
            )
        if any(not 0 <= place <= size for place in (*(claim.span or ()), claim.end or 0)):
            return f"claim {claim.id} lies outside the response"
    return ""


def by_sentence(claims: Sequence[Claim]) -> dict[int | None, list[Claim]]:
    """Group claims by sentence: return a dict from sentence index to claims.

    The key None has the claims without a sentence.
    """
    return group_by(claims, lambda claim: claim.sentence)


def on_claim(verdicts: Table, claim: Claim, *aspects: str) -> Verdict:
    return find(verdicts, f"claim:{claim.id}", *aspects)


def total(events: Sequence[Event]) -> float:
    """Return the reward: the sum of its events' values.

    An event is a part of the reward, with the position in the response to which it is assigned.
    """
    # `fsum` rounds once, so the order of the events does not change the sum
    return fsum(event.value for event in events)


def sums(events: Sequence[Event], *parts: str) -> dict[str, float]:
    """Return a dict from part of the reward, such as "truth", to the sum of its events' values.

    Args:
        events: the events of one reward. Each assigns a share of the reward to a position in the
            response.
        parts: parts that the returned dict always contains. Without events, their sum is 0.
    """
    names = dict.fromkeys([*parts, *(event.part for event in events)])
    return {name: total([event for event in events if event.part == name]) for name in names}
