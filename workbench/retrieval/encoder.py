"""Encode texts as vectors with a sentence-transformers model from the hub or a local folder."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.types import WorkbenchError
from workbench.util.failures import error_line
from workbench.util.hub import check_no_pickle, from_disk_or_hub
from workbench.util.minilm import BASE, packaged_folder

if TYPE_CHECKING:
    import numpy as np

# texts -> (len(texts), d) float32, each row of length 1
Encode = Callable[[Sequence[str]], "np.ndarray"]

PACKAGED = (BASE.rpartition("/")[2], BASE)  # an installed package has its weights
BATCH = 32  # texts


def encoder_name(name: str | None) -> str | None:
    """Return the name under which an index stores its encoder; None for None, "" or "none".

    A local folder is stored as its absolute path; any other name is unchanged.
    """
    if name in (None, "", "none"):
        return None
    return str(Path(name).resolve()) if Path(str(name)).is_dir() else name


@lru_cache(maxsize=2)
def load_encoder(name: str) -> Encode:
    """Return a function that encodes n texts as an (n, d) array of unit vectors.

    The packaged MiniLM and local folders need no network.

    Raises:
        WorkbenchError: sentence-transformers is not installed, the model is not found or is stored
            as a pickle, or the packaged weights were changed.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise WorkbenchError(
            f"the encoder '{name}' needs sentence-transformers: install the workbench's"
            " dependencies (`make demo` does), or use --encoder none"
        ) from None
    source = str((name in PACKAGED and packaged_folder()) or name)
    try:
        check_no_pickle(sorted(Path(source).rglob("*.bin")))
        model = from_disk_or_hub(
            SentenceTransformer, source, model_kwargs={"use_safetensors": True}
        )
    except (OSError, ValueError) as error:
        raise WorkbenchError(
            f"cannot load the encoder '{name}' ({error_line(error)}): use a sentence-transformers"
            f" model by its hub name, a local folder, or {PACKAGED[0]}, which needs no network"
        ) from None

    def encode(texts: Sequence[str]) -> "np.ndarray":
        return model.encode(
            list(texts),
            batch_size=BATCH,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        ).astype("float32")

    return encode
