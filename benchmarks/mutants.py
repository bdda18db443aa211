"""Measure which small faults in the code the quick tests notice, with a sample of mutants.

    coverage run --rcfile benchmarks/mutants.cfg -m pytest -m "not slow and not nightly"
    coverage combine --rcfile benchmarks/mutants.cfg
    python benchmarks/mutants.py --coverage runs/mutants/.coverage --seed 1 --n 60

A mutant is a copy of the project with one changed expression: another comparison or operator, a
number plus one, a negated condition, `and` exchanged with `or`. The tests that cover the line run
on the copy. A mutant counts as noticed if one fails or hangs. The sample depends on hashes of the
changed code, so edits elsewhere do not change it. A mutant with no observable effect survives
rightly: read the list. An interrupted command resumes with the mutants that `--results` lacks.
"""

import argparse
import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AREAS = {
    "rewards": (
        "workbench/methods/*/reward.py",
        "workbench/methods/lookup.py",
    ),
    "credit": ("workbench/credit/*.py",),
    "pipeline": ("workbench/pipeline.py", "workbench/util/failures.py"),
    "judge parsing": ("workbench/judge/wire.py",),
    "checkpoints": ("workbench/runs/checkpoints.py",),
}
COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*"}
PARTS = ("apps", "benchmarks", "data", "docs", "notebooks", "tests", "workbench")


@dataclass(frozen=True)
class Mutant:
    """A replacement of `old` by `new` at a line of a file; `source` is the whole changed file."""

    area: str
    path: str
    line: int
    old: str
    new: str
    source: str
    draw: str


def mutants(area: str, path: Path, seed: int) -> Iterator[Mutant]:
    """Yield every mutant of a file."""
    source = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    tree = ast.parse(source)
    starts = [0]
    for line in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    seen: dict[str, int] = {}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            for target, new in changes(node):
                start = starts[target.lineno - 1] + target.col_offset
                end = starts[target.end_lineno - 1] + target.end_col_offset
                old = source.encode()[start:end].decode()
                key = f"{seed} {name} {function.name} {old} {new}"
                seen[key] = seen.get(key, 0) + 1
                draw = hashlib.sha256(f"{key} {seen[key]}".encode()).hexdigest()
                changed = source.encode()[:start] + new.encode() + source.encode()[end:]
                yield Mutant(area, name, target.lineno, old, new, changed.decode(), draw)


def changes(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield (expression, replacement) for one node."""
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in COMPARISONS:
            new = COMPARISONS[type(operator)]
            yield node, f"({ast.unparse(left)} {new} {ast.unparse(right)})"
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
            if not isinstance(left, ast.JoinedStr) and not isinstance(right, ast.JoinedStr):
                new = OPERATORS[type(operator)]
                yield node, f"(({ast.unparse(left)}) {new} ({ast.unparse(right)}))"
        case ast.BoolOp(operator, values):
            new = " or " if isinstance(operator, ast.And) else " and "
            yield node, "(" + new.join(f"({ast.unparse(value)})" for value in values) + ")"
        case ast.Constant(value) if isinstance(value, int | float) and not isinstance(value, bool):
            yield node, repr(value + 1)
        case ast.If(test) | ast.IfExp(test) if not isinstance(test, ast.Compare | ast.BoolOp):
            yield test, f"(not ({ast.unparse(test)}))"


def sample(n: int, seed: int) -> list[Mutant]:
    """Return `n` mutants, the same number from each area if it has enough."""
    drawn: list[Mutant] = []
    for number, (area, patterns) in enumerate(AREAS.items()):
        every = {
            one.source: one
            for pattern in patterns
            for path in sorted(ROOT.glob(pattern))
            for one in mutants(area, path, seed)
        }
        share = (n - len(drawn)) // (len(AREAS) - number)
        drawn += sorted(every.values(), key=lambda one: one.draw)[:share]
    return drawn


def covering(coverage_file: Path) -> dict[str, dict[int, list[str]]]:
    """Return path -> line -> names of the test functions that run the line."""
    from coverage import CoverageData

    data = CoverageData(basename=str(coverage_file))
    data.read()
    lines = {}
    for measured in data.measured_files():
        name = measured[measured.rindex("workbench/") :]
        lines[name] = {
            line: sorted(context for context in contexts if context.startswith("tests."))
            for line, contexts in data.contexts_by_lineno(measured).items()
        }
    return lines


def selected(contexts: list[str]) -> list[str]:
    """Return the test functions as pytest names them, from files with few of them (the closest)
    first.
    """
    by_file: dict[str, list[str]] = {}
    for context in contexts:
        module, _, function = context.rpartition(".")
        path = Path(*module.split(".")).with_suffix(".py")
        if (ROOT / path).exists() and f"def {function}(" in (ROOT / path).read_text():
            by_file.setdefault(path.as_posix(), []).append(f"{path.as_posix()}::{function}")
    return [
        test for path in sorted(by_file, key=lambda p: len(by_file[p])) for test in by_file[path]
    ]


def copy_project(folder: Path) -> None:
    """Copy the files that the tests read."""
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.name in PARTS:
            shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.is_file():
            shutil.copy(path, folder)


def noticed(mutant: Mutant, tests: list[str], folder: Path, limit: float) -> str:
    """Test a mutant in a copy of the project; return "failed", "hung" or "survived"."""
    copy_project(folder)  # a new copy, because a mutant may delete files
    (folder / mutant.path).write_text(mutant.source, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow and not nightly"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    try:
        result = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return "hung"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    breaks_import = "\nERROR tests/" in result.stdout
    if result.returncode == 4 and not breaks_import:  # pytest did not find a test
        raise SystemExit(f"pytest ended with 4:\n{result.stdout[-2000:]}")
    return "survived" if result.returncode in (0, 5) else "failed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--coverage", type=Path, required=True, help="coverage data with contexts")
    parser.add_argument("--n", type=int, default=60, help="number of mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--limit", type=float, default=600, help="seconds for the tests of a mutant"
    )
    parser.add_argument("--results", type=Path, help="JSON file for the outcomes")
    given = parser.parse_args()
    lines = covering(given.coverage)
    stored = given.results and given.results.exists()
    rows = json.loads(given.results.read_text())["mutants"] if stored else []
    done = {(row["path"], row["line"], row["old"], row["new"]) for row in rows}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "project"
        for mutant in sample(given.n, given.seed):
            if (mutant.path, mutant.line, mutant.old, mutant.new) in done:
                continue
            tests = selected(lines.get(mutant.path, {}).get(mutant.line, []))
            outcome = noticed(mutant, tests, folder, given.limit) if tests else "not covered"
            row = {"area": mutant.area, "path": mutant.path, "line": mutant.line}
            rows.append(row | {"old": mutant.old, "new": mutant.new, "outcome": outcome})
            print(f"{outcome:12}{mutant.path}:{mutant.line}  {mutant.old!r} -> {mutant.new!r}")
            if given.results:
                found = sum(one["outcome"] in ("failed", "hung") for one in rows)
                about = {"seed": given.seed, "n": len(rows), "noticed": found, "mutants": rows}
                given.results.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    found = sum(one["outcome"] in ("failed", "hung") for one in rows)
    print(f"noticed {found} of {len(rows)}")


if __name__ == "__main__":
    main()
