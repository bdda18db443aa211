"""The repository as a whole: a light import, small files, and nothing that ties it to one machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = (
    "torch", "transformers", "trl", "peft", "accelerate", "datasets", "sentence_transformers", "gradio", "plotly", "lancedb",
    "aiohttp", "httpx", "numpy", "pandas",
)  # fmt: skip
NOT_OURS = {"runs", "build", "dist", "__pycache__"}  # left by use; hidden folders other than .ci are not ours either

# Written in two pieces, so that this file passes its own test.
ABSOLUTE = re.compile(r"(?<![\w.~}/-])/" + r"(?:work|root|home|Users)/")
REGISTRY = re.compile("|".join(("pypi" + r"\.org", "python" + "hosted", "anaconda" + r"\.org", "npm" + r"js\.")), re.I)


def files(*patterns: str) -> Iterator[Path]:
    """What git would track, without asking git: an unpacked source archive passes the same tests."""
    for folder, folders, names in os.walk(ROOT):
        hidden = {name for name in folders if name.startswith(".") and name != ".ci"}
        folders[:] = sorted(set(folders) - hidden - NOT_OURS - {n for n in folders if n.endswith(".egg-info")})
        paths = (Path(folder, name) for name in sorted(names))
        yield from (path for path in paths if any(path.match(pattern) for pattern in patterns))


def test_import_is_light() -> None:
    probe = f"import sys, workbench, workbench.types; print([name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_command_line_starts_light() -> None:
    probe = f"import sys, workbench.cli; print([name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_no_file_over_500_lines() -> None:
    sizes = {path: len(path.read_text().splitlines()) for path in files("*.py")}
    assert sizes
    assert {str(path.relative_to(ROOT)): size for path, size in sizes.items() if size > 500} == {}


def test_data_stays_small() -> None:
    assert sum(path.stat().st_size for path in (ROOT / "data").rglob("*") if path.is_file()) < 20_000_000


@pytest.mark.parametrize("pattern", [ABSOLUTE, REGISTRY], ids=["absolute paths", "package registries"])
def test_no_file_names_a_machine(pattern: re.Pattern[str]) -> None:
    patterns = ("*.py", "*.md", "*.txt", "*.toml", "*.yml", "*.yaml", "*.cfg", "*.ipynb", "Makefile", "*/.ci/*")
    lines = (
        (path, number, line) for path in files(*patterns) for number, line in enumerate(path.read_text().splitlines(), start=1)
    )
    assert [f"{path.relative_to(ROOT)}:{number}" for path, number, line in lines if pattern.search(line)] == []


def test_the_tests_that_security_names_are_there() -> None:
    named = set(re.findall(r"`(tests/\w+\.py)`", (ROOT / "SECURITY.md").read_text()))
    assert len(named) > 10 and {name for name in named if not (ROOT / name).exists()} == set()
