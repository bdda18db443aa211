"""A randomly initialised Llama with a byte-level tokenizer, small enough to train a step in a
second.
"""

from pathlib import Path
from typing import Any

WORDS = [
    *(
        f" {word}"
        for word in "Who What Where is was born works lives in of the a I don't know yes no".split()
    )
]
WORDS += [f" {name}" for name in "Ada Bo Cy Di Ed Flo Gus Hal Ina Jo".split()]
WORDS += [f" {city}" for city in "Oslo Rome Lima Cairo Paris Tokyo Quito Accra".split()]
TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] }}{% endfor"
    " %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def byte_tokenizer(words: list[str] = WORDS) -> Any:
    """One token per word, 256 byte tokens for the rest, no merges."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    special = ["<|pad|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
    tokens = special + sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens += [level.pre_tokenize_str(word)[0][0] for word in words]
    vocabulary = {token: index for index, token in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    split = pre_tokenizers.Split(Regex(r" ?[\p{L}']+| ?[^\p{L}]"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, level])
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        additional_special_tokens=special[2:],
    )
    fast.chat_template = TEMPLATE
    return fast


def random_model(tokenizer: Any, kind: str = "llama", seed: int = 0, **sizes: Any) -> Any:
    """A random model for this tokenizer, of two layers by default."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    small = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    small |= {"num_attention_heads": 4, "max_position_embeddings": 256, "tie_word_embeddings": True}
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    config = AutoConfig.for_model(
        kind, **{**small, **ends, **sizes, "vocab_size": len(tokenizer), "bos_token_id": None}
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return AutoModelForCausalLM.from_config(config)


def make_policy(folder: Path, seed: int = 0, sharp: float = 1.0, heads: int = 4) -> Path:
    """Save a 2-layer random policy with its tokenizer (fp16 on disk, as shipped checkpoints are).

    `sharp` multiplies the output embeddings, so that the next token can be almost certain.
    """
    tokenizer = byte_tokenizer()
    model = random_model(tokenizer, seed=seed, num_attention_heads=heads)
    model.get_output_embeddings().weight.data *= sharp
    model.half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
