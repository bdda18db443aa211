"""On a GPU: both loading paths train, and Unsloth's loss and gradients are plain TRL's."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.cuda_run import ADVANTAGES

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).resolve().parent.parent.parent
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
PATHS = ["plain", "unsloth"]


def launch(task: str, path: str, *files: Path) -> None:
    if path == "unsloth" and importlib.util.find_spec("unsloth") is None:
        pytest.skip("Unsloth is not installed")
    command = [sys.executable, "-m", "tests.gpu.cuda_run", task, path, *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | OFFLINE, capture_output=True, text=True, timeout=540)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]


@pytest.mark.parametrize("path", PATHS)
def test_truthrl_trains(path: str, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    from workbench.bench import bench
    from workbench.generate import generate
    from workbench.policy import load_policy

    launch("train", path, tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2]
    assert all(row["failed"] == 0 and row["grad_norm"] > 0 and row["entropy"] != 0 for row in rows)
    assert len((tmp_path / "rollouts.jsonl").read_text().splitlines()) == 2 * 8 * 4
    weights = load_file(tmp_path / "policy" / "adapter_model.safetensors")
    assert all(weight.abs().max() > 0 for name, weight in weights.items() if "lora_B" in name)

    policy = load_policy(tmp_path, base=bench("tiny").path("sft"))
    assert policy.model.dtype == torch.bfloat16 and policy.model.device.type == "cuda"
    responses = generate(policy, bench("tiny").questions("validation", ["single"])[:8], max_new_tokens=12, greedy=True)
    assert any(response.text for response in responses)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Losses and gradients of both paths on the batch that the Unsloth path sampled (it adds keys of its own to it)."""
    from safetensors.torch import load_file

    folder = tmp_path_factory.mktemp("losses")
    for path in reversed(PATHS):
        launch("losses", path, folder / f"{path}.safetensors", folder / "batch.safetensors")
    return {path: load_file(folder / f"{path}.safetensors") for path in PATHS}


@pytest.mark.parametrize("kind", ADVANTAGES)
def test_unsloth_equals_plain_trl(both: dict[str, dict[str, Any]], kind: str) -> None:
    """Within bf16. An (B, T) advantage broadcast to (B, B, T) would change loss and gradients by more than that."""
    plain, unsloth = both["plain"], both["unsloth"]
    assert plain.keys() == unsloth.keys()
    assert float(unsloth[f"{kind}/loss"]) == pytest.approx(float(plain[f"{kind}/loss"]), abs=0.01)
    names = [name for name in plain if name.startswith(f"{kind}/") and not name.endswith("/loss")]
    assert names
    difference = sum(float((plain[name] - unsloth[name]).square().sum()) for name in names) ** 0.5
    size = sum(float(plain[name].square().sum()) for name in names) ** 0.5
    assert size > 0
    assert difference / size < 0.05


@pytest.mark.parametrize("path", PATHS)
def test_token_advantages_that_are_constant_equal_one_a_response(both: dict[str, dict[str, Any]], path: str) -> None:
    results = both[path]
    for name in (name.removeprefix("one/") for name in results if name.startswith("one/")):
        assert (results[f"one/{name}"] - results[f"constant/{name}"]).abs().max() < 1e-5
    assert any((results[name] - results[name.replace("one/", "varied/")]).abs().max() > 0 for name in results if "one/" in name)
