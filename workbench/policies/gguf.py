"""A merged policy as a GGUF file, for llama.cpp: Llama and Qwen2 with byte-level BPE.

llama.cpp's own script refuses tokenizers that it does not know by a digest, such as the shipped
tiny policy's; for every other model it is the way to convert an export.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from workbench.types import WorkbenchError

EXTRA = "it needs the package gguf: `pip install gguf==0.19.0` (the extra gguf of a clone)"
OTHERWISE = "export it with --merged DIR and run `convert_hf_to_gguf.py DIR` of llama.cpp"
# how text is cut into words before BPE: Qwen2 digit by digit, Llama 3 up to three together
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
CUT = {f"{_WORDS}\\p{{N}}{_REST}": "qwen2", f"{_WORDS}\\p{{N}}{{1,3}}{_REST}": "llama-bpe"}


def check(config: Any, tokenizer: Any) -> tuple[str, str]:
    """Return the name of the tokenizer's word splitting, and which text llama.cpp encodes
    otherwise.

    Raises:
        WorkbenchError: a model or tokenizer that this module cannot write.
    """
    if importlib.util.find_spec("gguf") is None:
        raise WorkbenchError(f"a GGUF file cannot be written: {EXTRA}")
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    plain = config.model_type in ("llama", "qwen2") and config.hidden_act == "silu"
    biases = config.model_type == "llama" and (config.attention_bias or config.mlp_bias)
    if not plain or biases or getattr(config, "use_sliding_window", False):
        raise WorkbenchError(f"a model of type {config.model_type} like this: {OTHERWISE}")
    if rope not in ("default", "llama3"):
        raise WorkbenchError(f"positions scaled by '{rope}': {OTHERWISE}")
    if (last := max(tokenizer.get_vocab().values())) >= config.vocab_size:
        raise WorkbenchError(
            f"the tokenizer has a token {last}, and the model {config.vocab_size} of them: take"
            " both from one model"
        )
    return cut_of(json.loads(tokenizer.backend_tokenizer.to_str()))


def cut_of(tokenizer: dict[str, Any]) -> tuple[str, str]:
    """As `check`, of a tokenizer.json. llama.cpp normalises nothing; a tokenizer that cuts like
    GPT-2 and has whole words as tokens is read as Llama 3's, which cuts numbers otherwise."""
    model, before = tokenizer["model"], tokenizer.get("pre_tokenizer") or {}
    steps = before.get("pretokenizers", [before])
    kinds = [step.get("type") for step in steps]
    level = steps[-1]
    normal = (tokenizer.get("normalizer") or {}).get("type")
    differs = "text that is not in NFC" if normal == "NFC" else ""
    if (
        model["type"] == "BPE"
        and level.get("type") == "ByteLevel"
        and not level.get("add_prefix_space")
        and normal in (None, "NFC")
    ):
        whole = bool(model.get("ignore_merges"))
        if kinds == ["ByteLevel"] and level.get("use_regex", True):
            return ("llama-bpe", "numbers and some signs") if whole else ("gpt-2", differs)
        if kinds == ["Split", "ByteLevel"] and not level.get("use_regex", True):
            name = CUT.get(steps[0]["pattern"].get("Regex", ""))
            if name and whole == (name == "llama-bpe") and steps[0]["behavior"] == "Isolated":
                return name, differs
    raise WorkbenchError(f"the tokenizer splits words in an unknown way: {OTHERWISE}")


def write(model: Any, tokenizer: Any, file: Path, dtype: str, words: str) -> None:
    """Write matrices as `dtype`, norms and biases in float32, and the tokenizer."""
    import gguf

    config = model.config
    writer = gguf.GGUFWriter(file, config.model_type)
    stored = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}[dtype]
    writer.add_file_type(gguf.LlamaFileType["ALL_F32" if stored == "F32" else f"MOSTLY_{stored}"])
    _add_sizes(writer, config)
    _add_tokenizer(writer, tokenizer, words, config.vocab_size)
    architecture = gguf.MODEL_ARCH[config.model_type.upper()]
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, weight in model.named_parameters():
        part = name.split(".")[-2]
        if config.model_type == "llama" and part in heads:
            weight = interleaved(weight, heads[part])
        kind = gguf.GGMLQuantizationType[stored if weight.ndim > 1 else "F32"]
        numbers = gguf.quants.quantize(weight.detach().float().contiguous().numpy(), kind)
        writer.add_tensor(names.get_name(name, (".weight", ".bias")), numbers, raw_dtype=kind)
    if config.rope_parameters.get("rope_type", "default") == "llama3":
        writer.add_tensor("rope_freqs.weight", _factors(model))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


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
    writer.add_rope_dimension_count(head)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)


def _add_tokenizer(writer: Any, tokenizer: Any, words: str, size: int) -> None:
    """Write the tokens by id; rows of a padded vocabulary are unused tokens."""
    from gguf import TokenType

    own = json.loads(tokenizer.backend_tokenizer.to_str())
    names = {number: text for text, number in own["model"]["vocab"].items()}
    kinds = dict.fromkeys(names, TokenType.NORMAL)
    for one in own["added_tokens"]:
        names[one["id"]] = one["content"]
        kinds[one["id"]] = TokenType.CONTROL if one["special"] else TokenType.USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(words)
    writer.add_token_list([names.get(n, f"[PAD{n}]") for n in range(size)])
    writer.add_token_types([kinds.get(n, TokenType.UNUSED) for n in range(size)])
    merges = [" ".join(one) if isinstance(one, list) else one for one in own["model"]["merges"]]
    writer.add_token_merges(merges or ["Ġ Ġ"])  # readers require one
    for kind in ("bos", "eos", "pad"):
        if (number := getattr(tokenizer, f"{kind}_token_id")) is not None:
            getattr(writer, f"add_{kind}_token_id")(number)
    writer.add_add_bos_token(tokenizer("a")["input_ids"][:1] == [tokenizer.bos_token_id])
    if tokenizer.chat_template:
        writer.add_chat_template(tokenizer.chat_template)


def interleaved(weight: Any, heads: int) -> Any:
    """Reorder the rows of each head from transformers' two halves to llama.cpp's pairs."""
    half = weight.shape[0] // heads // 2
    return weight.reshape(heads, 2, half, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def _factors(model: Any) -> Any:
    """The divisors of each rotary frequency in Llama 3."""
    import torch

    config = model.config  # the model's own frequencies were cast with its weights
    used = type(model.model.rotary_emb)(config).inv_freq.float()
    steps = torch.arange(0, 2 * len(used), 2, dtype=torch.float32) / (2 * len(used))
    return (config.rope_parameters["rope_theta"] ** -steps / used).numpy()
