"""What is loaded is what was stored: weights that are damaged, missing, too many or not finite
are refused, not measured.
"""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.runs.checkpoints import MARKER
from workbench.runs.folder import file_digest, read_json
from workbench.types import WorkbenchError

ADAPTER = "adapter_model.safetensors"
SHOWN = 2  # names of weights in a message


@contextlib.contextmanager
def loading(name: str, remedy: str) -> Iterator[None]:
    """Turn whatever a loader raises about a checkpoint's files into one line; running out of
    memory is not about them.

    What the loaders print about weights that do not fit is kept back: it is refused here, in
    fewer words.
    """
    import torch

    report = logging.getLogger("transformers")
    level = report.level
    report.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Found missing adapter keys")
            warnings.filterwarnings("ignore", ".*copying from a non-meta parameter")
            yield
    except (WorkbenchError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # safetensors, tokenizers and jinja have kinds of their own
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise WorkbenchError(f"cannot load policy '{name}': {reason} — {remedy}") from error
    finally:
        report.setLevel(level)


def check_loaded(name: str, info: Mapping[str, Any]) -> None:
    """Refuse a checkpoint whose weights are not those of the model that its config.json describes.

    `info` is transformers' loading info; a layer that is missing there has been filled with
    random numbers, and one that is too many was left out.

    Raises:
        WorkbenchError: the first of the missing, unexpected or misshapen weights.
    """
    mismatched = (
        key[0] if isinstance(key, tuple) else key for key in info.get("mismatched_keys", ())
    )
    _refuse_keys(name, info.get("missing_keys", ()), info.get("unexpected_keys", ()), mismatched)


def check_finite(name: str, model: Any) -> None:
    """Refuse weights with a NaN or an infinite number in them: what such a model says is noise.
    Those on "meta" pass.
    """
    for key, weight in model.named_parameters():
        if weight.is_floating_point() and not weight.is_meta:
            check_weight(name, key, weight)


def check_weight(name: str, key: str, weight: Any) -> None:
    """The same of one weight."""
    import torch

    if not torch.isfinite(weight).all():
        raise WorkbenchError(
            f"the weights of '{name}' are damaged: '{key}' is not finite; train or download it"
            " again"
        )


def check_prompts(name: str, tokenizer: Any) -> None:
    """Refuse a tokenizer whose chat template cannot be used, before anything is asked."""
    with loading(name, "fix the chat template next to its tokenizer_config.json"):
        tokenizer.apply_chat_template(
            [{"role": "user", "content": "?"}], add_generation_prompt=True, tokenize=True
        )


def adapter_config(adapter: Path) -> dict[str, Any]:
    """The object in an adapter's adapter_config.json."""
    config = read_json(adapter / "adapter_config.json")
    if config is None:
        raise WorkbenchError(
            f"cannot read '{adapter / 'adapter_config.json'}': it is missing or not a JSON object;"
            " take it from where the adapter was trained"
        )
    return config


def with_adapter(model: Any, adapter: Path) -> Any:
    """`model` with a LoRA adapter merged into it: one matrix product instead of three for every
    layer of every token.

    Raises:
        WorkbenchError: as `over` does.
    """
    return over(model, adapter).merge_and_unload()


def merged(model: Any, adapter: Path, dtype: str) -> Any:
    """Merge a LoRA adapter into `model` layer by layer in float32, and store each weight as
    `dtype`: the result of merging in float32, without a float32 copy of the whole model.

    Raises:
        WorkbenchError: as `over` does; a weight is not finite, or `dtype` cannot hold it.
    """
    import torch
    from peft.tuners.tuners_utils import BaseTunerLayer

    adapted, stored = over(model, adapter), getattr(torch, dtype)
    for name, layer in adapted.named_modules():
        if isinstance(layer, BaseTunerLayer):
            base: Any = layer.get_base_layer()
            base.float()
            layer.merge()
            check_weight(str(adapter), name, base.weight)
            base.to(stored)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All adapters are already merged")
        whole = adapted.merge_and_unload().to(stored)
    for name, weight in whole.named_parameters():
        if not torch.isfinite(weight).all():
            raise WorkbenchError(f"'{name}' has a weight that {dtype} cannot hold: choose float32")
    return whole


def over(model: Any, adapter: Path) -> Any:
    """`model` with a LoRA adapter over it, as peft has it; one on "meta" takes the adapter's
    names and shapes alone.

    Raises:
        WorkbenchError: the adapter's weights are not, all of them, those of its
        adapter_config.json on this model.
    """
    from peft import PeftModel

    if not (adapter / ADAPTER).is_file():
        raise WorkbenchError(
            f"'{adapter}' has no {ADAPTER}: name the folder that the adapter was saved in"
        )
    with loading(str(adapter), "name an adapter and the base model that it was trained on"):
        adapted = PeftModel.from_pretrained(model, str(adapter))
        # once more, since the first does not tell
        result = adapted.load_adapter(str(adapter), adapter_name="default")
    _refuse_keys(str(adapter), result.missing_keys, result.unexpected_keys)
    return adapted


def verify(folder: Path) -> None:
    """Refuse a folder with a list of its files' digests, as a run leaves it, where a file is no
    longer what it was.

    A folder without such a list, as other programs and earlier versions leave it, passes.
    """
    if not (folder / MARKER).is_file():
        return
    files = (read_json(folder / MARKER) or {}).get("files")
    if not isinstance(files, dict):
        raise WorkbenchError(
            f"'{folder / MARKER}' is damaged: take the folder from its run again, or remove that"
            " file"
        )
    for name, expected in files.items():
        if not (folder / name).is_file() or file_digest(folder / name) != expected:
            raise WorkbenchError(
                f"'{folder / name}' is not as its run wrote it: train it again, or remove {MARKER}"
                " if it was changed on purpose"
            )


def _refuse_keys(
    name: str, missing: Iterable[str], unexpected: Iterable[str], mismatched: Iterable[str] = ()
) -> None:
    problems = {
        "are missing": missing,
        "are not of this model": unexpected,
        "have another shape than its model's": mismatched,
    }
    for problem, keys in problems.items():
        if named := sorted(keys):
            more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
            raise WorkbenchError(
                f"the weights of '{name}' do not fit: {', '.join(named[:SHOWN])}{more} {problem};"
                " take the checkpoint, with its config, from where it was saved"
            )
