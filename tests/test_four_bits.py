"""4-bit bases: options of the loaders, refusals, the adapter's precision, and merging.

tests/engines/test_bitsandbytes.py tests the loading itself on a CPU.
"""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

import tests.helpers.grpo_run as run
from tests.helpers.errors import raises_error
from tests.helpers.small_bench import make_bench
from tests.test_grpo import SMALL
from workbench.experiments.experiment import run_experiment
from workbench.methods import TRAINED
from workbench.policies.load import load_checkpoint
from workbench.training.grpo_config import GRPO, check_colocate
from workbench.training.loading import (
    Trainee,
    _load_plain,
    _load_unsloth,
    check_four_bits,
    save_merged,
)
from workbench.training.recorder import RolloutRecorder
from workbench.training.settings import LoRA
from workbench.util.config import scaled

TRUTHRL = TRAINED["truthrl"]


def test_loading_in_4_bits_without_a_gpu_is_refused(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with raises_error("load_in_4bit is true, which needs a GPU"):
        run.trainee_of(policy, load_in_4bit=True)


def test_a_run_is_refused_before_its_first_evaluation_and_unused_parts_are_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TRUTHRL.configure("tiny", ["truthrl.grpo.load_in_4bit=true"])
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with raises_error(r"grpo\.lora\.load_in_4bit is true, which needs a GPU"):
        run_experiment(TRUTHRL, config, make_bench(tmp_path / "policy"), tmp_path / "run", seed=1)
    assert not (tmp_path / "run").exists()
    check_four_bits(config, {"grpo"})
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None)
    with raises_error("needs bitsandbytes: `pip install"):
        check_four_bits(config)


def test_colocated_vllm_is_refused_for_4_bits() -> None:
    with raises_error("cannot read weights in 4 bits: set load_in_4bit=false or vllm=none"):
        check_colocate(scaled(GRPO(), vllm="colocate", load_in_4bit=True))
    check_colocate(scaled(GRPO(), load_in_4bit=True))


@pytest.mark.parametrize("wanted", [False, True])
def test_transformers_loads_the_base_with_the_quantisation_of_qlora(
    wanted: bool, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModelForCausalLM

    output, load = {}, AutoModelForCausalLM.from_pretrained

    def noted(name: str, **options: Any) -> Any:
        output.update(
            {one: options.pop(one, None) for one in ("quantization_config", "device_map")}
        )
        return load(name, **options)

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", noted)
    trainee = _load_plain(policy, LoRA(4, 8, load_in_4bit=wanted))
    assert trainee.four_bits is wanted and all(
        w.dtype == torch.float32 for w in trainee.model.parameters() if w.requires_grad
    )
    assert output["device_map"] == ("cpu" if wanted else None)
    if not wanted:
        assert output["quantization_config"] is None
        return
    how = output["quantization_config"]
    assert (how.load_in_4bit, how.load_in_8bit, how.bnb_4bit_quant_type) == (True, False, "nf4")
    assert how.bnb_4bit_use_double_quant is True and how.bnb_4bit_compute_dtype is torch.bfloat16


def test_unsloth_loads_the_named_model_in_4_bits(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    output: dict[str, Any] = {}

    class FastLanguageModel:
        @staticmethod
        def from_pretrained(model_name: str, **options: Any) -> Any:
            output.update(options)
            return object(), SimpleNamespace()

        @staticmethod
        def get_peft_model(model: Any, **_: Any) -> Any:
            return model

    stand_in = ModuleType("unsloth")
    stand_in.FastLanguageModel = FastLanguageModel  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "unsloth", stand_in)
    assert _load_unsloth(policy, LoRA(4, 8, load_in_4bit=True), 0, 64).four_bits
    assert output["load_in_4bit"] and output["use_exact_model_name"]


def test_the_adapter_stays_in_float32_where_trl_would_round_it(policy: str, tmp_path: Path) -> None:
    """TRL rounds the adapter if the model is marked as quantised; in bfloat16, a step of 1e-6 on a
    weight of .1 is lost.
    """
    trainee = run.trainee_of(policy, unsloth=False)
    trainee.model.get_base_model().is_loaded_in_4bit = True
    with RolloutRecorder(tmp_path, "m", run.grade, steps=2, done=0, max_failed=0.9) as record:
        trainer = run.make_trainer(SMALL, trainee, record, tmp_path)
    learnt = [weight for weight in trainer.model.parameters() if weight.requires_grad]
    assert learnt and {weight.dtype for weight in learnt} == {torch.float32}


def test_a_cold_start_is_merged_into_the_base_as_it_is_stored(policy: str, tmp_path: Path) -> None:
    """The weights in memory differ from the stored ones: they are rounded to 4 bits."""
    trainee = run.trainee_of(policy, unsloth=False)
    run.perturb(trainee.model)
    exact = run.trainee_of(policy, unsloth=False).model
    exact.load_state_dict(trainee.model.state_dict())
    wanted = exact.merge_and_unload().to(torch.bfloat16).state_dict()
    for weight in trainee.model.parameters():
        weight.data += 0.0 if weight.requires_grad else 0.05
    save_merged(Trainee(trainee.model, trainee.tokenizer, "plain", four_bits=True), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]
    found = load_checkpoint(str(tmp_path / "policy"), device="cpu")[0].state_dict()
    assert all(found[name].equal(weight.float()) for name, weight in wanted.items())
