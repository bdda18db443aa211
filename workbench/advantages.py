"""Token rewards of a group to token advantages: the estimators that every method can be trained with.

A group is the G responses to one prompt. Outcome rewards and per-claim rewards differ only in where the rewards stand; the
estimators differ in how they spread them over the tokens before. A response whose reward was not scored (None) leaves the
baseline and gets advantage 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from workbench.attribute import tokens_of
from workbench.types import Feedback, WorkbenchError

EPSILON = 1e-4  # as in TRL, so that `group` gives its numbers

Advantages = list[tuple[float, ...]]


@dataclass(frozen=True)
class Rewarded:
    """One response's token rewards (None: not scored), the tokens that hold an event, and a critic's values, if any.

    A response without tokens (`length` 0) has one reward all the same, its value: it counts in the group's baseline.
    """

    length: int
    rewards: tuple[float, ...] | None
    events: frozenset[int] = frozenset()
    values: tuple[float, ...] = ()


Estimator = Callable[[Sequence[Rewarded]], Advantages]


def group(responses: Sequence[Rewarded]) -> Advantages:
    """Plain GRPO (arXiv 2402.03300, §4.1.2): (total − mean) / (std + 1e-4), the same for all tokens of a response."""
    totals = [None if r.rewards is None else math.fsum(r.rewards) for r in responses]
    mean, std = _moments([total for total in totals if total is not None])
    return [
        (0.0 if total is None else (total - mean) / (std + EPSILON),) * r.length
        for r, total in zip(responses, totals, strict=True)
    ]


def process(responses: Sequence[Rewarded]) -> Advantages:
    """Process supervision (arXiv 2402.03300, §4.1.3): a token gets the sum of the normalised events at or after it.

    Events on one token are merged, and all events of the group are normalised together. Every response has an event at its
    end, of 0 if nothing was paid there, that takes part in the normalisation *(ours)*: without it a group of one refusal and
    one wrong answer would give no signal.
    """
    events = [_events(response) for response in responses]
    mean, std = _moments([value for found in events for value in found.values()])
    found: Advantages = []
    for response, values in zip(responses, events, strict=True):
        normal = {position: (value - mean) / (std + EPSILON) for position, value in values.items()}
        found.append(_to_go([normal.get(position, 0.0) for position in range(response.length)]))
    return found


def _events(response: Rewarded) -> dict[int, float]:
    """Token -> the sum of the events on it, the one at the end included; nothing for a response that was not scored."""
    if response.rewards is None:
        return {}
    return {position: response.rewards[position] for position in sorted(response.events | {len(response.rewards) - 1})}


def rtg(responses: Sequence[Rewarded]) -> Advantages:
    """Return-to-go of the token rewards over the group's std of totals, uncentred *(ours)*.

    A refusal's tokens stay at 0 and a wrong claim's go down, whatever the others did. Equal totals give no signal, as in
    `group`; equal up to `EPSILON`, since sums of the same values round differently and nothing is centred here.
    """
    _, std = _moments([math.fsum(r.rewards) for r in responses if r.rewards is not None])
    scale = 1 / (std + EPSILON) if std > EPSILON else 0.0
    return [_to_go([scale * value for value in (r.rewards or (0.0,) * r.length)[: r.length]]) for r in responses]


def gae(responses: Sequence[Rewarded], gamma: float = 1.0, lam: float = 0.95) -> Advantages:
    """Generalised advantage estimation (arXiv 1506.02438) with the values stored in the rows.

    Raises:
        WorkbenchError: a scored response has no values.
    """
    return [_gae(r, gamma, lam) for r in responses]


def _gae(response: Rewarded, gamma: float, lam: float) -> tuple[float, ...]:
    if response.rewards is None:
        return (0.0,) * response.length
    if len(response.values) != response.length:
        raise WorkbenchError(
            "these responses store no values: `gae` needs a run with a critic, so choose group, process or rtg"
        )
    following, advantage, found = 0.0, 0.0, []
    for reward, value in zip(reversed(response.rewards[: response.length]), reversed(response.values), strict=True):
        advantage = reward + gamma * following - value + gamma * lam * advantage
        following = value
        found.append(advantage)
    return tuple(reversed(found))


ESTIMATORS: Mapping[str, Estimator] = {"group": group, "process": process, "rtg": rtg, "gae": gae}


def advantages(feedbacks: Sequence[Feedback], method: str, estimator: Estimator = group) -> Advantages:
    """Token advantages that `estimator` gives the responses of one prompt for their rewards under `method`."""
    return estimator([rewarded(feedback, method) for feedback in feedbacks])


def rewarded(feedback: Feedback, method: str) -> Rewarded:
    """What the estimators need of one row."""
    response, reward = feedback.response, feedback.rewards[method]
    length = len(response.offsets)
    if reward.value is None:
        return Rewarded(length, None, values=response.values)
    if not length:
        return Rewarded(0, (reward.value,))
    spans = {tokens_of(response, event) for event in reward.events}
    return Rewarded(length, reward.tokens, frozenset().union(*spans), response.values)


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation with Bessel's correction; 0 where there is nothing to take them of."""
    if not values:
        return 0.0, 0.0
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return mean, 0.0
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _to_go(values: Sequence[float]) -> tuple[float, ...]:
    """The sum from each position to the end."""
    return tuple(accumulate(reversed(values)))[::-1]
