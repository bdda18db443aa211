"""Read data sets from the Hugging Face hub, only when one is named."""

from __future__ import annotations

from workbench.data.files import Records
from workbench.types import WorkbenchError
from workbench.util.hub import dataset


def read_hub(
    repository: str, config: str | None, split: str, name: str, file: str | None = None
) -> Records:
    """Return the records of one split of a hub data set.

    The split is downloaded once and cached; with `HF_HUB_OFFLINE=1` only the cache is used. `name`
    is the data set's name for messages.

    Raises:
        WorkbenchError: the hub cannot be reached, or does not have the data set or the split. There
            are no retries.
    """
    try:
        rows = dataset(repository, config, split, **({"data_files": file} if file else {}))
    except OSError as error:
        raise WorkbenchError(
            f"cannot load {name} from the hub ({repository}, split '{split}'): {error}; "
            "without a network, name a local file of it"
        ) from error
    return [(f"{name}: row {number}", dict(row)) for number, row in enumerate(rows, start=1)]
