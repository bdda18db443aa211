"""The local verifier with a cache on disk."""

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.verifier import Verifier, load_verifier
from workbench.verifier.model import in_bfloat16
from workbench.verifier.verifier import SHIPPED, Triple

CHUNK = 1000  # pairs between two saves


class Remembered(Verifier):
    """A verifier that caches the probabilities of pairs in `folder`.

    The key has the hash of its weights, its temperature and its number format. The pooling of
    windows is not cached, so another pooling rule needs no new forward passes.
    """

    def __init__(self, verifier: Verifier, digest: str, folder: Path) -> None:
        super().__init__(verifier.model, verifier.settings, verifier.name)
        self.sha256 = digest
        settings = verifier.settings
        key = _digest(digest, settings.temperature, settings.max_length, in_bfloat16())
        self.file = folder / f"{key}.json"
        self.known: dict[str, Triple] = {}
        if self.file.exists():
            self.known = {
                key: (s, c, n) for key, (s, c, n) in json.loads(self.file.read_text()).items()
            }

    def predict(self, pairs: Sequence[tuple[str, str]]) -> list[Triple]:
        keys = [_digest(premise, self.preprocess(claim)) for premise, claim in pairs]
        asked = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in self.known}
        for start in range(0, len(asked), CHUNK):
            some = list(asked.items())[start : start + CHUNK]
            self.known.update(
                zip(
                    [key for key, _ in some],
                    super().predict([pair for _, pair in some]),
                    strict=True,
                )
            )
            self._save()
            print(f"  {start + len(some)} of {len(asked)} new pairs judged", file=sys.stderr)
        return [self.known[key] for key in keys]

    def _save(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(self.known))
        part.replace(self.file)


def remembered(path: Path | None, folder: Path) -> Remembered:
    """Return the shipped verifier, or the one in `path`, with a cache."""
    adapter = (path or SHIPPED) / "adapter.safetensors"
    return Remembered(load_verifier(path), hashlib.sha256(adapter.read_bytes()).hexdigest(), folder)


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
