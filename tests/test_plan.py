"""`workbench plan`: parameter counts, memory against measurements on a CPU, judge requests,
refusals."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scripted_judge import by_checksum
from tests.helpers import Cli, examples, printed, refusal, run_python, without, write_json
from tests.helpers.memory_run import ENVIRONMENT, WORDS
from workbench.experiments.plan import (
    GIB,
    forward_flops,
    judge_requests,
    learning,
    plan,
    read_training,
    sampling,
    saved_bytes,
    total,
)
from workbench.experiments.shape import shape_of
from workbench.judge import elements
from workbench.methods import METHODS, TRAINED
from workbench.training.grpo_config import GRPO
from workbench.training.offline import DPO, SFT
from workbench.training.ppo import PPO
from workbench.training.reward_model import RewardModel
from workbench.types import JsonObject, Passage, Prompt, Question, Reply, Response
from workbench.util.config import scaled
from workbench.verdicts.checks import judge_checks

TOLERANCE = 0.12  # of the formulas against the resident memory at a step's peak
PUBLISHED = {  # parameters of the models' safetensors
    "Qwen/Qwen2.5-0.5B": 494_032_768,
    "Qwen/Qwen2.5-7B-Instruct": 7_615_616_512,
    "Qwen/Qwen3-8B": 8_190_735_360,
    "meta-llama/Llama-3.1-70B-Instruct": 70_553_706_496,
}
CONFIG: JsonObject = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 256,
    "tie_word_embeddings": True,
}
SIZES = {
    "middle": {"model_type": "qwen2", "hidden_size": 192, "intermediate_size": 512}
    | {"num_hidden_layers": 6, "num_attention_heads": 6, "num_key_value_heads": 2},
    "large": {"model_type": "llama", "hidden_size": 256, "intermediate_size": 704}
    | {"num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 4},
}
TRAINERS = ("grpo", "ppo", "sft", "dpo", "reward_model")


def folder(path: Path, **config: Any) -> str:
    path.mkdir(exist_ok=True)
    write_json(path / "config.json", CONFIG | config)
    return str(path)


def test_parameter_counts_match_published_models_and_peft() -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    assert {name: shape_of(name).parameters for name in PUBLISHED} == PUBLISHED
    shape = shape_of("Qwen/Qwen3-0.6B")
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(shape.config)
    tuned = get_peft_model(model, LoraConfig(r=16, target_modules="all-linear"))
    assert 16 * shape.sides == sum(w.numel() for w in tuned.parameters() if w.requires_grad)


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("size", [4, 2], ids=["float32", "bfloat16"])
def test_saved_bytes_match_pytorch(kind: str, size: int, tmp_path: Path) -> None:
    """Autograd's saved tensors for models of two depths; the difference is due to the layers."""
    rank, rows, length = 8, 3, 40
    found = [saved(kind, size, layers, rank, rows, length) for layers in (2, 4)]
    part = scaled(SFT(), max_length=length, lora_r=rank)
    one = read_training("sft", part, 8, shape_of(folder(tmp_path, model_type=kind)), size)
    assert (found[1] - found[0]) / 2 == rows * length * saved_bytes(one)


def saved(kind: str, size: int, layers: int, rank: int, rows: int, length: int) -> int:
    """Bytes that autograd saves, without the weights, on the CPU in this precision."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = without(CONFIG, "model_type")
    config = AutoConfig.for_model(kind, **{**sizes, "num_hidden_layers": layers}, pad_token_id=0)
    model = AutoModelForCausalLM.from_config(config)
    model = model if size == 4 else model.to(torch.bfloat16)
    model = get_peft_model(model, LoraConfig(r=rank, target_modules="all-linear"))
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    seen: dict[int, Any] = {}

    def pack(tensor: Any) -> Any:
        if (place := tensor.untyped_storage().data_ptr()) not in weights:
            seen[place] = tensor
        return tensor

    ids = torch.ones(rows, length, dtype=torch.long)
    attention = torch.ones_like(ids)
    attention[0, :3] = 0  # a padded row, so that attention has a mask
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(input_ids=ids, attention_mask=attention, use_cache=False, logits_to_keep=1)
    return sum(tensor.untyped_storage().nbytes() for tensor in seen.values())


@pytest.mark.nightly
@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK),
    reason="this system does not report a process's peak",
)
def test_memory_matches_a_step_on_a_cpu(tmp_path: Path) -> None:
    """One step of each trainer on random models of 3 and 7 million parameters, with and without
    gradient checkpointing; the peak of the resident memory."""
    rows, tokens, rank = 16, 64, 16
    cases = [*product(["middle"], TRAINERS, (False, True))]
    cases += product(["large"], ("grpo", "sft"), (False, True))
    how = {"rows": rows, "tokens": tokens, "lora_r": rank}
    jobs = []
    for name, trainer, again in cases:
        sizes = {**SIZES[name]}
        kind = sizes.pop("model_type")
        jobs.append({"kind": kind, "sizes": sizes, "trainer": trainer, "again": again, **how})
    done = run_python("-m", "tests.helpers.memory_run", *map(json.dumps, jobs), env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-2000:]
    shares = {}
    for (name, trainer, again), line in zip(cases, done.stdout.splitlines(), strict=True):
        found = json.loads(line)
        sizes = {"vocab_size": len({*WORDS}) + 5 + 256, "max_position_embeddings": 1024}
        shape = shape_of(folder(tmp_path / name, **SIZES[name], **sizes))
        part: Any = {
            "grpo": scaled(GRPO(), prompts_per_step=rows // 2, group_size=2, max_new_tokens=tokens),
            "ppo": scaled(PPO(), prompts_per_step=rows, micro_batch=None, max_new_tokens=tokens),
            "sft": scaled(SFT(), batch=rows, max_length=found["row"]),
            "dpo": scaled(DPO(), batch=rows, max_length=found["row"]),
            "reward_model": scaled(RewardModel(), batch=rows, max_length=found["row"]),
        }[trainer]
        part = scaled(part, lora_r=rank, gradient_checkpointing=again)
        one = read_training(trainer, part, found["prompt"], shape, 4)
        predicted = max(sum(items.values()) for items in (learning(one), sampling(one)))
        shares[name, trainer, again] = round(predicted / found["bytes"] - 1, 3)
    print(shares)
    assert all(abs(share) <= TOLERANCE for share in shares.values()), shares


@pytest.mark.parametrize("method", TRAINED)
def test_every_method_fits_one_gpu_of_80_gb(method: str) -> None:
    found = plan(method, gpu="a100-80")
    assert found["fits"] is True and found["peak_bytes"] <= 79 * GIB
    assert "a100-80" in found["fits_on"] and (found["hours"] is None or found["hours"] > 0)


@pytest.mark.parametrize(("method", "setting", "remedy"), examples("too_large_plans"))
def test_a_plan_that_does_not_fit_names_the_settings_to_change(
    cli: Cli, method: str, setting: str, remedy: str
) -> None:
    status, out, said = cli(f"plan {method} --gpu a100-80 --set {setting}")
    assert status == 2 and "does not fit on a100-80" in out and remedy in said


def test_gradient_checkpointing_saves_memory_and_takes_longer() -> None:
    whole = ["truthrl.grpo.gradient_checkpointing=false"]
    slow, quick = plan("truthrl", gpu="h100-80"), plan("truthrl", gpu="h100-80", overrides=whole)
    assert slow["peak_bytes"] < quick["peak_bytes"] and slow["hours"] > quick["hours"]


def test_the_items_of_a_phase_by_hand() -> None:
    """TruthRL on Qwen2.5-7B: 7,615,616,512 weights of 2 bytes; an adapter of 64 · 28 · Σ(in + out)
    in float32 with its copy, gradients and Adam's moments; a cache of 2 · 29 layers · 512 keys · 2
    bytes for 128 rows of 2,560 tokens; the inputs of 28 layers."""
    found = plan("truthrl")
    rollouts, step = (phase["bytes"] for phase in found["phases"][1:])
    lora = 64 * 28 * (2 * (3584 + 3584) + 2 * (3584 + 512) + 3 * (3584 + 18944))
    assert found["lora_parameters"] == lora == 161_480_704
    assert step["weights"] == 2 * 7_615_616_512 and step["reward_models"] == 0
    assert [step[name] // lora for name in ("adapter", "gradients", "optimizer")] == [6, 4, 8]
    assert rollouts["kv_cache"] == 2 * 29 * 512 * 2 * 128 * 2560
    assert step["logits"] == 2048 * 8192 * (4 * 4 + 2)  # in chunks
    layer = 2 * (3 * 18944 + 4 * 3584 + 2560) + 4 * (18944 + 6 * 3584 + 7 * 64)
    layer += 4 * (2 * 3584 + 28 + 2)  # bytes per token that a recomputed layer saves
    inputs = 2 * 2560 * 28 * 3584 * 2
    assert step["activations"] == inputs + 2 * 2560 * (layer + 2 * 18944) - step["logits"]
    assert found["phases"][2]["total"] == total(step) == GIB + int(1.2 * sum(step.values()))
    four_bits = plan("truthrl", overrides=["truthrl.grpo.load_in_4bit=true"])["phases"]
    matrices = 28 * (29_360_128 + 203_685_888)  # half a byte, 1 of 64, 4 of 64 · 256
    packed = matrices // 2 + matrices // 64 + matrices // 64 // 256 * 4
    assert four_bits[2]["bytes"]["weights"] == packed + 2 * (7_615_616_512 - matrices)
    assert four_bits[0] == found["phases"][0]  # an evaluation loads the stored weights


@pytest.mark.parametrize(("method", "settings", "count"), examples("models_in_memory"))
def test_reward_models_are_counted_with_the_policy(
    method: str, settings: list[str], count: int
) -> None:
    found = plan(method, overrides=[f"{method}.{setting}" for setting in settings])
    one = 2 * 7_615_616_512 + 4 * found["lora_parameters"]
    assert found["phases"][-1]["bytes"]["reward_models"] == count * one


def test_training_on_stored_rows_needs_no_reward_model() -> None:
    dpo = plan("klcf", "paper", overrides=["klcf.trainer=dpo"])["phases"][-1]
    assert (dpo["phase"], dpo["bytes"]["reward_models"]) == ("DPO", 0)


def test_hours_by_hand() -> None:
    """A forward pass takes two operations per weight, except for the embedding lookup, plus
    attention. A step of DPO has two passes with recomputation, and the reference's pass."""
    shape = shape_of("Qwen/Qwen3-8B")
    weights = shape.parameters - 151_936 * 4096
    assert forward_flops(shape, 0) == pytest.approx(2 * weights, rel=1e-3)
    assert forward_flops(shape, 100) - forward_flops(shape, 0) == 2 * 36 * 100 * 4096
    found = plan("dpo", gpu="a100-80", overrides=["dpo.dpo.steps=10"])
    flops = forward_flops(shape_of("Qwen/Qwen2.5-7B"), 2048)
    seconds = 10 * found["responses_a_step"] * 2 * 2048 * 4 * flops / (0.3 * 312e12)
    assert found["hours"] == round(seconds / 3600, 2)
    assert plan("dpo", gpu="a100-80")["hours"] is None
    assert plan("truthrl", gpu="cpu")["hours"] is None


@pytest.mark.parametrize("method", METHODS)
def test_judge_requests_match_the_checks(method: str) -> None:
    """A response of three claims, through the method's own grader."""
    tasks = list[str]()

    def judge(prompts: Sequence[Prompt]) -> list[Reply]:
        tasks.extend(prompt.task for prompt in prompts)
        return [Reply(by_checksum(prompt.task, elements(prompt.text))) for prompt in prompts]

    sentences = ["The Aven is a river.", "Osk lies on the Aven.", "Lima is in Peru."]
    passage, text = Passage("p", "Aven", sentences[0]), " ".join(sentences)
    asked = Question("q", "What is the Aven?", ("a river",), passages=(passage,))
    asked = replace(asked, checklist=tuple(sentences[:2]))
    chosen = METHODS[method]
    config = chosen.config()
    answer = f"<think>{text}</think><answer>{text}</answer>" if method == "knowrl" else text
    [feedback] = chosen.grader(config, judge_checks(judge))([Response("r", asked, answer)])
    assert len(tasks) == judge_requests(chosen.checks(config), len(feedback.claims))


@pytest.mark.parametrize(
    ("method", "settings", "step"),
    [
        ("rlfh", [], 128 * (43 + 2)),  # 1,024 tokens: 43 claims
        ("truthrl", [], 64 * 8),
        ("klcf", ["klcf.rewarded=judge", "klcf.w_check=0"], 128 * (86 + 2)),
        ("forag", ["forag.rewarded=judge"], 128 * (43 + 2)),
    ],
)
def test_a_steps_requests_by_hand(method: str, settings: list[str], step: int) -> None:
    found = plan(method, overrides=settings)
    assert found["judge_requests"]["step"] == step
    assert found["judge_requests"]["run"] == step * (found["steps"] or 0)


@pytest.mark.parametrize(
    "changed",
    [*examples("unplanned_configs"), b"[" * 100_000, b"[1]"],
)
def test_an_invalid_model_config_is_refused(cli: Cli, tmp_path: Path, changed: Any) -> None:
    folder(tmp_path, **(changed if isinstance(changed, dict) else {}))
    if changed is None:
        (tmp_path / "config.json").unlink()
    elif isinstance(changed, bytes):
        (tmp_path / "config.json").write_bytes(changed)
    assert "Traceback" not in refusal(cli(f"plan truthrl --policy {tmp_path} --json"))


def test_the_command_shows_the_plan(cli: Cli, policy: str) -> None:
    status, out, said = cli("plan truthrl --gpu h200-141")
    assert status == 0 and "fits on h200-141" in out and "51,200 in total" in out
    assert "compared with one 7B model" in said
    tiny = f"plan truthrl --bench tiny --gpu cpu --policy {policy} --json"
    assert printed(cli(tiny))["fits"] is True
    anywhere = printed(cli("plan truthrl --json"))
    assert anywhere["fits"] is None and "a100-80" in anywhere["fits_on"]
