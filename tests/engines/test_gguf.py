"""A trained policy as a GGUF file: llama.cpp reads it and answers as transformers does."""

from __future__ import annotations

import json
import unicodedata
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.engines.environment import needs
from tests.engines.told import tell
from tests.helpers.adapters import adapter_on
from tests.test_gguf import SENTENCES, Cli, bpe
from workbench.experiments.export import Dtype, export
from workbench.methods.bench import SCALES, bench
from workbench.policies.generate import generate, prompt_ids
from workbench.policies.load import load_policy

pytestmark = needs("gguf")
LLAMA3 = {"rope_type": "llama3", "rope_theta": 1000.0, "factor": 8.0}
LLAMA3 |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
RANDOM: list[tuple[str, dict[str, Any]]] = [
    ("qwen2", {"tie_word_embeddings": False}),
    ("llama", {"tie_word_embeddings": True}),
    ("llama", {"rope_parameters": LLAMA3}),
]
TEXTS = (
    "Where was Ada Lovelace born?",
    " In 1815, I'm told: 12 345 or 1,234.5!",
    "naïve café, Zürich\n\n  two  spaces\tand tabs",
    "什么是真的？ 日本語 😀 e\u0301",
    "DON'T we'LL they've",
    "<|user|>hello<|end|>",
    "x" * 40 + "   ",
)


def random_run(folder: Path, kind: str, **more: Any) -> Path:
    """A run on a random base with groups of heads, whose vocabulary is padded beyond its
    tokenizer's.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = bpe("qwen2" if kind == "qwen2" else "llama-bpe")
    config = AutoConfig.for_model(
        kind,
        vocab_size=352,
        hidden_size=96,
        intermediate_size=160,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **{"max_position_embeddings": 512, **more},
    )
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    # random weights of a trained size, so that tokens differ, and biases
    for name, weight in model.named_parameters():
        weight.data = (
            torch.randn_like(weight) * (0.3 if "bias" in name or weight.ndim > 1 else 0.1)
            + (weight.ndim == 1) * 1.0
        )
    model.save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    return adapter_on(folder / "base", folder / "run", strength=0.2)


def export_gguf(policy: str, file: Path, dtype: Dtype = "base") -> dict[str, Any]:
    return export(policy, file, gguf=True, dtype=dtype)


class Reader:
    """llama.cpp's server on a file, with a cache of keys and values in float32."""

    def __init__(self, file: Path, room: int = 512) -> None:
        import xllamacpp

        how = xllamacpp.CommonParams()
        how.model.path, how.n_ctx, how.n_parallel, how.n_gpu_layers, how.warmup = (
            str(file),
            room,
            1,
            0,
            False,
        )
        how.cpuparams.n_threads = 1
        how.cache_type_k = how.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        # which rounds to 16 bits
        how.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.server = xllamacpp.Server(how)

    def says(self, ids: list[int], tokens: int) -> str:
        found = self.server.handle_completions(
            {"prompt": ids, "max_tokens": tokens, "temperature": 0, "top_k": 1}
        )
        return str(found["choices"][0]["text"])

    def encodes(self, text: str) -> list[int]:
        body = json.dumps({"content": text, "add_special": True, "parse_special": True}).encode()
        request = urllib.request.Request(
            f"{self.server.listening_address}/tokenize", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=20) as reply:
            return list(json.load(reply)["tokens"])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return adapter_on(SCALES["tiny"].policy, tmp_path / "run")


def test_the_tiny_policys_greedy_texts_are_those_of_transformers(run: Path, tmp_path: Path) -> None:
    done = export_gguf(str(run), tmp_path / "new" / "policy.gguf", dtype="float32")
    assert (
        done["bytes"] == (tmp_path / "new" / "policy.gguf").stat().st_size >= 4 * done["parameters"]
    )
    policy, questions = load_policy(run, device="cpu"), bench("tiny").questions("validation")[:64]
    reader = Reader(tmp_path / "new" / "policy.gguf")
    wanted = [answer.text for answer in generate(policy, questions, max_new_tokens=16, greedy=True)]
    found = [reader.says(ids, 16) for ids in prompt_ids(policy.tokenizer, questions)]
    assert found == wanted and len(set(wanted)) > 20
    base = load_policy(SCALES["tiny"].policy, device="cpu")
    # the adapter is in
    assert wanted != [
        answer.text for answer in generate(base, questions, max_new_tokens=16, greedy=True)
    ]
    assert (done["words"], done["differs"]) == ("llama-bpe", "numbers and some signs")
    assert (
        reader.encodes("<|user|> Where was Dramem born")
        == policy.tokenizer("<|user|> Where was Dramem born")["input_ids"]
    )
    tell("gguf", {"greedy_equal": f"{len(found)} of {len(wanted)}"})


@pytest.mark.parametrize(("kind", "more"), RANDOM, ids=["qwen2", "llama", "llama3's positions"])
def test_texts_and_token_ids_of_random_models_are_those_of_transformers(
    tmp_path: Path, kind: str, more: dict[str, Any]
) -> None:
    run = random_run(tmp_path, kind, **more)
    done = export_gguf(str(run), tmp_path / "policy.gguf")
    words, differs = ("qwen2", "text that is not in NFC") if kind == "qwen2" else ("llama-bpe", "")
    assert (done["words"], done["differs"], done["dtype"]) == (words, differs, "float32")
    policy, reader = load_policy(run, device="cpu"), Reader(tmp_path / "policy.gguf")
    for text in (unicodedata.normalize("NFC", text) if differs else text for text in TEXTS):
        assert reader.encodes(text) == policy.tokenizer(text)["input_ids"], text
    prompts = [
        policy.tokenizer(text)["input_ids"] for text in (*TEXTS, *SENTENCES, " ".join(SENTENCES))
    ]
    answers = policy.complete(prompts, policy.stop_ids, how(12))
    wanted = [policy.tokenizer.decode(ids, skip_special_tokens=True) for ids, _ in answers]
    found = [reader.says(ids, 12) for ids in prompts]
    assert [readable(text) for text in found] == [readable(text) for text in wanted] and len(
        set(wanted)
    ) > 5


def how(tokens: int) -> Any:
    from workbench.policies.generate import Sampling

    return Sampling(tokens, greedy=True)


def readable(text: str) -> str:
    """Without what stands for bytes that make no character, which everybody writes in another
    way.
    """
    return "".join(
        character for character in text if character.isascii() and character.isprintable()
    )


def test_a_file_is_written_whole_or_not_at_all(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    import gguf

    def stops(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "out"
    with monkeypatch.context() as broken:
        broken.setattr(gguf.GGUFWriter, "write_tensors_to_file", stops)
        with pytest.raises(KeyboardInterrupt):
            export_gguf(str(run), folder / "a.gguf")
    assert list(folder.iterdir()) == []
    status, out, said = cli("export", run, "--gguf", folder / "a.gguf", "--json")
    found = json.loads(out)
    assert status == 0 and found["bytes"] == (folder / "a.gguf").stat().st_size
    assert "send such prompts as token ids" in said
    assert [path.name for path in folder.iterdir()] == ["a.gguf"]
    before = (folder / "a.gguf").read_bytes()
    status, _, said = cli("export", run, "--gguf", folder / "a.gguf")
    assert status == 2 and "exists already" in said and (folder / "a.gguf").read_bytes() == before
    status, _, said = cli("export", tmp_path / "nowhere", "--gguf", folder / "b.gguf")
    assert status == 2 and "has no adapter" in said and not (folder / "b.gguf").exists()
    told = gguf.GGUFReader(folder / "a.gguf").fields
    assert {"tokenizer.chat_template", "tokenizer.ggml.tokens", "llama.block_count"} <= told.keys()
