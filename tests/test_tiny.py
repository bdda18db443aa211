"""Building a policy: packing is exact, a small build learns its world, and a killed build ends like an undisturbed one."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench.tiny.examples import MIX, Habits, SFTWriter
from workbench.tiny.tokenizer import build_tokenizer
from workbench.tiny.training import SIZES, Encoder, new_model, pack
from workbench.types import WorkbenchError
from workbench.world import load_world


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(load_world(0))


def test_tokenizer_is_lossless_and_gives_one_token_a_word(tokenizer):
    world = load_world(0)
    for document in world.documents[:300]:
        ids = tokenizer(f" {document.whole}")["input_ids"]
        assert tokenizer.decode(ids) == f" {document.whole}"
        assert len(ids) <= len(document.whole.split()) + sum(document.whole.count(mark) for mark in ".,?")
    odd = "naïve 😀 中文\r\n\t<think> {x}"
    assert tokenizer.decode(tokenizer(odd)["input_ids"]) == odd


@pytest.mark.parametrize(
    "marker", ["<think>", "</think>", "<answer>", "</answer>", "\\boxed{", "}", "[Structure]", "[Outline]", "[Answer]"]
)
def test_section_markers_are_single_ordinary_tokens(tokenizer, marker):
    (token,) = tokenizer(marker)["input_ids"]
    assert token not in tokenizer.all_special_ids
    assert tokenizer.decode([token], skip_special_tokens=True) == marker


def test_the_encoder_lays_out_what_the_chat_template_does(tokenizer):
    encoder = Encoder(tokenizer)
    for reply in (
        "Bemasa.",
        "<think> I do not know.</think><answer> Bemasa.</answer>",
        "[Structure] parallel [Answer] It is.",
    ):
        messages = [
            {"role": "system", "content": "Think first, then answer."},
            {"role": "user", "content": "Where?"},
            {"role": "assistant", "content": reply},
        ]
        templated = tokenizer.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)
        ids, labels = encoder.example("Where?", reply, "Think first, then answer.")
        assert ids == templated["input_ids"]
        assert [label != -100 for label in labels] == [bool(mask) for mask in templated["assistant_masks"]]


def test_packed_sequences_do_not_see_each_other(tokenizer):
    import torch

    world = load_world(0)
    encoder = Encoder(tokenizer)
    sequences = [encoder.document(document.text, document.prompt) for document in world.documents[:60]]
    ids, labels, positions = next(pack(sequences, 192, 0))
    model = new_model(SIZES["small"], tokenizer, seed=0).eval()
    with torch.no_grad():
        packed = model(input_ids=torch.tensor([ids]), position_ids=torch.tensor([positions]), use_cache=False).logits[0]
        start = 0
        for sequence, _ in sequences:
            if start + len(sequence) > 192:
                break
            alone = model(input_ids=torch.tensor([sequence]), use_cache=False).logits[0]
            assert torch.allclose(packed[start : start + len(sequence)], alone, atol=1e-4)
            assert labels[start] == -100 and positions[start] == 0
            start += len(sequence)
    assert start > 100


def test_instruction_examples_hold_no_fact_of_other_splits():
    world = load_world(0)
    held_out = {e.name for e in world.entities.values() if e.kind == "person" and e.split in ("rl", "validation", "test")}
    writer = SFTWriter(world, Habits(), seed=0)
    stream = writer.examples()
    for _ in range(3000):
        example = next(stream)
        assert not any(name in f"{example.prompt} {example.reply}" for name in held_out)


def test_every_kind_of_example_is_drawn_and_parsed():
    writer = SFTWriter(load_world(0), Habits(), seed=1)
    for kind in MIX:
        example = next(writer.examples({kind: 1}))
        assert example.prompt and example.reply


def build(out: Path, *arguments: str) -> subprocess.Popen:
    code = "import sys, pathlib, workbench.tiny.build as p; p.build_policy(pathlib.Path(sys.argv[1]), size='small')"
    return subprocess.Popen([sys.executable, "-c", code, str(out), *arguments], stderr=subprocess.DEVNULL, env=os.environ)


@pytest.mark.slow
def test_a_small_build_learns_its_world_and_survives_a_kill(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert build(whole).wait() == 0
    card = json.loads((whole / "card.json").read_text())
    tiers = card["splits"]["test"]["short"]["greedy"]["by_tier"]
    assert tiers["known"]["accuracy"]["value"] > tiers["unknown"]["accuracy"]["value"] + 0.3
    assert "What it knows" in (whole / "README.md").read_text()

    killed = build(broken)
    while not (broken / "work" / "base.pt").exists():
        assert killed.poll() is None, "the build ended before it wrote a checkpoint"
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert build(broken).wait() == 0
    for stage in ("base", "sft"):
        name = Path(stage) / "model.safetensors"
        assert (whole / name).read_bytes() == (broken / name).read_bytes()


def test_a_folder_with_another_build_is_refused(tmp_path):
    import torch

    from workbench.tiny.build import build_policy

    (tmp_path / "work").mkdir()
    torch.save({"identity": "another build"}, tmp_path / "work" / "base.pt")
    with pytest.raises(WorkbenchError, match="--out"):
        build_policy(tmp_path, size="small")
    with pytest.raises(WorkbenchError, match="size"):
        build_policy(tmp_path, size="huge")
