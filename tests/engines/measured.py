"""Measurements of the engines' tests in benchmarks/results/engines.json, with a key per engine.

`make test-engines TELL=1` writes it; otherwise `store` does nothing, so that a test does not change
the working tree.
"""

import json
import os
import re
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tests.engines.environment import ROOT, STAMP, disk_gb, pins
from workbench.util.jsonl import write_json

RESULTS = ROOT / "benchmarks" / "results" / "engines.json"
ALWAYS = ("torch", "transformers", "trl", "peft")
BEGAN = time.monotonic()
found_of: dict[str, dict[str, Any]] = {}  # in this process


def store(engine: str, found: Mapping[str, Any]) -> None:
    """Add `found` to this process's results for the engine, and replace the engine's key in the
    file.

    Mappings are merged by name. `versions`, `date`, `build_minutes`, `minutes` of the tests so far
    and `disk_gb` are added here.
    """
    if not os.environ.get("WORKBENCH_TELL"):
        return
    known = found_of.setdefault(engine, {**setting_of(engine)})
    for name, value in found.items():
        known[name] = {**known.get(name, {}), **value} if isinstance(value, Mapping) else value
    known["minutes"] = round((time.monotonic() - BEGAN) / 60, 1)
    every = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    write_json(RESULTS, dict(sorted({**every, engine: known}.items())))


def setting_of(engine: str) -> dict[str, Any]:
    """The date, versions, build time and disk space of the environment."""
    stamp = Path(sys.prefix) / STAMP
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"python": sys.version.split()[0], **versions(engine)},
        "build_minutes": float(stamp.read_text()) if stamp.exists() else None,
        "disk_gb": round(disk_gb(Path(sys.prefix)), 1),
    }


def versions(engine: str) -> dict[str, str]:
    """The installed versions of the engine's pinned packages and of packages that all engines
    share.
    """
    names = re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==", pins(engine), re.M)
    installed = {}
    for name in dict.fromkeys([*ALWAYS, *names]):
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed
