"""Estimate token advantages from the token rewards of a batch.

A batch consists of groups, and a group has the responses to one prompt. An estimator is a function
from a batch to one advantage per token. The mapping `ESTIMATORS` has these estimators by name:

* `group` (GRPO), `batch` (GRPO with the standard deviation of the batch) and `centred` (Dr. GRPO)
  give all tokens of a response the same advantage.
* `process` (GRPO's process supervision), `rtg` (scaled returns-to-go), `whiten` (whitened
  returns-to-go) and `gae` (with a critic) add up only the rewards from a token on.

A response without a reward gets advantages of 0, and does not change those of other responses.
Finite rewards give finite advantages. `centred` and `gae` keep the unit of the rewards. The other
estimators normalise.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import accumulate
from statistics import fmean

from workbench.credit.attribute import LARGEST, tokens_of
from workbench.types import Feedback, WorkbenchError

EPSILON = 1e-4  # as in TRL, so that `group` equals TRL's advantages

Advantages = list[tuple[float, ...]]  # for each response of a group, one number per token


@dataclass(frozen=True)
class Rewarded:
    """The token rewards of one response, as input of an advantage estimator.

    Attributes:
        length: T, the number of tokens.
        rewards: (T) the reward of each token; None if the response has no reward. An empty response
            (T = 0) has one entry, its whole reward.
        events: indices of the tokens to which an event (a part of the reward, such as the reward of
            one claim) is assigned. The part may be 0.
        values: (T) the critic's value at the position before each token; () without a critic.

    Raises:
        WorkbenchError: a reward or a value is NaN, infinite or beyond ±`LARGEST` (1e100).
    """

    length: int
    rewards: tuple[float, ...] | None
    events: frozenset[int] = frozenset()
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for what, numbers in (("reward", self.rewards or ()), ("value", self.values)):
            for number in numbers:
                if not abs(number) <= LARGEST:  # also true for NaN
                    raise WorkbenchError(
                        f"a token's {what} is {number}: it must be finite and at most {LARGEST:g};"
                        " lower the weights of the method's reward"
                    )

    @property
    def rewarded_tokens(self) -> tuple[int, ...]:
        """The indices, in ascending order, of the tokens with an event or a nonzero reward.

        Empty if the response has no reward.
        """
        rewarded = {token for token, reward in enumerate(self.rewards or ()) if reward}
        return () if self.rewards is None else tuple(sorted(self.events | rewarded))


# groups of responses -> the advantages of each group, in the same order
Estimator = Callable[[Sequence[Sequence[Rewarded]]], list[Advantages]]


def by_group(estimate: Callable[[Sequence[Rewarded]], Advantages]) -> Estimator:
    """Return an estimator that applies `estimate` to each group of a batch separately.

    A group has the responses to one prompt.
    """

    @wraps(estimate)
    def estimator(groups: Sequence[Sequence[Rewarded]]) -> list[Advantages]:
        return [estimate(responses) for responses in groups]

    return estimator


@by_group
def group(responses: Sequence[Rewarded]) -> Advantages:
    """Estimate advantages as in GRPO (arXiv 2402.03300, §4.1.2): (total − mean) / (std + 1e-4).

    The total is the sum of a response's token rewards. Mean and std are those of the totals in the
    group (the responses to one prompt). All tokens of a response get the same advantage. With n
    rewarded responses in the group, no advantage exceeds √n.
    """
    return batch([responses])[0]


def batch(groups: Sequence[Sequence[Rewarded]]) -> list[Advantages]:
    """Estimate advantages as in GRPO, but with the std of the whole batch (arXiv 2508.08221).

    The advantage is (total − group mean) / (batch std + 1e-4), as with TRL's
    `scale_rewards="batch"`. The total is the sum of a response's token rewards. The std is computed
    from all totals of the batch. All tokens of a response get the same advantage. With n rewarded
    responses in the batch, no advantage exceeds √n.
    """
    totals = [
        [None if r.rewards is None else math.fsum(r.rewards) for r in responses]
        for responses in groups
    ]
    scored = [[total for total in of_group if total is not None] for of_group in totals]
    # The std of each group would enlarge small differences within a group, even if they are only
    # noise of a reward model.
    # `fsum` in `_moments` makes the result independent of the order of the responses
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
def centred(responses: Sequence[Rewarded]) -> Advantages:
    """Estimate advantages as in Dr. GRPO (arXiv 2503.20783, section 3.2): total − group mean.

    The total is the sum of a response's token rewards. All tokens of a response get the same
    advantage, in the unit of the rewards, as with TRL's `scale_rewards="none"`.
    """
    totals = [None if r.rewards is None else math.fsum(r.rewards) for r in responses]
    # Division by the group's std would give more weight to questions that are nearly always or
    # nearly never answered correctly, because their std is small.
    mean, _ = _moments([total for total in totals if total is not None])
    return [
        (0.0 if total is None else total - mean,) * r.length
        for r, total in zip(responses, totals, strict=True)
    ]


@by_group
def process(responses: Sequence[Rewarded]) -> Advantages:
    """Estimate advantages by GRPO's process supervision (arXiv 2402.03300, §4.1.3).

    The steps of a response are its rewarded tokens (`Rewarded.rewarded_tokens`) and its last token
    *(ours)*. The rewards of all n steps of the group are normalised together: (reward − mean) /
    (std + 1e-4). A token's advantage is the sum of the normalised rewards of the steps from this
    token on. No normalised reward exceeds √n. Responses without a reward have no steps.
    """
    # without the last tokens, the only event of a group would equal the mean and give no signal
    events = [
        {token: r.rewards[token] for token in {*r.rewarded_tokens, len(r.rewards) - 1}}
        if r.rewards is not None
        else {}
        for r in responses
    ]
    mean, std = _moments([value for by_token in events for value in by_token.values()])
    estimates: Advantages = []
    for response, values in zip(responses, events, strict=True):
        normal = {position: (value - mean) / (std + EPSILON) for position, value in values.items()}
        estimates.append(_to_go([normal.get(position, 0.0) for position in range(response.length)]))
    return estimates


@by_group
def rtg(responses: Sequence[Rewarded]) -> Advantages:
    """Estimate advantages by scaled returns-to-go *(ours)*.

    The return-to-go of a token is the sum of the rewards from this token to the end. The advantage
    is the return-to-go divided by (rms + 1e-4). The rms is the root mean square of the
    returns-to-go at the m rewarded tokens of the group (`Rewarded.rewarded_tokens`). No mean is
    subtracted, so an advantage has the sign of its return-to-go. No advantage exceeds √m.
    """
    returns = [_to_go(r.rewards or ()) for r in responses]
    squares = [
        to_go[token] * to_go[token]
        for r, to_go in zip(responses, returns, strict=True)
        for token in r.rewarded_tokens
    ]
    scale = (math.sqrt(math.fsum(squares) / len(squares)) if squares else 0.0) + EPSILON
    return [
        _fit([value / scale for value in to_go], r)
        for r, to_go in zip(responses, returns, strict=True)
    ]


def whiten(groups: Sequence[Sequence[Rewarded]]) -> list[Advantages]:
    """Estimate advantages by whitened returns-to-go.

    The return-to-go of a token is the sum of the rewards from this token to the end. It is
    normalised to mean 0 and standard deviation 1 over all n tokens of the batch. Responses without
    a reward do not count. No advantage exceeds √n. RLFH's code normalises its advantages like
    this *(code)*.
    """
    returns = [[_to_go(r.rewards or ())[: r.length] for r in responses] for responses in groups]
    mean, std = _moments([value for of_group in returns for values in of_group for value in values])
    scale = math.hypot(std, EPSILON)  # √(variance + EPSILON²), never 0
    return [
        [
            _fit([(value - mean) / scale for value in values], r)
            for r, values in zip(responses, of_group, strict=True)
        ]
        for responses, of_group in zip(groups, returns, strict=True)
    ]


def gae(gamma: float = 1.0, lam: float = 0.95) -> Estimator:
    """Return an estimator for generalised advantage estimation (GAE, arXiv 1506.02438).

    The estimator uses the critic's values in `Rewarded.values`. It raises a WorkbenchError if a
    response has a reward but no values.

    Args:
        gamma: discount factor of later rewards, per token.
        lam: GAE's λ. 0 gives the one-step temporal difference, 1 the discounted return minus the
            value.
    """
    return by_group(lambda responses: [_gae(response, gamma, lam) for response in responses])


def _gae(response: Rewarded, gamma: float, lam: float) -> tuple[float, ...]:
    if response.rewards is None:
        return (0.0,) * response.length
    if len(response.values) != response.length:
        raise WorkbenchError(
            f"a response has {response.length} tokens and {len(response.values)} critic values:"
            " `gae` needs a value for each token; train with a critic, or choose another estimator"
        )
    # A_t = r_t + γ V_{t+1} − V_t + γ λ A_{t+1}, computed backwards; V and A are 0 after the end
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
    "centred": centred,
    "batch": batch,
    "process": process,
    "rtg": rtg,
    "whiten": whiten,
    "gae": gae(),
}


def advantages(
    feedbacks: Sequence[Feedback], method: str, estimator: Estimator = group
) -> Advantages:
    """Return the token advantages of one group: the responses to one prompt.

    The result has one tuple per response, with one number per token.

    Args:
        feedbacks: the responses of the group with their rewards.
        method: name of the reward to use, such as "rlfh": a key of `Feedback.rewards`.
        estimator: a value of `ESTIMATORS`, by default `group` (GRPO). Estimators that normalise
            over the batch use only this group.
    """
    return estimator([[rewarded(feedback, method) for feedback in feedbacks]])[0]


def rewarded(feedback: Feedback, method: str) -> Rewarded:
    """Return the token rewards of one response, as input of an advantage estimator.

    The field `rewards` of the result is None if the response has no reward.

    Args:
        method: name of the reward to use, such as "rlfh": a key of `Feedback.rewards`.

    Raises:
        WorkbenchError: the reward was not assigned to the tokens of the response.
    """
    response, reward = feedback.response, feedback.rewards.get(method)
    length = len(response.offsets)
    if feedback.error or reward is None or reward.value is None:
        return Rewarded(length, None, values=response.values)
    if not length:
        return Rewarded(0, (reward.value,), frozenset({0}))  # counts in the mean of its group
    if len(reward.tokens) != length:
        raise WorkbenchError(
            f"the reward '{method}' of '{response.id}' is not assigned to its {length} tokens: call"
            " `workbench.credit.attribute.assign_token_rewards`, as `grade` does"
        )
    spans = (tokens_of(response, event) for event in reward.events)
    return Rewarded(length, reward.tokens, frozenset().union(*spans), response.values)


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard deviation (with Bessel's correction); (0, 0) for no values."""
    if not values:
        return 0.0, 0.0
    # the computed mean of equal numbers could differ from them in the last bit
    if min(values) == max(values):
        return values[0], 0.0
    mean = fmean(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _to_go(values: Sequence[float]) -> tuple[float, ...]:
    """Return, for each position, the sum of the values from this position to the end."""
    return tuple(accumulate(reversed(values)))[::-1]


def _fit(values: Sequence[float], response: Rewarded) -> tuple[float, ...]:
    """Return one number per token: the first T of `values`, or zeros for an unscored response.

    T is the number of tokens. For an empty response (T = 0), `values` has an extra entry.
    """
    if response.rewards is None:
        return (0.0,) * response.length
    return tuple(values[: response.length])
