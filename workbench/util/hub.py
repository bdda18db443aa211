"""Load models and data sets from a folder, from the Hugging Face cache or from the hub.

Models are read from local files if possible, without a request to the hub. Code and pickles in a
folder or repository are never run.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from workbench.types import WorkbenchError
from workbench.util.failures import error_line

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

Loaded = TypeVar("Loaded")
SECONDS = 10  # how long to wait for the hub before it counts as unreachable
# pickled weights -> the file that replaces them
PICKLES = {
    "adapter_model.bin": "adapter_model.safetensors",
    "pytorch_model.bin": "model.safetensors",
}


def from_disk_or_hub(load: Callable[..., Loaded], name: str, **options: Any) -> Loaded:
    """Load a model by `load(name, **options)`, from local files if possible, else from the hub.

    `load` is a loader such as `AutoModel.from_pretrained`. `name` is a folder, or a name on the
    hub, whose local files are those in the Hugging Face cache.

    Raises:
        OSError: the hub cannot be reached or has no such model. Other exceptions of the loader
            `load` are raised unchanged.
    """
    # by default, transformers asks in a terminal and runs the code if the user types "y"
    options["trust_remote_code"] = False
    if Path(name).is_dir():
        return load(name, **options)
    from huggingface_hub import try_to_load_from_cache

    try:
        return load(name, local_files_only=True, **options)
    except (OSError, ValueError):
        if isinstance(try_to_load_from_cache(name, "config.json"), str):
            raise  # the model is in the cache, so something else is wrong
    reach("model", name)
    return load(name, **options)


@contextmanager
def panics_as_errors(name: str) -> Iterator[None]:
    """Context manager that turns a panic of the tokenizers' Rust code into a WorkbenchError.

    `name` is the model that the error message names.
    """
    try:
        yield
    except BaseException as error:  # a PanicException is not an Exception, and cannot be imported
        if type(error).__name__ != "PanicException":
            raise
        raise WorkbenchError(
            f"the tokenizer of '{name}' crashed ({error}): copy its files again, or name another"
            " model"
        ) from error


def dataset(
    repository: str, config: str | None, split: str, **options: Any
) -> "Dataset | IterableDataset":
    """Load one split of a hub data set with `datasets.load_dataset`.

    Args:
        config: configuration of the data set; None for the default.
        options: further arguments for `load_dataset`, such as `streaming=True`.

    Raises:
        OSError: the hub cannot be reached, or has no such data set, config or split.
    """
    import datasets

    reach("dataset", repository)
    try:
        return datasets.load_dataset(
            repository, config, split=split, trust_remote_code=False, **options
        )
    except Exception as error:  # the hub, the loader and the network raise many types
        raise OSError(error_line(error)) from error


def check_no_pickle(files: Iterable[Path]) -> None:
    """Check that each pickle of weights in `files` has a safetensors file in the same folder.

    Loaders prefer the safetensors file. Reading a pickle may run code.

    Raises:
        WorkbenchError: a pickle has no safetensors file.
    """
    for file in files:
        wanted = PICKLES.get(file.name)
        if wanted and not file.with_name(wanted).is_file():
            raise WorkbenchError(
                f"'{file}' is a pickle, which is not read because it can run code: if you trust"
                f" it, save its weights as {wanted} (safetensors.torch.save_file), or ask its"
                " authors for that file"
            )


def check_adapter(adapter: Path) -> None:
    """Check that a folder has a LoRA adapter with safetensors weights, which is safe to load.

    Raises:
        WorkbenchError: there are no safetensors weights, or adapter_config.json is unreadable,
            describes another type of adapter than LoRA, or has the section `megatron_config`, which
            can name code to run.
    """
    # other adapters can name a module, which PEFT would import and run
    check_no_pickle(sorted(adapter.glob("*.bin")))
    if not (adapter / "adapter_model.safetensors").is_file():
        raise WorkbenchError(
            f"'{adapter}' has an adapter_config.json but no adapter_model.safetensors: copy"
            " the adapter's weights there"
        )
    try:
        config = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))
        # PEFT imports the module that "megatron_core" in this section names
        plain = config["peft_type"] == "LORA" and not config.get("megatron_config")
    except (OSError, ValueError, TypeError, LookupError):
        plain = False
    if not plain:
        raise WorkbenchError(
            f"'{adapter}/adapter_config.json' does not describe a plain LoRA adapter: merge the"
            " adapter into its model first"
        )


def reach(kind: Literal["model", "dataset"], name: str) -> None:
    """Check with one request that the hub has a model or data set of this name.

    Call this function before a loader, which would retry for a minute. With `HF_HUB_OFFLINE=1`, no
    request is made.

    Raises:
        OSError: the hub cannot be reached or has no such name.
    """
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE:
        return
    # otherwise every attempt without a network logs a line
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        HfApi().repo_info(name, repo_type=kind, timeout=SECONDS)
    except Exception as error:  # the hub and the network raise many types
        raise OSError(
            f"not on this machine, and not available on the hub: {error_line(error)}"
        ) from error
