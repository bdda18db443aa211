"""The output of a scoring: its settings, which rows it already has, and taking it up again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.jsonl import encode, iter_rows, repair, replace_rows, write_json
from workbench.recipes import METHODS
from workbench.recipes.method import reward_settings
from workbench.runs.folder import differences, read_json
from workbench.score.survey import checksum
from workbench.score.tally import Tally, unfinished
from workbench.types import WorkbenchError


def settings_path(out: Path) -> Path:
    return out.with_name(f"{out.stem}.settings.json")


def claim(out: Path, settings: Mapping[str, Any], overwrite: bool = False) -> None:
    """Make `out` the output of a scoring with these settings. Raises as `check_free` does."""
    check_free(out, settings, overwrite)
    path = settings_path(out)
    if overwrite:
        for file in (path, out):  # in this order: an output without settings is never taken up
            file.unlink(missing_ok=True)
    current = json.loads(json.dumps(settings))
    if read_json(path) != current:
        write_json(path, current)


def check_free(out: Path, settings: Mapping[str, Any], overwrite: bool = False) -> None:
    """Make sure that `out` is free for a scoring with these settings, or is begun with them.

    Raises:
        WorkbenchError: there is another output in its place.
    """
    if overwrite or not out.exists():
        return
    remedy = "name another --out, or replace it with --overwrite"
    stored = read_json(settings_path(out))
    if stored is None and out.stat().st_size:
        raise WorkbenchError(
            f"'{out}' was not written by `workbench score`, or not with settings that are known:"
            f" {remedy}"
        )
    if stored is not None and (different := changes(stored, json.loads(json.dumps(settings)))):
        raise WorkbenchError(
            f"'{out}' was begun with other settings ({'; '.join(different)}): {remedy}"
        )


def changes(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """What two scorings differ in, as "rlfh.alpha is 1.0, not 2.0".

    A field that is newer than the stored settings had its default then. Fields that only those
    have, such as earlier outputs' of training, pay nothing; a method that one of the two does
    not pay differs in its name.
    """
    old, new = stored.get("config", {}), wanted.get("config", {})

    def flat(settings: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        both = {name: {**_usual(name, new[name]), **config[name]} for name in old.keys() & new}
        both = {name: {field: both[name][field] for field in new[name]} for name in both}
        return {**settings, "config": sorted(config), **both}

    changed = differences(flat(stored, old), flat(wanted, new))
    named = stored.get("method") != wanted.get("method")
    return [line for line in changed if not (named and line.startswith("config "))]


def _usual(name: str, fields: Iterable[str]) -> dict[str, Any]:
    """What the fields of a method's config are by default."""
    usual = reward_settings(METHODS[name].config()) if name in METHODS else {}
    return {field: usual.get(field) for field in fields}


def resume(out: Path, wanted: dict[str, int], methods: Sequence[str], tally: Tally) -> int:
    """Take the rows that are done out of `wanted`, and count them; returns how many there are.

    Rows that failed, or earned nothing, are taken out of the file, to be tried again. What a
    killed process left half written is cut off.

    Raises:
        WorkbenchError: a row of the file is about another response than the input's row of the
        same id.
    """
    if not out.exists():
        return 0
    repair(out)
    again = 0
    for row in iter_rows(out):
        if wanted.get(row["id"], checksum(row["response"])) != checksum(row["response"]):
            raise WorkbenchError(
                f"'{out}' has scored another response for the id '{row['id']}' than the input has"
                " now: name another --out, or replace it with --overwrite"
            )
        again += unfinished(row, methods) and row["id"] in wanted
    if again:
        replace_rows(
            out,
            (
                encode(row)
                for row in iter_rows(out)
                if not (unfinished(row, methods) and row["id"] in wanted)
            ),
        )
    done = 0
    for row in iter_rows(out):
        done += wanted.pop(row["id"], None) is not None
        tally.add(row, paid_for=False)
    return done
