"""`workbench plan`: counts against transformers' and PEFT's, memory against what a CPU was
measured to take, refusals.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.memory_run import ENVIRONMENT, WORDS
from tests.helpers.tiny_model import make_policy
from workbench.config import scaled
from workbench.plan import memory, plan, shape_of
from workbench.plan.account import Machine, total
from workbench.plan.gpus import GIB, memory_here
from workbench.plan.phases import learnings, samplings
from workbench.plan.shapes import PUBLIC, read_shape
from workbench.plan.speed import forward_flops
from workbench.recipes import TRAINED
from workbench.train.dpo import DPO
from workbench.train.grpo import GRPO
from workbench.train.ppo import PPO
from workbench.train.reward_model import RewardModel
from workbench.train.sft import SFT
from workbench.types import WorkbenchError

Cli = Callable[..., tuple[int, str, str]]
TOLERANCE = 0.12  # of the formulas against what is resident at a step's peak
PUBLISHED = {  # parameters, as the models' safetensors have them
    "Qwen/Qwen2.5-0.5B": 494_032_768, "Qwen/Qwen2.5-7B-Instruct": 7_615_616_512, "Qwen/Qwen3-8B": 8_190_735_360,
    "meta-llama/Llama-3.2-1B-Instruct": 1_235_814_400, "meta-llama/Llama-3.1-8B": 8_030_261_248,
    "meta-llama/Llama-3.1-70B-Instruct": 70_553_706_496,
}  # fmt: skip
SIZES = {
    "middle": ("qwen2", {"hidden_size": 192, "intermediate_size": 512, "num_hidden_layers": 6, "num_attention_heads": 6,
                         "num_key_value_heads": 2}),
    "large": ("llama", {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 8, "num_attention_heads": 8,
                        "num_key_value_heads": 4}),
}  # fmt: skip
TRAINERS = ("grpo", "ppo", "sft", "dpo", "reward_model")
CONFIG: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 4, "vocab_size": 100, "max_position_embeddings": 256, "tie_word_embeddings": True,
}  # fmt: skip


def config_of(shape: Any) -> Any:
    """transformers' config of a shape."""
    from transformers import AutoConfig

    return AutoConfig.for_model(
        shape.type,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head,
        intermediate_size=shape.inner,
        vocab_size=shape.vocabulary,
        max_position_embeddings=shape.positions,
        tie_word_embeddings=shape.tied,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )


def empty_model(config: Any) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def with_adapter(model: Any, rank: int = 8) -> Any:
    from peft import LoraConfig, get_peft_model

    return get_peft_model(
        model,
        LoraConfig(r=rank, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"),
    )


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_are_those_of_transformers_own_model(name: str) -> None:
    shape = PUBLIC[name]
    model = empty_model(config := config_of(shape))
    assert shape.parameters == sum(weight.numel() for weight in model.parameters())
    assert read_shape(config.to_dict(), name) == shape  # the table says what its config.json would


def test_parameters_are_the_published_ones_by_any_of_the_models_names() -> None:
    assert {name: shape_of(name).parameters for name in PUBLISHED} == PUBLISHED


@pytest.mark.parametrize(
    "name", ["Qwen/Qwen2.5-0.5B", "Qwen/Qwen3-0.6B", "meta-llama/Llama-3.2-1B"]
)
def test_the_adapters_parameters_are_pefts(name: str) -> None:
    shape = PUBLIC[name]
    model = with_adapter(empty_model(config_of(shape)), rank=16)
    assert shape.lora(16) == sum(
        weight.numel() for weight in model.parameters() if weight.requires_grad
    )


def test_biases_are_counted_where_a_config_has_them() -> None:
    from transformers import LlamaConfig

    config = LlamaConfig(
        **{**CONFIG, "attention_bias": True, "mlp_bias": True, "num_key_value_heads": 2}
    )
    assert read_shape(config.to_dict(), "it").parameters == sum(
        w.numel() for w in empty_model(config).parameters()
    )


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("how", [memory.FP32, memory.AMP, memory.BF16], ids=["fp32", "amp", "bf16"])
def test_what_a_layer_keeps_is_what_pytorch_saves(kind: str, how: memory.Precision) -> None:
    """Every tensor that autograd saves in a forward pass, of two depths: the difference is that
    of the layers.
    """
    rank, rows, length = 8, 3, 40
    found = [saved(kind, how, layers, rank, rows, length) for layers in (2, 4)]
    shape = read_shape(
        {**CONFIG, "model_type": kind, "num_key_value_heads": 2, "head_dim": 24}, "it"
    )
    # of the adapter, under autocast, which are counted by themselves
    copies = how.copy * shape.lora(rank) // shape.layers
    assert (found[1] - found[0]) / 2 - copies == rows * length * memory.kept(
        shape, how, rank, length
    )


def saved(kind: str, how: memory.Precision, layers: int, rank: int, rows: int, length: int) -> int:
    """Bytes that autograd saves beside the weights, on the CPU in that precision."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = {**CONFIG, "num_hidden_layers": layers, "num_key_value_heads": 2, "head_dim": 24}
    del sizes["model_type"]
    config = AutoConfig.for_model(kind, **sizes, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    model = AutoModelForCausalLM.from_config(config)
    model = with_adapter(model if how is memory.FP32 else model.to(torch.bfloat16), rank)
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    seen: dict[int, Any] = {}

    def pack(tensor: Any) -> Any:
        place = tensor.untyped_storage()
        if place.data_ptr() not in weights:
            seen[place.data_ptr()] = tensor
        return tensor

    autocast = (
        torch.autocast("cpu", torch.bfloat16) if how is memory.AMP else contextlib.nullcontext()
    )
    ids, attention = (
        torch.ones(rows, length, dtype=torch.long),
        torch.ones(rows, length, dtype=torch.long),
    )
    attention[0, :3] = 0  # a padded row: attention goes by a mask
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), autocast:
        model(input_ids=ids, attention_mask=attention, use_cache=False, logits_to_keep=1)
    return sum(tensor.untyped_storage().nbytes() for tensor in seen.values())


def measure(jobs: list[dict[str, Any]]) -> list[dict[str, int]]:
    """What each job took at most, in a process of their own, and how long its prompts and rows
    were.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.helpers.memory_run", *map(json.dumps, jobs)],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def predicted(
    kind: str,
    sizes: dict[str, int],
    trainer: str,
    again: bool,
    rows: int,
    tokens: int,
    lora_r: int,
    prompt: int,
    row: int,
) -> int:
    """The same by the formulas, without what they add for libraries and fragments."""
    told = {
        "model_type": kind,
        "vocab_size": len({*WORDS}) + 5 + 256,
        "max_position_embeddings": 1024,
    }
    shape = read_shape({**sizes, **told, "tie_word_embeddings": True}, "")
    parts: dict[str, Any] = {
        "grpo": scaled(GRPO(), prompts_per_step=rows // 2, group_size=2, max_new_tokens=tokens),
        "ppo": scaled(PPO(), prompts_per_step=rows, micro_batch=None, max_new_tokens=tokens),
        "sft": scaled(SFT(), batch=rows, max_length=row),
        "dpo": scaled(DPO(), batch=rows, max_length=row),
        "reward_model": scaled(RewardModel(), batch=rows, max_length=row),
    }
    used = {trainer: replace(parts[trainer], lora_r=lora_r, gradient_checkpointing=again)}
    machine = Machine(shape, on_cpu=True)
    learnt = learnings(used, prompt, shape.positions)
    phases = [machine.learning(learnt[0])]
    phases += [
        machine.sampling(one, learnt[0])
        for one in samplings(used, shape, prompt, tokens)
        if one.part
    ]
    return max(total(items) - items["reserve"] for items in phases)


@pytest.mark.slow
@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK),
    reason="this system does not tell a process's peak",
)
def test_memory_is_what_a_step_takes_on_a_cpu() -> None:
    """Two random models of 3 and 7 million parameters, one whole step of each real trainer,
    resident memory at its peak, with activations kept and computed again."""
    rows, tokens, rank = 16, 64, 16
    how = {"rows": rows, "tokens": tokens, "lora_r": rank}
    cases = [
        *product(["middle"], TRAINERS, (False, True)),
        *product(["large"], ("grpo", "sft"), (False, True)),
    ]
    jobs = [
        {"kind": SIZES[name][0], "sizes": SIZES[name][1], "trainer": trainer, "again": again, **how}
        for name, trainer, again in cases
    ]
    shares = {}
    for (name, trainer, again), found in zip(cases, measure(jobs), strict=True):
        taken = found["bytes"]
        shares[trainer, name, again] = round(
            predicted(
                *SIZES[name], trainer, again, rows, tokens, rank, found["prompt"], found["row"]
            )
            / taken
            - 1,
            3,
        )
    print(shares)
    assert len(shares) == 14 and all(abs(share) <= TOLERANCE for share in shares.values()), shares


def test_the_largest_micro_batch_is_the_largest_that_fits_and_is_what_a_refusal_names() -> None:
    found = plan("truthrl", gpu="a100-80", overrides=["truthrl.grpo.micro_batch=16"])
    assert found["fits"] is False and found["remedies"][-1].endswith(
        "--set truthrl.grpo.micro_batch=8"
    )
    assert found["largest_micro_batch"] == 8
    for micro, fits in ((1, True), (4, True), (8, True), (16, False), (32, False)):
        assert (
            plan("truthrl", gpu="a100-80", overrides=[f"truthrl.grpo.micro_batch={micro}"])["fits"]
            is fits
        )


@pytest.mark.parametrize("method", TRAINED)
def test_every_method_fits_one_gpu_of_80_gb_as_it_is(method: str) -> None:
    found = plan(method, gpu="a100-80")
    assert found["fits"] is True and not found["remedies"]


@pytest.mark.parametrize("method", TRAINED)
def test_what_is_named_as_a_remedy_fits(method: str) -> None:
    chosen = TRAINED[method]
    settings = [f"{method}.{chosen.training(chosen.configure()).trainer}.micro_batch=none"]
    for _ in range(8):
        found = plan(method, gpu="a100-80", overrides=settings)
        if not found["remedies"]:
            break
        settings += found["remedies"][0].partition("--set ")[2].replace("--set ", "").split()
    assert found["fits"] is True and found["peak_bytes"] <= 79 * GIB
    assert (
        "a100-80" in found["fits_on"]
        and found["fits_on"] == plan(method, overrides=settings)["fits_on"]
    )


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("truthrl", {"grpo.max_new_tokens": 30000}),
        ("truthrl", {"grpo.max_new_tokens": 8192, "grpo.micro_batch": 1}),
        ("rlfh", {"ppo.max_new_tokens": 8192, "ppo.prompts_per_step": 1024}),
        ("dpo", {"dpo.max_length": 32000}),
        ("truthrl", {"grpo.generation_batch": 512}),
    ],
)
def test_remedies_for_longer_texts_lead_to_what_fits(method: str, settings: dict[str, int]) -> None:
    chosen = [f"{method}.{name}={value}" for name, value in settings.items()]
    for _ in range(8):
        found = plan(method, gpu="h200-141", policy="Qwen/Qwen2.5-3B", overrides=chosen)
        remedies = [one.partition("--set ")[2] for one in found["remedies"] if "--set" in one]
        if not remedies:
            break
        chosen += remedies[0].replace("--set ", "").split()
    assert found["fits"] or all("no setting changes" in one for one in found["remedies"]), (
        chosen,
        found["remedies"],
    )


def test_a_phase_holds_what_it_says_by_hand() -> None:
    """TruthRL on Qwen2.5-7B: 7,615,616,512 weights of 2 bytes; 64 · 28 · Σ(in + out) of an
    adapter in float32 with its copy, its gradients and Adam's moments; 2 · 28 layers · 512 keys
    · 2 bytes of 128 rows of 2,560 tokens, and one layer more."""
    found = plan("truthrl", gpu="h200-141")
    rollouts, _, learning = (phase["bytes"] for phase in found["phases"])
    lora = 64 * 28 * (2 * (3584 + 3584) + 2 * (3584 + 512) + 3 * (3584 + 18944))
    assert found["lora_parameters"] == lora == 161_480_704
    assert (
        learning["weights"] == 2 * 7_615_616_512
        and learning["held_models"] == learning["judge"] == 0
    )
    assert (learning["adapter"], learning["gradients"], learning["optimizer"]) == (
        6 * lora,
        4 * lora,
        8 * lora,
    )
    assert rollouts["kv_cache"] == 2 * 29 * 512 * 2 * 128 * 2560
    assert found["rows_per_step"] == 512 and found["tokens_per_step"] == 512 * 2560


def test_models_that_pay_and_judge_are_counted_where_they_are_there() -> None:
    def learning(method: str, **more: Any) -> dict[str, int]:
        return plan(method, gpu="h200-141", **more)["phases"][-1]["bytes"]

    assert learning("forag")["held_models"] > 2 * 7_615_616_512
    assert learning("forag", overrides=["forag.rewarded=judge"])["held_models"] == 0
    assert learning("rlfh")["held_models"] == 0
    assert learning("rlfh", overrides=["rlfh.annotator=self"])["held_models"] > 2 * 7_615_616_512
    judge = PUBLIC["meta-llama/Llama-3.1-8B"]
    assert (
        learning("rlfh", judge="meta-llama/Llama-3.1-8B")["judge"]
        == 2 * judge.parameters + 2 * 33 * 1024 * 2 * 8 * 4096
    )


def test_every_model_that_pays_in_klcf_is_counted_once_by_hand() -> None:
    """Each is the policy's weights in two bytes, and its adapter in four."""
    one = 2 * 7_615_616_512 + 4 * plan("klcf")["lora_parameters"]

    def found(*settings: str) -> dict[str, Any]:
        return plan("klcf", overrides=[f"klcf.{text}" for text in settings])

    def held(*settings: str) -> int:
        return found(*settings)["phases"][-1]["bytes"]["held_models"]

    assert held() == held("rewarded=confidence") == one and held("rewarded=judge") == 0
    assert held("w_general=1") == 2 * one and held("w_general=1", "rewarded=judge") == one
    assert "is not counted" not in found("w_general=1")["note"]
    named = ("w_general=1", "general=some/classifier")
    assert (
        held(*named) == one
        and "some/classifier, which the reward has in memory besides" in found(*named)["note"]
    )


def test_models_that_pay_samples_of_a_stage_are_counted_there() -> None:
    """KLCF's DPO learns from samples that were paid before; where a training is paid, they are
    there beside that alone.
    """

    def sampled(*settings: str) -> int:
        phases = plan("klcf", overrides=[f"klcf.{text}" for text in settings])["phases"]
        return next(one for one in phases if one["phase"].startswith("answers"))["bytes"][
            "held_models"
        ]

    assert sampled() == sampled("trainer=dpo", "rewarded=judge") == 0
    assert sampled("trainer=dpo", "w_general=1") == 2 * sampled("trainer=dpo") > 4 * 7_615_616_512


@pytest.mark.parametrize(
    ("files", "line", "allowed"),
    [
        ({"memory.max": "1000000"}, "0::/", 1_000_000),
        ({"memory.max": "max"}, "0::/", None),
        ({}, "0::/a/b", None),
        ({"memory/memory.limit_in_bytes": "2000000"}, "4:memory:/", 2_000_000),
        ({"memory.max": "0"}, "0::/", None),
        ({"memory/memory.limit_in_bytes": str(2**63 - 4096)}, "4:memory:/", None),
        ({"memory.max": "?"}, "", None),
        ({"a/memory.max": "3000000", "a/b/memory.max": "max"}, "0::/a/b", 3_000_000),
        (
            {"memory/a:1/memory.limit_in_bytes": "4000000"},
            "9:cpu:/a\n4:cpu,memory:/a:1/b",
            4_000_000,
        ),
        ({"a/memory.max": "5000000"}, "4:cpu:/a", None),
    ],
)
def test_memory_here_is_what_control_groups_allow(
    tmp_path: Path, files: dict[str, str], line: str, allowed: int | None
) -> None:
    nothing, own = tmp_path / "nothing", tmp_path / "own"
    own.write_text(line + "\n")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert memory_here(tmp_path, own) == (allowed or memory_here(nothing, nothing))


def test_checkpointing_keeps_every_layers_input_and_computes_one_layer_again() -> None:
    """By hand: of TruthRL's two rows the logits are more than a layer, of FoRAG's reward model
    there are none.
    """
    shape = PUBLIC["Qwen/Qwen2.5-7B"]
    [*_, learning] = plan("truthrl")["phases"]
    assert learning["bytes"]["activations"] == 2 * 2560 * 28 * 3584 * 2
    [*_, model, _] = plan("forag")["phases"]
    assert model["phase"] == "RewardModel of reward_model" and model["bytes"]["logits"] == 0
    assert model["bytes"]["activations"] == 4096 * (
        28 * 3584 * 2 + memory.kept(shape, memory.BF16, 16, 4096) + 2 * 18944
    )
    assert memory.activations(shape, memory.AMP, 64, 2, 1000) == 2000 * 28 * memory.kept(
        shape, memory.AMP, 64, 1000
    )


def test_checkpointing_is_the_first_remedy() -> None:
    kept = "truthrl.grpo.gradient_checkpointing=false"
    [remedy] = plan("truthrl", gpu="a100-80", overrides=[kept, "truthrl.grpo.micro_batch=4"])[
        "remedies"
    ]
    assert remedy.endswith("--set truthrl.grpo.gradient_checkpointing=true")
    [remedy] = plan("truthrl", gpu="a100-80", overrides=[kept, "truthrl.grpo.micro_batch=16"])[
        "remedies"
    ]
    assert remedy.endswith(
        "--set truthrl.grpo.gradient_checkpointing=true --set truthrl.grpo.micro_batch=8"
    )
    slow, quick = plan("truthrl", gpu="h100-80"), plan("truthrl", gpu="h100-80", overrides=[kept])
    assert slow["peak_bytes"] < quick["peak_bytes"] and slow["hours"] > quick["hours"]


def test_more_is_never_less() -> None:
    """Whatever grows, memory and time do not shrink."""
    base = {
        "micro_batch": 4,
        "max_new_tokens": 256,
        "group_size": 4,
        "prompts_per_step": 32,
        "generation_batch": 64,
    }

    def peak(gpu: str = "h200-141", **changed: int) -> tuple[int, float]:
        settings = [f"truthrl.grpo.{name}={value}" for name, value in {**base, **changed}.items()]
        found = plan("truthrl", gpu=gpu, overrides=settings)
        return found["peak_bytes"], found["hours"]

    usual = peak()
    grown = {"micro_batch": 64, "max_new_tokens": 4096, "lora_r": 512, "prompts_per_step": 3200}
    for name, value in grown.items():
        assert all(
            new >= old for new, old in zip(peak("h200-141", **{name: value}), usual, strict=True)
        ), name
    assert peak(generation_batch=128)[0] >= usual[0] and peak(gpu="l4-24")[1] > usual[1]


def test_time_is_what_the_assumptions_make_of_it() -> None:
    """A forward pass of one token: two operations a weight but for the embeddings that are
    looked up, and attention's.
    """
    shape = PUBLIC["Qwen/Qwen3-8B"]
    # the input's embeddings are no matrix product
    weights = shape.parameters - shape.vocabulary * shape.hidden
    assert forward_flops(shape, 0) == pytest.approx(2 * weights, rel=1e-3)
    assert forward_flops(shape, 100) - forward_flops(shape, 0) == 2 * 36 * 100 * 4096
    found = plan("truthrl", gpu="a100-80")
    assert (
        "assumed, not measured" in found["assumed"] and "never measured on a GPU" in found["note"]
    )
    assert plan("dpo", gpu="a100-80")["hours"] is None and plan("dpo", gpu="a100-80")[
        "untimed"
    ] == ["dpo"]
    assert plan("truthrl", gpu="cpu")["hours"] is None


@pytest.mark.parametrize(
    ("method", "settings", "told"),
    [
        ("truthrl", ["truthrl.grpo.max_new_tokens=1000000000"], "has positions for 32256"),
        ("rlfh", ["rlfh.ppo.max_new_tokens=32768"], "has positions for 32256"),
        ("truthrl", ["truthrl.grpo.group_size=1000000"], "each must divide the one before"),
        ("truthrl", ["truthrl.grpo.steps=" + "9" * 400], "is above 1,000,000,000,000"),
        ("truthrl", ["truthrl.grpo.micro_batch=-4"], "do not split"),
        ("truthrl", ["truthrl.grpo.lora_r=0"], "lora_r is 0"),
        ("truthrl", ["truthrl.grpo.temperature=nan"], "finite"),
        ("knowrl", ["knowrl.sft.micro_batch=5"], "it must divide batch"),
        ("truthrl", ["truthrl.ppo.steps=1"], "has no field"),
        ("nobody", [], "no method 'nobody'"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    cli: Cli, method: str, settings: list[str], told: str
) -> None:
    chosen = [text for one in settings for text in ("--set", one)]
    status, out, said = cli("plan", method, "--gpu", "a100-80", *chosen, "--json")
    assert (status, out) == (2, "") and told in said and len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"group_size": 10**6, "generation_batch": "none", "micro_batch": "none"},
        {"group_size": 10**6, "generation_batch": 64 * 10**6, "micro_batch": 1},
        {"prompts_per_step": 10**11, "generation_batch": "none", "micro_batch": "none"},
        {"lora_r": 10**9},
    ],
)
def test_what_fits_nowhere_is_told_with_what_to_turn(cli: Cli, settings: dict[str, Any]) -> None:
    chosen = [
        text
        for name, value in settings.items()
        for text in ("--set", f"truthrl.grpo.{name}={value}")
    ]
    status, out, said = cli("plan", "truthrl", "--gpu", "h200-141", *chosen, "--json")
    found = json.loads(out)
    assert (
        status == 2
        and found["fits"] is False
        and found["remedies"]
        and found["peak_bytes"] > 139 * GIB
    )
    assert all(remedy in said for remedy in found["remedies"])
    knobs = ("generation_batch=", "micro_batch=", "group_size=", "smaller --policy")
    assert all(any(knob in remedy for knob in knobs) for remedy in found["remedies"])


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"hidden_size": -64}, "hidden_size is -64"),
        ({"hidden_size": "64"}, "hidden_size is 64"),
        ({"num_hidden_layers": 2.0}, "num_hidden_layers is 2.0"),
        ({"num_hidden_layers": True}, "num_hidden_layers is True"),
        ({"vocab_size": None}, "vocab_size is missing"),
        ({"vocab_size": 10**12}, "vocab_size is 1000000000000"),
        ({"num_attention_heads": 7}, "do not divide"),
        ({"num_key_value_heads": 3}, "do not divide"),
        ({"tie_word_embeddings": "yes"}, "has to be true or false"),
        ({"model_type": "mixtral"}, "type 'mixtral'"),
        ({"model_type": "qwen3_moe"}, "type 'qwen3_moe'"),
        ({"model_type": None}, "type 'None'"),
        ({"num_experts": 8}, "with num_experts"),
        ({"num_local_experts": 8}, "with num_local_experts"),
        ({"quantization_config": {"bits": 4}}, "with quantization_config"),
        ({"use_sliding_window": True}, "with windows"),
        ({"layer_types": ["sliding_attention", "full_attention"]}, "with windows"),
        ({"model_type": ["llama"]}, "of type"),
    ],
)
def test_a_config_that_cannot_be_right_is_refused(
    cli: Cli, tmp_path: Path, changed: dict[str, Any], told: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | changed))
    status, out, said = cli("plan", "truthrl", "--policy", tmp_path, "--json")
    assert (status, out) == (2, "") and told in said and len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[1]", b"7", b'{"hidden_size": 1, "hidden_size": 2}', b"[" * 100_000, b"\xff"],
)
def test_a_damaged_config_is_refused(cli: Cli, tmp_path: Path, text: bytes) -> None:
    (tmp_path / "config.json").write_bytes(text)
    status, out, said = cli("plan", "truthrl", "--policy", tmp_path, "--json")
    assert (status, out) == (2, "") and "config.json" in said


def test_a_config_that_is_not_of_the_weights_beside_it_is_refused(cli: Cli, tmp_path: Path) -> None:
    policy = make_policy(tmp_path / "policy")
    settings = ["--set", "truthrl.grpo.max_new_tokens=64", "--bench", "tiny"]
    status, out, _ = cli("plan", "truthrl", "--policy", policy, *settings, "--json")
    assert status == 0 and json.loads(out)["shape"]["layers"] == 2
    config = json.loads((policy / "config.json").read_text())
    (policy / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 1}))
    status, out, said = cli("plan", "truthrl", "--policy", policy, *settings, "--json")
    assert (status, out) == (2, "") and "the weights beside it" in said
    for damaged in (b"\xff" * 8, b"\x02\0\0\0\0\0\0\0[]", b'\x0f\0\0\0\0\0\0\0{"a":{"b":[1]}}'):
        (policy / "model.safetensors").write_bytes(damaged)
        assert cli("plan", "truthrl", "--policy", policy, *settings)[0] == 2


def test_names_that_are_not_there_are_refused_without_a_network(cli: Cli, tmp_path: Path) -> None:
    for more, told in (
        (["--policy", "nobody/nothing-7b"], "is not known here"),
        (["--gpu", "a100"], "choose one of l4-24"),
        (["--bench", "huge"], "choose one of tiny"),
        (["--policy", tmp_path], "has no config.json"),
        (["--judge-here", "nobody/nothing-7b"], "is not known here"),
        (["--prompt-tokens", "40000"], "set --prompt-tokens below that"),
        (["--prompt-tokens", "32768"], "leaves an answer none of the 32768 positions"),
        (["--prompt-tokens", "32767"], "has positions for 1; set at most that"),
    ):
        status, out, said = cli("plan", "truthrl", *more)
        assert (status, out) == (2, "") and told in said, more


def test_an_adapter_is_no_model_to_start_from(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(WorkbenchError, match="training starts from a whole model"):
        plan("truthrl", policy=str(tmp_path))


def test_the_command_shows_the_plan_and_refuses_by_its_exit_code(cli: Cli) -> None:
    status, out, said = cli("plan", "truthrl", "--gpu", "h200-141")
    assert (
        status == 0
        and "fits on h200-141" in out
        and "never measured on a GPU" in said
        and "assumed, not measured" in said
    )
    status, out, said = cli(
        "plan", "truthrl", "--gpu", "a100-80", "--set", "truthrl.grpo.micro_batch=16"
    )
    assert (
        status == 2
        and "does not fit on a100-80" in out
        and "--set truthrl.grpo.micro_batch=8" in said
    )
    status, out, _ = cli("plan", "truthrl", "--bench", "tiny", "--gpu", "cpu")
    assert status == 0 and "activations" in out
    status, out, _ = cli("plan", "truthrl", "--json")
    assert (
        status == 0 and json.loads(out)["fits"] is None and "a100-80" in json.loads(out)["fits_on"]
    )
    # none has that much
    assert cli("plan", "truthrl", "--policy", "meta-llama/Llama-3.1-70B", "--json")[0] == 2
