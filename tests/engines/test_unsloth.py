"""Unsloth's generated GRPO trainer on a CPU: its loss and gradients are plain TRL's, and our
recipes train by it as they say.

Its `FastLanguageModel`, its kernels and half precision need a GPU: `tests/gpu` looks at those.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engines.environment import ROOT, needs
from tests.engines.told import tell
from tests.engines.unsloth_run import RECIPES, config_of
from tests.gpu.cuda_run import ADVANTAGES
from workbench.jsonl import iter_rows
from workbench.runs.folder import read_json
from workbench.store import iter_feedback

pytestmark = needs("unsloth")
LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo")
CASES = [f"{loss}/{rest}" for loss in LOSSES for rest in ("0", "0.05", "0.05/old")]


def child(folder: Path, module: str, *arguments: object, unsloth: bool = True) -> None:
    """Run a process of its own, by Unsloth's trainer or by TRL's, and see that it was that."""
    environment = {
        **os.environ,
        "UNSLOTH_ALLOW_CPU": str(int(unsloth)),
        "UNSLOTH_COMPILE_LOCATION": str(folder / "compiled"),
    }
    command = [sys.executable, "-m", module, *map(str, arguments)]
    log = folder / "log"
    with log.open("w") as told:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=told, stderr=told, timeout=400
        )
    assert done.returncode == 0, log.read_text()[-8000:]
    assert ("training with unsloth LoRA" in log.read_text()) is (
        unsloth and "changed" not in arguments
    )


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Losses and gradients by both trainers on batches that Unsloth's sampled; a row is masked,
    prompts differ in length.
    """
    from safetensors.torch import load_file

    folder = tmp_path_factory.mktemp("losses")
    for path in ("unsloth", "plain"):
        child(
            folder, "tests.gpu.cuda_run", "losses", path, folder, *CASES, unsloth=path == "unsloth"
        )
    return {path: load_file(folder / f"{path}.safetensors") for path in ("plain", "unsloth")}


def apart(one: dict[str, Any], other: dict[str, Any], case: str, other_case: str) -> float:
    """The largest difference between two cases' gradients, as a share of the first's largest
    entry.
    """
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
def test_loss_and_gradients_are_plain_trls(
    both: dict[str, dict[str, Any]], case: str, kind: str
) -> None:
    name, plain, unsloth = f"{case}/{kind}", both["plain"], both["unsloth"]
    loss = abs(float(unsloth[f"{name}/loss"]) - float(plain[f"{name}/loss"]))
    gradient = apart(plain, unsloth, name, name)
    assert float(plain[f"{name}/loss"]) != 0 and loss < 1e-6
    assert gradient < 1e-5
    tell(
        "unsloth",
        {"max_loss_difference": {name: loss}, "max_gradient_difference": {name: gradient}},
    )


@pytest.mark.parametrize("case", CASES)
def test_the_cases_are_different_ones(both: dict[str, dict[str, Any]], case: str) -> None:
    """Else two trainers that look at nothing would agree, too."""
    plain, one = both["plain"], f"{case}/one"
    assert apart(plain, plain, one, f"{case}/constant") < 1e-5
    assert apart(plain, plain, one, f"{case}/varied") > 0.1
    if case.endswith("old"):  # and some tokens' ratios are clipped
        assert apart(plain, plain, one, f"{case.removesuffix('/old')}/one") > 1e-2


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_trains_by_unsloths_trainer_as_it_says(name: str, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    child(tmp_path, "tests.engines.unsloth_run", "train", name, tmp_path / "run")
    out, settings = tmp_path / "run", config_of(name).grpo
    metrics, rows = list(iter_rows(out / "metrics.jsonl")), list(iter_feedback(out))
    assert [row["step"] for row in metrics] == [1, 2] and len(rows) == 2 * 8 * 4
    assert all(
        row["failed"] == 0 and row["grad_norm"] > 0 and row["entropy"] is None for row in metrics
    )
    weights = load_file(out / "policy" / "adapter_model.safetensors")
    assert all(weight.abs().max() > 0 for key, weight in weights.items() if "lora_B" in key)
    by_token = any(len(set(row.response.advantages or ())) > 1 for row in rows)
    assert by_token is (settings.advantages in ("process", "rtg"))

    arguments = read_json(out / "arguments.json")
    assert arguments is not None and arguments["trainer"] == "UnslothGRPOTrainer"
    assert {key: arguments[key] for key in asked_for(settings)} == asked_for(settings)
    tell("unsloth", {"trained": {name: settings.loss_type}})


def asked_for(settings: Any) -> dict[str, Any]:
    """The trainer's arguments, as a recipe's settings have them; where Unsloth has values of its
    own they are others.
    """
    micro = settings.micro_batch or 32
    return {
        "loss_type": settings.loss_type,
        "beta": settings.kl.beta,
        "temperature": 0.9,
        "top_p": settings.sampling.top_p,
        "top_k": 0,
        "epsilon": settings.clip,
        "epsilon_high": settings.clip_high or settings.clip,
        "delta": None,
        "scale_rewards": "group",
        "max_completion_length": settings.sampling.max_new_tokens,
        "num_generations": 4,
        "num_iterations": settings.iterations,
        "mask_truncated_completions": False,
        "importance_sampling_level": "token",
        "use_bias_correction_kl": False,
        "learning_rate": settings.optim.learning_rate,
        "weight_decay": 0.0,
        "optim": "adamw_torch",
        "bf16": False,
        "fp16": False,
        "max_steps": 2 * settings.iterations,
        "lr_scheduler_type": settings.optim.schedule,
        "seed": 1,
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": 32 // micro,
        "generation_batch_size": 32,
    }


def test_what_unsloths_config_changes_in_silence_is_named(tmp_path: Path) -> None:
    child(tmp_path, "tests.engines.unsloth_run", "changed")


@pytest.mark.parametrize(
    ("function", "file", "owner"),
    [
        ("from_pretrained", "loader.py", "FastLanguageModel"),
        ("get_peft_model", "llama.py", "FastLlamaModel"),
    ],
)
def test_unsloth_has_each_argument_that_it_is_given(function: str, file: str, owner: str) -> None:
    """By their sources: the functions take any other keyword, too, and pass it on or over."""
    spec = importlib.util.find_spec("unsloth")
    assert spec is not None and spec.submodule_search_locations
    source = Path(spec.submodule_search_locations[0], "models", file)
    signature = next(
        part
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.ClassDef) and node.name == owner
        for part in node.body
        if isinstance(part, ast.FunctionDef) and part.name == function
    ).args
    known = {argument.arg for argument in (*signature.args, *signature.kwonlyargs)}
    assert len(known) > 15 and "use_gradient_checkpointing" in known
    given = given_to(function)
    assert None not in given and given <= known, f"{function} has no {given - known}"


def given_to(function: str) -> set[str | None]:
    """The keywords in our call of this function of `FastLanguageModel`; None for a `**`."""
    tree = ast.parse((ROOT / "workbench" / "train" / "models.py").read_text())
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"FastLanguageModel.{function}"
    ]
    assert len(calls) == 1
    return {keyword.arg for keyword in calls[0].keywords}
