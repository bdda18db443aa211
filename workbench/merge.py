"""A LoRA adapter merged into its base, weight by weight: what is there is read off files'
headers, and never a whole model.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from workbench import weights
from workbench.bench import bench
from workbench.hub import check_adapter, from_disk_or_hub
from workbench.policy import REMEDY, adapter_base, adapter_folder, check_policy_name, load_policy
from workbench.types import WorkbenchError

Dtype = Literal["base", "float32", "bfloat16", "float16"]
FLOATS = get_args(Dtype)[1:]
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
# as safetensors names them; what has fewer bits has its scales elsewhere
STORED = ("F64", "F32", "F16", "BF16")
# which old checkpoints hold, and transformers computes
BUFFERS = r"rotary_emb\.inv_freq$|(^|\.)position_ids$"
# of an adapter: its layer, and what of it
PART = re.compile(r"(.+)\.(lora_(?:embedding_)?[AB])((?:\.weight)?)")


@dataclass(frozen=True)
class Place:
    """An adapter's folder and the model under it."""

    adapter: Path
    base: str


@dataclass(frozen=True)
class Weight:
    """Where a weight lies, by its name there, and what the adapter does to it.

    Attributes:
        layer: peft's, that merges it; it has neither weights nor an adapter's yet. None for a
        weight that stays as it is.
        given: what of the adapter's file goes into the layer, by peft's name for it; what
        replaces the weight before, under "".
    """

    file: Path
    key: str
    shape: tuple[int, ...]
    layer: Any
    given: dict[str, str]


@dataclass(frozen=True)
class Merge:
    """What is to be merged, as headers have it: the model is on "meta", and `weights` go by the
    names that it has for them.
    """

    place: Place
    model: Any
    tokenizer: Any
    dtype: str
    weights: dict[str, Weight]

    @property
    def parameters(self) -> int:
        return sum(math.prod(one.shape) for one in self.weights.values())

    def read(self) -> Iterator[tuple[str, Any]]:
        """Every weight, merged in float32 and cast, one in memory at a time.

        Raises:
            WorkbenchError: a weight that is not finite, or that the type cannot hold.
        """
        for name, one in self.weights.items():
            yield name, _cast(name, _merged(name, one, self.place), self.dtype)

    def save_pretrained(self, folder: str) -> None:
        """Write a checkpoint without its tokenizer, as a model of transformers does."""
        config = self.model.config
        config.dtype, config.architectures = self.dtype, [type(self.model).__name__]
        config.save_pretrained(folder)
        self.model.generation_config.save_pretrained(folder)
        write_weights(self, Path(folder, WHOLE))


def find(policy: str, base: str | None) -> Place:
    """Where a policy's adapter lies, and what it is merged into: `base`, what its run started
    from, or what the adapter names.

    Raises:
        WorkbenchError: there is no such policy, it has no adapter, or that names no base.
    """
    adapter = adapter_folder(Path(policy))
    if adapter is None:
        raise WorkbenchError(
            f"'{policy}' holds no adapter to merge: name a run that has ended, or an adapter's"
            " folder"
        )
    check_adapter(adapter)
    return Place(adapter, str(base or bench("tiny").base(policy) or adapter_base(adapter)))


def config_of(place: Place) -> Any:
    """The base's config.json.

    Raises:
        WorkbenchError: it cannot be read, or says that weights are quantised: what they were
        before is not in them.
    """
    from transformers import AutoConfig

    check_policy_name(place.base)
    with weights.loading(place.base, REMEDY):
        config = from_disk_or_hub(AutoConfig.from_pretrained, place.base)
    if getattr(config, "quantization_config", None):
        raise WorkbenchError(
            f"'{place.base}' is stored quantised: name the model that it was made from as --base"
        )
    return config.get_text_config()


def opened(place: Place, dtype: Dtype) -> Merge:
    """All that can be known, and refused, before a weight is read.

    Raises:
        WorkbenchError: a base or an adapter that cannot be read, or whose weights are not those
        that its config says.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer

    config = config_of(place)
    weights.verify(place.adapter)
    loaded = load_policy(place.base, device="meta")
    names = _names(loaded.model)
    stored = _stored(place.base, loaded.model, names)
    _tie(loaded.model, stored, names)
    # its layers are in the model's places now
    adapted = weights.over(loaded.model, place.adapter).base_model.model
    tuned = (
        (name, one) for name, one in adapted.named_modules() if isinstance(one, BaseTunerLayer)
    )
    layers = {names.get(f"{name}.weight", name): one for name, one in tuned}
    given = _given(place.adapter, names)
    if foreign := sorted((layers.keys() | given.keys()) - stored.keys()):
        raise WorkbenchError(
            f"'{place.base}' stores '{foreign[0]}' under another name: merge this adapter with peft"
            " itself"
        )
    places = {name: number for number, name in enumerate(names)}
    ordered = sorted(stored, key=lambda name: places.get(name, len(places)))
    found = {name: Weight(*stored[name], layers.get(name), given.get(name, {})) for name in ordered}
    return Merge(
        place, adapted, loaded.tokenizer, _stored_dtype(config) if dtype == "base" else dtype, found
    )


def _stored_dtype(config: Any) -> str:
    """What a base's config says that its weights are stored in; float32 where it says nothing."""
    name = str(getattr(config, "dtype", None) or "float32").removeprefix("torch.")
    return name if name in FLOATS else "float32"


def _names(model: Any) -> dict[str, str]:
    """Every weight's name → the first that it has: a tied matrix is there once."""
    first: dict[int, str] = {}
    return {
        name: first.setdefault(id(one), name)
        for name, one in model.named_parameters(remove_duplicate=False)
    }


def _stored(
    base: str, model: Any, names: dict[str, str]
) -> dict[str, tuple[Path, str, tuple[int, ...]]]:
    """Where each weight lies. What transformers puts together from several keeps the names that
    it is stored by.
    """
    from safetensors import safe_open

    prefix, found = f"{model.base_model_prefix}.", {}
    ignored = re.compile("|".join([BUFFERS, *(model._keys_to_ignore_on_load_unexpected or ())]))
    for file in _files(base):
        with safe_open(file, "pt") as opened:
            for key in opened.keys():  # noqa: SIM118, it is no dict
                own = next(
                    (one for one in (key, prefix + key, key.removeprefix(prefix)) if one in names),
                    None,
                )
                if own is None and ignored.search(key):
                    continue
                part, name = opened.get_slice(key), names.get(own or "", key)
                if part.get_dtype() not in STORED:
                    raise WorkbenchError(
                        f"'{base}' stores '{key}' as {part.get_dtype()}: name a base that is not"
                        " quantised"
                    )
                found[name] = file, key, tuple(part.get_shape())
    return found


def _tie(
    model: Any, stored: dict[str, tuple[Path, str, tuple[int, ...]]], names: dict[str, str]
) -> None:
    """Leave out the second copy of a matrix that is tied and stored twice; copies that differ
    are two to transformers as well, which cannot compare what is on "meta"."""
    for target, source in model.all_tied_weights_keys.items():
        if {target, source} <= stored.keys() and _read(*stored[target][:2]).equal(
            _read(*stored[source][:2])
        ):
            names[target] = source
            del stored[target]


def _files(base: str) -> list[Path]:
    """The checkpoint's files, which were looked up, and on a hub's name downloaded, when the
    headers were checked.
    """
    from transformers.utils.hub import cached_file

    def place(name: str) -> Path | None:
        found = cached_file(
            base, name, local_files_only=True, _raise_exceptions_for_missing_entries=False
        )
        return Path(found) if found else None

    if whole := place(WHOLE):
        return [whole]
    index = place(INDEX)
    if index is None:
        raise WorkbenchError(f"'{base}' has no {WHOLE}: {REMEDY}")
    return [
        index.with_name(name)
        for name in sorted(set(json.loads(index.read_text())["weight_map"].values()))
    ]


def _given(adapter: Path, names: dict[str, str]) -> dict[str, dict[str, str]]:
    """What an adapter's file holds, by the name of the weight that it is for: LoRA's pairs, and
    weights trained as a whole.
    """
    from safetensors import safe_open

    found: dict[str, dict[str, str]] = {}
    tied = {names[name] for name in names if names[name] != name}
    with safe_open(adapter / weights.ADAPTER, "pt") as opened:
        for key in opened.keys():  # noqa: SIM118, it is no dict
            own = key.removeprefix("base_model.model.").replace(".base_layer.", ".")
            part = PART.fullmatch(own)
            name, place = (
                (f"{part[1]}.weight", f"{part[2]}.default{part[3]}") if part else (own, "")
            )
            first = names.get(name, name)
            if (not part and (name not in names or first in tied)) or place in found.get(first, {}):
                raise WorkbenchError(
                    f"'{adapter}' has '{key}', which is not merged here (LoRA's pairs are, and"
                    " weights trained as a whole that are not tied): merge it with peft itself"
                )
            found.setdefault(first, {})[place] = key
    return found


def _read(file: Path, key: str) -> Any:
    from safetensors import safe_open

    with safe_open(file, "pt") as opened:
        return opened.get_tensor(key)


def _merged(name: str, one: Weight, place: Place) -> Any:
    """A weight with what the adapter does to it, by peft's own layer; as it is stored where that
    is nothing.
    """
    import torch

    own = _read(one.file, one.key)
    weights.check_weight(place.base, name, own)
    given = {
        part: _read(place.adapter / weights.ADAPTER, key).float() for part, key in one.given.items()
    }
    own = given.pop("", own)
    if given:
        one.layer.load_state_dict(
            {**given, "base_layer.weight": own.to(torch.float32, copy=True)},
            strict=False,
            assign=True,
        )
        del own
        one.layer.merge()
        own = one.layer.get_base_layer().weight.detach()
        one.layer.to("meta").merged_adapters.clear()
    if one.given:
        weights.check_weight(str(place.adapter), name, own)
    return own


def _cast(name: str, weight: Any, dtype: str) -> Any:
    """Refuses what the type cannot hold: float16 ends at 65,504."""
    import torch

    narrow = weight if weight.dtype != torch.float64 else weight.float()
    narrow = narrow.to(getattr(torch, dtype))
    if not torch.isfinite(narrow).all():
        raise WorkbenchError(
            f"'{name}' has a weight that {dtype} cannot hold: choose float32 as the dtype"
        )
    return narrow


def raw(weight: Any) -> Any:
    """A weight's bytes, as files have them, in a numpy array that shares its memory."""
    import torch

    return weight.contiguous().reshape(-1).view(torch.uint8).numpy()


def write_weights(merge: Merge, file: Path) -> None:
    """A safetensors file, written weight by weight: its library takes them all at once.

    The length of a header in eight bytes, the header as JSON (a type, a shape, and where the
    bytes begin and end), the bytes.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    kind, end = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}[merge.dtype], 0
    for name, one in merge.weights.items():
        begin, end = end, end + BYTES[merge.dtype] * math.prod(one.shape)
        header[name] = {"dtype": kind, "shape": one.shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as written:
        written.write(len(text).to_bytes(8, "little") + text)
        for _, weight in merge.read():
            written.write(raw(weight))
