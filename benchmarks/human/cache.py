"""The local verifier with a memory on disk, so that a second run asks it nothing."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.entailment import Check, Verifier, load_verifier
from workbench.entailment.verifier import SHIPPED
from workbench.types import Passage

CHUNK = 100  # claims between two saves


class Remembered(Verifier):
    """A verifier whose checks are kept in `folder`, by the hash of its weights and settings."""

    def __init__(self, verifier: Verifier, digest: str, folder: Path) -> None:
        super().__init__(verifier.model, verifier.settings, verifier.name)
        self.sha256 = digest
        self.file = folder / f"{_digest(digest, asdict(verifier.settings))}.json"
        self.known: dict[str, list[Any]] = json.loads(self.file.read_text()) if self.file.exists() else {}

    def check_all(self, claims: Sequence[tuple[str, Sequence[Passage | str]]], batch: int = 32) -> list[Check]:
        keys = [_digest(claim, [_parts(passage) for passage in passages]) for claim, passages in claims]
        asked = {key: one for key, one in zip(keys, claims, strict=True) if key not in self.known}
        for start in range(0, len(asked), CHUNK):
            some = list(asked.items())[start : start + CHUNK]
            for (key, _), check in zip(some, super().check_all([one for _, one in some], batch), strict=True):
                self.known[key] = list(asdict(check).values())
            self._save()
            print(f"  {start + len(some)} of {len(asked)} new claims judged", file=sys.stderr)
        return [_check(self.known[key]) for key in keys]

    def _save(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(self.known))
        part.replace(self.file)


def remembered(path: Path | None, folder: Path) -> Remembered:
    """The shipped verifier, or the one in `path`."""
    adapter = (path or SHIPPED) / "adapter.safetensors"
    return Remembered(load_verifier(path), hashlib.sha256(adapter.read_bytes()).hexdigest(), folder)


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def _parts(passage: Passage | str) -> list[str]:
    return [passage.title, passage.text] if isinstance(passage, Passage) else ["", passage]


def _check(row: Sequence[Any]) -> Check:
    support, contradict, neutral, passage, span, windows = row
    return Check(support, contradict, neutral, passage, (span[0], span[1]) if span else None, windows)
