"""Environments of engines, and the file with the measurements of their tests."""

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.engines import measured
from tests.engines.environment import ROOT, STAMP, parts, pins, torch
from tests.helpers import read_json, write_json

ENGINES = Path(__file__).parent / "engines"
PINS = """\
# Why this engine.
# takes: 2 minutes, 1 GB
-c ../../constraints.txt
-e .
one==1.0  # a word about it
# Of the next one nothing is needed.
two==2.0  # alone
# remove: three four
"""


def test_a_file_of_pins_is_split_into_install_steps() -> None:
    listed, alone, removed = parts(PINS)
    assert listed == "-c ../../constraints.txt\n-e .\none==1.0  # a word about it"
    assert alone == "two==2.0  # alone" and removed == ["three", "four"]
    assert parts("one\n") == ("one", "", [])


@pytest.mark.parametrize("engine", sorted(path.stem for path in ENGINES.glob("*.txt")))
def test_an_environment_has_the_packages_that_conftest_imports(engine: str) -> None:
    tree = ast.parse((ROOT / "tests" / "conftest.py").read_text())
    named = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    named |= {one.name for node in tree.body if isinstance(node, ast.Import) for one in node.names}
    needed = {str(name).split(".")[0] for name in named} - sys.stdlib_module_names
    listed = {re.split(r"[=\[ ]", line)[0] for line in parts(pins(engine))[0].splitlines()}
    assert needed and needed <= listed, needed - listed


def test_an_engine_may_pin_its_own_torch() -> None:
    assert torch("one\ntorch==1.0+cpu\n") == "torch==1.0+cpu"
    assert f'"{torch(PINS)}"' in (ROOT / "pyproject.toml").read_text()


def test_measurements_are_stored_only_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "engines.json"
    write_json(results, {"zeta": {"kept": 1}, "unsloth": {"older": 1}})
    (tmp_path / STAMP).write_text("3.5\n")
    monkeypatch.setattr(measured, "RESULTS", results)
    monkeypatch.setattr(measured, "found_of", {})
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.delenv("WORKBENCH_TELL", raising=False)
    measured.store("unsloth", {"seconds": 1})
    assert read_json(results)["unsloth"] == {"older": 1}
    monkeypatch.setenv("WORKBENCH_TELL", "1")
    measured.store("unsloth", {"loss": {"a": 0.1}, "seconds": 1})
    measured.store("unsloth", {"loss": {"b": 0.2}, "seconds": 2})
    found = read_json(results)
    assert list(found) == ["unsloth", "zeta"] and found["zeta"] == {"kept": 1}
    own = found["unsloth"]
    assert own["loss"] == {"a": 0.1, "b": 0.2} and own["seconds"] == 2 and "older" not in own
    assert own["build_minutes"] == 3.5 and {"python", "torch", "trl"} <= own["versions"].keys()
