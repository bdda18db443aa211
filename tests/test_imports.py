"""Imports without the parts of other packages that this process does not need."""

import contextlib
import subprocess
import sys

import pytest

from tests.helpers import ROOT
from workbench.util.imports import around_imports

LOAD_POLICY = """
import sys
from contextlib import nullcontext
from workbench.policies.load import load_policy
from workbench.policies.generate import generate
from workbench.types import Question
from workbench.util.imports import light_transformers
with {0}():
    policy = load_policy("data/tiny-policy/sft")
    questions = [Question("1", "Who is Druden Loloel?")]
    (response,) = generate(policy, questions, max_new_tokens=40, greedy=True)
from transformers.utils import is_scipy_available, is_sklearn_available
assert is_scipy_available() and is_sklearn_available()
print(response.text, [name for name in ("sklearn", "scipy") if name in sys.modules], sep="|")
"""
# the command itself, after which the imported packages are printed
COMMAND = """
import sys
from workbench.cli import main
try:
    main("evaluate data/tiny-policy/sft --split test --limit 1".split())
except SystemExit as ended:
    print(ended.code, [name for name in ("sklearn", "scipy") if name in sys.modules], sep="|")
"""


def run(code: str) -> list[str]:
    """Return the parts of the last line that `code` prints in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return done.stdout.splitlines()[-1].split("|")


@pytest.mark.slow
def test_transformers_is_imported_without_parts_that_no_command_uses() -> None:
    text, loaded = run(LOAD_POLICY.format("nullcontext"))
    assert loaded == "['sklearn', 'scipy']"
    assert run(LOAD_POLICY.format("light_transformers")) == [text, "[]"]


@pytest.mark.slow
def test_a_command_loads_a_policy_without_these_parts() -> None:
    assert run(COMMAND) == ["0", "[]"]


def test_only_modules_that_are_imported_inside_the_block_are_changed(tmp_path, monkeypatch):
    (tmp_path / "changed_package").mkdir()
    (tmp_path / "changed_package" / "__init__.py").write_text("value = 1\n")
    (tmp_path / "changed_package" / "part.py").write_text("from changed_package import value\n")
    (tmp_path / "imported_later.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("changed_package", "changed_package.part", "imported_later"):
        monkeypatch.delitem(sys.modules, name, raising=False)

    @contextlib.contextmanager
    def around(module):
        assert not hasattr(module, "value")
        yield
        module.value += 1

    before = list(sys.meta_path)
    with around_imports(["changed_package", "imported_later"], around):
        from changed_package import part, value  # type: ignore[import-not-found]
    import imported_later  # type: ignore[import-not-found]

    assert (value, part.value, imported_later.value) == (2, 2, 1)
    assert sys.meta_path == before
