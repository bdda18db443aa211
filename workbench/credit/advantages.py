"""Token rewards of a batch to token advantages: the estimators that every method can be trained
with.

A group is the G responses to one prompt, a batch some groups. Every estimator takes a batch and
gives back each group's advantages; most look at one group at a time, `batch` and `whiten` at the
whole batch. Outcome rewards and per-claim rewards differ only in where the rewards stand; the
estimators differ in how they spread them over the tokens before. A response whose reward was not
scored (None) takes part in nothing and gets advantage 0.

With finite rewards all advantages are finite, however small or large the rewards and their
spread: but for `gae`, whose unit is that of the rewards, they are bounded by the number of
responses, events or tokens that are normalised together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import accumulate

from workbench.credit.attribute import tokens_of
from workbench.types import Feedback, WorkbenchError

EPSILON = 1e-4  # as in TRL, so that `group` gives its numbers
LARGEST = 1e100  # of a reward: the square of a larger one has no place in a float

Advantages = list[tuple[float, ...]]  # of each response of a group, one number per token


@dataclass(frozen=True)
class Rewarded:
    """One response's token rewards (None: not scored), the tokens that hold an event, and a
    critic's values, if any.

    A response without tokens (`length` 0) has one reward all the same, its value: it counts in
    the group's baseline.

    Raises:
        WorkbenchError: a reward or a value is not finite, or above `LARGEST`.
    """

    length: int
    rewards: tuple[float, ...] | None
    events: frozenset[int] = frozenset()
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for what, numbers in (("reward", self.rewards or ()), ("value", self.values)):
            if wrong := [number for number in numbers if not abs(number) <= LARGEST]:
                raise WorkbenchError(
                    f"a token's {what} is {wrong[0]}: it must be a finite number, of at most"
                    f" {LARGEST:g}"
                )

    @property
    def paid(self) -> tuple[int, ...]:
        """The tokens at which something was paid, in order: those that hold an event or a
        reward.
        """
        rewarded = {token for token, reward in enumerate(self.rewards or ()) if reward}
        return () if self.rewards is None else tuple(sorted(self.events | rewarded))


# groups -> the advantages of each, in order
Estimator = Callable[[Sequence[Sequence[Rewarded]]], list[Advantages]]


def by_group(estimate: Callable[[Sequence[Rewarded]], Advantages]) -> Estimator:
    """An estimator that looks at one group at a time."""

    @wraps(estimate)
    def estimator(groups: Sequence[Sequence[Rewarded]]) -> list[Advantages]:
        return [estimate(responses) for responses in groups]

    return estimator


@by_group
def group(responses: Sequence[Rewarded]) -> Advantages:
    """Plain GRPO (arXiv 2402.03300, §4.1.2): (total − mean) / (std + 1e-4), the same for all
    tokens of a response.

    No advantage of n scored responses exceeds √n.
    """
    totals = [None if r.rewards is None else math.fsum(r.rewards) for r in responses]
    mean, std = _moments([total for total in totals if total is not None])
    return [
        (0.0 if total is None else (total - mean) / (std + EPSILON),) * r.length
        for r, total in zip(responses, totals, strict=True)
    ]


def batch(groups: Sequence[Sequence[Rewarded]]) -> list[Advantages]:
    """GRPO with the batch's scale (arXiv 2508.08221; TRL's `scale_rewards="batch"`): (total −
    mean of the group) / (std of all totals of the batch + 1e-4), the same for all tokens of a
    response.

    By its own std, a group whose totals hardly differ counts as much as any other, be its
    differences noise: as where a policy knows its answer and a reward model's values scatter. No
    advantage of n scored responses exceeds √n.
    """
    totals = [
        [None if r.rewards is None else math.fsum(r.rewards) for r in responses]
        for responses in groups
    ]
    scored = [[total for total in of_group if total is not None] for of_group in totals]
    _, std = _moments([total for of_group in scored for total in of_group])
    means = [_moments(of_group)[0] for of_group in scored]
    return [
        [
            (0.0 if total is None else (total - mean) / (std + EPSILON),) * r.length
            for r, total in zip(responses, own, strict=True)
        ]
        for responses, own, mean in zip(groups, totals, means, strict=True)
    ]


@by_group
def process(responses: Sequence[Rewarded]) -> Advantages:
    """Process supervision (arXiv 2402.03300, §4.1.3): a token gets the sum of the normalised
    events at or after it.

    Events on one token are merged, and all events of the group are normalised together. Every
    response has an event at its end, of 0 if nothing was paid there, that takes part in the
    normalisation *(ours)*: without it a group of one refusal and one wrong answer would give no
    signal. No normalised event of n exceeds √n.
    """
    events = [_events(response) for response in responses]
    mean, std = _moments([value for by_token in events for value in by_token.values()])
    estimates: Advantages = []
    for response, values in zip(responses, events, strict=True):
        normal = {position: (value - mean) / (std + EPSILON) for position, value in values.items()}
        estimates.append(_to_go([normal.get(position, 0.0) for position in range(response.length)]))
    return estimates


def _events(response: Rewarded) -> dict[int, float]:
    """Token -> the sum of the events on it, the one at the end included; nothing for a response
    that was not scored.
    """
    if response.rewards is None:
        return {}
    return {
        position: response.rewards[position]
        for position in sorted({*response.paid, len(response.rewards) - 1})
    }


@by_group
def rtg(responses: Sequence[Rewarded]) -> Advantages:
    """Return-to-go of the token rewards, uncentred, over the root mean square of the group's
    returns-to-go at tokens with events (+ 1e-4) *(ours)*.

    A refusal's tokens stay at 0 and a wrong claim's go down, whatever the others did. No
    advantage exceeds √m, m being the number of these tokens in the group.
    """
    returns = [_to_go(r.rewards or ()) for r in responses]
    scale = (
        _root_mean_square(
            [to_go[token] for r, to_go in zip(responses, returns, strict=True) for token in r.paid]
        )
        + EPSILON
    )
    return [
        _fit([value / scale for value in to_go], r)
        for r, to_go in zip(responses, returns, strict=True)
    ]


def whiten(groups: Sequence[Sequence[Rewarded]]) -> list[Advantages]:
    """Returns-to-go with mean 0 and standard deviation 1 over all tokens of the scored responses
    of the batch, as RLFH's code does with its advantages *(code)*.

    The prompts are not told apart: a token is compared with all others. No advantage of n tokens
    exceeds √n.
    """
    returns = [[_to_go(r.rewards or ())[: r.length] for r in responses] for responses in groups]
    mean, std = _moments([value for of_group in returns for values in of_group for value in values])
    scale = math.hypot(std, EPSILON)
    return [
        [
            _fit([(value - mean) / scale for value in values], r)
            for r, values in zip(responses, of_group, strict=True)
        ]
        for responses, of_group in zip(groups, returns, strict=True)
    ]


def gae(gamma: float = 1.0, lam: float = 0.95) -> Estimator:
    """Generalised advantage estimation (arXiv 1506.02438) with the values stored in the rows.

    Raises:
        WorkbenchError: a scored response has no values.
    """
    return by_group(lambda responses: [_gae(response, gamma, lam) for response in responses])


def _gae(response: Rewarded, gamma: float, lam: float) -> tuple[float, ...]:
    if response.rewards is None:
        return (0.0,) * response.length
    if len(response.values) != response.length:
        raise WorkbenchError(
            "these responses store no values: `gae` needs a run with a critic, so choose another"
            " estimator"
        )
    following, advantage, backwards = 0.0, 0.0, []
    for reward, value in zip(
        reversed(response.rewards[: response.length]), reversed(response.values), strict=True
    ):
        advantage = reward + gamma * following - value + gamma * lam * advantage
        following = value
        backwards.append(advantage)
    return tuple(reversed(backwards))


ESTIMATORS: Mapping[str, Estimator] = {
    "group": group,
    "batch": batch,
    "process": process,
    "rtg": rtg,
    "whiten": whiten,
    "gae": gae(),
}


def advantages(
    feedbacks: Sequence[Feedback], method: str, estimator: Estimator = group
) -> Advantages:
    """Token advantages that `estimator` gives the responses of one prompt, as a batch of one
    group.
    """
    [of_group] = batch_advantages([feedbacks], method, estimator)
    return of_group


def batch_advantages(
    groups: Sequence[Sequence[Feedback]], method: str, estimator: Estimator = group
) -> list[Advantages]:
    """Token advantages that `estimator` gives the groups of a batch for their rewards under
    `method`.
    """
    return estimator(
        [[rewarded(feedback, method) for feedback in feedbacks] for feedbacks in groups]
    )


def rewarded(feedback: Feedback, method: str) -> Rewarded:
    """What the estimators need of one row.

    Raises:
        WorkbenchError: its reward is not placed on its tokens.
    """
    response, reward = feedback.response, feedback.rewards.get(method)
    length = len(response.offsets)
    if feedback.error or reward is None or reward.value is None:
        return Rewarded(length, None, values=response.values)
    if not length:
        return Rewarded(0, (reward.value,), frozenset({0}))
    if len(reward.tokens) != length:
        raise WorkbenchError(
            f"the reward '{method}' of '{response.id}' is not placed on its {length} tokens: make"
            " it with `workbench.credit.attribute.assign_token_rewards`, as `grade` does"
        )
    spans = (tokens_of(response, event) for event in reward.events)
    return Rewarded(length, reward.tokens, frozenset().union(*spans), response.values)


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation with Bessel's correction; 0 where there is nothing to take
    them of.
    """
    if not values:
        return 0.0, 0.0
    # the mean of large equal numbers may differ from them in the last bit
    if min(values) == max(values):
        return values[0], 0.0
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in values) / len(values)) if values else 0.0


def _to_go(values: Sequence[float]) -> tuple[float, ...]:
    """The sum from each position to the end."""
    return tuple(accumulate(reversed(values)))[::-1]


def _fit(values: Sequence[float], response: Rewarded) -> tuple[float, ...]:
    """One number for each token of the response: 0 where it was not scored."""
    return (
        tuple(values[: response.length])
        if response.rewards is not None
        else (0.0,) * response.length
    )
