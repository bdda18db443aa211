"""Stages that runs of a queue have in common, such as a cold start: made once, then copied into
every run that rests on it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.jsonl import write_json
from workbench.runs.folder import finished, versions

HASH = 12  # characters
WHOLE_RUN = ("method", "config")  # of a run's identity: a stage says itself what it takes of these


class Shared:
    """The stages that lie in `root`, each in a folder named by the digest of all that it rests
    on.
    """

    def __init__(self, root: Path, identity: Mapping[str, Any]) -> None:
        run = {key: value for key, value in identity.items() if key not in WHOLE_RUN}
        self.root, self.rests_on = root, [run, versions()]

    def folder(self, way: list[tuple[str, Any]]) -> Path:
        """Where the last stage of `way` lies: the names of the stages up to it, and what each
        rests on.
        """
        told = json.dumps([*self.rests_on, way], sort_keys=True)
        return self.root / hashlib.sha256(told.encode()).hexdigest()[:HASH]

    def take(self, folder: Path, out: Path) -> bool:
        """Copy a finished stage to `out`, instead of whatever was begun there; False if there is
        none.
        """
        # of a copy that was killed: its rows are no rows of this run
        shutil.rmtree(_partial(out), ignore_errors=True)
        summary = finished(folder)
        if not summary:
            return False
        if out.exists():
            shutil.rmtree(out)
        _copied(folder, out, {**summary, "shared": folder.name})
        return True

    def keep(self, folder: Path, out: Path) -> None:
        """Leave a copy of the finished stage `out` for others."""
        if not folder.exists():
            shutil.rmtree(_partial(folder), ignore_errors=True)
            _copied(out, folder, finished(out) or {})


def _copied(source: Path, target: Path, summary: Mapping[str, Any]) -> None:
    """Copy a folder with this summary, whole or not at all."""
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
