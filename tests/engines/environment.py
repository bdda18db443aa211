"""Create the environment of an engine from `NAME.txt`, or tell whether a test runs in it.

python -m tests.engines.environment NAME     (standard library only; `make test-engines` calls it)

`NAME.txt` is a requirements file with comments that pip ignores:

    -c ../../constraints.txt    the project's versions, where they suit the engine
    -e .                        the project with its dependencies, or, with `# alone`, without
    package==1.0  # alone       is installed last and without its dependencies
    # remove: package other     is uninstalled after that
    # takes: 3 minutes, 2 GB    is printed at the start
"""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.helpers import ROOT

STAMP = ".made"  # has the build's minutes


def needs(engine: str) -> list[Any]:
    """The marks for an engine's tests: `pytestmark = needs("unsloth")`."""
    import pytest

    reason = (
        f"needs the environment .engines/{engine}: `make test-engines ENGINE={engine}` builds it"
        " and runs this"
    )
    return [pytest.mark.engines, pytest.mark.skipif(not inside(engine), reason=reason)]


def inside(engine: str) -> bool:
    """Whether this Python is in the engine's environment."""
    return Path(sys.prefix).resolve() == folder(engine).resolve()


def folder(engine: str) -> Path:
    return ROOT / ".engines" / engine


def pins(engine: str) -> str:
    return (ROOT / "tests" / "engines" / f"{engine}.txt").read_text()


def parts(text: str) -> tuple[str, str, list[str]]:
    """Split a pins file: packages with dependencies, packages without, and packages to remove."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    alone = [line for line in lines if re.search(r"\s# alone\b", line)]
    removed = re.findall(r"^# remove: (.*)$", text, re.M)
    return (
        "\n".join(line for line in lines if line not in alone),
        "\n".join(alone),
        " ".join(removed).split(),
    )


def torch(text: str) -> str:
    """The torch to install first, so that TORCH_ARGS select its build: the engine's pin or the
    project's.
    """
    found = re.search(r"^torch==\S+", text, re.M) or re.search(
        r"\btorch==[^\"]+", (ROOT / "pyproject.toml").read_text()
    )
    assert found is not None
    return found[0]


def build(engine: str) -> None:
    """Create the environment from scratch.

    Raises:
        subprocess.CalledProcessError: pip failed; there is no stamp then.
    """
    began, here = time.monotonic(), folder(engine)
    python, text = str(here / "bin" / "python"), pins(engine)
    listed, alone, removed = parts(text)
    takes = re.search(r"^# takes: (.*)$", text, re.M)
    print(
        f"making .engines/{engine}: about {takes[1] if takes else 'some minutes and GB'}",
        flush=True,
    )
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(here)], check=True)

    def pip(*arguments: str) -> None:
        command = [python, "-m", "pip", "-qq", "--disable-pip-version-check", *arguments]
        subprocess.run(command, cwd=ROOT, check=True)

    pip("install", *shlex.split(os.environ.get("TORCH_ARGS", "")), torch(text))
    for name, requirements, options in (("listed", listed, []), ("alone", alone, ["--no-deps"])):
        if requirements:
            # at the depth of NAME.txt, so that relative paths stay valid
            file = here / f"{name}.txt"
            file.write_text(requirements + "\n")
            pip("install", *options, "-r", str(file))
    if removed:
        pip("uninstall", "-y", *removed)
    minutes = (time.monotonic() - began) / 60
    (here / STAMP).write_text(f"{minutes:.1f}\n")
    print(f"made in {minutes:.1f} minutes, {disk_gb(here):.1f} GB", flush=True)


def disk_gb(path: Path) -> float:
    """The disk space of a folder in GB; hard-linked files count once."""
    files = {
        (stat.st_dev, stat.st_ino): stat.st_blocks * 512
        for file in path.rglob("*")
        if (stat := file.lstat())
    }
    return sum(files.values()) / 1e9


if __name__ == "__main__":
    build(sys.argv[1])
