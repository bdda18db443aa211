"""Compute and cache the fingerprint of a world: a hash of its facts, questions and texts.

The computation takes seconds, because all documents are generated. A cached fingerprint is valid
only for the same settings, source files of this package and Python version. If the cache is damaged
or not available, the fingerprint is computed again.
"""

import contextlib
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from workbench.types import Question
from workbench.util.disk import cache_folder
from workbench.util.jsonl import replace_rows
from workbench.world.documents import Document
from workbench.world.facts import Fact, WorldConfig
from workbench.world.pages import Page

LENGTH = 16  # hexadecimal digits of a fingerprint
HERE = Path(__file__).resolve().parent


def of_world(
    facts: Iterable[Fact],
    questions: Iterable[Question],
    pages: Iterable[Page],
    documents: Iterable[Document],
) -> str:
    """Return the fingerprint of a world: a hash of its facts, questions, pages and documents."""
    rows = [
        *([f.id, f.subject, f.relation, f.object, f.tier] for f in facts),
        *([q.id, q.text, q.answers, q.kind, q.meta] for q in questions),
    ]
    texts = (page.text for page in pages)
    return _digest([*map(json.dumps, rows), *texts, of_documents(documents)])


def of_documents(documents: Iterable[Document]) -> str:
    """Return the fingerprint of the pre-training documents: a hash of their texts."""
    return _digest(document.whole for document in documents)


def _digest(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
    return digest.hexdigest()[:LENGTH]


def cached_fingerprint(config: WorldConfig, make: Callable[[], str]) -> str:
    """Return the fingerprint of a world from the cache; if it is missing, compute and cache it.

    Args:
        config: the config of the world.
        make: computes the fingerprint.
    """
    settings = json.dumps([asdict(config), sys.version, str(HERE)])
    key = _digest([settings, SOURCES])
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        match = re.fullmatch(rf"{key} ([0-9a-f]{{{LENGTH}}})\n", _file(settings).read_text())
        if SOURCES and match:
            return match[1]
    fingerprint = make()
    with contextlib.suppress(OSError, RuntimeError):  # no home folder, or not writable
        if SOURCES:
            _file(settings).parent.mkdir(parents=True, exist_ok=True)
            replace_rows(_file(settings), [f"{key} {fingerprint}\n".encode()])
    return fingerprint


def _file(settings: str) -> Path:
    """Return the cache file for these settings.

    All versions of the source files use the same file, so files do not accumulate.
    """
    return cache_folder() / "worlds" / f"{_digest([settings])}.txt"


def _sources() -> str:
    """Return a digest of the source files of this package; "" if they cannot be read."""
    try:
        paths = sorted((*HERE.glob("*.py"), *HERE.glob("*.toml")))
        texts = [text for path in paths for text in (path.name, path.read_text())]
    except OSError:
        return ""
    return _digest(texts) if texts else ""


# read at import: this process runs the code that it imported, even if the files change later
SOURCES = _sources()
