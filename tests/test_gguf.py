"""A trained policy as a GGUF file: how its parts are named and what is refused; files:
tests/engines/test_gguf.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.tiny_model import byte_tokenizer
from workbench.to_gguf import CUT, check_model, cut_of, interleaved, label_of
from workbench.types import WorkbenchError

Cli = Callable[..., tuple[int, str, str]]
SENTENCES = (
    "Ada was born in London in 1815.",
    "Where was Bo born?",
    "Bo was born in Rome, I don't know when.",
    "What is true?",
)


def bpe(cut: str) -> Any:
    """A byte-level BPE tokenizer that cuts text like Qwen2's or Llama 3's, learnt from a few
    sentences.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    own = Tokenizer(models.BPE(ignore_merges=cut == "llama-bpe"))
    regex = next(regex for regex, name in CUT.items() if name == cut)
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    own.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(regex), "isolated"), level]
    )
    own.decoder = decoders.ByteLevel()
    special = ["<|pad|>", "<|end|>", "<|user|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    own.train_from_iterator(SENTENCES * 9, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=own, pad_token="<|pad|>", eos_token="<|end|>")
    fast.chat_template = "{% for message in messages %}<|user|>{{ message['content'] }}{% endfor %}"
    return fast


def test_without_the_package_the_remedy_is_told_and_nothing_is_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None)
    status, out, said = cli("export", "runs/none", "--gguf", tmp_path / "a.gguf")
    assert (
        (status, out) == (2, "")
        and "pip install gguf==0.19.0" in said
        and not (tmp_path / "a.gguf").exists()
    )


@pytest.mark.parametrize("options", [[], ["--merged", "a", "--gguf", "b"]])
def test_one_of_the_forms_has_to_be_named(cli: Cli, options: list[str]) -> None:
    status, out, said = cli("export", "runs/none", *options)
    assert (status, out) == (2, "") and "--merged DIR" in said and "--gguf FILE" in said


def test_how_text_is_cut_is_known_by_the_tokenizers_own_words() -> None:
    from transformers import Qwen2Tokenizer

    def told(tokenizer: Any) -> dict[str, Any]:
        return dict(json.loads(tokenizer.backend_tokenizer.to_str()))

    assert cut_of(told(Qwen2Tokenizer(vocab={"a": 0, "b": 1}, merges=[]))) == (
        "qwen2",
        "text that is not in NFC",
    )
    assert cut_of(told(bpe("llama-bpe"))) == ("llama-bpe", "") and cut_of(told(bpe("qwen2"))) == (
        "qwen2",
        "",
    )
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    gpt2 = {
        "model": {"type": "BPE", "ignore_merges": False},
        "pre_tokenizer": level,
        "normalizer": None,
    }
    assert cut_of(gpt2) == ("gpt-2", "")
    assert cut_of({**gpt2, "model": {"type": "BPE", "ignore_merges": True}}) == (
        "llama-bpe",
        "numbers and some signs",
    )
    for strange in (
        told(byte_tokenizer()),
        {**gpt2, "model": {"type": "Unigram"}},
        {**gpt2, "pre_tokenizer": None},
        {**gpt2, "normalizer": {"type": "Lowercase"}},
        {**gpt2, "pre_tokenizer": {**level, "add_prefix_space": True}},
    ):
        with pytest.raises(WorkbenchError, match="own converter"):
            cut_of(strange)


def test_names_and_the_order_of_a_heads_rows_by_hand() -> None:
    import torch

    assert label_of("model.layers.12.self_attn.q_proj.bias") == "blk.12.attn_q.bias"
    assert (
        label_of("model.embed_tokens.weight") == "token_embd.weight"
        and label_of("lm_head.weight") == "output.weight"
    )
    with pytest.raises(WorkbenchError, match="has no place for"):
        label_of("model.layers.0.mlp.experts.0.up_proj.weight")
    # two heads of four
    rows = torch.tensor([[0.0], [1.0], [2.0], [3.0], [10.0], [11.0], [12.0], [13.0]])
    assert interleaved(rows, 2).flatten().tolist() == [0, 2, 1, 3, 10, 12, 11, 13]


@pytest.mark.parametrize(
    ("kind", "more", "told"),
    [
        ("qwen3", {}, "type qwen3"),
        ("mixtral", {}, "type mixtral"),
        ("llama", {"attention_bias": True}, "biases"),
        ("qwen2", {"use_sliding_window": True}, "windows"),
        ("llama", {"hidden_act": "gelu"}, "activation gelu"),
        (
            "llama",
            {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}},
            "'linear'",
        ),
    ],
)
def test_models_that_a_file_cannot_say_are_refused(
    kind: str, more: dict[str, Any], told: str
) -> None:
    from transformers import AutoConfig

    with pytest.raises(WorkbenchError, match=told):
        check_model(AutoConfig.for_model(kind, **more))
