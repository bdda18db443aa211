"""Damaged checkpoints and adapters: each is refused in one line before it is used."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import read_json, write_json
from tests.helpers.errors import raises_error
from workbench.policies import weights
from workbench.policies.load import load_policy
from workbench.types import JsonObject, WorkbenchError

Change = Callable[[Path], object]
LAYER = "model.layers.1.mlp.up_proj.weight"


def tensors(change: Callable[[JsonObject], None], file: str = "model.safetensors") -> Change:
    """Change the tensors of a file of weights."""

    def apply(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        weights = load_file(folder / file)
        change(weights)
        save_file(weights, folder / file, metadata={"format": "pt"})

    return apply


def put(name: str, value: float) -> Callable[[JsonObject], None]:
    """Put one number into a tensor."""
    return lambda weights: weights[name].view(-1)[3:4].fill_(value)


def renamed(weights: JsonObject) -> None:
    for name in list(weights):
        weights[name.replace("layers", "blocks")] = weights.pop(name)


def clipped(folder: Path, file: str = "model.safetensors") -> None:
    (folder / file).write_bytes((folder / file).read_bytes()[:5000])


def template(text: str) -> Change:
    return lambda folder: (folder / "chat_template.jinja").write_text(text)


def panicking(folder: Path) -> None:
    path = folder / "tokenizer.json"
    splits = {"type": "FixedLength", "length": 0}
    write_json(path, {**read_json(path), "pre_tokenizer": splits})


BROKEN: dict[str, tuple[Change, str]] = {
    "a layer is missing": (tensors(lambda w: w.pop(LAYER)), f"{LAYER} are missing"),
    "a layer is too many": (
        tensors(lambda w: w.update({"other.weight": w[LAYER].clone()})),
        "other.weight are not of this",
    ),
    "another shape": (
        tensors(lambda w: w.update({LAYER: w[LAYER][:5].clone()})),
        f"{LAYER} have another shape",
    ),
    "NaN": (tensors(put(LAYER, float("nan"))), f"'{LAYER}' is not finite"),
    "infinite": (
        tensors(put("model.norm.weight", float("inf"))),
        "'model.norm.weight' is not finite",
    ),
    "cut short": (clipped, "name a folder with config.json, model.safetensors"),
    "a tokenizer cut short": (
        lambda folder: clipped(folder, "tokenizer.json"),
        "name a folder with",
    ),
    "a tokenizer that panics": (panicking, "the tokenizer of .* crashed"),
    "an invalid chat template": (template("{% for x in %}"), "fix the chat template"),
    "an endless chat template": (
        template("{% for a in range(99999) %}" * 3 + "{% endfor %}" * 3),
        "more than 1 seconds",
    ),
    "2 GB of output": (template("{{ 'x' * 2000000000 }}"), "fix the chat template"),
    "2 GB by doubling": (
        template(
            "{% set ns = namespace(s='x') %}{% for a in range(31) %}"
            "{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}"
        ),
        "fix the chat template",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_checkpoint_is_refused_in_one_line(
    policy: str, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "TEMPLATE_SECONDS", 1)
    check_refused(Path(shutil.copytree(policy, tmp_path / "policy")), *BROKEN[name])


def check_refused(folder: Path, change: Change, message: str) -> None:
    load_policy(folder, device="cpu")
    change(folder)
    with raises_error(message) as refused:
        load_policy(folder, device="cpu")
    assert str(folder) in str(refused.value)


def config(**changes: Any) -> Change:
    def apply(folder: Path) -> None:
        path = folder / "adapter_config.json"
        write_json(path, {**read_json(path), **changes})

    return apply


A = "base_model.model.model.layers.0.mlp.down_proj.lora_A.weight"
OTHER = A.replace("layers.0", "layers.7")
WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"
BROKEN_ADAPTERS: dict[str, tuple[Change, str]] = {
    "its keys match nothing": (tensors(renamed, WEIGHTS), "are missing"),
    "a matrix is too many": (
        tensors(lambda w: w.update({OTHER: w[A].clone()}), WEIGHTS),
        "are not of this model",
    ),
    "of another rank": (config(r=2), "name an adapter and the base model"),
    "NaN": (tensors(put(A, float("nan")), WEIGHTS), "is not finite"),
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), f"no {WEIGHTS}"),
    "a list where its config should be": (
        lambda folder: (folder / CONFIG).write_text("[]"),
        "not a JSON object",
    ),
    "half a config": (lambda folder: (folder / CONFIG).write_text('{"r": 4, '), "cannot read"),
    "another kind of adapter": (config(peft_type="NO_SUCH"), "merge the adapter into its model"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN_ADAPTERS)
def test_a_broken_adapter_is_refused_in_one_line(grpo_run: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(grpo_run / "policy", tmp_path / "adapter"))
    (folder / "complete.json").unlink()  # like an adapter from another program
    check_refused(folder, *BROKEN_ADAPTERS[name])


@pytest.mark.parametrize("file", [WEIGHTS, "adapter_config.json", "tokenizer.json"])
def test_a_trained_policy_that_was_changed_is_refused(
    grpo_run: Path, tmp_path: Path, file: str
) -> None:
    out = Path(shutil.copytree(grpo_run, tmp_path / "run-3"))
    load_policy(out, device="cpu")
    damaged = bytearray((out / "policy" / file).read_bytes())
    damaged[-20] ^= 1  # another finite number
    (out / "policy" / file).write_bytes(damaged)
    with raises_error(f"{file}' is missing or changed since its training"):
        load_policy(out, device="cpu")
    (out / "policy" / file).unlink()
    with pytest.raises(WorkbenchError):
        load_policy(out, device="cpu")
