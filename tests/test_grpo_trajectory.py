"""KnowRL's GRPO (arXiv 2506.19807): the ratio of a whole response, and an entropy bonus."""

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tests.helpers.grpo_run as run
from tests.helpers.credit import all_scored
from tests.helpers.errors import raises_error
from tests.helpers.small_bench import SMALL, make_bench
from workbench.credit.tensors import whole_responses
from workbench.experiments.experiment import run_experiment
from workbench.methods import METHODS
from workbench.training.grpo import grpo_stage
from workbench.training.grpo_config import GRPO, check_split
from workbench.training.stage import Stage
from workbench.training.unsloth_hooks import choose_unsloth
from workbench.types import JsonObject
from workbench.util.config import scaled

CONFIG = scaled(run.SHORT, beta=0.0, importance_sampling="trajectory")


def trainer_and_batch(
    config: GRPO, policy: str, out: Path, old_shift: float = 0.0
) -> tuple[Any, JsonObject]:
    """A trainer whose policy changed after sampling, and its batch, in which every other response
    lost its last tokens.

    The old log-probabilities are lower by `old_shift` times 1, −1, .1 or −.1, in turn.
    """
    import torch

    trainer = run.trainer_of(config, policy, out, all_scored)
    batch = run.batch_of(trainer)
    batch["completion_mask"][::2, -2:] = 0
    torch.manual_seed(0)
    run.perturb(trainer.model, 0.05)
    if old_shift:
        logprobs_BT, _ = forward(trainer, batch)
        signs_B1 = torch.tensor([1.0, -1.0, 0.1, -0.1] * 4)[:, None]
        batch["old_per_token_logps"] = logprobs_BT.detach() - old_shift * signs_B1
    trainer.current_gradient_accumulation_steps = 1
    return trainer, batch


def forward(trainer: Any, batch: JsonObject) -> tuple[Any, Any]:
    """Log-probabilities and entropies of the completions' tokens, (B, T), computed from
    the model's logits.
    """
    import torch

    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    seen = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    start = batch["prompt_ids"].shape[1]
    all_BTV = (
        trainer.model(ids, attention_mask=seen).logits[:, start - 1 : -1].float().log_softmax(-1)
    )
    return all_BTV.gather(2, batch["completion_ids"][:, :, None])[:, :, 0], -(
        all_BTV.exp() * all_BTV
    ).sum(-1)


def gradients(trainer: Any, loss: Any) -> list[Any]:
    trainer.model.zero_grad()
    loss.backward()
    return [weight.grad.clone() for weight in trainer.model.parameters() if weight.grad is not None]


def assert_close(found: Sequence[Any], expected: Sequence[Any]) -> None:
    largest = max(grad.abs().max().item() for grad in expected)
    assert largest > 1e-4
    for one, other in zip(found, expected, strict=True):
        assert (one - other).abs().max().item() < 1e-3 * largest


def test_a_ratio_of_the_whole_response_by_hand() -> None:
    """Two tokens with the ratios e^.5 and e^-.2 give a response with the ratio e^.3."""
    import torch

    logprobs_BT = torch.tensor([[-1.0, -2.0, -9.0], [-1.0, -1.0, -1.0]], requires_grad=True)
    old_BT = torch.tensor([[-1.5, -1.8, -3.0], [-11.0, -11.0, -11.0]])
    mask_BT = torch.tensor([[1, 1, 0], [1, 1, 1]])
    ratios_BT = (logprobs_BT - whole_responses(logprobs_BT, old_BT, mask_BT)).exp()
    assert ratios_BT[0].tolist() == pytest.approx([math.exp(0.3)] * 3)
    assert ratios_BT[1].tolist() == pytest.approx([math.exp(20)] * 3, rel=1e-4)  # and not e^30
    (2 * ratios_BT[:, 0]).sum().backward()
    assert logprobs_BT.grad is not None
    assert logprobs_BT.grad[0].tolist() == pytest.approx(
        [2 * math.exp(0.3), 2 * math.exp(0.3), 0.0]
    )
    assert logprobs_BT.grad[1].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shift", "clipped"), [(0.02, (0, 4)), (0.3, (3, 12))], ids=["within the clip", "beyond it"]
)
def test_the_loss_equals_that_of_the_paper(
    shift: float, clipped: tuple[int, int], policy: str, tmp_path: Path
) -> None:
    """L = −1/G Σ min(ϱA, clip(ϱ)A) + β_KL · KL − β_H · H: value and gradient from the model's
    logits. Our bound: ϱ is at most 3."""
    import torch

    config = scaled(CONFIG, beta=0.3, entropy=0.07, iterations=2)
    trainer, batch = trainer_and_batch(config, policy, tmp_path, old_shift=shift)
    stored_BT = batch["old_per_token_logps"].clone()
    found = trainer._compute_loss(trainer.model, batch)
    found_gradients = gradients(trainer, found)
    assert torch.equal(batch["old_per_token_logps"], stored_BT)  # the next iteration needs it

    logprobs_BT, entropies_BT = forward(trainer, batch)
    mask_BT, advantages_B = batch["completion_mask"], batch["advantages"]
    ratio_B = ((logprobs_BT - stored_BT) * mask_BT).sum(1).exp()
    bounded_B = ratio_B.clamp(0.8, 1.2)
    # where the unclipped term is the smaller one
    far_B = (ratio_B > 3) & (advantages_B < 0)
    assert bool(far_B.any()) is (shift == 0.3)
    taken_B = torch.min(ratio_B.clamp(max=3.0) * advantages_B, bounded_B * advantages_B)
    assert torch.equal(taken_B[far_B], 3 * advantages_B[far_B])
    assert clipped[0] <= int((taken_B != ratio_B * advantages_B).sum()) <= clipped[1]
    apart_BT = batch["ref_per_token_logps"] - logprobs_BT
    kl_B = ((apart_BT.exp() - apart_BT - 1) * mask_BT).sum(1) / mask_BT.sum(1)
    entropy = (entropies_BT * mask_BT).sum() / mask_BT.sum()
    expected = -taken_B.mean() + 0.3 * kl_B.mean() - 0.07 * entropy
    assert found.item() == pytest.approx(expected.item(), rel=1e-4)
    assert_close(found_gradients, gradients(trainer, expected))


def test_unsloth_that_is_already_imported_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unsloth patches TRL's trainer for the whole process, also for models that it did not load."""
    token = scaled(CONFIG, importance_sampling="token")
    grade_nothing: Any = list
    stages = [
        grpo_stage(config, lambda job: (run.QUESTIONS, grade_nothing), "m")
        for config in (CONFIG, token, scaled(token, entropy=0.1))
    ]
    assert [stage.plain for stage in stages] == [True, False, True]
    monkeypatch.setitem(sys.modules, "unsloth", ModuleType("unsloth"))
    assert not grpo_stage(token, lambda job: (run.QUESTIONS, grade_nothing), "m").plain
    with raises_error("Unsloth was imported in this process"):
        grpo_stage(CONFIG, lambda job: (run.QUESTIONS, grade_nothing), "m")


@pytest.mark.parametrize("plain", [False, True])
def test_unsloth_is_not_imported_for_plain_stages(
    plain: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty module replaces Unsloth, and nothing is trained: only imports are checked."""
    place, out = make_bench(tmp_path / "policy"), tmp_path / "run"
    (tmp_path / "unsloth.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("UNSLOTH_COMPILE_LOCATION", str(tmp_path))
    monkeypatch.setenv("UNSLOTH_DISABLE_STATISTICS", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    for name in ("trl", "unsloth"):  # restored afterwards
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.delitem(sys.modules, name)
    out.mkdir()
    (out / "before.json").write_text("{}")
    method = replace(
        METHODS["truthrl"], stages=lambda *_: [Stage("grpo", lambda job: "interrupted", 1, plain)]
    )
    assert run_experiment(method, SMALL, place, out, seed=1, threads=1)["status"] == "interrupted"
    assert ("unsloth" in sys.modules) is not plain


def test_a_patched_loss_is_an_error_at_the_first_step(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(
        "trl.GRPOTrainer.compute_loss",
        lambda self, model, inputs, *_, **__: model(
            input_ids=inputs["completion_ids"]
        ).logits.mean(),
    )
    with raises_error("such as Unsloth patched TRL in this process"):
        run.grpo(CONFIG, policy, tmp_path, all_scored)
    assert not (tmp_path / "metrics.jsonl").exists()


@pytest.mark.parametrize(
    "setting",
    [
        {"importance_sampling": "trajectory"},
        {"entropy": 0.01},
        {"self_certainty": True},
        {"redraws": 2},
        {"vllm": "colocate"},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_settings_that_unsloths_trainer_would_ignore_train_without_unsloth(
    setting: JsonObject,
) -> None:
    token = scaled(CONFIG, importance_sampling="token")
    assert choose_unsloth(token, None) is None
    assert choose_unsloth(scaled(token, **setting), None) is False
    with raises_error(f"not support grpo.{next(iter(setting))}.*: set unsloth to None"):
        choose_unsloth(scaled(token, **setting), True)


def test_several_processes_train_without_unsloth_and_need_divisible_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    token = scaled(
        CONFIG, importance_sampling="token", prompts_per_step=4, group_size=3, micro_batch=None
    )
    assert choose_unsloth(token, None) is False
    with raises_error("not support several processes: set unsloth to None"):
        choose_unsloth(token, True)
    check_split(token, 4)
    with raises_error("12 responses do not split among 8 processes"):
        check_split(token, 8)
