"""On a GPU: both loading paths train, and Unsloth's loss and gradients equal plain TRL's."""

import importlib.util
from pathlib import Path

import pytest

from tests.gpu.cuda_run import ADVANTAGES
from tests.helpers import log_python
from tests.helpers.credit import weights
from workbench.runs.checkpoints import metrics_rows
from workbench.types import JsonObject

pytestmark = pytest.mark.gpu
PATHS = ["plain", "unsloth"]
CASE = "grpo/0.05"  # see `cuda_run`


def launch(task: str, path: str, folder: Path, *cases: str) -> None:
    """Run a task on a loading path and check that it was used; `pytest -rA` shows the memory."""
    if path == "unsloth" and importlib.util.find_spec("unsloth") is None:
        pytest.skip("Unsloth is not installed")
    log, module = folder / f"{task}-{path}.log", "tests.gpu.cuda_run"
    output = log_python(log, "-m", module, task, path, folder, *cases, timeout=540)
    assert f"training with {path} LoRA" in output
    print(*(line for line in output.splitlines() if "GPU memory" in line), sep="\n")


@pytest.mark.parametrize("path", PATHS)
def test_truthrl_trains(path: str, tmp_path: Path) -> None:
    import torch

    from workbench.methods.bench import bench
    from workbench.policies.generate import generate
    from workbench.policies.load import load_policy

    launch("train", path, tmp_path)
    rows = metrics_rows(tmp_path)
    assert [row["step"] for row in rows] == [1, 2]
    assert all(row["failed"] == 0 and row["grad_norm"] > 0 for row in rows)
    # Unsloth's loss gives no entropy, which is not an entropy of 0.
    assert all(row["entropy"] is None if path == "unsloth" else row["entropy"] > 0 for row in rows)
    assert len((tmp_path / "rollouts.jsonl").read_text().splitlines()) == 2 * 8 * 4
    assert all(
        weight.abs().max() > 0 for name, weight in weights(tmp_path).items() if "lora_B" in name
    )

    policy = load_policy(tmp_path, base=bench("tiny").path("sft"))
    assert policy.model.dtype == torch.bfloat16 and policy.model.device.type == "cuda"
    responses = generate(
        policy,
        bench("tiny").questions("validation", ["single"])[:8],
        max_new_tokens=12,
        greedy=True,
    )
    assert any(response.text for response in responses)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, JsonObject]:
    """Losses and gradients of both paths, with a KL term, on the Unsloth path's batch (it adds
    keys).
    """
    from safetensors.torch import load_file

    folder = tmp_path_factory.mktemp("losses")
    for path in reversed(PATHS):
        launch("losses", path, folder, CASE)
    found = {path: load_file(folder / f"{path}.safetensors") for path in PATHS}
    return {
        path: {name.removeprefix(f"{CASE}/"): value for name, value in part.items()}
        for path, part in found.items()
    }


def apart(one: JsonObject, other: JsonObject, kind: str, other_kind: str) -> float:
    """The difference between the gradients of two kinds of advantages, relative to the first's
    norm.
    """
    names = [
        name.removeprefix(f"{kind}/")
        for name in one
        if name.startswith(f"{kind}/") and not name.endswith("/loss")
    ]
    size = sum(float(one[f"{kind}/{name}"].square().sum()) for name in names) ** 0.5
    difference = (
        sum(
            float((one[f"{kind}/{name}"] - other[f"{other_kind}/{name}"]).square().sum())
            for name in names
        )
        ** 0.5
    )
    assert names and size > 0
    print(
        f"{kind} and {other_kind}: gradients of size {size:.4g} are {difference / size:.2%} apart"
    )
    return difference / size


@pytest.mark.parametrize("kind", ADVANTAGES)
def test_unsloth_equals_plain_trl(both: dict[str, JsonObject], kind: str) -> None:
    """Within bf16. A (B, T) advantage broadcast to (B, B, T), or one column off, would change them
    more.
    """
    plain, unsloth = both["plain"], both["unsloth"]
    assert plain.keys() == unsloth.keys()
    print(f"losses {float(plain[f'{kind}/loss']):.5f} and {float(unsloth[f'{kind}/loss']):.5f}")
    assert float(unsloth[f"{kind}/loss"]) == pytest.approx(float(plain[f"{kind}/loss"]), abs=0.01)
    assert apart(plain, unsloth, kind, kind) < 0.05
