"""Fingerprints of a world, and where they are kept: to make one, every document has to be
written, which takes seconds.

A kept fingerprint is used for the same settings, the same sources of this folder and the same
Python alone. Whatever is wrong with what is kept, or with where it would be, the fingerprint is
made anew: nothing fails for it.
"""

from __future__ import annotations

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

LENGTH = 16  # of a fingerprint, in hexadecimal digits
HERE = Path(__file__).resolve().parent


def of_world(
    facts: Iterable[Fact], questions: Iterable[Question], pages: Iterable[Page], documents: str
) -> str:
    """The fingerprint of facts, questions with their answers, pages, and of the documents' own
    fingerprint.
    """
    stated = [[f.id, f.subject, f.relation, f.object, f.tier] for f in facts]
    asked = [[q.id, q.text, q.answers, q.kind, q.meta] for q in questions]
    return _short([*map(json.dumps, [*stated, *asked]), *(page.text for page in pages), documents])


def of_documents(documents: Iterable[Document]) -> str:
    """The fingerprint of documents."""
    return _short(document.whole for document in documents)


def _short(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
    return digest.hexdigest()[:LENGTH]


def remembered(name: str, config: WorldConfig, make: Callable[[], str]) -> str:
    """The fingerprint called `name` of the world of `config`: what an earlier `make()` gave, or
    else `make()`, now stored.
    """
    settings = json.dumps([name, asdict(config), sys.version, str(HERE)])
    key = _short([settings, SOURCES])
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        found = re.fullmatch(rf"{key} ([0-9a-f]{{{LENGTH}}})\n", _file(settings).read_text())
        if SOURCES and found:
            return found[1]
    made = make()
    with contextlib.suppress(OSError, RuntimeError):  # no home folder, or one that is read-only
        if SOURCES:
            _file(settings).parent.mkdir(parents=True, exist_ok=True)
            replace_rows(_file(settings), [f"{key} {made}\n".encode()])
    return made


def _file(settings: str) -> Path:
    """One file for all versions of the sources, so that files do not pile up."""
    return cache_folder() / "worlds" / f"{_short([settings])}.txt"


def _sources() -> str:
    """A digest of the sources in this folder; "" where they cannot be read."""
    try:
        texts = [
            text for path in sorted(HERE.glob("*.py")) for text in (path.name, path.read_text())
        ]
    except OSError:
        return ""
    return _short(texts) if texts else ""


# as they are imported: a process that goes on while they are edited still makes the old world
SOURCES = _sources()
