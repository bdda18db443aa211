"""Advantage estimators: values computed by hand, and bounds that hold for any rewards."""

import math
from collections.abc import Sequence

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.errors import raises_error
from workbench.credit.advantages import (
    ESTIMATORS,
    Advantages,
    Estimator,
    Rewarded,
    advantages,
    batch,
    centred,
    gae,
    group,
    process,
    rewarded,
    rtg,
    whiten,
)
from workbench.pipeline import rescore
from workbench.types import Event, Failure, Feedback, Question, Response, Reward

ROOT2 = math.sqrt(2)


def row(*rewards: float, values: tuple[float, ...] = ()) -> Rewarded:
    return Rewarded(
        len(rewards), rewards, frozenset(t for t, value in enumerate(rewards) if value), values
    )


def valued(*rewards: float) -> Rewarded:
    return row(*rewards, values=rewards)


FAILED = Rewarded(2, None)


def one(estimator: Estimator, responses: Sequence[Rewarded]) -> Advantages:
    """The advantages of a batch of one group."""
    [found] = estimator([responses])
    return found


def test_group_is_the_normalised_total() -> None:
    # totals 1 and −1: mean 0, std √2
    assert one(group, [row(0.25, 0.75), row(0.0, 0.0, -1.0)]) == [
        (1 / (ROOT2 + 1e-4),) * 2,
        (-1 / (ROOT2 + 1e-4),) * 3,
    ]


def test_process_gives_a_signal_to_one_refusal_and_one_wrong_answer() -> None:
    # events: 0 at the end of the refusal, −2 at token 0 and 0 at the end of the answer: mean −2/3,
    # std 2/√3
    mean, std = -2 / 3, 2 / math.sqrt(3)
    refusal, answer = one(process, [row(0.0), row(-2.0, 0.0)])
    up, down = -mean / (std + 1e-4), (-2 - mean) / (std + 1e-4)
    assert refusal == pytest.approx((up,))
    assert answer == pytest.approx((up + down, up))


def test_return_to_go_leaves_a_refusal_at_zero() -> None:
    """Returns-to-go at the events: −2 (token 0) and −2.5 (token 1): root mean square √((4 +
    6.25)/2) = 2.2638.
    """
    refusal, answer = one(rtg, [row(0.0, 0.0), row(0.5, -2.5, 0.0)])
    assert refusal == (0.0, 0.0)
    assert answer == pytest.approx(
        [value / (math.sqrt(5.125) + 1e-4) for value in (-2.0, -2.5, 0.0)]
    )


def test_return_to_go_normalises_per_group_and_whitening_per_batch() -> None:
    """Two groups of one, totals 1 and 3. Per group: 1/1 and 3/3. Per batch: mean 2 and std √2,
    so −1/√2 and 1/√2.
    """
    groups = [[row(1.0)], [row(3.0)]]
    assert rtg(groups) == [[pytest.approx((1.0,), abs=1e-3)]] * 2
    assert whiten(groups) == [[pytest.approx((-1 / ROOT2,))], [pytest.approx((1 / ROOT2,))]]
    for estimator in (group, process):
        assert estimator(groups) == [[(0.0,)]] * 2


def test_batch_by_hand() -> None:
    """Totals 1, 1.01 | 0, unscored, 2: each minus its group's mean, divided by the std of the
    four scored totals.
    """
    groups = [[row(1.0), row(0.5, 0.51)], [row(0.0), FAILED, row(2.0)]]
    mean = 4.01 / 4
    std = math.sqrt(sum((total - mean) ** 2 for total in (1.0, 1.01, 0.0, 2.0)) / 3)
    near, far = batch(groups)
    assert near == [
        pytest.approx((-0.005 / (std + 1e-4),)),
        pytest.approx((0.005 / (std + 1e-4),) * 2),
    ]
    assert far == [
        pytest.approx((-1 / (std + 1e-4),)),
        (0.0, 0.0),
        pytest.approx((1 / (std + 1e-4),)),
    ]
    # with its own std, the near group would have as large advantages as the far group
    assert abs(group(groups)[0][1][0]) > 0.6 > 0.01 > abs(near[1][0])


def test_whitening_by_hand() -> None:
    """Returns-to-go 2, 0 | −1, −1, −3 | unscored | no token: five tokens with mean −.6 and
    variance (6.76 + .36 + .16 + .16 + 5.76)/4 = 3.3."""
    groups = [[row(2.0, 0.0), row(0.0, 2.0, -3.0)], [FAILED, Rewarded(0, (50.0,), frozenset({0}))]]
    whitened = [
        [(value + 0.6) / math.sqrt(3.3) for value in values]
        for values in ((2.0, 0.0), (-1.0, -1.0, -3.0))
    ]
    first, second = whiten(groups)
    assert first == [pytest.approx(tokens) for tokens in whitened]
    assert second == [(0.0, 0.0), ()]
    # the result does not depend on the groups
    assert whiten([[*groups[0], *groups[1]]]) == [[*first, *second]]


def test_totals_that_differ_by_rounding_alone_are_equal() -> None:
    """.1 + .7 and .4 + .4 differ in the last bit; divided by that difference, advantages would be
    in the thousands.
    """
    rows = [row(0.1, 0.7), row(0.4, 0.4)]
    assert math.fsum(rows[0].rewards or ()) != math.fsum(rows[1].rewards or ())
    assert one(group, rows) == [pytest.approx((0.0, 0.0), abs=1e-9)] * 2
    large = [row(value * 3e30) for value in (0.1, 0.1, 0.1)]  # their mean is rounded
    assert one(group, large) == one(process, large) == whiten([large])[0] == [(0.0,)] * 3


def test_gae_by_hand() -> None:
    # γ 1, λ .5. t1: δ = 1 − .5 = .5. t0: δ = 0 + .5 − .2 = .3, A = .3 + .5·.5 = .55
    [found] = one(gae(gamma=1.0, lam=0.5), [row(0.0, 1.0, values=(0.2, 0.5))])
    assert found == pytest.approx((0.55, 0.5))


def test_gae_needs_values() -> None:
    with raises_error("values"):
        one(gae(), [row(1.0)])


@pytest.mark.parametrize("estimator", [group, centred, batch, process, whiten])
def test_equal_rewards_and_a_batch_of_one_give_no_signal(estimator: Estimator) -> None:
    equal = one(estimator, [row(0.0, 1.0), row(0.0, 1.0)])
    assert equal[0] == equal[1]
    assert one(estimator, [row(1.0), row(1.0)]) == [(0.0,), (0.0,)]
    assert one(estimator, [row(1.0)]) == [(0.0,)]


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_empty_batches_and_groups(estimator: Estimator) -> None:
    assert estimator([]) == []
    assert estimator([[], [FAILED], [Rewarded(0, (1.0,))]]) == [[], [(0.0, 0.0)], [()]]
    assert estimator([[Rewarded(3, None), Rewarded(0, None)]]) == [[(0.0,) * 3, ()]]


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_unscored_responses_do_not_change_the_baseline(estimator: Estimator) -> None:
    rows = [row(1.0, values=(0.5,)), row(-1.0, values=(0.25,))]
    scored = one(estimator, rows)
    lost = Rewarded(2, None, frozenset({0, 1}), (7.0, 7.0))
    assert estimator([[rows[0], lost, rows[1]], [lost]]) == [
        [scored[0], (0.0, 0.0), scored[1]],
        [(0.0, 0.0)],
    ]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e200])
def test_rewards_and_values_that_are_not_finite_or_are_too_large_are_refused(number: float) -> None:
    with raises_error("a token's reward is"):
        row(1.0, number)
    with raises_error("a token's value is"):
        row(1.0, 0.0, values=(0.0, number))


# Numbers of every size, and pairs that differ only by 1e-12 or by rounding.
NEAR = st.sampled_from((-10.0, -10.0 - 1e-12, 0.1 + 0.7, 0.4 + 0.4, 1e-12, 5e-324, 1e30, -1e30))
NUMBERS = NEAR | st.floats(-1e100, 1e100) | st.floats(-1e-3, 1e-3)
RESPONSES = st.builds(
    lambda numbers, events, scored: Rewarded(
        len(numbers),
        tuple(numbers) if scored else None,
        frozenset(n for n in events if n < len(numbers)),
        tuple(numbers),
    ),
    st.lists(NUMBERS | st.just(0.0), min_size=1, max_size=6),
    st.frozensets(st.integers(0, 5)),
    st.integers(0, 5).map(bool),
) | st.builds(lambda value: Rewarded(0, (value,), frozenset({0})), NUMBERS)
BATCHES = st.lists(st.lists(RESPONSES, max_size=5), max_size=4)


@pytest.mark.slow
@hypothesis.example([[valued(-10.0), valued(-10.0), valued(-10.001)]])
@hypothesis.example([[valued(1e-12, -1e-12, 1e-12)]])
@hypothesis.example([[valued(1e30), valued(-1e30, 1e30)], [valued(1e100, 1e100)]])
@given(BATCHES)
def test_advantages_are_bounded_by_the_count_of_normalised_numbers(
    groups: list[list[Rewarded]],
) -> None:
    """n numbers with mean 0 and std 1, or with root mean square 1, are at most √n each."""
    scored = [[r for r in responses if r.rewards is not None] for responses in groups]
    totals = [len(responses) for responses in scored]
    ends = [
        sum(len({*r.rewarded_tokens, len(r.rewards or ()) - 1}) for r in responses)
        for responses in scored
    ]
    paid = [sum(len(r.rewarded_tokens) for r in responses) for responses in scored]
    tokens = sum(r.length for responses in scored for r in responses)
    most = {
        "group": [math.sqrt(count) for count in totals],
        "centred": [math.inf] * len(groups),
        "batch": [math.sqrt(sum(totals))] * len(groups),
        "process": [math.sqrt(count) * count for count in ends],  # a sum of at most `count` numbers
        "rtg": [math.sqrt(count) for count in paid],
        "whiten": [math.sqrt(tokens)] * len(groups),
        "gae": [math.inf] * len(groups),
    }
    for name, estimator in ESTIMATORS.items():
        found = estimator(groups)
        assert [[len(tokens) for tokens in one] for one in found] == [
            [r.length for r in one] for one in groups
        ]
        for responses, advantages_, bound in zip(groups, found, most[name], strict=True):
            values = [value for tokens in advantages_ for value in tokens]
            assert all(
                math.isfinite(value) and abs(value) <= bound * (1 + 1e-9) for value in values
            ), (name, values, bound)
            assert all(
                not any(v) for r, v in zip(responses, advantages_, strict=True) if r.rewards is None
            )


def test_advantages_of_feedback() -> None:
    up = Reward(2.0, events=(Event("truth", 2.0, 1),), tokens=(2.0, 0.0))
    down = Reward(-2.0, events=(Event("truth", -2.0),), tokens=(0.0, -2.0))
    lost = Reward(None, error=Failure("verify", "parse", "x"))
    response = Response("r", Question("q", "?"), "ab", offsets=((0, 1), (1, 2)))
    first, second, third = (Feedback(response, rewards={"m": paid}) for paid in (up, down, lost))
    rows = [row(2.0, 0.0), row(0.0, -2.0)]
    assert advantages([first, second, third], "m", process) == [*one(process, rows), (0.0, 0.0)]
    assert advantages([first, third], "m", whiten) == whiten([[rows[0], FAILED]])[0]


@pytest.mark.parametrize("estimator", [group, process, rtg])
def test_a_response_without_tokens_counts_in_the_baseline(estimator: Estimator) -> None:
    """An empty completion with reward −1 counts as one token, but has no advantages."""
    empty = Response("r", Question("q", "?"), "")
    full = Response("r", Question("q", "?"), "a", offsets=((0, 1),), values=(0.0,))
    rows = [
        settle_row(Feedback(response), Reward(value, events=(Event("outcome", value),)))
        for response, value in ((empty, -1.0), (full, 1.0))
    ]
    assert advantages(rows, "m", estimator) == [(), one(estimator, [row(-1.0), row(1.0)])[1]]
    assert advantages(rows, "m", gae()) == [(), (1.0,)]


def settle_row(feedback: Feedback, reward: Reward) -> Feedback:
    return rescore(feedback, {"m": lambda _: reward})


def test_an_event_with_a_span_rewards_all_tokens_of_the_span() -> None:
    response = Response("r", Question("q", "?"), "abc", offsets=((0, 1), (1, 2), (2, 3)))
    paid = settle_row(Feedback(response), Reward(1.0, events=(Event("truth", 1.0, 2, start=0),)))
    assert rewarded(paid, "m") == Rewarded(3, (0.5, 0.5, 0.0), frozenset({0, 1}))
