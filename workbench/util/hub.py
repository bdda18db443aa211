"""Names on the Hugging Face hub: what is on the disk is used, and a hub that is not there is one
quick line.

Nothing that a folder or the hub brings is run: no code of its own, and no pickle.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, TypeVar

from workbench.types import WorkbenchError

Loaded = TypeVar("Loaded")
SECONDS = 10  # to wait for the hub before saying that it is not there
# and what replaces each
PICKLES = {
    "adapter_model.bin": "adapter_model.safetensors",
    "pytorch_model.bin": "model.safetensors",
}


def from_disk_or_hub(load: Callable[..., Loaded], name: str, **options: Any) -> Loaded:
    """`load(name, **options)` from a folder or the hub's cache, else from the hub; its own code
    is never run.

    Raises:
        OSError: the hub cannot be reached, or has no model of that name. What else the loader
        raises is passed on.
    """
    # left open, transformers asks at a terminal, and runs it where "y" is answered
    options["trust_remote_code"] = False
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
    """One split of a data set of the hub (`datasets.load_dataset`), downloaded once and kept in
    the hub's cache.

    Raises:
        OSError: the hub cannot be reached, or has no such data set, config or split.
    """
    import datasets

    reach("dataset", repository)
    try:
        return datasets.load_dataset(
            repository, config, split=split, trust_remote_code=False, **options
        )
    except Exception as error:  # of the hub's, the loader's or the network's many kinds
        raise OSError(_told(error)) from error


def check_no_pickle(files: Iterable[Path]) -> None:
    """Refuse weights that only a pickle holds: to read one can be to run what it says.

    Raises:
        WorkbenchError: one of the files is such a pickle, without its safetensors beside it.
    """
    for file in files:
        wanted = PICKLES.get(file.name)
        if wanted and not file.with_name(wanted).is_file():
            raise WorkbenchError(
                f"'{file}' is a pickle, which is not read since it can run code: save these weights"
                f" as {wanted} (safetensors.torch.save_file) where you trust them, or ask whoever"
                " made them to"
            )


def check_adapter(adapter: Path) -> None:
    """Refuse an adapter whose weights are pickled or whose configuration names something to import.

    Raises:
        WorkbenchError: it is such an adapter, or no LoRA adapter with its weights.
    """
    check_no_pickle(sorted(adapter.glob("*.bin")))
    if not (adapter / "adapter_model.safetensors").is_file():
        raise WorkbenchError(
            f"'{adapter}' has an adapter_config.json but no adapter_model.safetensors: copy its"
            " weights there"
        )
    try:
        config = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))
        # with which PEFT imports "megatron_core"
        plain = config["peft_type"] == "LORA" and not config.get("megatron_config")
    except (OSError, ValueError, TypeError, LookupError):
        plain = False
    if not plain:
        raise WorkbenchError(
            f"'{adapter}/adapter_config.json' is not of a plain LoRA adapter: merge it into its"
            " model first"
        )


def reach(kind: Literal["model", "dataset"], name: str) -> None:
    """Ask the hub for a name once: the loaders would try for a minute before they give up.
    Nothing where it is switched off.

    Raises:
        OSError: the hub cannot be reached, or knows no such name.
    """
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE:
        return
    # else a line for every try without a network
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        HfApi().repo_info(name, repo_type=kind, timeout=SECONDS)
    except Exception as error:  # of the hub's or the network's many kinds
        raise OSError(
            f"not on this machine, and the hub did not give it: {_told(error)}"
        ) from error


def _told(error: Exception) -> str:
    """The first line of what it says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
