"""A base in 4 bits: what is asked of the loaders, where it is refused, what is kept exact, and
what the adapter is merged into.

The loading itself is tested by tests/engines/test_bitsandbytes.py on a CPU, and was never run on
a GPU.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

import tests.helpers.grpo_run as run
from tests.helpers.memory_run import asked
from tests.helpers.small_bench import make_bench
from tests.helpers.tiny_model import make_policy
from tests.test_grpo import SMALL
from workbench.config import scaled
from workbench.experiment import run_experiment
from workbench.plan import plan, shape_of
from workbench.plan.memory import four_bits
from workbench.policy import load_checkpoint
from workbench.recipes import TRAINED
from workbench.train.colocate import check_colocate
from workbench.train.dpo import DPO, train_dpo
from workbench.train.four_bits import check_four_bits
from workbench.train.grpo import GRPO, make_adapter, make_trainer, train_grpo
from workbench.train.models import Trainee, _load_plain, _load_unsloth, load_trainee, save_merged
from workbench.train.ppo import PPO, train_ppo
from workbench.train.record import Record
from workbench.train.reward_model import RewardModel, train_reward_model
from workbench.train.rows import Example, Pair
from workbench.train.scorer import Judged, Segment
from workbench.train.settings import LoRA
from workbench.train.sft import SFT, train_sft
from workbench.types import WorkbenchError

TRUTHRL = TRAINED["truthrl"]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_policy(tmp_path_factory.mktemp("base")))


@pytest.mark.parametrize("trainer", ["grpo", "ppo", "sft", "dpo", "reward_model"])
def test_every_trainer_refuses_it_without_a_gpu(
    trainer: str, policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    [question] = asked(1)
    four: dict[str, Any] = {"load_in_4bit": True}
    with pytest.raises(WorkbenchError, match="load_in_4bit is true, which needs a GPU"):
        if trainer == "grpo":
            train_grpo(
                scaled(GRPO(), **four), [question], run.grade, policy, tmp_path, method="m", seed=0
            )
        elif trainer == "ppo":
            train_ppo(
                scaled(PPO(), **four), [question], run.grade, policy, tmp_path, method="m", seed=0
            )
        elif trainer == "sft":
            train_sft(scaled(SFT(), **four), [Example(question, " yes")], policy, tmp_path, seed=0)
        elif trainer == "dpo":
            train_dpo(
                scaled(DPO(), **four), [Pair(question, " yes", " no")], policy, tmp_path, seed=0
            )
        else:
            train_reward_model(
                scaled(RewardModel(), **four),
                [Judged(question, " yes", (Segment(0, 4, 1),))],
                policy,
                tmp_path,
                seed=0,
            )
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_refused_before_its_first_evaluation_and_an_idle_part_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TRUTHRL.configure("tiny", ["truthrl.grpo.load_in_4bit=true"])
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(
        WorkbenchError, match=r"grpo\.lora\.load_in_4bit is true, which needs a GPU"
    ):
        run_experiment(TRUTHRL, config, make_bench(tmp_path / "policy"), tmp_path / "run", seed=1)
    assert not (tmp_path / "run").exists()
    check_four_bits(config, {"grpo"})
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None)
    with pytest.raises(WorkbenchError, match="needs bitsandbytes: `pip install"):
        check_four_bits(config)


def test_vllm_beside_it_is_refused() -> None:
    with pytest.raises(
        WorkbenchError, match="takes none in 4 bits: leave it false, or use vllm=none"
    ):
        check_colocate(scaled(GRPO(), vllm="colocate", load_in_4bit=True))
    check_colocate(scaled(GRPO(), load_in_4bit=True))


@pytest.mark.parametrize("wanted", [False, True])
def test_transformers_is_told_what_qlora_holds_a_base_in(
    wanted: bool, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModelForCausalLM

    told, load = {}, AutoModelForCausalLM.from_pretrained

    def noted(name: str, **options: Any) -> Any:
        told.update({one: options.pop(one, None) for one in ("quantization_config", "device_map")})
        return load(name, **options)

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", noted)
    trainee = _load_plain(policy, LoRA(4, 8, load_in_4bit=wanted))
    assert trainee.four_bits is wanted and all(
        w.dtype == torch.float32 for w in trainee.model.parameters() if w.requires_grad
    )
    assert told["device_map"] == ("cpu" if wanted else None)
    if not wanted:
        assert told["quantization_config"] is None
        return
    how = told["quantization_config"]
    assert (how.load_in_4bit, how.load_in_8bit, how.bnb_4bit_quant_type) == (True, False, "nf4")
    assert how.bnb_4bit_use_double_quant is True and how.bnb_4bit_compute_dtype is torch.bfloat16


@pytest.mark.parametrize("wanted", [False, True])
def test_unsloth_is_told(wanted: bool, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a stand-in with the arguments of its functions that we give: whether it has them, its
    own sources say elsewhere.
    """
    told: dict[str, Any] = {}

    class FastLanguageModel:
        @staticmethod
        def from_pretrained(
            model_name: str,
            *,
            max_seq_length: int,
            dtype: Any,
            load_in_4bit: bool,
            use_exact_model_name: bool,
            trust_remote_code: bool,
            use_gradient_checkpointing: Any,
        ) -> Any:
            told.update(load_in_4bit=load_in_4bit, exact=use_exact_model_name)
            return object(), SimpleNamespace()

        @staticmethod
        def get_peft_model(model: Any, **_: Any) -> Any:
            return model

    stand_in = ModuleType("unsloth")
    stand_in.FastLanguageModel = FastLanguageModel  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "unsloth", stand_in)
    trainee = _load_unsloth(policy, LoRA(4, 8, load_in_4bit=wanted), 0, 64)
    assert told == {"load_in_4bit": wanted, "exact": True} and trainee.four_bits is wanted


def test_the_adapter_stays_in_float32_where_trl_would_round_it(policy: str, tmp_path: Path) -> None:
    """TRL goes by what a quantised model says of itself; a step of 1e-6 to a weight of .1 is
    nothing in bfloat16.
    """
    trainee = load_trainee(policy, lora_r=4, lora_alpha=8, seed=1, unsloth=False)
    trainee.model.get_base_model().is_loaded_in_4bit = True
    with Record(tmp_path, "m", run.grade, steps=2, done=0, max_failed=0.9) as record:
        adapter = make_adapter(SMALL, record, run.QUESTIONS, trainee)
        trainer = make_trainer(SMALL, trainee, adapter, tmp_path, seed=1)
    learnt = [weight for weight in trainer.model.parameters() if weight.requires_grad]
    assert learnt and {weight.dtype for weight in learnt} == {torch.float32}


def test_a_cold_start_is_merged_into_the_base_as_it_is_stored(policy: str, tmp_path: Path) -> None:
    """Whose weights in memory are others: what 4 bits have made of them."""
    trainee = load_trainee(policy, lora_r=4, lora_alpha=8, seed=1, unsloth=False)
    for name, weight in trainee.model.named_parameters():
        if "lora_B" in name:
            weight.data += 0.1
    exact = load_trainee(policy, lora_r=4, lora_alpha=8, seed=1, unsloth=False).model
    exact.load_state_dict(trainee.model.state_dict())
    wanted = exact.merge_and_unload().to(torch.bfloat16).state_dict()
    for weight in trainee.model.parameters():
        weight.data += 0.0 if weight.requires_grad else 0.05
    save_merged(Trainee(trainee.model, trainee.tokenizer, "plain", four_bits=True), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]
    found = load_checkpoint(str(tmp_path / "policy"), device="cpu")[0].state_dict()
    assert all(found[name].equal(weight.float()) for name, weight in wanted.items())


def test_the_plan_counts_half_a_byte_for_the_layers_matrices() -> None:
    """By hand, of Qwen2.5-7B: 28 layers of 3,584 · 8,192 + 3 · 3,584 · 18,944 weights in 4 bits,
    one byte for 64 of them, four for 64 · 256; two for each of the others, and of the widest
    matrix."""
    matrices = 28 * (29_360_128 + 203_685_888)
    packed = 3_262_644_224 + 101_957_632 + 1_593_088
    assert (
        matrices == 6_525_288_448
        and packed == matrices // 2 + matrices // 64 + matrices // 64 // 256 * 4
    )
    whole = packed + 2 * (7_615_616_512 - matrices) + 2 * 3_584 * 18_944
    shape = shape_of("Qwen/Qwen2.5-7B-Instruct")
    assert four_bits(shape) == whole == 5_682_641_664
    told = ["truthrl.grpo.load_in_4bit=true"]
    for policy in ("Qwen/Qwen2.5-7B", "Qwen/Qwen3-14B", "meta-llama/Llama-3.1-70B"):
        less, usual = plan("truthrl", policy=policy, overrides=told), plan("truthrl", policy=policy)
        saved = 2 * usual["parameters"] - four_bits(shape_of(policy))
        for one, other in zip(less["phases"], usual["phases"], strict=True):
            held = saved if one["part"] else 0  # an evaluation loads the policy as it is stored
            assert other["bytes"]["weights"] - one["bytes"]["weights"] == held, one["phase"]
    with pytest.raises(
        WorkbenchError, match=r"truthrl\.grpo\.load_in_4bit is true, which needs a GPU: name one"
    ):
        plan("truthrl", "tiny", gpu="cpu", overrides=told)


@pytest.mark.parametrize("method", TRAINED)
def test_it_is_off_wherever_nobody_asks(method: str) -> None:
    from workbench.config import settings

    for scale in ("tiny", "small", "paper"):
        found = [
            value
            for name, value, _ in settings(TRAINED[method].configure(scale))
            if name.endswith("load_in_4bit")
        ]
        assert found and not any(found)
