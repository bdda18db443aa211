"""Merge an adapter into its base, and push the result to a local hub server."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.helpers import Cli, examples, hub_server, read_json, refusal, write_json
from tests.helpers.adapters import adapter_on
from tests.helpers.errors import raises_error
from tests.helpers.hub_server import READER, WRITER, Hub, Shelf
from tests.helpers.tiny_model import byte_tokenizer, make_policy, random_model
from workbench.experiments.export import export
from workbench.policies.load import load_policy


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    out = adapter_on(make_policy(tmp_path / "base"), tmp_path / "run")
    about = {"method": "truthrl", "bench": "small", "seed": 3}
    config = {"prompts": {"system": "Be brief.\nBe right.", "retrieved": 2}}
    write_json(out / "config.json", {**about, "config": config})
    capsys.readouterr()  # progress bars
    return out


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with hub_server.logged_in(monkeypatch) as served:
        yield served


def logits(policy: Path, **options: Any) -> Any:
    import torch

    loaded = load_policy(policy, device="cpu", **options)
    with torch.no_grad():
        return loaded.model(input_ids=torch.tensor([[5, 6, 7, 8]])).logits


def random_base(folder: Path, kind: str, stored: str, **sizes: Any) -> Path:
    """A random model in several files."""
    import torch

    tokenizer = byte_tokenizer()
    own = {"num_key_value_heads": 2, "tie_word_embeddings": False, **sizes}
    model = random_model(tokenizer, kind, **own).to(getattr(torch, stored))
    model.save_pretrained(folder, max_shard_size="20KB")
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "stored", "sizes", "how"), examples("merged_policies"))
def test_the_merged_policy_equals_the_adapter_and_has_the_bases_type(
    kind: str, stored: str, sizes: dict[str, Any], how: dict[str, Any], tmp_path: Path
) -> None:
    from safetensors.torch import load_file

    base = random_base(tmp_path / "base", kind, stored, **sizes)
    run = adapter_on(base, tmp_path / "run", **how)
    exact, usual = tmp_path / "exact", tmp_path / "usual"
    done = export(str(run), exact, dtype="float32")
    assert done["bytes"] >= 4 * done["parameters"] > 0
    assert logits(exact).isclose(logits(run), atol=1e-5).all()
    assert not logits(exact).isclose(logits(base), atol=1e-3).all()
    assert export(str(run), usual)["dtype"] == stored
    assert read_json(usual / "config.json")["dtype"] == stored
    assert logits(usual).isclose(logits(run), atol=0.05).all()
    single, half = (load_file(sorted(out.glob("*.safetensors"))[0]) for out in (exact, usual))
    assert all(half[name].equal(one.to(half[name].dtype)) for name, one in single.items())


def test_a_checkpoint_is_verified_on_loading_except_for_its_card(run: Path, tmp_path: Path) -> None:
    export(str(run), tmp_path / "merged")
    card = tmp_path / "merged" / "README.md"
    out_text = card.read_text()
    assert "by `truthrl` on the bench `small`, seed 3" in out_text
    assert "Retrieved passages before the question in each training prompt: 2.\n" in out_text
    assert "> Be brief.\n> Be right.\n" in out_text and str(tmp_path) not in out_text
    card.write_text("ours")
    load_policy(tmp_path / "merged", device="cpu")
    config = tmp_path / "merged" / "config.json"
    config.write_text(config.read_text() + " ")
    with raises_error("is missing or changed since its training"):
        load_policy(tmp_path / "merged", device="cpu")


def test_an_invalid_export_is_refused_and_writes_nothing(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import load_file, save_file

    there = sorted(tmp_path.iterdir())

    def refused(words: str, policy: Path = run, out: str = "merged") -> None:
        with raises_error(words):
            export(str(policy), tmp_path / out)
        assert sorted(tmp_path.iterdir()) == there

    refused("has no adapter", tmp_path / "base")
    refused("exists already", out="run")
    refused("exists already", out="base/config.json")
    with monkeypatch.context() as full:
        full.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10_000))
        refused("are needed: free some space")
    adapter = run / "policy" / "adapter_model.safetensors"
    kept, sound = load_file(adapter), adapter.read_bytes()
    save_file({name: one * (1e7 if "lora_B" in name else 1) for name, one in kept.items()}, adapter)
    refused("float16 cannot represent: choose float32")
    save_file({name: one * float("nan") for name, one in kept.items()}, adapter)
    refused("is not finite")
    save_file({name: one[:2] for name, one in kept.items()}, adapter)
    refused("adapter")
    adapter.write_bytes(sound)
    adapter.rename(adapter.with_suffix(".bin"))
    refused("is a pickle")
    adapter.write_bytes(sound)
    adapter.with_suffix(".bin").unlink()
    config, weights = tmp_path / "base" / "config.json", tmp_path / "base" / "model.safetensors"
    own = load_file(weights)
    save_file({**own, "model.norm.weight": own["model.norm.weight"] * float("inf")}, weights)
    refused("'model.norm.weight' is not finite")
    how = {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}
    write_json(config, {**read_json(config), **how})
    refused("is quantised: name the unquantised model as --base")


def test_a_failed_export_writes_nothing(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import PreTrainedTokenizerBase

    def stops(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    there = sorted(tmp_path.iterdir())
    with monkeypatch.context() as broken:
        broken.setattr(PreTrainedTokenizerBase, "save_pretrained", stops)
        with pytest.raises(KeyboardInterrupt):
            export(str(run), tmp_path / "merged")
    assert sorted(tmp_path.iterdir()) == there
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert export(str(run), Path("."))["out"] == str((tmp_path / "empty").resolve())
    assert (tmp_path / "empty" / "config.json").is_file()


def test_a_pushed_checkpoint_equals_the_files_and_is_private(
    cli: Cli, hub: Hub, run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "merged"
    assert cli(f"export {run} --merged {tmp_path / 'unsent'}")[0] == 0 and hub.asked == []
    status, out_text, error = cli(f"export {run} --merged {out} --push ada/kern --json")
    found = json.loads(out_text)
    assert status == 0 and found["url"] == f"{hub.url}/ada/kern" and found["private"] is True
    sent = hub.repositories["ada/kern"]
    local = {path.name: path.read_bytes() for path in out.iterdir()}
    assert sent.private and sent.files == {".gitattributes": b"", **local}
    assert not [name for name, content in local.items() if str(tmp_path).encode() in content]
    assert WRITER not in out_text + error
    again = tmp_path / "again"
    status, out_text, _ = cli(f"export {run} --merged {again} --push ada/open --public")
    assert status == 0 and "ada/open, public" in out_text and f"vllm serve {again}\n" in out_text
    assert not hub.repositories["ada/open"].private


@pytest.mark.slow
def test_an_unwritable_repository_is_refused_and_invalid_weights_create_none(
    cli: Cli, hub: Hub, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants
    from safetensors.torch import load_file, save_file

    def refused(words: str, name: str = "ada/kern", *options: str) -> None:
        merged = tmp_path / "merged"
        error = refusal(cli(f"export {run} --merged {merged} --push {name}", *options))
        assert words in error and not merged.exists()
        assert WRITER not in error and READER not in error

    for name in ("kern", "ada/kern/1"):
        refused(f"'{name}' is not a repository's name", name)
    assert hub.asked == []
    refused('You may not create a model under the namespace "bob"', "bob/kern")
    weights = tmp_path / "base" / "model.safetensors"
    save_file({name: one * float("inf") for name, one in load_file(weights).items()}, weights)
    refused("not finite")
    assert hub.repositories == {}
    # from here on, a refusal by the hub comes before the damaged weights are read
    monkeypatch.setenv("HF_TOKEN", READER)
    hub.repositories["ada/kern"] = Shelf(private=True)
    refused("cannot push to 'ada/kern'")
    monkeypatch.setenv("HF_TOKEN", WRITER)
    hub.repositories["ada/kern"] = Shelf(private=True, files={"adapter_config.json": b"{}"})
    refused("'ada/kern' has files (adapter_config.json, …): name a new or empty one")
    hub.repositories["ada/kern"] = Shelf(private=False)
    refused("is public, not private")
    hub.repositories["ada/kern"] = Shelf(private=True)
    refused("is private, not public", "ada/kern", "--public")
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    refused("`hf auth login` or HF_TOKEN")
    monkeypatch.setenv("HF_TOKEN", WRITER)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    refused("or leave out --push")


def test_an_export_refused_by_the_hub_keeps_its_files_and_names_the_next_command(
    cli: Cli, hub: Hub, run: Path, tmp_path: Path
) -> None:
    hub.takes, out = False, tmp_path / "merged"
    status, out_text, error = cli(f"export {run} --merged {out} --push ada/kern --json")
    assert (status, out_text) == (3, "") and "Storage limit reached" in error
    assert f"`hf upload ada/kern {out} .` uploads it later" in error
    assert hub.repositories["ada/kern"].files == {".gitattributes": b""}
    load_policy(out, device="cpu")
