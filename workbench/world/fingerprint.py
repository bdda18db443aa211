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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from workbench.disk import cache_folder
from workbench.jsonl import replace_rows
from workbench.types import Question
from workbench.world.documents import Document
from workbench.world.facts import Fact, WorldConfig
from workbench.world.pages import Page

LENGTH = 16  # of a fingerprint, in hexadecimal digits
HERE = Path(__file__).resolve().parent


def of_world(
    facts: Iterable[Fact], questions: Iterable[Question], pages: Iterable[Page], documents: str
) -> str:
    """The fingerprint of facts, questions with their answers and pages, and of documents, which
    have one of their own.
    """
    digest = hashlib.sha256()
    for fact in facts:
        digest.update(
            json.dumps([fact.id, fact.subject, fact.relation, fact.object, fact.tier]).encode()
        )
    for question in questions:
        digest.update(
            json.dumps(
                [question.id, question.text, question.answers, question.kind, question.meta]
            ).encode()
        )
    for page in pages:
        digest.update(page.text.encode())
    digest.update(documents.encode())
    return digest.hexdigest()[:LENGTH]


def of_documents(documents: Iterable[Document]) -> str:
    """The fingerprint of documents."""
    digest = hashlib.sha256()
    for document in documents:
        digest.update(document.whole.encode())
    return digest.hexdigest()[:LENGTH]


def remembered(name: str, config: WorldConfig, make: Callable[[], str]) -> str:
    """The fingerprint called `name` of the world of `config`: what an earlier `make()` gave, or
    else `make()`, now kept.
    """
    settings = json.dumps([name, asdict(config), sys.version, str(HERE)]).encode()
    key = _digest([settings, SOURCES.encode()])
    if found := _read(settings, key):
        return found
    made = make()
    _keep(settings, key, made)
    return made


def _read(settings: bytes, key: str) -> str | None:
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        if SOURCES and (
            found := re.fullmatch(rf"{key} ([0-9a-f]{{{LENGTH}}})\n", _file(settings).read_text())
        ):
            return found[1]
    return None


def _keep(settings: bytes, key: str, made: str) -> None:
    with contextlib.suppress(OSError, RuntimeError):  # no home, or none that can be written
        if SOURCES:
            file = _file(settings)
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_rows(file, [f"{key} {made}\n".encode()])


def _file(settings: bytes) -> Path:
    """One for all sources: it is replaced where they change, so that files do not pile up."""
    return cache_folder() / "worlds" / f"{_digest([settings])[:LENGTH]}.txt"


def _digest(parts: Sequence[bytes]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _sources() -> str:
    """A digest of the sources in this folder; "" where there are none to be read."""
    files = sorted(HERE.glob("*.py"))
    try:
        return (
            _digest([part for file in files for part in (file.name.encode(), file.read_bytes())])
            if files
            else ""
        )
    except OSError:
        return ""


# as they are imported: a process that goes on while they are edited still makes the old world
SOURCES = _sources()
