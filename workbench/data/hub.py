"""Records of a data set on the Hugging Face hub, which is reached only when a data set is named."""

from __future__ import annotations

from workbench.data.files import Records
from workbench.types import WorkbenchError
from workbench.util.hub import dataset


def read_hub(
    repository: str, config: str | None, split: str, name: str, file: str | None = None
) -> Records:
    """The records of one split; downloaded once and kept in the hub's cache. `HF_HUB_OFFLINE=1`
    uses the cache alone.

    Raises:
        WorkbenchError: the hub cannot be reached, or has no such data set or split; within
        seconds, without retries.
    """
    try:
        rows = dataset(repository, config, split, **({"data_files": file} if file else {}))
    except OSError as error:
        raise WorkbenchError(
            f"cannot load {name} from the hub ({repository}, split '{split}'): {error}; "
            "without a network, name a local file of it"
        ) from error
    return [(f"{name}: row {number}", dict(row)) for number, row in enumerate(rows, start=1)]
