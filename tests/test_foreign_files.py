"""Models from other sources: no code in their folders is run, and no pickle is read."""

import ast
import json
import os
import pty
import shutil
from pathlib import Path

import pytest

from tests.helpers import examples, read_json, run_python, write_json
from tests.helpers.adapters import adapter_on
from tests.helpers.bag_encoder import make_encoder
from tests.helpers.errors import raises_error
from tests.test_house import ROOT
from workbench.policies.load import load_policy
from workbench.util.hub import check_adapter

# Functions of transformers, sentence-transformers, PEFT, datasets and vLLM that load a name or a
# folder.
LOADERS = {
    "from_pretrained",
    "load_dataset",
    "SentenceTransformer",
    "CrossEncoder",
    "pipeline",
    "snapshot_download",
    "LLM",
}
UNPICKLERS = {
    ("torch", "load"),
    ("pickle", "load"),
    ("pickle", "loads"),
    ("joblib", "load"),
    ("marshal", "load"),
}
# PEFT has no such option and runs no code of a folder; `check_adapter` refuses adapters that would
# make it import modules.
ADAPTER = ("policies/weights.py", "PeftModel.from_pretrained(model, str(adapter))")


def name_of(node: ast.expr) -> str:
    return (
        node.attr
        if isinstance(node, ast.Attribute)
        else node.id
        if isinstance(node, ast.Name)
        else ""
    )


def unsafe(source: str) -> list[str]:
    """The loaders in this source that may run code from the loaded folder, and the calls that may
    unpickle data.
    """
    found, tree = [], ast.parse(source)
    handed = {
        id(node.args[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and name_of(node.func) == "from_disk_or_hub"
    }
    # annotations are not evaluated: every module imports `annotations` from `__future__`
    types = {
        id(name)
        for node in ast.walk(tree)
        for note in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if note is not None
        for name in ast.walk(note)
    }
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Name, ast.Attribute)) or id(node) in types:
            continue
        call = called.get(id(node))
        given = {word.arg: ast.unparse(word.value) for word in call.keywords} if call else {}
        pair = (name_of(node.value), node.attr) if isinstance(node, ast.Attribute) else ("", "")
        refused = given.get("trust_remote_code") == "False" or id(node) in handed
        if (name_of(node) in LOADERS and not refused) or (
            pair in UNPICKLERS and given.get("weights_only") != "True"
        ):
            found.append(ast.unparse(call or node))
    return found


@pytest.mark.slow
def test_every_loader_refuses_code() -> None:
    found = {
        (path.relative_to(ROOT / "workbench").as_posix(), call)
        for path in sorted((ROOT / "workbench").rglob("*.py"))
        for call in unsafe(path.read_text(encoding="utf-8"))
    }
    assert found == {ADAPTER}


def test_loaders_that_may_run_code_are_found() -> None:
    for line in (
        "AutoModel.from_pretrained(x)",
        "A.from_pretrained(x, trust_remote_code=True)",
        "load = AutoModel.from_pretrained",
        "SentenceTransformer(x)",
        "datasets.load_dataset(x)",
        "other(AutoModel.from_pretrained, x)",
        "torch.load(x)",
        "torch.load(x, weights_only=False)",
        "pickle.load(x)",
    ):
        assert unsafe(line), line
    for line in (
        "from_disk_or_hub(AutoModel.from_pretrained, x)",
        "torch.load(x, weights_only=True)",
        "json.load(x)",
        "def sample(llm: LLM) -> pipeline: ...",
    ):
        assert not unsafe(line), line


CODE = "open({mark!r}, 'a').close()\nclass Sly: ...\n"
OPENING = "import sys\nfrom workbench.cli import main\nmain(sys.argv[1:])\n"


def sly_folder(policy: str, folder: Path, mark: Path, what: str, model_type: str = "sly") -> Path:
    """A policy whose model or tokenizer is custom code, declared in `auto_map`."""
    shutil.copytree(policy, folder)
    (folder / "sly.py").write_text(CODE.format(mark=str(mark)))
    (folder / "custom_generate").mkdir()
    (folder / "custom_generate" / "weights.py").write_text(CODE.format(mark=str(mark)))
    own: dict[str, object] = {"AutoConfig": "sly.Sly", "AutoModelForCausalLM": "sly.Sly"}
    changes: dict[str, object] = {"auto_map": own, "model_type": model_type}
    if what == "tokenizer":
        changes = {"auto_map": {"AutoTokenizer": ["sly.Sly", "sly.Sly"]}, "tokenizer_class": "Sly"}
    file = folder / ("tokenizer_config.json" if what == "tokenizer" else "config.json")
    write_json(file, read_json(file) | changes)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("what", ["tokenizer", "policy"])
def test_a_yes_at_the_terminal_runs_no_code_of_a_folder(
    policy: str, tmp_path: Path, what: str
) -> None:
    """Runs on a pseudo-terminal with "y" as input, in case transformers asks."""
    mark, rows = tmp_path / "run", tmp_path / "rows.jsonl"
    folder = sly_folder(policy, tmp_path / "sly", mark, what)
    row = {"id": "1", "question": "Who?", "response": "Ada was born in Oslo.", "answers": ["Ada"]}
    write_json(rows, row)
    score = f"score --in {rows} --out {tmp_path / 'out.jsonl'} --judge world --tokenizer {folder}"
    load = f"from workbench.policies.load import load_policy\nload_policy({str(folder)!r})"
    command = [OPENING, *score.split()] if what == "tokenizer" else [load]
    master, terminal = pty.openpty()
    os.write(master, b"y\ny\ny\n")
    done = run_python("-c", *command, stdin=terminal, timeout=120)
    os.close(master)
    os.close(terminal)
    assert not mark.exists() and done.returncode != 0
    assert "cannot load" in done.stderr and "[y/N]" not in done.stdout + done.stderr


def test_a_known_model_is_loaded_without_the_code_in_its_folder(
    policy: str, tmp_path: Path
) -> None:
    folder = sly_folder(policy, tmp_path / "sly", tmp_path / "mark", "policy", model_type="llama")
    assert type(load_policy(folder, device="cpu").model).__module__.startswith("transformers.")
    assert not (tmp_path / "mark").exists()


@pytest.fixture
def adapter(policy: str, tmp_path: Path) -> Path:
    """A LoRA adapter that changes the policy, as PEFT saves it."""
    return adapter_on(policy, tmp_path / "run") / "policy"


class Bomb:
    """An object that creates a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple:
        return open, (str(self.mark), "w")


@pytest.mark.slow
def test_a_pickled_adapter_is_refused_before_anything_is_loaded(
    policy: str, adapter: Path, tmp_path: Path
) -> None:
    import torch
    from safetensors.torch import load_file

    assert load_policy(adapter).name == str(adapter)
    weights, pickled = adapter / "adapter_model.safetensors", adapter / "adapter_model.bin"
    torch.save(load_file(weights), pickled)
    assert load_policy(adapter).name == str(adapter)  # the safetensors are read
    weights.unlink()
    for holds in (load_file(Path(policy, "model.safetensors")), Bomb(tmp_path / "mark")):
        torch.save(holds, pickled)
        with raises_error(r"adapter_model\.bin' is a pickle.*as adapter_model\.safetensors"):
            load_policy(adapter, base=tmp_path / "no such base")
    # as a base, which transformers loads
    with raises_error("is a pickle"):
        load_policy(shutil.copytree(adapter, tmp_path / "model"), base=policy)
    pickled.unlink()
    with raises_error(r"no adapter_model\.safetensors"):
        load_policy(adapter)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "change",
    examples("foreign_adapters"),
)
def test_an_adapter_other_than_plain_lora_is_refused(tmp_path: Path, change: dict | None) -> None:
    (tmp_path / "adapter_model.safetensors").touch()
    write_json(tmp_path / "adapter_config.json", {"peft_type": "LORA", "megatron_config": None})
    check_adapter(tmp_path)
    (tmp_path / "adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA"} | change) if change else "["
    )
    with raises_error("not describe a plain LoRA adapter"):
        check_adapter(tmp_path)


@pytest.mark.slow
def test_an_encoder_reads_no_pickle(tmp_path: Path) -> None:
    good = make_encoder(tmp_path / "good", width=4)
    import torch
    from safetensors.torch import load_file

    from workbench.retrieval.encoder import load_encoder

    assert load_encoder(str(good))(["w1"]).shape == (1, 4)
    pickled = shutil.copytree(good, tmp_path / "pickled")
    weights = next(pickled.rglob("model.safetensors"))
    torch.save(load_file(weights), weights.with_name("pytorch_model.bin"))
    weights.unlink()
    with raises_error("is a pickle"):
        load_encoder(str(pickled))
