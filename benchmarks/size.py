"""Count tokens and lines of code, commands, options and settings of the project.

    python benchmarks/size.py            # a table
    python benchmarks/size.py --json     # one JSON object

A token is a name, an operator, a number or a string as `tokenize` reads it. Comments, line breaks
and indentation do not count. A docstring counts as one token. A setting is a field of a config
dataclass of a method or a baseline. A field of a part that several trainers share counts once.
"""

import argparse
import json
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from inspect import get_annotations
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import typer  # noqa: E402

from workbench.cli.frame import app, load  # noqa: E402
from workbench.methods import TRAINED  # noqa: E402

COUNTED = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}


def code_size(folder: Path) -> dict[str, int]:
    """Count files, lines and tokens of the Python files under a folder."""
    paths = sorted(folder.rglob("*.py"))
    tokens = 0
    for path in paths:
        with path.open("rb") as file:
            tokens += sum(token.type in COUNTED for token in tokenize.tokenize(file.readline))
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
    return {"files": len(paths), "lines": lines, "tokens": tokens}


def leaf_commands(command: Any, name: str = "workbench") -> Iterator[tuple[str, Any]]:
    """Yield every command that runs something, by its full name."""
    children = getattr(command, "commands", None)
    if children is None:
        yield name, command
    else:
        for child, value in children.items():
            yield from leaf_commands(value, f"{name} {child}")


def setting_owners(config: type) -> Iterator[tuple[type, str]]:
    """Yield (defining dataclass, field) for every field of a config and of its parts."""
    for one in fields(config):
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        if is_dataclass(default):
            yield from setting_owners(type(default))
        else:
            owner = next(c for c in config.__mro__ if one.name in get_annotations(c))
            yield owner, one.name


def measure() -> dict[str, Any]:
    load(None)
    commands = dict(leaf_commands(typer.main.get_command(app)))
    settings = {pair for one in TRAINED.values() for pair in setting_owners(type(one.config()))}
    return {
        **{name: code_size(ROOT / name) for name in ("workbench", "tests")},
        "commands": len(commands),
        "options": sum(len(command.params) for command in commands.values()),
        "settings": len(settings),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    size = measure()
    if parser.parse_args().json:
        print(json.dumps(size))
        return
    for name in ("workbench", "tests"):
        part = size[name]
        print(f"{name:10} {part['tokens']:>9,} tokens {part['lines']:>8,} lines", end="")
        print(f" {part['files']:>5} files")
    for name in ("commands", "options", "settings"):
        print(f"{name:10} {size[name]:>9}")


if __name__ == "__main__":
    main()
