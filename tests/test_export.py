"""An adapter merged into its base: the same policy, as one checkpoint, with a card."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.helpers.memory_run import ENVIRONMENT, make_model
from tests.helpers.tiny_model import byte_tokenizer, make_policy
from workbench.export import card, export_merged
from workbench.policy import load_policy
from workbench.types import WorkbenchError

ROOT = Path(__file__).resolve().parent.parent
MEASURED = """
import sys
from pathlib import Path
from tests.helpers.memory_run import grown
from workbench.export import export_merged
run, out = sys.argv[1:]
export_merged(run, Path(out, "first"))  # which loads the libraries
print(grown(lambda: export_merged(run, Path(out, "merged"))))
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run with an adapter that changes what its base says."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    base, out = make_policy(tmp_path / "base"), tmp_path / "run"
    torch.manual_seed(0)
    config = LoraConfig(
        r=4,
        lora_alpha=8,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
        init_lora_weights=False,
    )
    get_peft_model(
        AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), config
    ).save_pretrained(out / "policy")
    AutoTokenizer.from_pretrained(base).save_pretrained(out / "policy")
    config = {"prompts": {"system": "Be brief.\nBe right."}}
    about = {
        "method": "truthrl",
        "bench": "small",
        "seed": 3,
        "versions": {"trl": "1.0"},
        "config": config,
    }
    (out / "config.json").write_text(json.dumps(about))
    greedy = {
        "n": 9,
        "accuracy": {"value": 0.5, "low": 0.25, "high": 0.75},
        "abstention": {"value": None},
    }
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
    assert (
        done["dtype"] == "float32"
        and done["parameters"] > 0
        and done["bytes"] >= 4 * done["parameters"]
    )
    assert not (tmp_path / "merged" / "adapter_config.json").exists()
    both, base = logits(tmp_path / "merged"), logits(tmp_path / "base")
    assert torch.allclose(both, logits(run), atol=1e-6) and not torch.allclose(
        both, base, atol=1e-2
    )


def test_the_weights_are_stored_as_the_bases_are_and_checked_when_they_are_loaded(
    run: Path, tmp_path: Path
) -> None:
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


def random_base(folder: Path, kind: str, stored: str, **sizes: Any) -> Path:
    """A random model of that type, stored in that dtype, whose weights are not all alike in
    size.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = byte_tokenizer()
    config = AutoConfig.for_model(
        kind,
        vocab_size=len(tokenizer),
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        **{"hidden_size": 32, "intermediate_size": 48, "head_dim": 16, **sizes},
    )
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).to(getattr(torch, stored))
    for one in model.parameters():
        one.data += torch.randn_like(one) / 10
    model.save_pretrained(folder, max_shard_size="20KB")  # several files
    tokenizer.save_pretrained(folder)
    return folder


def adapter_on(base: Path, out: Path, **more: Any) -> Path:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    how = {
        "r": 4,
        "lora_alpha": 7,
        "target_modules": "all-linear",
        "init_lora_weights": False,
        **more,
    }
    trained = get_peft_model(
        AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), LoraConfig(**how)
    )
    for weight in trained.parameters():
        weight.data += weight.requires_grad * torch.randn_like(weight) / 100
    trained.peft_config["default"].base_model_name_or_path = str(base)
    trained.save_pretrained(out / "policy")
    return out


ADAPTERS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("llama", "float16", {"tie_word_embeddings": True}, {}),
    ("qwen2", "bfloat16", {"tie_word_embeddings": False}, {"rank_pattern": {"q_proj": 2}, "alpha_pattern": {"o_proj": 3}}),
    ("qwen3", "float32", {}, {"use_rslora": True, "modules_to_save": ["lm_head"]}),
    ("qwen2", "float64", {}, {"target_modules": ["embed_tokens", "v_proj"]}),
    ("mixtral", "bfloat16", {"num_local_experts": 2}, {"target_modules": ["q_proj", "v_proj"]}),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["base", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("kind", "stored", "sizes", "how"), ADAPTERS)
def test_weight_by_weight_is_to_the_bit_what_peft_merges_as_a_whole(
    kind: str, stored: str, sizes: dict[str, Any], how: dict[str, Any], dtype: Any, tmp_path: Path
) -> None:
    import torch
    from peft import PeftModel
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    base = random_base(tmp_path / "base", kind, stored, **sizes)
    run = adapter_on(base, tmp_path / "run", **how)
    done = export_merged(str(run), tmp_path / "merged", dtype=dtype)
    chosen = (stored if stored != "float64" else "float32") if dtype == "base" else dtype
    whole = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), run / "policy"
    )
    merged = whole.merge_and_unload().to(getattr(torch, chosen))
    merged.save_pretrained(tmp_path / "whole")
    wanted, found = (
        load_file(tmp_path / "whole" / "model.safetensors"),
        load_file(tmp_path / "merged" / "model.safetensors"),
    )
    assert done["dtype"] == chosen and done["parameters"] == sum(
        one.numel() for one in wanted.values()
    )
    assert len(list(base.glob("*.safetensors"))) > 1 and wanted.keys() == found.keys()
    for name, weight in wanted.items():
        assert found[name].dtype == weight.dtype and found[name].equal(weight), name
    told = [
        json.loads((tmp_path / folder / "config.json").read_text())
        for folder in ("whole", "merged")
    ]
    assert told[0] == told[1]


@pytest.mark.slow
@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK),
    reason="this system does not tell a process's peak",
)
def test_a_merge_takes_the_memory_of_a_weight_and_not_of_a_model(tmp_path: Path) -> None:
    """Twelve layers of 13.6 MB in float32; the largest matrix is 9 MB. In a process that gives
    back what is freed.
    """
    sizes = {
        "hidden_size": 512,
        "intermediate_size": 1536,
        "num_hidden_layers": 12,
        "num_attention_heads": 8,
    }
    base = make_model(tmp_path / "base", "llama", {**sizes, "num_key_value_heads": 8})
    run = adapter_on(Path(base), tmp_path / "run")
    command, environment = (
        [sys.executable, "-c", MEASURED, str(run), str(tmp_path)],
        {**os.environ, **ENVIRONMENT},
    )
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    size = (tmp_path / "base" / "model.safetensors").stat().st_size
    assert size > 150e6 and int(done.stdout) < size / 5


def test_what_headers_say_is_refused_before_a_weight_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base is damaged: to read it would be told."""
    from safetensors.torch import load_file, save_file

    base = make_policy(tmp_path / "base")
    run, file = adapter_on(base, tmp_path / "run"), base / "model.safetensors"
    kept, sound = load_file(file), file.read_bytes()

    def stored(**changed: Any) -> None:
        save_file({**kept, **changed}, file, metadata={"format": "pt"})

    def refused(words: str) -> None:
        with pytest.raises(WorkbenchError, match=words):
            export_merged(str(run), tmp_path / "merged")
        assert {path.name for path in tmp_path.iterdir()} == {"base", "run"}

    norm = "model.norm.weight"
    stored(**{norm: kept[norm] * float("nan")})
    refused("'model.norm.weight' is not finite")
    with monkeypatch.context() as full:
        full.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10_000))
        refused("are needed: free some space, or name a folder on another disk")
    stored(**{norm: kept[norm].char()})
    refused("stores 'model.norm.weight' as I8")
    file.write_bytes(sound)
    config = base / "config.json"
    config.write_text(
        json.dumps(
            {
                **json.loads(config.read_text()),
                "quantization_config": {"quant_method": "bitsandbytes"},
            }
        )
    )
    file.unlink()
    refused("stored quantised: name the model that it was made from as --base")


@pytest.mark.parametrize("more", [0, 1])
def test_a_tied_matrix_that_is_stored_twice_is_one_where_the_copies_are_equal(
    more: float, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    base = make_policy(tmp_path / "base")
    run, file = adapter_on(base, tmp_path / "run"), base / "model.safetensors"
    kept = load_file(file)
    twice = {**kept, "lm_head.weight": kept["model.embed_tokens.weight"] + more}
    save_file(twice, file, metadata={"format": "pt"})
    done = export_merged(str(run), tmp_path / "merged")
    found = load_file(tmp_path / "merged" / "model.safetensors")
    assert found.keys() == (twice if more else kept).keys()
    assert done["parameters"] == sum(one.numel() for one in found.values())
    assert logits(tmp_path / "merged").isclose(logits(run, base=base), atol=0.02).all()


@pytest.mark.parametrize(
    "how",
    [{"use_dora": True}, {"modules_to_save": ["embed_tokens"]}, {"trainable_token_indices": [3]}],
)
def test_an_adapter_that_does_more_than_lora_is_refused(
    how: dict[str, Any], tmp_path: Path
) -> None:
    base = make_policy(tmp_path / "base")  # whose embeddings are tied
    run = adapter_on(base, tmp_path / "run", **how)
    with pytest.raises(
        WorkbenchError, match=r"which is not merged here .* merge it with peft itself"
    ):
        export_merged(str(run), tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_the_card_says_what_was_trained_and_measured(run: Path) -> None:
    told = card(run / "policy", "owner/base-7b", "bfloat16")
    assert (
        told.startswith("---\nbase_model: owner/base-7b\n")
        and "`owner/base-7b`, trained by the method `truthrl` on the bench `small`, seed 3, with trl 1.0."
        in told
    )
    assert "> Be brief.\n> Be right.\n" in told
    assert (
        "| accuracy | – | 0.500 [0.250, 0.750] |" in told
        and "abstention" not in told
        and "9 questions" in told
    )
    (run / "summary.json").write_text(
        json.dumps(
            {"before": {"greedy": {"accuracy": {"value": 1, "low": 1, "high": 1}}}, "after": None}
        )
    )
    # the last evaluation was interrupted
    assert "Greedy" not in card(run / "policy", "owner/base-7b", "bfloat16")
    alone = card(run / "nothing" / "policy", str(run), "float32")
    # a hub knows no folder of this machine
    assert "base_model" not in alone and str(run.parent) not in alone


def test_the_card_of_an_adapter_on_a_base_in_4_bits_says_what_it_was_merged_into(run: Path) -> None:
    usual = card(run / "policy", "owner/base-7b", "bfloat16")
    about = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(
        json.dumps({**about, "config": {"grpo": {"load_in_4bit": True}, "sft": {"steps": 3}}})
    )
    told = card(run / "policy", "owner/base-7b", "bfloat16")
    assert (
        "4 bits" not in usual
        and "It was trained on the base in 4 bits, and merged into the base as that is stored"
        in told
    )


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
    large = {
        name: weight * (1e7 if "lora_B" in name else 1)
        for name, weight in load_file(weights).items()
    }
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
        broken.setattr(
            PreTrainedTokenizerBase,
            "save_pretrained",
            lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt()),
        )
        with pytest.raises(KeyboardInterrupt):
            export_merged(str(run), tmp_path / "merged")
    assert {path.name for path in tmp_path.iterdir()} == there and own.is_dir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    monkeypatch.chdir(tmp_path / "empty")
    done = export_merged(str(run), Path("."))
    assert (
        done["out"] == str((tmp_path / "empty").resolve())
        and (tmp_path / "link" / "config.json").is_file()
    )
    with pytest.raises(WorkbenchError, match="is there already"):
        export_merged(str(run), tmp_path / "link")


def test_a_run_that_was_moved_is_merged_into_what_it_started_from(
    run: Path, tmp_path: Path
) -> None:
    import torch

    (tmp_path / "base").rename(run / "stage")
    (run / "start.json").write_text(json.dumps({"start": "stage"}))
    moved = run.rename(tmp_path / "moved")
    done = export_merged(str(moved), tmp_path / "merged", dtype="float32")
    assert done["base"] == str(moved / "stage")
    assert torch.allclose(
        logits(tmp_path / "merged"), logits(moved, base=moved / "stage"), atol=1e-6
    )


def test_the_command_names_what_it_wrote(
    cli: Callable[..., tuple[int, str, str]], run: Path, tmp_path: Path
) -> None:
    status, out, _ = cli(
        "export", run, "--merged", tmp_path / "merged", "--dtype", "bfloat16", "--json"
    )
    assert status == 0 and json.loads(out)["dtype"] == "bfloat16"
    status, out, _ = cli("export", run, "--merged", tmp_path / "again")
    assert status == 0 and "as float16" in out and f"vllm serve {tmp_path / 'again'}\n" in out
    status, _, said = cli("export", tmp_path / "nowhere", "--merged", tmp_path / "other")
    assert status == 2 and "holds no adapter" in said
