"""Names on the Hugging Face hub: what is on the disk is used, and a hub that is not there is one quick line."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

Loaded = TypeVar("Loaded")
SECONDS = 10  # to wait for the hub before saying that it is not there


def from_disk_or_hub(load: Callable[..., Loaded], name: str, **options: Any) -> Loaded:
    """`load(name, **options)` from a folder or the hub's cache, else from the hub.

    Raises:
        OSError: the hub cannot be reached, or has no model of that name. What else the loader raises is passed on.
    """
    if Path(name).is_dir():
        return load(name, **options)
    from huggingface_hub import try_to_load_from_cache

    try:
        return load(name, local_files_only=True, **options)
    except (OSError, ValueError):
        if isinstance(try_to_load_from_cache(name, "config.json"), str):
            raise  # it is here, and something else is wrong with it
    reach("model", name)
    return load(name, **options)


def dataset(repository: str, config: str | None, split: str, **options: Any) -> Any:
    """One split of a data set of the hub (`datasets.load_dataset`), downloaded once and kept in the hub's cache.

    Raises:
        OSError: the hub cannot be reached, or has no such data set, config or split.
    """
    import datasets

    reach("dataset", repository)
    try:
        return datasets.load_dataset(repository, config, split=split, **options)
    except Exception as error:  # of the hub's, the loader's or the network's many kinds
        raise OSError(_told(error)) from error


def reach(kind: Literal["model", "dataset"], name: str) -> None:
    """Ask the hub for a name once: the loaders would try for a minute before they give up. Nothing where it is switched off.

    Raises:
        OSError: the hub cannot be reached, or knows no such name.
    """
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE:
        return
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # else a line for every try without a network
    try:
        HfApi().repo_info(name, repo_type=kind, timeout=SECONDS)
    except Exception as error:  # of the hub's or the network's many kinds
        raise OSError(f"not on this machine, and the hub did not give it: {_told(error)}") from error


def _told(error: Exception) -> str:
    """The first line of what it says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
