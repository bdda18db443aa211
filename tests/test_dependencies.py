"""pyproject.toml, environment.yml, constraints.txt and installed packages agree on versions."""

import ast
import re
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers import ROOT

TABLES = tomllib.loads((ROOT / "pyproject.toml").read_text())
# packages of torch's CUDA builds are not pinned
BUILDS = re.compile("nvidia|cuda|triton|pytorch-triton")


def pins(requirements: list[str]) -> dict[str, str]:
    matches = (re.fullmatch(r"([\w.-]+)==(\S+)", requirement) for requirement in requirements)
    return {canonicalize_name(match[1]): match[2] for match in matches if match}


def project() -> dict[str, list[str]]:
    """The requirements of pyproject.toml by extra; the base under ''."""
    return {"": TABLES["project"]["dependencies"], **TABLES["project"]["optional-dependencies"]}


def conda() -> dict[str, str]:
    return pins(re.findall(r"^ *- (\S+)", (ROOT / "environment.yml").read_text(), re.M))


def constraints() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if not line.startswith("#")]


def constrained() -> dict[str, str]:
    return pins([f"{one.name}{one.specifier}" for one in constraints()])


def needed(extras: set[str]) -> dict[str, str]:
    """The installed packages that the project needs with these extras, directly or indirectly:
    name -> version.
    """
    waiting = [Requirement(text) for extra in ("", *extras) for text in project()[extra]]
    done: set[tuple[str, str]] = set()
    versions = {}
    while waiting:
        requirement = waiting.pop()
        package = distribution(requirement.name)
        # torch: 2.13.0+cpu
        versions[canonicalize_name(requirement.name)] = package.version.split("+")[0]
        new = {(requirement.name, extra) for extra in ("", *requirement.extras)} - done
        done |= new
        for inner in map(Requirement, package.requires or []):
            if any(
                inner.marker is None or inner.marker.evaluate({"extra": extra}) for _, extra in new
            ):
                waiting.append(inner)
    return {
        name: version for name, version in versions.items() if name != TABLES["project"]["name"]
    }


def test_environment_and_project_pin_the_same_versions() -> None:
    assert conda() == pins(
        [text for extra, group in project().items() if extra != "dev" for text in group]
    )


def test_constraints_have_the_versions_that_the_project_pins() -> None:
    wanted = pins(
        [
            text
            for extra, group in project().items()
            if extra not in ("gpu", "ray")
            for text in group
        ]
    )
    assert {name: constrained().get(name) for name in wanted} == wanted
    assert {
        name: constrained()[name] for name in conda().keys() & constrained().keys()
    }.items() <= conda().items()
    assert [str(one) for one in constraints() if one.url or one.extras] == []
    assert pins(TABLES["build-system"]["requires"]) == {"setuptools": constrained()["setuptools"]}


@pytest.mark.parametrize(
    "file", sorted((ROOT / "tests" / "engines").glob("*.txt")), ids=lambda file: file.stem
)
def test_an_engine_that_takes_the_constraints_has_the_projects_versions(file: Path) -> None:
    own = pins(re.findall(r"^[\w.-]+==\S+", file.read_text(), re.M))
    every = constrained() | pins([text for group in project().values() for text in group])
    if "-c ../../constraints.txt" in file.read_text().splitlines():
        assert own and {name: every[name] for name in own if name in every} == {
            n: own[n] for n in own if n in every
        }


def packages(extras: set[str]) -> set[str]:
    """The importable names of the packages that the project needs with these extras."""
    names = needed(extras).keys()
    return {
        module
        for module, owners in packages_distributions().items()
        if names & {canonicalize_name(owner) for owner in owners}
    }


def imports(path: Path) -> set[str]:
    """The packages that a file imports outside functions, which must be installed."""
    tree = ast.parse(path.read_text())
    found: set[str] = set()
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).split(".")[0])
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ClassDef):
            waiting += [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt)]
    return found


@pytest.mark.slow
def test_without_extras_every_module_can_be_imported() -> None:
    """`make demo` installs no extras: their packages may be imported only in functions."""
    base = packages(set()) | sys.stdlib_module_names | {"workbench"}
    loaded_by_verl = ROOT / "workbench" / "scoring" / "verl.py"  # no module imports it
    lacking = {
        str(path.relative_to(ROOT)): missing
        for path in sorted((ROOT / "workbench").rglob("*.py"))
        if path != loaded_by_verl and (missing := imports(path) - base)
    }
    assert lacking == {}


def made() -> set[str]:
    """The extras that `make` installed here."""
    return {extra for extra in project() if extra and Path(sys.prefix, f".{extra}").exists()}


@pytest.mark.slow
@pytest.mark.skipif(not made(), reason="this environment was not made by `make`")
def test_everything_installed_is_constrained_to_its_version() -> None:
    here = {name: version for name, version in needed(made()).items() if not BUILDS.match(name)}
    assert {name: constrained().get(name) for name in here} == here, "run `make constraints`"
