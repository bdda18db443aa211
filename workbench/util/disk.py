"""Find the cache folder, check the free disk space, and recognise errors of a full disk."""

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from workbench.types import WorkbenchError

MARGIN = 5_000_000  # bytes required in addition to the estimate
CODES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NAMES = ("SQLITE_FULL", "SQLITE_IOERR_WRITE")  # sqlite's names of the same errors
# Messages of libraries that raise other error types: sqlite, safetensors and Lance (Rust), torch.
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
    """Return whether an error, or one of its causes, means that the disk is full.

    A full quota, and a file that has reached its size limit, count as well.
    """
    return any(
        (isinstance(cause, OSError) and cause.errno in CODES)
        or getattr(cause, "sqlite_errorname", "") in NAMES
        or any(words in str(cause) for words in WORDS)
        for cause in _chain(error)
    )


def full_message(error: BaseException) -> str:
    """Return the message for the user if the disk is full, with the file's name if it is known."""
    files = (e.filename for e in _chain(error) if isinstance(e, OSError) and e.filename)
    file = next((f" ('{name}')" for name in files), "")
    return (
        f"the disk is full, or a file has reached its size limit{file}: free some space and run the"
        " same command again"
    )


def cache_folder() -> Path:
    """Return this user's cache folder for the workbench. The folder may not exist yet.

    Raises:
        RuntimeError: the user has no home directory.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "factuality-workbench"


def check_space(folder: Path, wanted: int, remedy: str) -> None:
    """Check that the disk of `folder` has enough free space.

    Args:
        wanted: needed bytes. An additional margin of 5 MB must also be free.
        remedy: completes the message "free some space, or …".

    Raises:
        WorkbenchError: less space is free than needed.
    """
    existing = next(path for path in (folder, *folder.resolve().parents) if path.is_dir())
    free = shutil.disk_usage(existing).free
    if free < wanted + MARGIN:
        raise WorkbenchError(
            f"'{folder}' has {free / 1e6:,.0f} MB free, and at least {(wanted + MARGIN) / 1e6:,.0f}"
            f" MB are needed: free some space, or {remedy}"
        )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, each once."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:  # causes may form a cycle
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
