"""Export to GGUF: refusals. tests/engines/test_gguf.py reads the files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.helpers.tiny_model import byte_tokenizer
from workbench.policies.gguf import CUT, check, cut_of, interleaved
from workbench.types import WorkbenchError

Cli = Callable[..., tuple[int, str, str]]
SENTENCES = (
    "Ada was born in London in 1815.",
    "Where was Bo born?",
    "Bo was born in Rome, I don't know when.",
    "What is true?",
)


def bpe(cut: str) -> Any:
    """A byte-level BPE tokenizer with the pre-tokenizer of Qwen2 or Llama 3, trained on a few
    sentences."""
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


def test_without_the_package_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None)
    with pytest.raises(WorkbenchError, match=r"pip install gguf==0\.19\.0"):
        check(None, None)


def test_the_pre_tokenizer_is_recognised() -> None:
    from transformers import Qwen2Tokenizer

    def stored(tokenizer: Any) -> dict[str, Any]:
        return dict(json.loads(tokenizer.backend_tokenizer.to_str()))

    own = Qwen2Tokenizer(vocab={"a": 0, "b": 1}, merges=[])
    assert cut_of(stored(own)) == ("qwen2", "text that is not in NFC")
    assert [cut_of(stored(bpe(cut)))[0] for cut in ("llama-bpe", "qwen2")] == ["llama-bpe", "qwen2"]
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    gpt2 = {"model": {"type": "BPE"}, "pre_tokenizer": level, "normalizer": None}
    assert cut_of(gpt2) == ("gpt-2", "")
    whole = {**gpt2, "model": {"type": "BPE", "ignore_merges": True}}
    assert cut_of(whole) == ("llama-bpe", "numbers and some signs")
    for strange in (
        stored(byte_tokenizer()),
        {**gpt2, "model": {"type": "Unigram"}},
        {**gpt2, "pre_tokenizer": None},
        {**gpt2, "normalizer": {"type": "Lowercase"}},
        {**gpt2, "pre_tokenizer": {**level, "add_prefix_space": True}},
    ):
        with pytest.raises(WorkbenchError, match=r"convert_hf_to_gguf\.py"):
            cut_of(strange)


def test_the_order_of_a_heads_rows_by_hand() -> None:
    import torch

    rows = torch.tensor([[0.0], [1.0], [2.0], [3.0], [10.0], [11.0], [12.0], [13.0]])
    assert interleaved(rows, 2).flatten().tolist() == [0, 2, 1, 3, 10, 12, 11, 13]


@pytest.mark.parametrize(
    ("kind", "more", "told"),
    [
        ("qwen3", {}, "type qwen3"),
        ("llama", {"attention_bias": True}, "type llama"),
        ("qwen2", {"use_sliding_window": True}, "type qwen2"),
        ("llama", {"hidden_act": "gelu"}, "type llama"),
        (
            "llama",
            {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}},
            "'linear'",
        ),
        ("llama", {"vocab_size": 40}, "the model 40 of them"),
    ],
)
def test_unsupported_models_are_refused(
    kind: str, more: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoConfig

    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: name)
    with pytest.raises(WorkbenchError, match=told):
        check(AutoConfig.for_model(kind, **more), bpe("qwen2"))
