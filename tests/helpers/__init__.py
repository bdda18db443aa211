"""Helpers that several test modules share."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "tests" / "examples"
Cli = Callable[..., tuple[int, str, str]]  # arguments -> exit code, stdout, stderr


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def example_lines(file: str) -> list[str]:
    """The lines of a file of `tests/examples`; lines with "#" are comments."""
    lines = (EXAMPLES / file).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def examples(name: str) -> list[Any]:
    """The values in a JSON Lines file of examples."""
    return [json.loads(line) for line in example_lines(f"{name}.jsonl")]


def table(name: str) -> list[list[str]]:
    """The cells of a tab-separated file of examples."""
    return [line.split("\t") for line in example_lines(f"{name}.tsv")]


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """A row without these fields."""
    return {name: value for name, value in row.items() if name not in names}


def contents(folder: Path) -> dict[Path, bytes]:
    """The files below a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def modified(folder: Path) -> dict[Path, int]:
    """The time of the last change below a folder."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def refusal(result: tuple[int, str, str]) -> str:
    """Return the only line on stderr of a refused command: exit code 2, no output."""
    code, out, err = result
    assert (code, out, err.count("\n")) == (2, "", 1), result
    return err


def printed(result: tuple[int, str, str], code: int = 0) -> Any:
    """Return the object on stdout of a command that ended with this exit code."""
    found, out, err = result
    assert found == code, err
    return json.loads(out)


def _python(arguments: tuple[object, ...], env: Mapping[str, str], more: Any) -> dict[str, Any]:
    """Arguments for `subprocess`: Python in the project's folder, with `env` added to the
    environment.
    """
    command = [sys.executable, *map(str, arguments)]
    return {"args": command, "env": {**os.environ, **env}, "text": True, "cwd": ROOT, **more}


def run_python(
    *arguments: object, env: Mapping[str, str] = {}, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run Python in a subprocess; `env` is added to the environment."""
    return subprocess.run(**_python(arguments, env, {"capture_output": True, **more}))


def start_python(
    *arguments: object, env: Mapping[str, str] = {}, **more: Any
) -> subprocess.Popen[str]:
    """Start Python in a subprocess whose stdout can be read."""
    return subprocess.Popen(**_python(arguments, env, {"stdout": subprocess.PIPE, **more}))


def log_python(log: Path, *arguments: object, env: Mapping[str, str] = {}, timeout: float) -> str:
    """Run Python with its output in a file, which can be read if the process hangs; return the
    output on success.
    """
    with log.open("w") as file:
        more = {"stdout": file, "stderr": file, "timeout": timeout}
        done = subprocess.run(**_python(arguments, env, more))
    output = log.read_text()
    assert done.returncode == 0, output[-8000:]
    return output
