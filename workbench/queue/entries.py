"""A queue's file: TOML with a table `[[run]]` for each run, or JSONL with a row for each, read
into `Entry` values.

    [defaults]                          # for all runs of a TOML file
    bench = "tiny"

    [[run]]
    method = "truthrl"
    seed = [1, 2, 3]                    # one run each
    set = ["truthrl.reward=binary"]
    name = "binary"

Of the settings in `[defaults]` a run takes those of its own method, before its own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.jsonl import iter_rows
from workbench.types import WorkbenchError

MOST = 10_000  # runs of a file


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_whole(value: Any) -> bool:
    return type(value) is int  # true is no number


def _is_count(value: Any) -> bool:
    return _is_whole(value) and value > 0


def _all(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and all(map(fits, value))


KEYS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "method": (_is_text, "a method's name"),
    "seed": (
        lambda value: _is_whole(value) or (value != [] and _all(_is_whole)(value)),
        "a whole number, or a list of them",
    ),
    "bench": (_is_text, "a bench's name"),
    "set": (_all(_is_text), 'a list of settings "METHOD.FIELD=VALUE"'),
    "steps": (_is_count, "a whole number above 0"),
    "questions": (_is_text, "a data set's name, or a file"),
    "threads": (_is_count, "a whole number above 0"),
    "policy": (_is_text, "a model's folder or public name"),
    "judge": (_is_text, "the http address of an endpoint"),
    "judge_model": (_is_text, "the name of the endpoint's model"),
    "store": (_is_text, "the name of an index of passages"),
    "judge_cache": (_is_text, "a file"),
    "name": (_is_text, "a text"),
}


@dataclass(frozen=True)
class Entry:
    """A run as it is described: what `workbench train` would be told of it. `name` is for people
    and changes nothing.
    """

    method: str
    seed: int = 0
    bench: str = "tiny"
    settings: tuple[str, ...] = ()
    steps: int | None = None
    questions: str | None = None
    threads: int | None = None
    name: str = ""
    policy: str | None = None
    judge: str | None = field(default=None, repr=False)  # its address may hold a password
    judge_model: str | None = None
    store: str | None = None
    judge_cache: str | None = None
    where: str = ""  # in which file it stands, and as which run of it


def read_entries(path: Path) -> list[Entry]:
    """The runs of a file in its order, one for each seed.

    Raises:
        WorkbenchError: the file cannot be read, has no run, or one with a key or a value that
        there is not.
    """
    defaults, rows = _toml(path) if path.suffix == ".toml" else _jsonl(path)
    common = _checked(defaults, f"'{path}', [defaults]")
    shared: list[str] = common.pop("set", [])
    if not rows:
        raise WorkbenchError(f"'{path}' has no run: add a table [[run]], or a row, with its method")
    checked = [(where, {**common, **_checked(row, where)}) for where, row in rows]
    entries = [entry for where, row in checked for entry in _entries(row, shared, where)]
    if len(entries) > MOST:
        raise WorkbenchError(f"'{path}' has {len(entries)} runs: {MOST} are the most, divide it")
    for setting in shared:
        if _method_of(setting) not in {entry.method for entry in entries}:
            raise WorkbenchError(
                f"'{path}', [defaults]: no run has the method of '{setting}': leave it out"
            )
    return entries


def _toml(path: Path) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WorkbenchError(
            f"cannot read '{path}' ({error.strerror}): name a file of runs"
        ) from None
    except ValueError as error:  # of its form, or of its characters
        raise WorkbenchError(f"'{path}' is not TOML: {error}") from None
    runs, defaults = document.pop("run", []), document.pop("defaults", {})
    if document:
        raise WorkbenchError(
            f"'{path}': unknown '{next(iter(document))}': there are [defaults] and [[run]]"
        )
    if not isinstance(runs, list) or not isinstance(defaults, dict):
        raise WorkbenchError(
            f"'{path}': write [[run]] above each run, and [defaults] above what all share"
        )
    return defaults, [(f"'{path}', run {number}", run) for number, run in enumerate(runs, start=1)]


def _jsonl(path: Path) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    if path.suffix != ".jsonl":
        raise WorkbenchError(
            f"'{path}' is neither .toml nor .jsonl: name a file of runs by what it is"
        )
    return {}, [
        (f"'{path}', run {number}", row) for number, row in enumerate(iter_rows(path), start=1)
    ]


def _checked(row: Any, where: str) -> dict[str, Any]:
    """A run's table, if all its keys and values are such as there are."""
    if not isinstance(row, dict):
        raise WorkbenchError(f"{where}: write a table of {', '.join(KEYS)}")
    for key, value in row.items():
        if key not in KEYS:
            raise WorkbenchError(f"{where}: unknown key '{key}': there are {', '.join(KEYS)}")
        fits, told = KEYS[key]
        if not fits(value):
            raise WorkbenchError(f"{where}: {key} is {value!r}: it must be {told}")
    return dict(row)


def _entries(row: dict[str, Any], shared: Sequence[str], where: str) -> list[Entry]:
    """A run for each seed of a checked table."""
    if "method" not in row:
        raise WorkbenchError(f"{where}: it has no method: add one")
    seeds = row.pop("seed", 0)
    own = [setting for setting in shared if _method_of(setting) == row["method"]]
    entry = Entry(settings=(*own, *row.pop("set", [])), where=where, **row)
    return [replace(entry, seed=seed) for seed in (seeds if isinstance(seeds, list) else [seeds])]


def _method_of(setting: str) -> str:
    return setting.strip().partition(".")[0]
