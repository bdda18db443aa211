"""The repository as a whole: a light import, small files, and nothing that ties it to one
machine.
"""

import ast
import os
import re
from collections.abc import Iterator, Set
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.helpers import ROOT, run_python

HEAVY = tuple(
    "torch transformers trl peft accelerate datasets sentence_transformers gradio plotly lancedb"
    " aiohttp httpx numpy pandas".split()
)
# created by use, like runs/; hidden folders other than .ci are skipped, too
NOT_OURS = {"build", "dist", "__pycache__"}

# Written in two pieces, so that this file passes its own test.
ABSOLUTE = re.compile(r"(?<![\w.~}/-])/" + r"(?:work|root|home|Users)/")
REGISTRY = re.compile(
    "|".join(("pypi" + r"\.org", "python" + "hosted", "anaconda" + r"\.org", "npm" + r"js\.")), re.I
)


def files(*patterns: str) -> Iterator[Path]:
    """Files that git would track, found without git, so that the tests also pass in a source
    archive.
    """
    for folder, folders, names in os.walk(ROOT):
        hidden = {name for name in folders if name.startswith(".") and name != ".ci"}
        left = (
            NOT_OURS if "workbench" in Path(folder).relative_to(ROOT).parts else NOT_OURS | {"runs"}
        )
        folders[:] = sorted(
            set(folders) - hidden - left - {n for n in folders if n.endswith(".egg-info")}
        )
        paths = (Path(folder, name) for name in sorted(names))
        yield from (path for path in paths if any(path.match(pattern) for pattern in patterns))


def test_every_link_leads_to_a_file_of_the_repository() -> None:
    links = {path: path.resolve() for path in files("*") if path.is_symlink()}
    assert {p: to for p, to in links.items() if ROOT not in to.parents or not to.exists()} == {}


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [("workbench", ("workbench.",)), ("workbench.types", HEAVY), ("workbench.cli", HEAVY)],
)
def test_import_is_light(module: str, unwanted: tuple[str, ...]) -> None:
    probe = f"import sys, {module}; print([n for n in sys.modules if n.startswith({unwanted})])"
    assert run_python("-c", probe, check=True).stdout == "[]\n"


def test_no_file_over_500_lines() -> None:
    sizes = {path: len(path.read_text().splitlines()) for path in files("*.py")}
    assert sizes
    assert {str(path.relative_to(ROOT)): size for path, size in sizes.items() if size > 500} == {}


@pytest.mark.parametrize(
    "pattern", [ABSOLUTE, REGISTRY], ids=["absolute paths", "package registries"]
)
def test_no_file_names_a_machine(pattern: re.Pattern[str]) -> None:
    patterns = (
        "*.py",
        "*.md",
        "*.txt",
        "*.toml",
        "*.yml",
        "*.yaml",
        "*.cfg",
        "*.ipynb",
        "Makefile",
        "*/.ci/*",
    )
    lines = (
        (path, number, line)
        for path in files(*patterns)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
    )
    assert [
        f"{path.relative_to(ROOT)}:{number}" for path, number, line in lines if pattern.search(line)
    ] == []


def test_the_tests_named_in_security_md_exist() -> None:
    named = set(re.findall(r"`(tests/\w+\.py)`", (ROOT / "SECURITY.md").read_text()))
    assert len(named) > 10 and {name for name in named if not (ROOT / name).exists()} == set()


def packages() -> list[str]:
    """The library's packages in their import order, from the table in docs/architecture.md."""
    table = (
        (ROOT / "docs" / "architecture.md")
        .read_text()
        .partition("| package |")[2]
        .partition("\n\n")[0]
    )
    heads = [line.split("|")[1] for line in table.splitlines()[2:]]
    return [name.rstrip("/") for head in heads for name in re.findall(r"`([\w/]+)`", head)]


@cache
def modules() -> dict[str, ast.Module]:
    """The library's modules by name, except the package itself, which imports lazily."""
    paths = [path for path in files("*.py") if path.is_relative_to(ROOT / "workbench")]
    named = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in paths
    }
    return {
        name: ast.parse(path.read_text()) for name, path in named.items() if name != "workbench"
    }


def imported(tree: ast.AST, known: Set[str]) -> Iterator[str]:
    """The library's modules that this code imports, at any level."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from (names & known) or ({node.module} & known)
        elif isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & known


@pytest.mark.slow
def test_the_table_names_every_package() -> None:
    there = {name.split(".")[1] for name in modules()}
    assert len(packages()) == len(set(packages())) and set(packages()) == there


def test_imports_point_to_earlier_packages() -> None:
    found, order = modules(), {name: place for place, name in enumerate(packages())}
    arrows = {
        (name, other) for name, tree in found.items() for other in imported(tree, found.keys())
    }
    backwards = sorted((a, b) for a, b in arrows if order[a.split(".")[1]] < order[b.split(".")[1]])
    assert len(arrows) > 500 and backwards == []


def test_no_files_import_each_other_in_a_circle() -> None:
    found = modules()
    graph = {name: set(imported(tree, found.keys())) - {name} for name, tree in found.items()}
    list(TopologicalSorter(graph).static_order())  # CycleError names the files


def test_the_pipeline_loads_few_files() -> None:
    """A trainer that brings its own checks needs only the pipeline."""
    probe = (
        "import sys, workbench.pipeline; print(sum(n.startswith('workbench') for n in sys.modules))"
    )
    assert int(run_python("-c", probe, check=True).stdout) <= 17
