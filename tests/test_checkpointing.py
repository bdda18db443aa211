"""Gradient checkpointing: every trainer recomputes its layers, with the same result."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers.errors import raises_error
from tests.helpers.memory_run import make_model, trained
from workbench.training.actor import Actor
from workbench.training.loading import load_trainee

LAYERS = 2
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_model(tmp_path_factory.mktemp("policy"), "llama", SIZES)


def two_steps(
    policy: str, trainer: str, again: bool, out: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, Any], int]:
    """Train for two steps; return the adapter and the count of layer calls with gradients."""
    from safetensors.torch import load_file
    from torch import is_grad_enabled
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer

    computed, forward = 0, LlamaDecoderLayer.forward

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal computed
        computed += is_grad_enabled()
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(LlamaDecoderLayer, "forward", counted)
    monkeypatch.setattr(
        "workbench.training.shared_prefix.shared_prefix", lambda model, _: model
    )  # it would sum in another order
    trained(policy, trainer, rows=4, tokens=8, lora_r=4, again=again, out=out, steps=2)
    monkeypatch.undo()
    [file] = [
        *out.glob("policy/adapter_model.safetensors"),
        *out.glob("model/adapter*.safetensors"),
    ]
    return load_file(file), computed


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["grpo", "ppo", "sft", "dpo", "reward_model"])
def test_checkpointing_trains_the_same_adapter(
    trainer: str, policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, once = two_steps(policy, trainer, False, tmp_path / "kept", monkeypatch)
    again, twice = two_steps(policy, trainer, True, tmp_path / "again", monkeypatch)
    assert once == 2 * LAYERS and twice == 2 * once
    assert kept.keys() == again.keys() and any(
        kept[name].abs().max() > 0 for name in kept if "lora_B" in name
    )
    assert all(kept[name].equal(again[name]) for name in kept)


@pytest.mark.parametrize("again", [False, True])
def test_the_ratio_of_an_unchanged_policy_is_one_even_if_its_config_has_dropout(
    again: bool, tmp_path: Path
) -> None:
    name = make_model(tmp_path, "llama", {**SIZES, "attention_dropout": 0.5})
    actor = Actor(
        load_trainee(
            name, lora_r=4, lora_alpha=4, seed=0, gradient_checkpointing=again, unsloth=False
        )
    )
    ids = torch.arange(5, 17)[None]
    with torch.no_grad():
        before, _ = actor.logprobs_and_values(ids, torch.ones_like(ids), 8, 1.0)
    layers = [
        module for module in actor.model.modules() if type(module).__name__ == "LlamaDecoderLayer"
    ]
    with actor.learning():
        assert len(layers) == LAYERS and all(layer.training is again for layer in layers)
        now, _ = actor.logprobs_and_values(ids, torch.ones_like(ids), 8, 1.0)
        now.sum().backward()
    assert torch.allclose(before, now, atol=1e-6) and not any(layer.training for layer in layers)


def test_a_policy_that_does_not_support_checkpointing_is_refused(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import LlamaForCausalLM

    monkeypatch.setattr(LlamaForCausalLM, "supports_gradient_checkpointing", False)
    with raises_error("gradient_checkpointing=false"):
        load_trainee(policy, lora_r=4, lora_alpha=4, seed=0, gradient_checkpointing=True)
    assert load_trainee(policy, lora_r=4, lora_alpha=4, seed=0).path == "plain"
