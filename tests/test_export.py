"""An adapter merged into its base: the same policy, as one checkpoint, with a card."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.tiny_model import make_policy
from workbench.export import card, export_merged
from workbench.policy import load_policy
from workbench.types import WorkbenchError


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run with an adapter that changes what its base says."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    base, out = make_policy(tmp_path / "base"), tmp_path / "run"
    torch.manual_seed(0)
    config = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
    get_peft_model(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), config).save_pretrained(out / "policy")
    AutoTokenizer.from_pretrained(base).save_pretrained(out / "policy")
    config = {"prompts": {"system": "Be brief.\nBe right."}}
    about = {"method": "truthrl", "bench": "small", "seed": 3, "versions": {"trl": "1.0"}, "config": config}
    (out / "config.json").write_text(json.dumps(about))
    greedy = {"n": 9, "accuracy": {"value": 0.5, "low": 0.25, "high": 0.75}, "abstention": {"value": None}}
    after = {"n": 9, "split": "validation", "greedy": greedy}
    (out / "summary.json").write_text(json.dumps({"status": "done", "after": after}))
    return out


def logits(policy: Path, **options: Any) -> Any:
    import torch

    loaded = load_policy(policy, device="cpu", **options)
    with torch.no_grad():
        return loaded.model(input_ids=torch.tensor([[5, 6, 7, 8]])).logits


def test_the_merged_policy_is_the_adapters(run: Path, tmp_path: Path) -> None:
    import torch

    done = export_merged(str(run), tmp_path / "merged", dtype="float32")
    assert done["dtype"] == "float32" and done["parameters"] > 0 and done["bytes"] >= 4 * done["parameters"]
    assert not (tmp_path / "merged" / "adapter_config.json").exists()
    both, base = logits(tmp_path / "merged"), logits(tmp_path / "base")
    assert torch.allclose(both, logits(run), atol=1e-6) and not torch.allclose(both, base, atol=1e-2)


def test_the_weights_are_stored_as_the_bases_are_and_checked_when_they_are_loaded(run: Path, tmp_path: Path) -> None:
    import torch

    out = tmp_path / "merged"
    assert export_merged(str(run), out)["dtype"] == "float16"  # the helper's base is
    assert json.loads((out / "config.json").read_text())["dtype"] == "float16"
    assert torch.allclose(logits(out), logits(run), atol=0.02)
    (out / "README.md").write_text("ours")  # a card is there to be edited
    load_policy(out, device="cpu")
    (out / "config.json").write_text((out / "config.json").read_text() + " ")
    with pytest.raises(WorkbenchError, match="is not as its run wrote it"):
        load_policy(out, device="cpu")


def test_the_card_says_what_was_trained_and_measured(run: Path) -> None:
    told = card(run / "policy", "owner/base-7b", "bfloat16")
    assert (
        told.startswith("---\nbase_model: owner/base-7b\n")
        and "`owner/base-7b`, trained by the method `truthrl` on the bench `small`, seed 3, with trl 1.0." in told
    )
    assert "> Be brief.\n> Be right.\n" in told
    assert "| accuracy | – | 0.500 [0.250, 0.750] |" in told and "abstention" not in told and "9 questions" in told
    (run / "summary.json").write_text(
        json.dumps({"before": {"greedy": {"accuracy": {"value": 1, "low": 1, "high": 1}}}, "after": None})
    )
    assert "Greedy" not in card(run / "policy", "owner/base-7b", "bfloat16")  # the last evaluation was interrupted
    alone = card(run / "nothing" / "policy", str(run), "float32")
    assert "base_model" not in alone and str(run.parent) not in alone  # a hub knows no folder of this machine


def test_what_cannot_be_merged_is_refused_and_leaves_nothing(run: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    with pytest.raises(WorkbenchError, match="holds no adapter to merge"):
        export_merged(str(tmp_path / "base"), tmp_path / "merged")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    with pytest.raises(WorkbenchError, match="is there already"):
        export_merged(str(run), tmp_path / "full")
    weights = run / "policy" / "adapter_model.safetensors"
    large = {name: weight * (1e7 if "lora_B" in name else 1) for name, weight in load_file(weights).items()}
    save_file(large, weights)
    with pytest.raises(WorkbenchError, match="float16 cannot hold"):
        export_merged(str(run), tmp_path / "merged")
    assert torch.isfinite(logits(run)).all()


def test_an_export_that_fails_leaves_nothing_and_one_in_an_empty_folder_goes_there(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import PreTrainedTokenizerBase

    own = tmp_path / "merged.partial"
    own.mkdir()
    there = {path.name for path in tmp_path.iterdir()}
    with monkeypatch.context() as broken:
        broken.setattr(PreTrainedTokenizerBase, "save_pretrained", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            export_merged(str(run), tmp_path / "merged")
    assert {path.name for path in tmp_path.iterdir()} == there and own.is_dir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    monkeypatch.chdir(tmp_path / "empty")
    done = export_merged(str(run), Path("."))
    assert done["out"] == str((tmp_path / "empty").resolve()) and (tmp_path / "link" / "config.json").is_file()
    with pytest.raises(WorkbenchError, match="is there already"):
        export_merged(str(run), tmp_path / "link")


def test_a_run_that_was_moved_is_merged_into_what_it_started_from(run: Path, tmp_path: Path) -> None:
    import torch

    (tmp_path / "base").rename(run / "stage")
    (run / "start.json").write_text(json.dumps({"start": "stage"}))
    moved = run.rename(tmp_path / "moved")
    done = export_merged(str(moved), tmp_path / "merged", dtype="float32")
    assert done["base"] == str(moved / "stage")
    assert torch.allclose(logits(tmp_path / "merged"), logits(moved, base=moved / "stage"), atol=1e-6)


def test_the_command_names_what_it_wrote(cli: Callable[..., tuple[int, str, str]], run: Path, tmp_path: Path) -> None:
    status, out, _ = cli("export", run, "--merged", tmp_path / "merged", "--dtype", "bfloat16", "--json")
    assert status == 0 and json.loads(out)["dtype"] == "bfloat16"
    status, out, _ = cli("export", run, "--merged", tmp_path / "again")
    assert status == 0 and "as float16" in out and f"vllm serve {tmp_path / 'again'}\n" in out
    status, _, said = cli("export", tmp_path / "nowhere", "--merged", tmp_path / "other")
    assert status == 2 and "holds no adapter" in said
