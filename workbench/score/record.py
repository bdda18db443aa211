"""The output of a scoring: its settings, the rows it has already, and how it is resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.jsonl import encode, iter_rows, repair, replace_rows, write_json
from workbench.recipes import METHODS
from workbench.recipes.method import reward_settings
from workbench.runs.folder import differences, read_json
from workbench.score.rows import checksum
from workbench.score.tally import Tally, unfinished
from workbench.types import WorkbenchError

REMEDY = "name another --out, or replace it with --overwrite"


def settings_path(out: Path) -> Path:
    return out.with_name(f"{out.stem}.settings.json")


def claim(out: Path, settings: Mapping[str, Any], overwrite: bool = False) -> None:
    """Make `out` the output of a scoring with these settings. Raises as `check_free` does."""
    check_free(out, settings, overwrite)
    path = settings_path(out)
    if overwrite:
        for file in (path, out):  # in this order: an output without settings is never resumed
            file.unlink(missing_ok=True)
    current = json.loads(json.dumps(settings))
    if read_json(path) != current:
        write_json(path, current)


def check_free(out: Path, settings: Mapping[str, Any], overwrite: bool = False) -> None:
    """Raise a WorkbenchError where `out` is something else than a scoring with these settings."""
    if overwrite or not out.exists():
        return
    stored = read_json(settings_path(out))
    if stored is None and out.stat().st_size:
        raise WorkbenchError(
            f"'{out}' was not written by `workbench score`, or not with settings that are known:"
            f" {REMEDY}"
        )
    if stored is not None and (different := changes(stored, json.loads(json.dumps(settings)))):
        raise WorkbenchError(
            f"'{out}' was begun with other settings ({'; '.join(different)}): {REMEDY}"
        )


def changes(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """The differences of two scorings, as "rlfh.alpha is 1.0, not 2.0".

    A field that is newer than the stored settings had its default then. Fields that only the
    stored settings have do not change a reward; a method that only one of the two has differs in
    its name.
    """
    old, new = stored.get("config", {}), wanted.get("config", {})
    former, current = {**stored, "config": sorted(old)}, {**wanted, "config": sorted(new)}
    for name in old.keys() & new:
        usual = reward_settings(METHODS[name].config()) if name in METHODS else {}
        former[name] = {field: {**usual, **old[name]}.get(field) for field in new[name]}
        current[name] = new[name]
    changed = differences(former, current)
    named = stored.get("method") != wanted.get("method")
    return [line for line in changed if not (named and line.startswith("config "))]


def resume(out: Path, wanted: dict[str, int], methods: Sequence[str], tally: Tally) -> int:
    """Take the rows that are done out of `wanted`, and count them; returns how many there are.

    Failed and unscored rows are taken out of the file, to be tried again; a line that a killed
    process left unfinished is cut off.

    Raises:
        WorkbenchError: a row of the file is about another response than the input's row of the
        same id.
    """
    if not out.exists():
        return 0
    repair(out)
    again = set()
    for row in iter_rows(out):
        if wanted.get(row["id"], checksum(row["response"])) != checksum(row["response"]):
            raise WorkbenchError(
                f"'{out}' has scored another response for the id '{row['id']}' than the input has"
                f" now: {REMEDY}"
            )
        if row["id"] in wanted and unfinished(row, methods):
            again.add(row["id"])
    if again:
        replace_rows(out, (encode(row) for row in iter_rows(out) if row["id"] not in again))
    done = 0
    for row in iter_rows(out):
        done += wanted.pop(row["id"], None) is not None
        tally.add(row, judged=False)
    return done
