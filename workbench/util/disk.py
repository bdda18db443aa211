"""A folder for caches; a full disk, seen beforehand where it can be, and told in one line where
it fills up under way.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from workbench.types import WorkbenchError

MARGIN = 5_000_000  # bytes that are wanted beyond what is known to be written
CODES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NAMES = ("SQLITE_FULL", "SQLITE_IOERR_WRITE")  # sqlite's
# The same in the words of libraries that raise errors of their own: sqlite, safetensors and Lance
# (in Rust), torch.
WORDS = (
    "No space left on device",
    "Disk quota exceeded",
    "File too large",
    "(os error 27)",
    "(os error 28)",
    "(os error 122)",
    "database or disk is full",
    "PytorchStreamWriter failed writing file",
    "] . unexpected pos ",
)


def is_full(error: BaseException) -> bool:
    """Whether an error, or one that led to it, says that nothing more can be written."""
    return any(
        (isinstance(cause, OSError) and cause.errno in CODES)
        or getattr(cause, "sqlite_errorname", "") in NAMES
        or any(words in str(cause) for words in WORDS)
        for cause in _chain(error)
    )


def told(error: BaseException) -> str:
    """What to do about it."""
    files = [
        str(cause.filename)
        for cause in _chain(error)
        if isinstance(cause, OSError) and cause.filename
    ]
    where = f" ('{files[0]}')" if files else ""
    return (
        f"the disk is full, or a file may not grow further{where}: free some space and run the same"
        " command again"
    )


def cache_folder() -> Path:
    """Where what can be made anew is kept for a user; it need not be there yet.

    Raises:
        RuntimeError: the user has no home.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "factuality-workbench"


def check_space(folder: Path, wanted: int, remedy: str) -> None:
    """Refuse to begin what cannot be finished: `wanted` bytes are the least that will be written
    under `folder`.

    Raises:
        WorkbenchError: less than that and a margin is free.
    """
    existing = next(path for path in (folder, *folder.resolve().parents) if path.is_dir())
    free = shutil.disk_usage(existing).free
    if free < wanted + MARGIN:
        raise WorkbenchError(
            f"'{folder}' has {free / 1e6:,.0f} MB free, and at least {(wanted + MARGIN) / 1e6:,.0f}"
            f" MB are needed: free some space, or {remedy}"
        )


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
