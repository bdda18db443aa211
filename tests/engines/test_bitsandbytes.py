"""A 4-bit base loaded on a CPU: its size, training of an adapter, and merging.

GPUs use other kernels, which have never been tested.
"""

from pathlib import Path

import pytest

import tests.helpers.grpo_run as run
from tests.engines.environment import needs
from tests.helpers.credit import weights
from tests.helpers.memory_run import make_model
from tests.helpers.short_runs import weights_moved
from tests.test_grpo import SMALL

pytestmark = needs("bitsandbytes")
SIZES = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_model(tmp_path_factory.mktemp("policy"), "llama", SIZES)


def test_matrices_have_the_planned_size_and_nothing_else_is_rounded(policy: str) -> None:
    """An 8-bit constant per 64 weights, a 32-bit constant per 256 of those."""
    import bitsandbytes
    import torch

    from workbench.experiments import plan
    from workbench.experiments.shape import shape_of
    from workbench.policies.load import load_checkpoint
    from workbench.training.loading import quantisation
    from workbench.training.offline import SFT
    from workbench.util.config import scaled

    model, _ = load_checkpoint(policy, device="cpu", quantisation=quantisation())
    exact, _ = load_checkpoint(policy, device="cpu")
    found, others = 0, dict(exact.named_parameters())
    for name, module in model.named_modules():
        if isinstance(module, bitsandbytes.nn.Linear4bit):
            state, was = module.weight.quant_state, others.pop(f"{name}.weight").detach()
            found += module.weight.nbytes + state.absmax.nbytes + state.state2.absmax.nbytes
            now = bitsandbytes.functional.dequantize_4bit(module.weight, state).float()
            assert 0 < (now - was).abs().mean() < 0.12 * was.abs().mean(), name
    shape = shape_of(policy)
    one = plan.read_training("sft", scaled(SFT(), load_in_4bit=True), 8, shape, 2)
    exact_ones = 2 * (shape.parameters - shape.matrices)
    assert found == pytest.approx(plan.state(one)["weights"] - exact_ones, rel=1e-3)
    kept = dict(model.named_parameters())
    assert others and all(torch.equal(kept[name], weight) for name, weight in others.items())


def test_an_adapter_is_trained_in_float32_and_merged_into_the_stored_base(
    policy: str, tmp_path: Path
) -> None:
    import torch
    from peft import PeftModel

    from workbench.policies.load import load_checkpoint
    from workbench.training.loading import _load_plain, save_merged, save_policy
    from workbench.training.recorder import RolloutRecorder
    from workbench.training.settings import LoRA

    trainee = _load_plain(policy, LoRA(4, 8, load_in_4bit=True))
    with RolloutRecorder(
        tmp_path, "m", run.grade, steps=SMALL.steps, done=0, max_failed=0.9
    ) as record:
        run.make_trainer(SMALL, trainee, record, tmp_path).train()
    save_policy(trainee, tmp_path / "run")
    assert {weight.dtype for weight in weights(tmp_path / "run").values()} == {torch.float32}
    assert weights_moved(tmp_path / "run")
    save_merged(trainee, tmp_path / "cold")
    found = load_checkpoint(str(tmp_path / "cold" / "policy"), device="cpu")[0].state_dict()
    whole = PeftModel.from_pretrained(
        load_checkpoint(policy, device="cpu")[0], str(tmp_path / "run" / "policy")
    )
    wanted = whole.merge_and_unload().to(torch.bfloat16).state_dict()
    assert all(found[name].equal(weight.float()) for name, weight in wanted.items())
