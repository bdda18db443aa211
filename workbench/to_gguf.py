"""A trained policy as one GGUF file, for llama.cpp and what is built on it: adapter merged,
tokenizer and chat template inside.

Models of the types Llama and Qwen2 with byte-level BPE. Whatever such a file cannot say exactly
is refused, or told.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

from workbench.disk import check_space
from workbench.export import card
from workbench.merge import BYTES, Dtype, Merge, config_of, find, opened, raw
from workbench.policy import load_tokenizer
from workbench.publish import Repository, claim, publish
from workbench.types import WorkbenchError

EXTRA = (
    "it needs the package gguf: `pip install -e '.[gguf]'` in a clone, or `pip install"
    " gguf==0.19.0`"
)
TYPES = ("llama", "qwen2")
# How text is cut into words before BPE, by the names that readers of GGUF files have for it:
# Qwen2's, digit by digit, and Llama 3's, which takes up to three together.
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
CUT = {f"{_WORDS}\\p{{N}}{_REST}": "qwen2", f"{_WORDS}\\p{{N}}{{1,3}}{_REST}": "llama-bpe"}
# a merge that leads nowhere: readers want one, and a tokenizer of whole words has none
DUMMY = "Ġ Ġ"
FACTORS = "rope_freqs.weight"
LAYER = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip
WHOLE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def export_gguf(
    policy: str,
    file: Path,
    *,
    base: str | None = None,
    dtype: Dtype = "base",
    push: Repository | None = None,
) -> dict[str, Any]:
    """Merge a policy's adapter into its base, weight by weight, and write it with the tokenizer
    to `file`, whole or not at all.

    Matrices are stored as `dtype`, norms and biases in float32.

    Args:
        policy: a run's or an adapter's folder.
        base: the model under the adapter; by default what the run started from, or the one that
        the adapter names.
        push: a new or empty repository of the hub that is sent the file and a card.

    Returns:
        `out`, `base`, `dtype`, `parameters` and `bytes`; `words`, how readers cut text, and
        `differs`, which text they encode
        otherwise than the tokenizer does: prompts with such are to be sent as ids; with `push`
        what `publish` returns.

    Raises:
        WorkbenchError: the package gguf is not there; no such policy; a model or tokenizer that
        a file cannot say; a file that
            is there already, a full disk, or a repository that cannot be written: all of it
            before a weight is read. A weight
            that the type cannot hold. `NotSent`, where the hub does not take what was written.
    """
    if importlib.util.find_spec("gguf") is None:
        raise WorkbenchError(f"a GGUF file cannot be written: {EXTRA}")
    place, file = find(policy, base), file.resolve()
    if file.exists() or file.is_symlink():
        raise WorkbenchError(f"'{file}' is there already: name a new file")
    config, tokenizer = config_of(place), load_tokenizer(place.base)
    check_model(config)
    words, differs = cut_of(json.loads(tokenizer.backend_tokenizer.to_str()))
    check_tokens(tokenizer, config.vocab_size)
    merge = opened(place, dtype)
    labels = {name: label_of(name) for name in merge.weights}
    check_space(file.parent, BYTES[merge.dtype] * merge.parameters, "name a file on another disk")
    if push:
        claim(push)
    _write_whole(file, merge, labels, words)
    told = card(place.adapter, place.base, merge.dtype, differs=differs).encode()
    return {
        "out": str(file),
        "base": place.base,
        "dtype": merge.dtype,
        "parameters": merge.parameters,
        "bytes": file.stat().st_size,
        "words": words,
        "differs": differs,
        **(publish(push, {file.name: file, "README.md": told}, file) if push else {}),
    }


def _write_whole(file: Path, merge: Merge, labels: dict[str, str], words: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    os.close(handle)
    try:
        _write(Path(partial), merge, labels, words)
        os.chmod(partial, 0o644)
        os.replace(partial, file)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def check_model(config: Any) -> None:
    """Refuse a model that this module does not know how to say.

    Raises:
        WorkbenchError: another type than Llama and Qwen2, biases that Llama's readers have none
        for, windows, scaled positions.
    """
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    strange = {
        f"type {config.model_type}": config.model_type not in TYPES,
        "biases": config.model_type == "llama" and (config.attention_bias or config.mlp_bias),
        "windows of attention": bool(getattr(config, "use_sliding_window", False)),
        f"positions scaled by '{rope}'": rope not in ("default", "llama3"),
        f"activation {config.hidden_act}": config.hidden_act != "silu",
    }
    if found := [name for name, there in strange.items() if there]:
        raise WorkbenchError(
            f"a model with {', '.join(found)} is not written as a GGUF file here, which takes plain"
            f" ones of the types {', '.join(TYPES)}: use `workbench export … --merged DIR` and"
            " llama.cpp's own converter"
        )


def cut_of(tokenizer: dict[str, Any]) -> tuple[str, str]:
    """The name by which readers cut text as this tokenizer (of a tokenizer.json) does, and which
    text they encode otherwise.

    Words that are tokens as a whole, whatever merges there are (`ignore_merges`), only Llama 3's
    readers look for; a tokenizer that cuts as GPT-2 does and has such words is read by theirs,
    which cuts numbers and some signs otherwise. Readers normalise nothing.

    Raises:
        WorkbenchError: a tokenizer that no reader known here has.
    """
    model, before = tokenizer["model"], tokenizer.get("pre_tokenizer") or {}
    steps = before.get("pretokenizers", [before])
    split = [step for step in steps if step.get("type") == "Split"]
    level = [step for step in steps if step.get("type") == "ByteLevel"]
    plain = (
        model.get("type") == "BPE"
        and len(level) == 1
        and not level[0].get("add_prefix_space")
        and len(steps) < 3
    )
    normal = (tokenizer.get("normalizer") or {}).get("type") in (None, "NFC")
    raw = "text that is not in NFC" if tokenizer.get("normalizer") else ""
    whole = bool(model.get("ignore_merges"))
    if plain and normal and not split and level[0].get("use_regex", True):
        return ("llama-bpe", "numbers and some signs") if whole else ("gpt-2", raw)
    if (
        plain
        and normal
        and len(split) == 1
        and split[0].get("behavior") == "Isolated"
        and not level[0].get("use_regex", True)
    ):
        name = CUT.get((split[0].get("pattern") or {}).get("Regex", ""))
        if name and whole == (name == "llama-bpe"):
            return name, raw
    raise WorkbenchError(
        "the tokenizer cuts text in a way that readers of GGUF files have no name for here"
        " (byte-level BPE of Llama 3, Qwen2 and GPT-2 has one): use `workbench export … --merged"
        " DIR` and llama.cpp's own converter"
    )


def _write(path: Path, merge: Merge, labels: dict[str, str], words: str) -> None:
    import gguf
    import numpy

    config = merge.model.config
    writer = gguf.GGUFWriter(path, config.model_type)
    writer.add_name(f"{Path(merge.place.base).name}, trained for factuality")
    _add_sizes(writer, config)
    _add_tokenizer(writer, merge.tokenizer, words, config.vocab_size)
    stored = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}[merge.dtype]
    writer.add_file_type(gguf.LlamaFileType["ALL_F32" if stored == "F32" else f"MOSTLY_{stored}"])
    factors = _factors(merge.model)
    shapes = {labels[name]: one.shape for name, one in merge.weights.items()}
    for label, shape in shapes.items():
        size = BYTES[merge.dtype] if len(shape) > 1 else 4
        kind = gguf.GGMLQuantizationType[stored if len(shape) > 1 else "F32"]
        writer.add_tensor_info(
            label, shape, numpy.dtype(f"f{size}"), size * math.prod(shape), raw_dtype=kind
        )
    for one in factors:
        writer.add_tensor_info(
            FACTORS,
            one.shape,
            numpy.dtype("f4"),
            4 * len(one),
            raw_dtype=gguf.GGMLQuantizationType.F32,
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for name, weight in merge.read():
        writer.write_tensor_data(
            raw(arranged(labels[name], weight if weight.ndim > 1 else weight.float(), config))
        )
    for one in factors:
        writer.write_tensor_data(raw(one))
    writer.close()
    count = len(gguf.GGUFReader(path).tensors)
    assert count == len(shapes) + len(factors), count


def check_tokens(tokenizer: Any, size: int) -> None:
    """Raise a WorkbenchError for a tokenizer with tokens that a model of so many has no row for."""
    if (last := max(tokenizer.get_vocab().values())) >= size:
        raise WorkbenchError(
            f"the tokenizer has a token {last}, and the model {size} of them: take both from one"
            " model"
        )


def _add_sizes(writer: Any, config: Any) -> None:
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)


def _add_tokenizer(writer: Any, tokenizer: Any, words: str, size: int) -> None:
    """The tokens by id; what a model has rows for and no token, as padded vocabularies do, is
    named as unused.
    """
    import gguf

    own = json.loads(tokenizer.backend_tokenizer.to_str())
    added = {one["id"]: one for one in own["added_tokens"]}
    names = {number: text for text, number in own["model"]["vocab"].items()} | {
        n: one["content"] for n, one in added.items()
    }
    kinds = {
        n: gguf.TokenType.CONTROL if one["special"] else gguf.TokenType.USER_DEFINED
        for n, one in added.items()
    }
    unused = {n: gguf.TokenType.UNUSED for n in range(size) if n not in names}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(words)
    writer.add_token_list([names.get(n, f"[PAD{n}]") for n in range(size)])
    writer.add_token_types([{**kinds, **unused}.get(n, gguf.TokenType.NORMAL) for n in range(size)])
    merges = [" ".join(one) if isinstance(one, list) else one for one in own["model"]["merges"]]
    writer.add_token_merges(merges or [DUMMY])
    for kind in ("bos", "eos", "pad"):
        if (number := getattr(tokenizer, f"{kind}_token_id")) is not None:
            getattr(writer, f"add_{kind}_token_id")(number)
    begun = tokenizer("a")["input_ids"][:1] == [tokenizer.bos_token_id]
    writer.add_add_bos_token(begun)
    if tokenizer.chat_template:
        writer.add_chat_template(tokenizer.chat_template)


def arranged(label: str, weight: Any, config: Any) -> Any:
    """A weight as readers have it: Llama's queries and keys in the order of positions, all
    others as they are.
    """
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(
        label.split(".")[-2]
    )
    return interleaved(weight, heads) if heads and config.model_type == "llama" else weight


def label_of(name: str) -> str:
    """ "model.layers.3.self_attn.q_proj.weight" → "blk.3.attn_q.weight".

    Raises:
        WorkbenchError: a weight that no such model has.
    """
    head, _, kind = name.rpartition(".")
    if head in WHOLE:
        return f"{WHOLE[head]}.{kind}"
    layer, _, part = head.removeprefix("model.layers.").partition(".")
    if part not in LAYER or not layer.isdigit():
        raise WorkbenchError(
            f"the model has a weight '{name}', which a GGUF file of its type has no place for"
        )
    return f"blk.{layer}.{LAYER[part]}.{kind}"


def interleaved(weight: Any, heads: int) -> Any:
    """A head's two halves, which transformers turns against each other, row by row in turns, as
    Llama's readers turn them.
    """
    half = weight.shape[0] // heads // 2
    return weight.reshape(heads, 2, half, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def _factors(model: Any) -> list[Any]:
    """By what Llama 3 divides each frequency of its positions; none where they are as usual."""
    import torch

    config = model.config
    if config.rope_parameters.get("rope_type", "default") == "default":
        return []
    # not the model's: those were cast with it
    used = type(model.model.rotary_emb)(config).inv_freq.float()
    steps = torch.arange(0, 2 * len(used), 2, dtype=torch.float32) / (2 * len(used))
    return [config.rope_parameters["rope_theta"] ** -steps / used]
