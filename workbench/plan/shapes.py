"""The shape of a model, from its config.json or from a table of public models: what all memory
is computed from.

Only dense decoders of the types Llama, Qwen2 and Qwen3 are known; of any other the formulas
would be wrong in silence, so it is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.bench import TINY_POLICY
from workbench.hub import from_disk_or_hub
from workbench.jsonl import unique_keys
from workbench.policy import check_policy_name
from workbench.types import WorkbenchError

TYPES = ("llama", "qwen2", "qwen3")
MOST = 10**8  # of any size in a config: no layer of a model is a tenth as wide
LARGEST_HEADER = 100 * 2**20  # of a safetensors file, as its own readers have it
OTHERWISE = (  # keys of models that are built in another way, whatever type they say
    "num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size", "text_config", "quantization_config",
    "kv_lora_rank", "ssm_cfg",
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """A dense decoder. `bias` is what a layer's biases sum to; `qk_norm` says that queries and
    keys are normalised by head.
    """

    type: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    inner: int
    vocabulary: int
    positions: int
    tied: bool
    bias: int = 0
    qk_norm: bool = False

    @property
    def queries(self) -> int:
        return self.heads * self.head

    @property
    def keys(self) -> int:
        return self.kv_heads * self.head

    @property
    def linear(self) -> int:
        """Weights of one layer's matrices, which an adapter goes on."""
        return self.hidden * (2 * self.queries + 2 * self.keys) + 3 * self.hidden * self.inner

    @property
    def parameters(self) -> int:
        norms = 2 * self.hidden + (2 * self.head if self.qk_norm else 0)
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return embeddings + self.layers * (self.linear + norms + self.bias) + self.hidden

    def lora(self, rank: int) -> int:
        """Parameters of an adapter on every matrix: `rank` × (inputs + outputs) of each."""
        attention = 2 * (self.hidden + self.queries) + 2 * (self.hidden + self.keys)
        return self.layers * rank * (attention + 3 * (self.hidden + self.inner))


def _qwen2(
    hidden: int, layers: int, heads: int, kv_heads: int, inner: int, vocabulary: int, tied: bool
) -> Shape:
    head = hidden // heads
    bias = (heads + 2 * kv_heads) * head
    return Shape(
        "qwen2", hidden, layers, heads, kv_heads, head, inner, vocabulary, 32768, tied, bias
    )


def _qwen3(hidden: int, layers: int, heads: int, inner: int, tied: bool) -> Shape:
    return Shape("qwen3", hidden, layers, heads, 8, 128, inner, 151936, 40960, tied, qk_norm=True)


def _llama(hidden: int, layers: int, heads: int, inner: int, tied: bool) -> Shape:
    return Shape("llama", hidden, layers, heads, 8, hidden // heads, inner, 128256, 131072, tied)


PUBLIC = {  # by the name on the hub, without what tells a base from a tuned model
    "Qwen/Qwen2.5-0.5B": _qwen2(896, 24, 14, 2, 4864, 151936, True),
    "Qwen/Qwen2.5-1.5B": _qwen2(1536, 28, 12, 2, 8960, 151936, True),
    "Qwen/Qwen2.5-3B": _qwen2(2048, 36, 16, 2, 11008, 151936, True),
    "Qwen/Qwen2.5-7B": _qwen2(3584, 28, 28, 4, 18944, 152064, False),
    "Qwen/Qwen2.5-14B": _qwen2(5120, 48, 40, 8, 13824, 152064, False),
    "Qwen/Qwen2.5-32B": _qwen2(5120, 64, 40, 8, 27648, 152064, False),
    "Qwen/Qwen3-0.6B": _qwen3(1024, 28, 16, 3072, True),
    "Qwen/Qwen3-1.7B": _qwen3(2048, 28, 16, 6144, True),
    "Qwen/Qwen3-4B": _qwen3(2560, 36, 32, 9728, True),
    "Qwen/Qwen3-8B": _qwen3(4096, 36, 32, 12288, False),
    "Qwen/Qwen3-14B": _qwen3(5120, 40, 40, 17408, False),
    "Qwen/Qwen3-32B": _qwen3(5120, 64, 64, 25600, False),
    "meta-llama/Llama-3.2-1B": _llama(2048, 16, 32, 8192, True),
    "meta-llama/Llama-3.2-3B": _llama(3072, 28, 24, 8192, True),
    "meta-llama/Llama-3.1-8B": _llama(4096, 32, 32, 14336, False),
    "meta-llama/Llama-3.1-70B": _llama(8192, 80, 64, 28672, False),
}


def shape_of(policy: str) -> Shape:
    """The shape of a model: of a folder with config.json, of a public model by name, or of
    another one on the hub.

    Nothing is fetched but the config.json of a name that the table does not have.

    Raises:
        WorkbenchError: there is no such model, its config.json cannot be right, or it is built
        in a way that is not known here.
    """
    folder = Path(policy)
    if folder.is_dir():
        return _of_folder(folder)
    if found := PUBLIC.get(re.sub(r"-(Instruct|Base)$", "", policy)):
        return found
    check_policy_name(policy)
    return _of_hub(policy)


def _of_folder(folder: Path) -> Shape:
    if (folder / "adapter_config.json").is_file():
        raise WorkbenchError(
            f"'{folder}' is an adapter, and training starts from a whole model: name that one's"
            " folder"
        )
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique_keys)
    except FileNotFoundError:
        raise WorkbenchError(
            f"'{folder}' has no config.json: name a model's folder or its name on the hub"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise WorkbenchError(
            f"'{path}' cannot be read ({str(error)[:100]}): copy it from the model again"
        ) from error
    shape = read_shape(config, str(path))
    _check_weights(shape, folder)
    return shape


def _of_hub(policy: str) -> Shape:
    from transformers import AutoConfig

    try:
        config = from_disk_or_hub(AutoConfig.from_pretrained, policy)
    except Exception as error:  # of the hub's, the loader's or the network's many kinds
        if policy.startswith(str(TINY_POLICY)):
            raise WorkbenchError(
                f"'{policy}' is missing: `workbench world build` makes it"
            ) from error
        raise WorkbenchError(
            f"the shape of '{policy}' is not known here, and the hub did not give it: name a folder"
            f" with its config.json, or one of {', '.join(PUBLIC)}"
        ) from error
    return read_shape(config.to_dict(), f"config.json of {policy}")


def read_shape(config: Any, where: str) -> Shape:
    """The shape that a config states.

    Raises:
        WorkbenchError: sizes that cannot be, or a model that is built otherwise.
    """
    if not isinstance(config, Mapping):
        raise WorkbenchError(f"{where} is no object: copy it from the model again")
    kind = config.get("model_type")
    strange = [key for key in OTHERWISE if config.get(key)]
    windows = config.get("use_sliding_window") or any(
        one != "full_attention" for one in _listed(config.get("layer_types"))
    )
    if kind not in TYPES or strange or windows:
        told = (
            "windows of attention"
            if windows and kind in TYPES and not strange
            else ", ".join(strange)
        )
        raise WorkbenchError(
            f"{where}: a model of type '{kind}'{f' with {told}' if told else ''} is not one whose"
            f" memory is known here, which are dense ones of the types {', '.join(TYPES)}: plan"
            " with such a model of that size"
        )
    heads, hidden = _size(config, "num_attention_heads", where), _size(config, "hidden_size", where)
    kv_heads = _size(config, "num_key_value_heads", where, heads)
    if heads % kv_heads or (config.get("head_dim") is None and hidden % heads):
        raise WorkbenchError(
            f"{where}: {heads} heads do not divide hidden_size {hidden}, or {kv_heads} key-value"
            " heads them: copy it again"
        )
    head, inner = (
        _size(config, "head_dim", where, hidden // heads),
        _size(config, "intermediate_size", where),
    )
    return Shape(
        str(kind),
        hidden,
        _size(config, "num_hidden_layers", where),
        heads,
        kv_heads,
        head,
        inner,
        _size(config, "vocab_size", where),
        _size(config, "max_position_embeddings", where),
        _flag(config, "tie_word_embeddings", where),
        _bias(config, where, heads * head, kv_heads * head, hidden, inner),
        qk_norm=kind == "qwen3",
    )


def _bias(
    config: Mapping[str, Any], where: str, queries: int, keys: int, hidden: int, inner: int
) -> int:
    """Biases of one layer: Qwen2 has them on queries, keys and values always; the others where
    they say so.
    """
    bias = queries + 2 * keys if config["model_type"] == "qwen2" else 0
    if config["model_type"] != "qwen2" and _flag(config, "attention_bias", where):
        bias = queries + 2 * keys + hidden
    return bias + (2 * inner + hidden if _flag(config, "mlp_bias", where) else 0)


def _size(config: Mapping[str, Any], name: str, where: str, usual: int | None = None) -> int:
    value = config.get(name)
    if value is None and usual is not None:
        return usual
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MOST:
        told = "missing" if value is None else str(value)[:40]
        raise WorkbenchError(
            f"{where}: {name} is {told}, and has to be a whole number from 1 to {MOST:,}: copy it"
            " again"
        )
    return value


def _flag(config: Mapping[str, Any], name: str, where: str) -> bool:
    value = config.get(name, False)
    if not isinstance(value, bool):
        raise WorkbenchError(
            f"{where}: {name} is {str(value)[:40]}, and has to be true or false: copy it again"
        )
    return value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _check_weights(shape: Shape, folder: Path) -> None:
    """Refuse a config.json that is of another size than the weights beside it; a tied matrix may
    be stored twice.
    """
    stored = sum(_stored(path) for path in sorted(folder.glob("*.safetensors")))
    twice = shape.parameters + (shape.vocabulary * shape.hidden if shape.tied else 0)
    if stored and stored not in (shape.parameters, twice):
        raise WorkbenchError(
            f"'{folder / 'config.json'}' is of a model with {shape.parameters:,} parameters, and"
            f" the weights beside it are {stored:,} numbers: copy both from the model again"
        )


def _stored(path: Path) -> int:
    """How many numbers a safetensors file says that it holds; only its head is read."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > LARGEST_HEADER:
                raise ValueError("its head is too long")
            head = json.loads(file.read(length))
        return sum(
            math.prod(tensor["shape"]) for name, tensor in head.items() if name != "__metadata__"
        )
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise WorkbenchError(
            f"'{path}' cannot be read ({str(error)[:100]}): copy it from the model again"
        ) from error
