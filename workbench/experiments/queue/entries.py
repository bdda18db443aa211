"""Read the file of a queue: TOML with a table `[[run]]` for each run.

    [defaults]                          # for all runs
    bench = "tiny"

    [[run]]
    method = "truthrl"
    seed = [1, 2, 3]                    # one run each
    set = ["truthrl.reward=binary"]
    name = "binary"

A `set` in `[defaults]` applies to the runs of the methods that it names. A run's own `set` has
precedence.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.types import JsonMapping, JsonObject, WorkbenchError

LIMIT = 10_000  # maximum number of runs per file

KEYS = {  # key -> what its value must be, for errors
    "method": "a method's name",
    "seed": "an integer, or a list of integers",
    "bench": "a bench's name",
    "set": 'a list of settings "METHOD.FIELD=VALUE"',
    "steps": "an integer above 0",
    "questions": "a data set's name, or a file",
    "threads": "an integer above 0",
    "policy": "a model's folder or public name",
    "judge": "local, or the http address of an endpoint",
    "verifier": "the local judge's model",
    "judge_model": "the name of the endpoint's model",
    "store": "the name of an index of passages",
    "judge_cache": "a file",
    "judge_option": 'a list of fields "KEY=VALUE"',
    "judge_tokens": "an integer above 0",
    "name": "a text",
}
COUNTS, LISTS = ("steps", "threads", "judge_tokens"), ("set", "judge_option")


@dataclass(frozen=True)
class Entry:
    """The description of a run in a queue: the arguments of `workbench train`.

    `name` is only a label.
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
    judge_option: Sequence[str] = ()
    judge_tokens: int | None = None
    verifier: str | None = None
    where: str = ""  # the file and the number of the run, for errors

    @staticmethod
    def of(fields: JsonMapping) -> "Entry":
        """Convert the result of `dataclasses.asdict` for an entry back to the entry."""
        return Entry(**{**fields, "settings": tuple(fields["settings"])})


def read_entries(path: Path) -> list[Entry]:
    """Read a queue's file, and return its runs in order, one entry for each seed.

    Raises:
        WorkbenchError: the file cannot be read, has no run, or has an unknown key or value.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WorkbenchError(
            f"cannot read '{path}' ({error.strerror}): name a TOML file with a table [[run]] for"
            " each run"
        ) from None
    except ValueError as error:
        raise WorkbenchError(f"'{path}' is not TOML ({error}): correct that line") from None
    rows, defaults = document.pop("run", []), document.pop("defaults", {})
    if document or not isinstance(rows, list):
        unknown = next(iter(document), "run")
        raise WorkbenchError(
            f"'{path}': unknown '{unknown}': use only the tables [defaults] and [[run]]"
        )
    if not rows:
        raise WorkbenchError(f"'{path}' has no run: add a table [[run]] with its method")
    common = checked(defaults, f"'{path}', [defaults]")
    shared: list[str] = common.pop("set", [])
    entries = []
    for number, row in enumerate(rows, start=1):
        where = f"'{path}', run {number}"
        fields = {**common, **checked(row, where)}
        if "method" not in fields:
            raise WorkbenchError(f'{where} has no method: add a line such as method = "truthrl"')
        seeds, own = fields.pop("seed", 0), fields.pop("set", [])
        # other methods do not have these settings
        settings = [one for one in shared if _method_of(one) == fields["method"]]
        entry = Entry(settings=(*settings, *own), where=where, **fields)
        entries += [
            replace(entry, seed=seed) for seed in (seeds if isinstance(seeds, list) else [seeds])
        ]
    if len(entries) > LIMIT:
        raise WorkbenchError(f"'{path}' has {len(entries)} runs, more than {LIMIT}: split it")
    # a misspelt method name would otherwise drop the setting silently
    for setting in shared:
        if _method_of(setting) not in {entry.method for entry in entries}:
            raise WorkbenchError(
                f"'{path}', [defaults]: no run trains the method of the setting '{setting}': leave"
                " the setting out"
            )
    return entries


def checked(row: Any, where: str) -> JsonObject:
    """Check the keys and value types of a queue file's table [[run]] or [defaults]; return it.

    Keys whose value is None are removed. `where` names the table in error messages.

    Raises:
        WorkbenchError: a key is unknown, or a value has the wrong type.
    """
    if not isinstance(row, dict):
        raise WorkbenchError(
            f"{where} is {row!r}, not a table: write a TOML table of {', '.join(KEYS)}"
        )
    row = {key: value for key, value in row.items() if value is not None}
    for key, value in row.items():
        if key not in KEYS:
            raise WorkbenchError(f"{where}: unknown key '{key}': use {', '.join(KEYS)}")
        if key == "seed":
            seeds = value if type(value) is list else [value]
            fits = bool(seeds) and all(type(seed) is int for seed in seeds)
        elif key in COUNTS:
            fits = type(value) is int and value > 0
        elif key in LISTS:
            fits = type(value) is list and all(type(one) is str for one in value)
        else:
            fits = type(value) is str
        if not fits:
            raise WorkbenchError(f"{where}: {key} is {value!r}: it must be {KEYS[key]}")
    return row


def _method_of(setting: str) -> str:
    return setting.strip().partition(".")[0]
