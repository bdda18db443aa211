"""Stages that runs of a queue share, such as a cold start: made once, copied into each run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from workbench.runs.folder import finished, versions
from workbench.types import JsonMapping
from workbench.util.jsonl import write_json

HASH = 12  # characters
OWN = ("method", "config")  # of a run's identity: a stage names itself what it uses of these


class Shared:
    """The stages below `root`, each in a folder named by the digest of all that it depends on."""

    def __init__(self, root: Path, identity: JsonMapping) -> None:
        run = {key: value for key, value in identity.items() if key not in OWN}
        self.root, self.common = root, [run, versions()]

    def folder(self, stages: list[tuple[str, Any]]) -> Path:
        """Where the last of these stages lies; each is its name and what it depends on."""
        key = json.dumps([*self.common, stages], sort_keys=True)
        return self.root / hashlib.sha256(key.encode()).hexdigest()[:HASH]

    def take(self, folder: Path, out: Path) -> bool:
        """Copy a finished stage over `out`; False if there is none."""
        # of a copy that was killed: its rows would count among this run's
        shutil.rmtree(_partial(out), ignore_errors=True)
        if not (summary := finished(folder)):
            return False
        shutil.rmtree(out, ignore_errors=True)
        _copy(folder, out, {**summary, "shared": folder.name})
        return True

    def keep(self, folder: Path, out: Path) -> None:
        """Leave a copy of the finished stage `out` for other runs."""
        if not folder.exists():
            shutil.rmtree(_partial(folder), ignore_errors=True)
            _copy(out, folder, finished(out) or {})


def _copy(source: Path, target: Path, summary: JsonMapping) -> None:
    """Copy a folder with this summary, completely or not at all."""
    partial = _partial(target)
    try:
        shutil.copytree(source, partial)
        write_json(partial / "summary.json", summary)
        os.replace(partial, target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _partial(target: Path) -> Path:
    return target.parent / f".{target.name}.partial"
