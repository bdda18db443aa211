"""Unsloth's generated GRPO trainer on a CPU: loss and gradients equal plain TRL's, and our recipes
train with their settings.

`FastLanguageModel`, Unsloth's kernels and half precision need a GPU: see `tests/gpu`.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.engines.environment import needs
from tests.engines.measured import store
from tests.engines.unsloth_run import RECIPES, config_of
from tests.gpu.cuda_run import ADVANTAGES
from tests.helpers import log_python
from tests.helpers.credit import largest_difference, weights
from workbench.runs.folder import read_json
from workbench.runs.store import iter_feedback
from workbench.training.grpo_config import TRL_SCALES, estimator
from workbench.types import JsonObject
from workbench.util.jsonl import iter_rows

pytestmark = needs("unsloth")
LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo")
CASES = [f"{loss}/{rest}" for loss in LOSSES for rest in ("0", "0.05", "0.05/old")]


def child(folder: Path, module: str, *arguments: object, unsloth: bool = True) -> None:
    """Run a subprocess with Unsloth's trainer or TRL's, and check that this trainer was used."""
    env = {
        "UNSLOTH_ALLOW_CPU": str(int(unsloth)),
        "UNSLOTH_COMPILE_LOCATION": str(folder / "compiled"),
    }
    output = log_python(folder / "log", "-m", module, *arguments, env=env, timeout=400)
    assert ("training with unsloth LoRA" in output) is unsloth


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, JsonObject]:
    """Losses and gradients by both trainers on batches sampled by Unsloth's; a row is masked,
    prompts differ in length.
    """
    from safetensors.torch import load_file

    folder = tmp_path_factory.mktemp("losses")
    for path in ("unsloth", "plain"):
        child(
            folder, "tests.gpu.cuda_run", "losses", path, folder, *CASES, unsloth=path == "unsloth"
        )
    return {path: load_file(folder / f"{path}.safetensors") for path in ("plain", "unsloth")}


def apart(one: JsonObject, other: JsonObject, case: str, other_case: str) -> float:
    """The largest difference of two cases' gradients, relative to the first's largest entry."""
    names = [name.removeprefix(f"{case}/") for name in one if name.startswith(f"{case}/base_model")]
    assert names
    largest = max(float(one[f"{case}/{name}"].abs().max()) for name in names)
    return (
        max(
            float((one[f"{case}/{name}"] - other[f"{other_case}/{name}"]).abs().max())
            for name in names
        )
        / largest
    )


@pytest.mark.parametrize("kind", ADVANTAGES)
@pytest.mark.parametrize("case", CASES)
def test_loss_and_gradients_equal_plain_trls(
    both: dict[str, JsonObject], case: str, kind: str
) -> None:
    name, plain, unsloth = f"{case}/{kind}", both["plain"], both["unsloth"]
    loss = abs(float(unsloth[f"{name}/loss"]) - float(plain[f"{name}/loss"]))
    gradient = apart(plain, unsloth, name, name)
    assert float(plain[f"{name}/loss"]) != 0 and loss < 1e-6
    assert gradient < 1e-5
    store(
        "unsloth",
        {"max_loss_difference": {name: loss}, "max_gradient_difference": {name: gradient}},
    )


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_trains_with_unsloths_trainer_and_its_settings(name: str, tmp_path: Path) -> None:

    child(tmp_path, "tests.engines.unsloth_run", name, tmp_path / "run")
    out, settings = tmp_path / "run", config_of(name).grpo
    metrics, rows = list(iter_rows(out / "metrics.jsonl")), list(iter_feedback(out))
    assert [row["step"] for row in metrics] == [1, 2] and len(rows) == 2 * 8 * 4
    assert all(
        row["failed"] == 0 and row["grad_norm"] > 0 and row["entropy"] is None for row in metrics
    )
    assert all(weight.abs().max() > 0 for key, weight in weights(out).items() if "lora_B" in key)
    by_token = any(len(set(row.response.advantages or ())) > 1 for row in rows)
    assert by_token is (settings.advantages in ("process", "rtg"))

    arguments = read_json(out / "arguments.json")
    assert arguments is not None and arguments["trainer"] == "UnslothGRPOTrainer"
    assert {key: arguments[key] for key in asked_for(settings)} == asked_for(settings)
    store("unsloth", {"trained": {name: settings.loss_type}})


def test_sft_and_dpo_are_unchanged_after_unsloth_patched_trl(tmp_path: Path) -> None:
    for name, allowed in (("patched", "1"), ("plain", "0")):
        env = {"UNSLOTH_ALLOW_CPU": allowed, "UNSLOTH_COMPILE_LOCATION": str(tmp_path / "compiled")}
        words = ("-m", "tests.engines.unsloth_run", "offline", tmp_path / name)
        output = log_python(tmp_path / f"{name}.log", *words, env=env, timeout=400)
        assert ("Unsloth was imported" in output) is (name == "patched")
    for stage in ("SFT", "DPO"):
        assert largest_difference(tmp_path / "patched" / stage, tmp_path / "plain" / stage) < 1e-6


def asked_for(settings: Any) -> JsonObject:
    """The trainer's arguments by a recipe's settings; Unsloth's own defaults differ."""
    micro = settings.micro_batch or 32
    return {
        "loss_type": settings.loss_type,
        "beta": settings.kl.beta,
        "top_k": 0,
        "epsilon": settings.clip,
        "epsilon_high": settings.clip_high or settings.clip,
        "scale_rewards": TRL_SCALES.get(estimator(settings), "group"),
        "num_iterations": settings.iterations,
        "importance_sampling_level": "token",
        "use_bias_correction_kl": False,
        "learning_rate": settings.optim.learning_rate,
        "weight_decay": 0.0,
        "optim": "adamw_torch",
        "bf16": False,
        "fp16": False,
        "lr_scheduler_type": settings.optim.schedule,
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": 32 // micro,
    }
