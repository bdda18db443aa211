"""Check the weights of checkpoints and adapters before they are used.

Damaged, missing, unexpected or non-finite weights raise a WorkbenchError.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import resource
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.runs.checkpoints import MARKER
from workbench.runs.folder import file_digest, read_json
from workbench.types import JsonMapping, JsonObject, WorkbenchError
from workbench.util.failures import error_line
from workbench.util.hub import panics_as_errors

if TYPE_CHECKING:
    import torch
    from peft import PeftModel
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ADAPTER = "adapter_model.safetensors"
SHOWN = 2  # most names of weights in a message
# limits for rendering the chat template of a policy once; real ones take milliseconds
TEMPLATE_SECONDS = 10
TEMPLATE_BYTES = 2**30
TEMPLATE_CHARACTERS = 10**6
TRIAL = [{"role": "user", "content": "?"}]


@contextlib.contextmanager
def loading(name: str, remedy: str) -> Iterator[None]:
    """Context manager that turns any error in loading a policy into a one-line WorkbenchError.

    Out-of-memory errors are raised unchanged.

    Args:
        name: the policy's name in the message.
        remedy: end of the message, which says what to do.
    """
    import torch

    # hides warnings of weights that do not fit: `check_loaded` and `over` raise errors for them
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Found missing adapter keys")
            warnings.filterwarnings("ignore", ".*copying from a non-meta parameter")
            with panics_as_errors(name):
                yield
    except (WorkbenchError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # safetensors, tokenizers and jinja raise their own types
        reason = error_line(error)
        raise WorkbenchError(f"cannot load policy '{name}': {reason} — {remedy}") from error
    finally:
        logger.setLevel(level)


def check_loaded(name: str, info: JsonMapping) -> None:
    """Check that a checkpoint has exactly the weights of the model in its config.json.

    transformers initialises missing weights randomly and ignores unexpected weights.

    Args:
        info: transformers' loading info, with lists such as "missing_keys".

    Raises:
        WorkbenchError: weights are missing, unexpected or of another shape.
    """
    mismatched = (
        key[0] if isinstance(key, tuple) else key for key in info.get("mismatched_keys", ())
    )
    _refuse_keys(name, info.get("missing_keys", ()), info.get("unexpected_keys", ()), mismatched)


def check_finite(name: str, model: PreTrainedModel) -> None:
    """Raise a WorkbenchError if a weight of the model has a NaN or infinite value.

    Weights on the device "meta" have no values and are skipped. `name` is the policy's name in the
    message.
    """
    for key, weight in model.named_parameters():
        if weight.is_floating_point() and not weight.is_meta:
            check_weight(name, key, weight)


def check_weight(name: str, key: str, weight: torch.Tensor) -> None:
    """Raise a WorkbenchError if `weight` has a NaN or infinite value.

    The message has the policy's `name` and the weight's name, `key`.
    """
    import torch

    if not torch.isfinite(weight).all():
        raise WorkbenchError(
            f"the weights of '{name}' are damaged: '{key}' is not finite; train or download it"
            " again"
        )


def check_prompts(name: str, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise a WorkbenchError if the tokenizer's chat template fails on a short conversation.

    A template also fails if it takes too much time or memory, or its output is too long.
    """
    remedy = "fix the chat template next to its tokenizer_config.json"
    # A template is a program, which may run forever: a subprocess tries it, with limits. It is
    # forked, because a new interpreter would import transformers again, which takes seconds.
    trial = multiprocessing.get_context("fork").Process(target=_render_trial, args=(tokenizer,))
    with warnings.catch_warnings():
        # Python 3.12 warns of threads at a fork; the child does not use their locks
        warnings.simplefilter("ignore", DeprecationWarning)
        trial.start()
    trial.join(TEMPLATE_SECONDS)
    if trial.exitcode != 0:
        trial.kill()
        trial.join()
        raise WorkbenchError(
            f"cannot load policy '{name}': its chat template takes more than {TEMPLATE_SECONDS}"
            f" seconds, 1 GB or {TEMPLATE_CHARACTERS:,} characters for one question — {remedy}"
        )
    with loading(name, remedy):
        tokenizer.apply_chat_template(TRIAL, add_generation_prompt=True, tokenize=True)


def _render_trial(tokenizer: PreTrainedTokenizerBase) -> None:
    """Render the conversation `TRIAL`; exit with 1 if this takes too much memory or is too long."""
    size = Path("/proc/self/statm")  # missing on macOS, where only the time is limited
    if size.exists():
        limit = int(size.read_text().split()[0]) * resource.getpagesize() + TEMPLATE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        text = tokenizer.apply_chat_template(TRIAL, add_generation_prompt=True, tokenize=False)
    except MemoryError:
        sys.exit(1)
    except Exception:  # the parent gets the same error, and reports it
        sys.exit(0)
    sys.exit(len(text) > TEMPLATE_CHARACTERS)


def adapter_config(adapter: Path) -> JsonObject:
    """Return the content of the file adapter_config.json in the folder `adapter`.

    Raises:
        WorkbenchError: the file is missing or not a JSON object.
    """
    config = read_json(adapter / "adapter_config.json")
    if config is None:
        raise WorkbenchError(
            f"cannot read '{adapter / 'adapter_config.json'}': it is missing or not a JSON object;"
            " copy it from the training of the adapter"
        )
    return config


def merged(model: PreTrainedModel, adapter: Path, dtype: str) -> PreTrainedModel:
    """Return `model` with a LoRA adapter merged into it, and with weights of type `dtype`.

    Weights and adapter are added in float32, one layer at a time, so there is no float32 copy of
    the whole model.

    Args:
        adapter: folder of the adapter.
        dtype: name of a torch type, such as "bfloat16".

    Raises:
        WorkbenchError: the adapter lacks a weight or has a weight that does not belong to the
            model, a weight is not finite, or `dtype` cannot represent a weight.
    """
    import torch
    from peft.tuners.tuners_utils import BaseTunerLayer

    adapted, stored = over(model, adapter), getattr(torch, dtype)
    for name, layer in adapted.named_modules():
        if isinstance(layer, BaseTunerLayer):
            base = layer.get_base_layer().float()
            layer.merge()
            check_weight(str(adapter), name, base.weight)
            base.to(stored)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All adapters are already merged")
        whole = adapted.merge_and_unload().to(stored)
    for name, weight in whole.named_parameters():
        if not torch.isfinite(weight).all():
            raise WorkbenchError(
                f"the weight '{name}' has a value that {dtype} cannot represent: choose float32"
            )
    return whole


def over(model: PreTrainedModel, adapter: Path) -> PeftModel:
    """Return `model` with the LoRA adapter in the folder `adapter`, as a PEFT model.

    On the device "meta" only the names and shapes of the adapter's weights are loaded.

    Raises:
        WorkbenchError: the adapter lacks a weight that its adapter_config.json requires for this
            model, or has a weight that does not belong to the model.
    """
    from peft import PeftModel

    if not (adapter / ADAPTER).is_file():
        raise WorkbenchError(f"'{adapter}' has no {ADAPTER}: name the folder of a saved adapter")
    with loading(str(adapter), "name an adapter and the base model that it was trained on"):
        adapted = PeftModel.from_pretrained(model, str(adapter))
        # loaded again, because `from_pretrained` does not return missing and unexpected keys
        result = adapted.load_adapter(str(adapter), adapter_name="default")
    _refuse_keys(str(adapter), result.missing_keys, result.unexpected_keys)
    return adapted


def verify(folder: Path) -> None:
    """Raise a WorkbenchError if a file in `folder` does not match its digest in complete.json.

    Folders without digests, from other programs or earlier versions, are accepted.
    """
    if not (folder / MARKER).is_file():
        return
    files = (read_json(folder / MARKER) or {}).get("files")
    if not isinstance(files, dict):
        raise WorkbenchError(
            f"'{folder / MARKER}' is damaged: copy the folder from its run again, or remove this"
            " file"
        )
    for name, expected in files.items():
        if not (folder / name).is_file() or file_digest(folder / name) != expected:
            raise WorkbenchError(
                f"'{folder / name}' is missing or changed since its training: train again, or"
                f" delete '{folder / MARKER}' to accept the folder as it is"
            )


def _refuse_keys(
    name: str, missing: Iterable[str], unexpected: Iterable[str], mismatched: Iterable[str] = ()
) -> None:
    problems = {
        "are missing": missing,
        "are not of this model": unexpected,
        "have another shape": mismatched,
    }
    for problem, keys in problems.items():
        if named := sorted(keys):
            more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
            raise WorkbenchError(
                f"the weights of '{name}' do not fit: {', '.join(named[:SHOWN])}{more} {problem};"
                " copy the checkpoint with its config again"
            )
