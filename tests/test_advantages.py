"""Advantage estimators, worked by hand and compared with TRL's own arithmetic."""

from __future__ import annotations

import math

import pytest

from workbench.advantages import Rewarded, advantages, gae, group, process, rewarded, rtg
from workbench.grade import rescore
from workbench.types import Event, Failure, Feedback, Question, Response, Reward, WorkbenchError

ROOT2 = math.sqrt(2)


def row(*rewards: float, values: tuple[float, ...] = ()) -> Rewarded:
    return Rewarded(len(rewards), rewards, frozenset(t for t, value in enumerate(rewards) if value), values)


FAILED = Rewarded(2, None)


def test_group_is_the_normalised_total() -> None:
    # totals 1 and −1: mean 0, std √2
    assert group([row(0.25, 0.75), row(0.0, 0.0, -1.0)]) == [(1 / (ROOT2 + 1e-4),) * 2, (-1 / (ROOT2 + 1e-4),) * 3]


def test_group_agrees_with_trl() -> None:
    torch = pytest.importorskip("torch")
    from trl.trainer.utils import nanstd

    totals = [1.0, 0.0, -1.0, float("nan"), 1.0, 0.25]
    rewards = torch.tensor(totals, dtype=torch.float64).view(1, -1)
    expected = ((rewards - rewards.nanmean(dim=1, keepdim=True)) / (nanstd(rewards, dim=1, keepdim=True) + 1e-4)).nan_to_num()
    rows = [Rewarded(1, None) if math.isnan(total) else row(total) for total in totals]
    assert [tokens[0] for tokens in group(rows)] == pytest.approx(expected[0].tolist(), abs=1e-12)


def test_process_sums_what_is_still_to_come() -> None:
    # Events 2 (token 0), 0 (end) and −2 (token 1 of 1..2 = end): values 2, 0, −2: mean 0, std 2
    first, second = process([row(2.0, 0.0), row(0.0, -2.0)])
    one = 2 / (2 + 1e-4)
    assert first == pytest.approx((one, 0.0))
    assert second == pytest.approx((-one, -one))


def test_process_gives_a_signal_to_one_refusal_and_one_wrong_answer() -> None:
    # events: 0 at the end of the refusal, −2 at token 0 and 0 at the end of the answer: mean −2/3, std 2/√3
    mean, std = -2 / 3, 2 / math.sqrt(3)
    refusal, answer = process([row(0.0), row(-2.0, 0.0)])
    up, down = -mean / (std + 1e-4), (-2 - mean) / (std + 1e-4)
    assert refusal == pytest.approx((up,))
    assert answer == pytest.approx((up + down, up))


def test_return_to_go_leaves_a_refusal_at_zero() -> None:
    # totals 0 and −2: std √2
    refusal, answer = rtg([row(0.0, 0.0), row(0.5, -2.5, 0.0)])
    assert refusal == (0.0, 0.0)
    assert answer == pytest.approx([value / (ROOT2 + 1e-4) for value in (-2.0, -2.5, 0.0)])


def test_totals_that_differ_by_rounding_alone_are_equal() -> None:
    """.1 + .7 and .4 + .4 differ in the last bit; over that, the tokens of both would be paid thousands."""
    rows = [row(0.1, 0.7), row(0.4, 0.4)]
    assert math.fsum(rows[0].rewards or ()) != math.fsum(rows[1].rewards or ())
    assert rtg(rows) == [(0.0, 0.0)] * 2
    assert group(rows) == [pytest.approx((0.0, 0.0), abs=1e-9)] * 2


def test_gae_by_hand() -> None:
    # γ 1, λ .5. t1: δ = 1 − .5 = .5. t0: δ = 0 + .5 − .2 = .3, A = .3 + .5·.5 = .55
    [found] = gae([row(0.0, 1.0, values=(0.2, 0.5))], gamma=1.0, lam=0.5)
    assert found == pytest.approx((0.55, 0.5))


def test_gae_with_lambda_one_is_the_return_less_the_value() -> None:
    [found] = gae([row(1.0, 0.0, 2.0, values=(0.1, 0.2, 0.3))], gamma=1.0, lam=1.0)
    assert found == pytest.approx((2.9, 1.8, 1.7))


def test_gae_needs_values() -> None:
    with pytest.raises(WorkbenchError, match="values"):
        gae([row(1.0)])


@pytest.mark.parametrize("estimator", [group, process, rtg])
def test_equal_rewards_and_a_batch_of_one_give_no_signal(estimator) -> None:
    assert estimator([row(0.0, 1.0), row(0.0, 1.0)])[0] == estimator([row(0.0, 1.0), row(0.0, 1.0)])[1]
    assert estimator([row(1.0), row(1.0)]) == [(0.0,), (0.0,)]
    assert estimator([row(1.0)]) == [(0.0,)]
    assert estimator([]) == []


@pytest.mark.parametrize("estimator", [group, process, rtg])
def test_what_was_not_scored_leaves_the_baseline(estimator) -> None:
    rows = [row(1.0), row(-1.0)]
    assert estimator([rows[0], FAILED, rows[1]]) == [estimator(rows)[0], (0.0, 0.0), estimator(rows)[1]]


def test_from_stored_rows() -> None:
    question = Question("q", "?")

    def feedback(reward: Reward) -> Feedback:
        return Feedback(Response("r", question, "ab", offsets=((0, 1), (1, 2))), rewards={"rlfh": reward})

    up = Reward(2.0, events=(Event("truth", 2.0, 1),), tokens=(2.0, 0.0))
    down = Reward(-2.0, events=(Event("truth", -2.0),), tokens=(0.0, -2.0))
    lost = Reward(None, error=Failure("verify", "parse", "x"))
    found = advantages([feedback(up), feedback(down), feedback(lost)], "rlfh", process)
    assert found == [*process([row(2.0, 0.0), row(0.0, -2.0)]), (0.0, 0.0)]


@pytest.mark.parametrize("estimator", [group, process, rtg])
def test_a_response_without_tokens_counts_in_the_baseline(estimator) -> None:
    """An empty completion that is paid −1, as one token would be; it has no token that an advantage could go to."""

    def feedback(reward: Reward, *offsets: tuple[int, int]) -> Feedback:
        response = Response("r", Question("q", "?"), "a" * len(offsets), offsets=offsets, values=(0.0,) * len(offsets))
        return settle_row(Feedback(response), reward)

    down, up = Reward(-1.0, events=(Event("outcome", -1.0),)), Reward(1.0, events=(Event("outcome", 1.0),))
    empty, full = advantages([feedback(down), feedback(up, (0, 1))], "m", estimator)
    assert empty == () and full == estimator([row(-1.0), row(1.0)])[1]
    assert advantages([feedback(down), feedback(up, (0, 1))], "m", gae) == [(), (1.0,)]


def settle_row(feedback: Feedback, reward: Reward) -> Feedback:
    return rescore(feedback, {"m": lambda _: reward})


def test_events_that_are_spread_hold_all_their_tokens() -> None:
    response = Response("r", Question("q", "?"), "abc", offsets=((0, 1), (1, 2), (2, 3)))
    paid = settle_row(Feedback(response), Reward(1.0, events=(Event("truth", 1.0, 2, start=0),)))
    assert rewarded(paid, "m") == Rewarded(3, (0.5, 0.5, 0.0), frozenset({0, 1}))
