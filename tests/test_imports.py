"""Imports without the parts of other packages that this process does not need."""

import subprocess
import sys

import pytest

from workbench.util.imports import replaced_at_import

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
print(response.text, [name for name in ("sklearn", "scipy") if name in sys.modules], sep="|")
"""


@pytest.mark.slow
def test_transformers_is_imported_without_parts_that_no_command_uses() -> None:
    texts = []
    for block, loaded in (("nullcontext", "['sklearn', 'scipy']"), ("light_transformers", "[]")):
        done = subprocess.run(
            [sys.executable, "-c", LOAD_POLICY.format(block)],
            capture_output=True,
            text=True,
            check=True,
        )
        text, packages = done.stdout.strip().split("|")
        assert packages == loaded
        texts.append(text)
    assert texts[0] == texts[1] != ""


def test_an_attribute_is_replaced_only_by_an_import_inside_the_block(tmp_path, monkeypatch):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("value = 1\n")
    (tmp_path / "package" / "part.py").write_text("from package import value\n")
    (tmp_path / "late.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = list(sys.meta_path)
    with replaced_at_import("package", value=2), replaced_at_import("late", value=2):
        from package import part, value  # type: ignore[import-not-found]
    import late  # type: ignore[import-not-found]

    assert (value, part.value, late.value) == (2, 2, 1)
    assert sys.meta_path == before
