"""PPO: advantages, losses, schedules and recorded rows, worked by hand or recomputed."""

import math
from pathlib import Path

import pytest

import tests.helpers.grpo_run as run
from tests.helpers.credit import by_token
from workbench.credit import advantages as credit
from workbench.credit.tensors import kl_of, masked, minus_kl, ratio_of, whitened
from workbench.policies.generate import Sampling
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.store import iter_feedback
from workbench.training.actor import Actor, State, schedule
from workbench.training.ppo import check, losses, prepare, sizes
from workbench.training.sampling import rollouts
from workbench.util.config import scaled

CONFIG = scaled(run.AS_PPO, steps=4)


def actor_of(policy: str) -> Actor:
    return Actor(run.trainee_of(policy))


def test_advantages_by_hand_with_the_kl_penalty() -> None:
    # δ = 0, 0, .5; A₂ = .5, A₁ = .95 · .5, A₀ = .95² · .5
    row = minus_kl(
        credit.Rewarded(3, (0.5, 0.25, 1.0)), (0.5, 0.25, 0.0, 9.0), (0.5, 0.5, 0.5, 9.0)
    )
    ((advantages,),) = credit.gae(1.0, 0.95)([[row]])
    assert advantages == pytest.approx((0.45125, 0.475, 0.5))
    unscored = credit.Rewarded(2, None)
    assert minus_kl(unscored, (1.0, 1.0), (1.0, 1.0)) == unscored


def test_whitening_ignores_padding_and_kl_estimators_by_hand() -> None:
    import torch

    mask = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    white = whitened(torch.tensor([[1.0, 2.0], [3.0, 100.0]]), mask)
    assert white.tolist() == [
        pytest.approx([-math.sqrt(1.5), 0.0], abs=1e-5),
        pytest.approx([math.sqrt(1.5), 0.0], abs=1e-5),
    ]
    own, reference = torch.tensor([[-1.0]]), torch.tensor([[-1.5]])
    assert kl_of(own, reference, "k1").item() == pytest.approx(0.5)
    assert kl_of(own, reference, "k3").item() == pytest.approx(math.exp(-0.5) - 1 + 0.5)


def test_losses_and_gradients_equal_a_plain_recomputation(policy: str) -> None:
    """Token by token in Python, from the log-probabilities and values of one response at a time."""
    import torch

    actor = actor_of(policy)
    config = scaled(CONFIG, clip=0.05, value_clip=0.05)
    state = State(actor, config, config.steps, seed=1)
    responses = rollouts(actor.model, actor.tokenizer, run.QUESTIONS[:2], 4, Sampling(6, seed=3), 1)
    batch = prepare(actor, by_token(responses), "m", config)
    state.set_rates(1)
    for weight in (*state.weights, actor.head.weight):
        weight.data += 0.05 * torch.randn(
            weight.shape, generator=torch.Generator().manual_seed(0)
        )  # so that ratios are clipped
    policy_loss, value_loss, ratios = losses(actor, batch, torch.arange(8), config)
    (policy_loss + value_loss).backward()
    grads = [weight.grad.clone() for weight in (*state.weights, actor.head.weight)]
    state.optimizer.zero_grad()

    expected, clipped = torch.zeros(()), 0
    for row, feedback in enumerate(by_token(responses)):
        if feedback.rewards["m"].value is None:
            assert not batch.mask_BT[row].any()
            continue
        count = len(feedback.response.token_ids)
        ids, attention, _ = actor.collate([feedback.response])
        logprobs, values = actor.logprobs_and_values(ids, attention, count, 1.0)
        for t in range(count):
            advantage, old_value, target = (
                part[row, t] for part in (batch.advantages_BT, batch.values_BT, batch.returns_BT)
            )
            ratio = (logprobs[0, t] - batch.logprobs_BT[row, t]).exp()
            near = min(max(ratio.item(), 0.95), 1.05)
            clipped += near != ratio.item()
            best = (
                ratio * advantage
                if ratio.item() * advantage <= near * advantage
                else near * advantage
            )
            moved = old_value + (values[0, t] - old_value).clamp(-0.05, 0.05)
            worst = max((values[0, t] - target) ** 2, (moved - target) ** 2)
            expected = expected - best + 0.5 * worst
            assert ratio.item() == pytest.approx(ratios[row, t].item(), rel=1e-4)
    assert clipped > 3
    assert (policy_loss + value_loss).item() == pytest.approx(expected.item(), rel=1e-4)
    expected.backward()
    for grad, weight in zip(grads, (*state.weights, actor.head.weight), strict=True):
        assert torch.allclose(grad, weight.grad, atol=1e-4, rtol=1e-3)


@pytest.mark.slow
def test_logprobs_and_ratios_are_of_the_sampled_tokens(policy: str) -> None:
    """Compared with the engine's log-probabilities, for a changed policy and the initial one."""
    import torch

    from workbench.policies import hf
    from workbench.policies.generate import prompt_ids
    from workbench.policies.load import load_policy

    actor = actor_of(policy)
    torch.manual_seed(0)
    run.perturb(actor.model, 0.1)
    responses = rollouts(actor.model, actor.tokenizer, run.QUESTIONS[:3], 2, Sampling(6, seed=3), 1)
    config = scaled(CONFIG, kl="k1", micro_batch=2, minibatch=6, prompts_per_step=3, group_size=2)
    batch = prepare(actor, by_token(responses), "m", config)
    prompts = prompt_ids(actor.tokenizer, [response.question for response in responses])
    pairs = [
        (prompt, list(response.token_ids))
        for prompt, response in zip(prompts, responses, strict=True)
    ]
    start_model, pad = load_policy(policy).model, actor.tokenizer.pad_token_id
    with torch.no_grad():
        own, start = (hf.token_logprobs(model, pad, pairs) for model in (actor.model, start_model))
    moved = 0.0
    for row, response in enumerate(responses):
        count = len(response.token_ids)
        assert batch.logprobs_BT[row, :count].tolist() == pytest.approx(own[row], abs=1e-4)
        assert batch.ref_logprobs_BT[row, :count].tolist() == pytest.approx(start[row], abs=1e-4)
        kl = [a - b for a, b in zip(own[row], start[row], strict=True)]
        assert batch.kl_BT[row, :count].tolist() == pytest.approx(kl, abs=1e-3)
        moved = max(moved, *map(abs, kl))
    assert moved > 0.1
    warm = prepare(actor, by_token(responses), "m", scaled(config, temperature=0.5))
    assert not torch.allclose(warm.logprobs_BT, batch.logprobs_BT, atol=0.01)


def test_extreme_and_masked_values_stay_finite() -> None:
    import torch

    far, mask = torch.tensor([[-200.0, float("-inf")]]), torch.tensor([[1.0, 0.0]])
    assert kl_of(far, torch.zeros(1, 2), "k3")[0, 0].item() == 10.0
    assert torch.isfinite(ratio_of(far[:, :1], torch.zeros(1, 1))).all()
    assert torch.isfinite(whitened(torch.tensor([[3.0, float("nan")]]), mask)).all()
    assert masked(far * far, mask).tolist() == [[40_000.0, 0.0]]


def test_rows_have_the_numbers_of_their_step(ppo_run: Path) -> None:
    rows = list(iter_feedback(ppo_run))
    assert len(rows) == 32 and len({row.response.id for row in rows}) == 32
    for row in rows:
        names = ("logprobs", "ref_logprobs", "values", "advantages", "ratios")
        kept = {len(getattr(row.response, name)) for name in names}
        scored = row.rewards["m"].value is not None
        assert kept == {len(row.response.token_ids) if scored else 0}
    first = [row.response for row in rows if row.response.step == 1 and row.response.values]
    # the head begins at 0
    assert all(value == 0 for response in first for value in response.values)
    assert all(r.logprobs == pytest.approx(r.ref_logprobs, abs=1e-5) for r in first)
    # the second pass
    assert any(abs(ratio - 1) > 1e-3 for response in first for ratio in response.ratios)
    metrics = metrics_rows(ppo_run)
    assert [row["step"] for row in metrics] == [1, 2]
    assert all(
        row[name] is not None
        for row in metrics
        for name in ("loss", "value_loss", "kl", "grad_norm", "learning_rate")
    )
    assert metrics[0]["kl"] == pytest.approx(0, abs=1e-6)


def test_the_schedule_of_the_learning_rate() -> None:
    shares = [schedule(step, 100, 0.1, "cosine") for step in range(100)]
    assert shares[0] == pytest.approx(0.1) and shares[9] == shares[10] == 1.0
    assert shares[55] == pytest.approx(0.55) and shares[99] == pytest.approx(0.1, abs=1e-3)
    assert schedule(0, 1, 0.0, "cosine") == 1.0
    assert [schedule(step, 4, 0.0, "linear") for step in range(4)] == [1.0, 0.75, 0.5, 0.25]
    assert schedule(3, 4, 0.25, "constant") == 1.0


def test_a_step_smaller_than_a_minibatch_is_one_update() -> None:
    few = scaled(CONFIG, prompts_per_step=3, group_size=1, minibatch=32, micro_batch=None)
    check(few)
    assert sizes(few) == (3, 3, 3) and sizes(scaled(few, prompts_per_step=64)) == (64, 32, 32)
    check(scaled(few, micro_batch=8))
    assert sizes(scaled(few, micro_batch=8)) == (3, 3, 3)
