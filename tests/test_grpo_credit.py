"""Token-level credit in GRPO: advantages, masks, records, and equality with plain TRL."""

import os
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest

import tests.helpers.grpo_run as run
from tests.helpers import run_python
from tests.helpers.credit import all_scored, by_token, largest_difference
from tests.helpers.errors import raises_error
from workbench.credit.advantages import ESTIMATORS
from workbench.credit.advantages import advantages as advantages_of
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.store import iter_feedback
from workbench.training.unsloth_hooks import left_aligned, right_aligned
from workbench.types import Failure, Feedback, JsonObject, Response, Reward
from workbench.util.config import scaled

CONFIG = scaled(run.SHORT, advantages="rtg", beta=0.0)


def test_advantages_stay_with_their_tokens_when_a_batch_is_shuffled_and_split(
    policy: str, tmp_path: Path
) -> None:
    config = scaled(CONFIG, micro_batch=2, generation_batch=8)
    trainer = run.trainer_of(config, policy, tmp_path, by_token)
    generation_batch = next(iter(trainer.get_train_dataloader()))
    seen: list[int] = []
    for _ in range(4):
        batch = trainer._prepare_inputs(generation_batch)
        trainer._step += 1
        for place, ids, advantages in zip(
            batch["row"].tolist(),
            batch["completion_ids"].tolist(),
            batch["advantages"].tolist(),
            strict=True,
        ):
            response = trainer.responses[place]
            group = trainer.recorder.step_feedbacks[place // 4 * 4 : place // 4 * 4 + 4]
            expected = advantages_of(group, "m", ESTIMATORS["rtg"])
            assert tuple(ids[: len(response.token_ids)]) == response.token_ids
            assert advantages[: len(response.token_ids)] == pytest.approx(
                expected[place % 4], abs=1e-6
            )
            seen.append(place)
    assert sorted(seen) == list(range(8)) and seen != sorted(seen)


@pytest.mark.parametrize(
    ("settings", "scaled_by_std"),
    [
        ({"loss_type": "grpo"}, True),
        ({"loss_type": "dr_grpo"}, False),
        ({"advantages": "centred"}, False),
    ],
)
def test_dr_grpo_does_not_divide_by_the_std_of_the_group(
    settings: JsonObject, scaled_by_std: bool, policy: str, tmp_path: Path
) -> None:
    """arXiv 2503.20783, section 3.2: the advantage is the reward minus the mean of its group."""
    trainer = run.trainer_of(
        scaled(CONFIG, **{"advantages": "group", **settings}), policy, tmp_path, all_scored
    )
    batch = run.batch_of(trainer)
    rewards = [f.rewards["m"].value for f in trainer.recorder.step_feedbacks]
    for start in range(0, len(rewards), 4):
        group = rewards[start : start + 4]
        scale = statistics.stdev(group) + 1e-4 if scaled_by_std else 1.0
        expected = [(value - statistics.mean(group)) / scale for value in group]
        assert batch["advantages"][start : start + 4].tolist() == pytest.approx(expected, abs=1e-5)
    assert statistics.stdev(rewards[:4]) > 0.01


@pytest.mark.parametrize("redraws", [0, 1, 3])
def test_only_groups_with_equal_rewards_are_sampled_again(
    redraws: int, policy: str, tmp_path: Path
) -> None:
    """DAPO's dynamic sampling (arXiv 2503.14476): the second question has no signal at first."""
    graded: list[list[Feedback]] = []

    def grade(responses: Sequence[Response]) -> list[Feedback]:
        """The second question has rewards of 0 in the first two rounds; later grades differ."""
        flat = {0: range(4, 8), 1: range(4)}.get(len(graded), range(0))
        values = [0.0 if n in flat else float(n % 4) for n in range(len(responses))]
        rows = zip(responses, values, strict=True)
        graded.append([Feedback(one, rewards={"m": Reward(value)}) for one, value in rows])
        return graded[-1]

    config = scaled(CONFIG, advantages="group", redraws=redraws)
    trainer = run.trainer_of(config, policy, tmp_path, grade)
    batch = run.batch_of(trainer)
    # every response is graded once: all at first, then the group that was sampled again
    assert [len(rows) for rows in graded] == [16, *[4] * min(redraws, 2)]
    ids = [[feedback.response.token_ids for feedback in rows] for rows in graded]
    final = [*ids[0][:4], *ids[-1][-4 if redraws else 4 :][:4], *ids[0][8:]]
    assert [response.token_ids for response in trainer.responses] == final
    if redraws == 3:
        assert ids[0][4:8] != ids[1] != ids[2]
        assert all(batch["advantages"].view(-1, 4).abs().sum(1) > 0)
    if redraws == 0:
        assert batch["advantages"].view(-1, 4)[1].abs().sum() == 0
    rewards = [feedback.rewards["m"].value for feedback in trainer.recorder.step_feedbacks]
    assert rewards == [0, 1, 2, 3, *([0, 1, 2, 3] if redraws == 3 else [0] * 4), *[0, 1, 2, 3] * 2]
    assert len({response.id for response in trainer.responses}) == 16


@pytest.mark.parametrize("others", [None, 0.0])
def test_a_group_with_a_failed_reward_is_not_sampled_again(
    others: float | None, policy: str, tmp_path: Path
) -> None:
    """The failures are kept, so that `max_failed` counts them."""
    batches: list[int] = []

    def grade(responses: Sequence[Response]) -> list[Feedback]:
        batches.append(len(responses))
        failed = Reward(None, error=Failure("judge", "timeout", "no reply"))
        rewards = [
            Reward(float(n % 4))
            if n // 4 != 1
            else failed
            if n == 4 or others is None
            else Reward(others)
            for n in range(len(responses))
        ]
        return [Feedback(r, rewards={"m": one}) for r, one in zip(responses, rewards, strict=True)]

    config = scaled(CONFIG, advantages="group", redraws=3)
    trainer = run.trainer_of(config, policy, tmp_path, grade)
    trainer.recorder.max_failed = 0.0
    failures = 4 if others is None else 1
    with raises_error(f"{failures} of 16 responses of step 1 could not be graded"):
        run.batch_of(trainer)
    assert batches == [16]


@pytest.mark.parametrize("size", [None, 4])
def test_chunked_log_probabilities_equal_those_of_all_logits(
    size: int | None, policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from trl.trainer import grpo_trainer, utils

    assert utils._CHUNKED_LOGPROB_TOKEN_CHUNK_SIZE == 2048  # assumed by `workbench plan`
    assert grpo_trainer._CHUNKED_LOGPROB_CHUNK_SIZE == 8192
    monkeypatch.setattr(grpo_trainer, "_CHUNKED_LOGPROB_CHUNK_SIZE", 16)  # vocabulary entries
    trainer = run.trainer_of(scaled(CONFIG, temperature=0.7), policy, tmp_path, all_scored)
    batch, rows = run.batch_of(trainer), []
    batch["completion_mask"][::2, 3:] = 0  # shorter responses
    run.perturb(trainer.model)
    trainer.model.get_base_model().model.register_forward_pre_hook(
        lambda _, __, more: rows.append(len(more["input_ids"])), with_kwargs=True
    )
    ids, mask = (
        torch.cat([batch[f"{part}_{kind}"] for part in ("prompt", "completion")], 1)
        for kind in ("ids", "mask")
    )
    said = batch["completion_mask"]
    weights = torch.linspace(-1, 1, said.numel()).view_as(said) * said
    found = []
    assert trainer.chunked
    for chunked in (True, False):
        trainer.chunked = chunked
        trainer.model.zero_grad()
        logprobs, entropies, _ = trainer._get_per_token_logps_and_entropies(
            trainer.model, ids, mask, said.shape[1], batch_size=size, compute_entropy=True
        )
        (logprobs * weights).sum().backward()
        gradients = [one.grad for one in trainer.model.parameters() if one.grad is not None]
        assert gradients and all(bool(one.any()) for one in gradients)
        found.append([logprobs * said, entropies * said, *(one.clone() for one in gradients)])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
    assert max(rows) == (size or len(ids))


def test_a_response_without_a_reward_adds_no_loss_not_even_kl(policy: str, tmp_path: Path) -> None:
    import torch

    trainer = run.trainer_of(
        scaled(CONFIG, beta=0.5, loss_type="dapo", prompts_per_step=8), policy, tmp_path, by_token
    )
    batch = run.batch_of(trainer)
    unscored = [f.rewards["m"].value is None for f in trainer.recorder.step_feedbacks]
    assert any(unscored) and not all(unscored)
    assert [not any(mask) for mask in batch["completion_mask"].tolist()] == unscored
    assert batch["num_items_in_batch"] == batch["completion_mask"].sum()
    kept = torch.tensor([not flag for flag in unscored])
    alone = {name: value[kept] if value.dim() else value for name, value in batch.items()}
    run.perturb(trainer.model)
    trainer.current_gradient_accumulation_steps = 1
    loss = trainer._compute_loss(trainer.model, batch)
    assert loss.item() == pytest.approx(
        trainer._compute_loss(trainer.model, alone).item(), rel=1e-5
    )


def test_masked_truncated_responses_are_left_out_of_the_baseline(
    policy: str, tmp_path: Path
) -> None:
    def cut(responses: Sequence[Response]) -> list[Feedback]:
        return [
            Feedback(
                r, rewards={"m": Reward(100.0 if r.finish == "length" else len(r.token_ids) / 2)}
            )
            for r in responses
        ]

    config = scaled(
        CONFIG, advantages="group", mask_truncated=True, max_new_tokens=40, prompts_per_step=8
    )
    trainer = run.trainer_of(config, policy, tmp_path, cut)
    with_eos = trainer.processing_class.eos_token_id
    trainer.model.base_model.model.lm_head.weight.data[with_eos] *= 3  # more responses end
    batch = run.batch_of(trainer)
    finished = [response.finish == "stop" for response in trainer.responses]
    assert any(finished) and not all(finished)
    assert [any(mask) for mask in batch["completion_mask"].tolist()] == finished
    for start in range(0, len(finished), 4):
        group = range(start, start + 4)
        values = {n: len(trainer.responses[n].token_ids) / 2 for n in group if finished[n]}
        mean = statistics.mean(values.values()) if values else 0.0
        std = statistics.stdev(values.values()) if len(values) > 1 else 0.0
        expected = [(values[n] - mean) / (std + 1e-4) if n in values else 0.0 for n in group]
        assert batch["advantages"][start : start + 4].tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_equal_advantages_on_all_tokens_are_plain_grpo(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five steps: rewards, losses, gradients and weights, with TRL's own advantages and with
    ours on every token.
    """
    monkeypatch.setitem(ESTIMATORS, "whiten", ESTIMATORS["group"])
    plain = scaled(CONFIG, steps=5, advantages="group", loss_type="dapo", beta=0.01)
    for name, config in (("plain", plain), ("tokens", scaled(plain, advantages="whiten"))):
        run.grpo(config, policy, tmp_path / name, all_scored)
    one, other = (metrics_rows(tmp_path / name) for name in ("plain", "tokens"))
    assert any(row["grad_norm"] > 0.01 for row in one)
    for first, second in zip(one, other, strict=True):
        for key in ("reward", "loss", "grad_norm", "kl"):
            assert first[key] == pytest.approx(second[key], rel=1e-4, abs=1e-6)
    assert largest_difference(tmp_path / "plain", tmp_path / "tokens") < 1e-5


def test_small_micro_batches_give_the_update_of_a_large_one(policy: str, tmp_path: Path) -> None:
    config = scaled(CONFIG, loss_type="dapo", steps=1, prompts_per_step=16)
    for micro in (8, 64):
        run.grpo(scaled(config, micro_batch=micro), policy, tmp_path / str(micro), by_token)
    assert largest_difference(tmp_path / "8", tmp_path / "64") < 1e-5
    (small,), (large,) = (metrics_rows(tmp_path / name) for name in ("8", "64"))
    for key in ("loss", "grad_norm"):  # Adam's first step hides a wrong scale
        assert small[key] == pytest.approx(large[key], rel=1e-3, abs=1e-6)
    assert (tmp_path / "8" / "rollouts.jsonl").read_text().count("\n") == 64


@pytest.mark.slow
def test_ratios_start_at_one_and_change_when_responses_are_reused(
    policy: str, tmp_path: Path
) -> None:
    config = scaled(CONFIG, beta=0.01, advantages="process")
    for name, count in (("once", 1), ("twice", 2)):
        run.grpo(scaled(config, iterations=count), policy, tmp_path / name, by_token)
    changes = {
        n: [r["ratio_change"] for r in metrics_rows(tmp_path / n)] for n in ("once", "twice")
    }
    assert max(changes["once"]) < 1e-5 < 1e-4 < min(changes["twice"])
    rows = list(iter_feedback(tmp_path / "twice"))
    scored = [row.response for row in rows if row.rewards["m"].value is not None]
    assert any(abs(ratio - 1) > 1e-3 for response in scored for ratio in response.ratios)
    once = [row.response for row in iter_feedback(tmp_path / "once")]
    assert all(ratio == 1 for response in once for ratio in response.ratios)
    # the initial policy samples the first step: its log-probabilities precede any update
    for one, two in zip(once[:16], rows[:16], strict=True):
        assert one.token_ids == two.response.token_ids
        assert one.logprobs == pytest.approx(two.response.logprobs, abs=1e-5)
        assert one.ref_logprobs == pytest.approx(one.logprobs, abs=1e-5)
    assert (tmp_path / "twice" / "checkpoints" / "checkpoint-4").is_dir()


def test_inputs_of_the_loss_are_recorded(policy: str, tmp_path: Path) -> None:
    run.grpo(scaled(CONFIG, beta=0.01), policy, tmp_path, by_token)
    rows = list(iter_feedback(tmp_path))
    groups = [rows[at : at + 4] for at in range(0, 32, 4)]
    expected = [
        values for group in groups for values in advantages_of(group, "m", ESTIMATORS["rtg"])
    ]
    for row, values in zip(rows, expected, strict=True):
        response = row.response
        parts = (response.advantages, response.logprobs, response.ref_logprobs, response.ratios)
        if row.rewards["m"].value is None:  # not used
            assert not any(parts)
            continue
        assert response.advantages == pytest.approx(values, abs=1e-6)
        assert {len(part) for part in parts} == {len(response.token_ids)}
        assert all(logprob < 0 for logprob in response.logprobs)
    for step, logged in enumerate(metrics_rows(tmp_path), start=1):
        own = [f for f in rows if f.response.step == step]
        scored = [f.rewards["m"].parts["odd"] for f in own if f.rewards["m"].value is not None]
        assert logged["reward/odd"] == pytest.approx(statistics.mean(scored))
        assert logged["unplaced"] == 1 and logged["claims"] == pytest.approx(2 * len(scored) / 16)
        assert logged["claims_wrong"] == logged["claims_correct"] == logged["claims"] / 2
        quiet = [
            not any(any(f.response.advantages) for f in group)
            for group in groups[4 * step - 4 : 4 * step]
        ]
        assert logged["no_signal"] == sum(quiet) / 4
        parts = sum(logged[f"seconds_{part}"] for part in ("generation", "grading", "update"))
        assert logged["seconds"] == pytest.approx(parts, abs=0.003)


def test_advantages_and_log_probabilities_are_shifted_as_unsloth_shifts_its_mask() -> None:
    import torch

    batch = {
        "advantages": torch.tensor([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]]),
        "prompt_mask": torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1]]),
        "completion_ids": torch.zeros(2, 3),
    }
    assert left_aligned(batch).tolist() == [[1, 2, 0, 0, 0], [0, 3, 4, 5, 0]]
    # in a batch with a prompt that had three padding tokens
    noted_BT = torch.tensor([[9.0, -1, -2, -3, 9, 9], [9, 9, -4, -5, -6, 9]])
    scored = {**batch, "ref_per_token_logps": noted_BT}
    assert left_aligned(scored).tolist() == [[0, 1, 2, 0, 0, 0], [0, 0, 3, 4, 5, 0]]
    assert right_aligned(scored)["ref_per_token_logps"].tolist() == [[-1, -2, -3], [-4, -5, -6]]
    whole = torch.tensor([1.0, 2.0])
    assert left_aligned({**batch, "advantages": whole}) is whole


@pytest.mark.slow
def test_a_group_on_two_processes_is_one_group(policy: str, tmp_path: Path) -> None:
    """Three groups of four: two processes with six responses each give the weights of one process
    with twelve.
    """
    port = 29500 + os.getpid() % 2000
    for count in (1, 2):
        words = f"-m torch.distributed.run --nproc-per-node {count} --master-port {port}"
        words += " -m tests.helpers.grpo_ranks"
        done = run_python(
            *words.split(), policy, tmp_path / str(count), env={"OMP_NUM_THREADS": "1"}, timeout=180
        )
        assert done.returncode == 0, done.stderr[-2000:]
    # an update is 1e-2; rounding depends on the processor
    assert largest_difference(tmp_path / "1", tmp_path / "2") < 1e-4
    one, two = (
        sorted((f.response.id, f.response.advantages) for f in iter_feedback(tmp_path / name))
        for name in ("1", "2")
    )
    assert [id for id, _ in one] == [id for id, _ in two] and len(one) == 24
    for (_, first), (_, second) in zip(one, two, strict=True):
        assert first == pytest.approx(second, abs=1e-5)
