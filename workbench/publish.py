"""An export in a repository of the Hugging Face hub: whatever speaks against it is said before a
weight is read.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.hub import SECONDS
from workbench.types import WorkbenchError

OWN = ".gitattributes"  # which the hub lays into every repository that it makes


@dataclass(frozen=True)
class Repository:
    """Where an export goes: "OWNER/NAME" of a model, and whether its owner alone sees it."""

    name: str
    private: bool = True


class NotSent(WorkbenchError):
    """The hub did not take an export, which stays on this machine."""

    code = 3  # done, but for that


def claim(repository: Repository) -> None:
    """Make the repository, or find that it is there, empty and may be written to; it is written
    to by nothing else.

    Raises:
        WorkbenchError: no repository can have that name, the hub is switched off or cannot be
        reached, nobody is logged in, or
            who is may not write there; a repository with files, or one that others see than was
            asked for.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    _check_here(repository.name)
    hub = HfApi(token=True)
    try:
        found = hub.repo_info(repository.name, repo_type="model", timeout=SECONDS)
        hub.auth_check(repository.name, write=True)
    except RepositoryNotFoundError:
        _make(hub, repository)
    except Exception as error:  # of the hub's or the network's many kinds
        raise WorkbenchError(_refused(repository.name, error)) from error
    else:
        _check_empty(repository, found)


def _make(hub: Any, repository: Repository) -> None:
    try:
        hub.create_repo(repository.name, private=repository.private)
    except Exception as error:  # as above
        raise WorkbenchError(_refused(repository.name, error)) from error


def publish(repository: Repository, files: Mapping[str, Path | bytes], at: Path) -> dict[str, Any]:
    """Send files by their names there, in one commit: the hub has all of them, or none.

    Args:
        at: the folder or the file that the export is on this machine.

    Returns:
        `repository`, `private` and `url`.

    Raises:
        NotSent: says how to go on.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    added = [
        CommitOperationAdd(name, str(file) if isinstance(file, Path) else file)
        for name, file in files.items()
    ]
    hub = HfApi(token=True)
    try:
        hub.create_commit(repository.name, added, commit_message="Add a trained policy")
    except Exception as error:  # as above
        how = f"hf upload {repository.name} {shlex.quote(str(at))}{' .' if at.is_dir() else ''}"
        raise NotSent(
            f"'{at}' is whole, but the hub did not take it ({_told(error)}): `{how}` sends it later"
        ) from error
    return {
        "repository": repository.name,
        "private": repository.private,
        "url": f"{hub.endpoint}/{repository.name}",
    }


def files_of(folder: Path) -> dict[str, Path | bytes]:
    """What `publish` sends of a folder: all files under it, by their paths in it."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _check_here(name: str) -> None:
    """Whatever this machine can say by itself."""
    from huggingface_hub import constants, get_token
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
        whole = "/" in name
    except HFValidationError:
        whole = False
    if not whole:
        raise WorkbenchError(
            f"'{name}' is no name of a repository: write OWNER/NAME, of letters, digits, '-', '_'"
            " and '.'"
        )
    if constants.HF_HUB_OFFLINE:
        raise WorkbenchError(
            "the hub is switched off by HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE: unset it, or leave"
            " out --push"
        )
    if get_token() is None:
        raise WorkbenchError(
            "nobody is logged in at the hub: `hf auth login` once, or set HF_TOKEN to a token that"
            " may write"
        )


def _check_empty(repository: Repository, found: Any) -> None:
    if files := [file.rfilename for file in found.siblings or [] if file.rfilename != OWN]:
        raise WorkbenchError(
            f"'{repository.name}' has {len(files)} files already ({files[0]}, …): name a new or an"
            " empty one"
        )
    if bool(found.private) != repository.private:
        asked, other = ("private", "--public") if repository.private else ("public", "--private")
        raise WorkbenchError(
            f"'{repository.name}' is there and not {asked}: change that on its page, or say {other}"
        )


def _refused(name: str, error: Exception) -> str:
    remedy = "check the owner's name, and that the token may write there"
    return f"nothing can be pushed to '{name}' ({_told(error)}): {remedy}, or leave out --push"


def _told(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
