"""Stages that runs of a queue have in common, such as a cold start: made once, then copied into every run that rests on it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.jsonl import write_json
from workbench.runs.folder import finished, versions

HASH = 12  # characters
WHOLE_RUN = ("method", "config")  # of a run's identity: a stage says itself what it takes of these


class Shared:
    """The stages that lie in `root`, each in a folder named by the digest of all that it rests on."""

    def __init__(self, root: Path, identity: Mapping[str, Any]) -> None:
        run = {key: value for key, value in identity.items() if key not in WHOLE_RUN}
        self.root, self.rests_on = root, [run, versions()]

    def folder(self, way: list[tuple[str, Any]]) -> Path:
        """Where the last stage of `way` lies: the names of the stages up to it, and what each rests on."""
        told = json.dumps([*self.rests_on, way], sort_keys=True)
        return self.root / hashlib.sha256(told.encode()).hexdigest()[:HASH]

    def take(self, folder: Path, out: Path) -> bool:
        """Copy a finished stage to `out`, instead of whatever was begun there; False if there is none."""
        if not finished(folder):
            return False
        if out.exists():
            shutil.rmtree(out)
        _copied(folder, out)
        write_json(out / "summary.json", {**(finished(out) or {}), "shared": folder.name})
        return True

    def keep(self, folder: Path, out: Path) -> None:
        """Leave a copy of the finished stage `out` for others."""
        if not folder.exists():
            _copied(out, folder)


def _copied(source: Path, target: Path) -> None:
    """Copy a folder, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        shutil.copytree(source, partial, dirs_exist_ok=True)
        os.replace(partial, target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
