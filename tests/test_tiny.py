"""Building a policy: packing, a small build that learns its world, and resuming after kills."""

import itertools
import re
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers import ROOT, forked, read_json
from tests.helpers.errors import raises_error
from workbench.experiments.tiny.build import digest
from workbench.experiments.tiny.config import SIZES
from workbench.experiments.tiny.curriculum import BETWEEN
from workbench.experiments.tiny.drills import DRILLS
from workbench.experiments.tiny.examples import SFTWriter
from workbench.experiments.tiny.skills import SkillWriter
from workbench.experiments.tiny.tokenizer import build_tokenizer
from workbench.experiments.tiny.training import (
    Encoder,
    batches,
    lesson_batches,
    loss_of,
    new_model,
    pack,
    pretraining_batches,
    sft_batches,
)
from workbench.experiments.tiny.writer import Example
from workbench.world import load_world

# digests of the data of nine lessons, of pre-training and of SFT
DATA = (
    "78dc631a3de5f509 e124b2064af78a51 53f4ae6fa1bda5c7 f80df63468ea8983 1f71349d8fd7c4a6 "
    "61dd00ac8f66c100 e45e461fa237d49d ccea6491f53db45b 1e6bdf626d114cc9 "
    "fc0fac221821031a 377d8bc54f6f5fab"
)


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(load_world(0))


def test_tokenizer_is_lossless_and_gives_one_token_a_word(tokenizer):
    world = load_world(0)
    for document in world.documents[:300]:
        ids = tokenizer(f" {document.whole}")["input_ids"]
        assert tokenizer.decode(ids) == f" {document.whole}"
        assert len(ids) <= len(document.whole.split()) + sum(
            document.whole.count(mark) for mark in ".,?<"
        )
    odd = "naïve 😀 中文\r\n\t<think> {x}"
    assert tokenizer.decode(tokenizer(odd)["input_ids"]) == odd


def test_the_encoder_equals_the_chat_template(tokenizer):
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
        templated = tokenizer.apply_chat_template(
            messages, return_dict=True, return_assistant_tokens_mask=True
        )
        output = encoder.example(Example("Where?", reply, "Think first, then answer."))
        assert output.ids == templated["input_ids"]
        assert [label != -100 for label in output.labels] == [
            bool(mask) for mask in templated["assistant_masks"]
        ]


def test_the_loss_is_a_weighted_mean(tokenizer):
    """Equal weights give transformers' loss; labels of weight 0 have no effect."""
    import torch

    encoder = Encoder(tokenizer)
    model = new_model(SIZES["small"], tokenizer, seed=0)
    sequences = [encoder.document(document) for document in load_world(0).documents[:20]]
    batch = next(batches(iter(sequences), replace(SIZES["small"], rows=2), 0))
    inputs = {name: batch[name] for name in ("input_ids", "labels", "position_ids")}
    # bfloat16
    assert loss_of(model, batch).item() == pytest.approx(
        model(**inputs, use_cache=False).loss.item(), rel=5e-3
    )
    weights = torch.ones_like(batch["weights"])
    weights[1] = 0
    alone = {name: part[:1] for name, part in batch.items()}
    assert loss_of(model, {**batch, "weights": weights}).item() == pytest.approx(
        loss_of(model, alone).item(), rel=5e-3
    )


def test_packed_sequences_do_not_attend_to_each_other(tokenizer):
    import torch

    world = load_world(0)
    encoder = Encoder(tokenizer)
    sequences = [encoder.document(document) for document in world.documents[:60]]
    ids, labels, positions, _ = next(pack(sequences, 192, 0))
    model = new_model(SIZES["small"], tokenizer, seed=0).eval()
    with torch.no_grad():
        packed = model(
            input_ids=torch.tensor([ids]), position_ids=torch.tensor([positions]), use_cache=False
        ).logits[0]
        start = 0
        for sequence in (sequence.ids for sequence in sequences):
            if start + len(sequence) > 192:
                break
            alone = model(input_ids=torch.tensor([sequence]), use_cache=False).logits[0]
            assert torch.allclose(packed[start : start + len(sequence)], alone, atol=1e-4)
            assert labels[start] == -100 and positions[start] == 0
            start += len(sequence)
    assert start > 100


@pytest.mark.slow
def test_instruction_examples_have_no_facts_of_other_splits():
    world = load_world(0)
    held_out = {
        e.name
        for e in world.entities.values()
        if e.kind == "person" and e.split in ("rl", "validation", "test")
    }
    config = SIZES["full"]
    writer = SFTWriter(world, config.habits, seed=0)
    stream = writer.examples(config.instructions)
    for _ in range(3000):
        example = next(stream)
        assert not any(name in f"{example.prompt} {example.reply}" for name in held_out)


@pytest.mark.parametrize("held_out", [False, True])
def test_examples_of_skills_are_about_people_outside_the_world(held_out):
    world = load_world(0)
    first, last = set(world.names.first), set(world.names.last)
    writer = SkillWriter(world.ephemeral(held_out), 0)
    for kind in [kind for kind in BETWEEN if kind not in DRILLS for _ in range(200)]:
        example = writer.draw(kind)
        output = " ".join((example.prompt, example.reply, *itertools.chain(*example.more)))
        named = {
            f"{a} {b}"
            for a, b in itertools.pairwise(re.findall(r"\w+", output))
            if a in first and b in last
        }
        assert named.isdisjoint(world.entities) and named


def test_held_out_people_are_not_trained_on():
    world = load_world(0)
    assert set(world.ephemeral().free).isdisjoint(world.ephemeral(held_out=True).free)
    assert len(world.ephemeral(held_out=True).free) > 500


def build(out: Path, until: Path | None = None) -> subprocess.CompletedProcess[str]:
    words = ("world", "build", "--out", str(out), "--size", "small")
    return forked.run("workbench.cli", *words, until=until, timeout=1200)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("build") / "whole"
    assert build(out).returncode == 0
    return out


@pytest.mark.slow
def test_a_small_build_learns_its_world(whole):
    tiers = read_json(whole / "card.json")["splits"]["test"]["short"]["greedy"]["by_tier"]
    assert tiers["known"]["accuracy"]["value"] > tiers["unknown"]["accuracy"]["value"] + 0.3
    assert "What it knows" in (whole / "README.md").read_text()


@pytest.mark.nightly
def test_a_killed_build_ends_like_an_uninterrupted_one(whole, tmp_path):
    work = tmp_path / "work"
    # the measurements come after these
    for seen in (work / "lesson-2.pt", work / "base.pt", tmp_path / "sft" / "tokenizer.json"):
        killed = build(tmp_path, until=seen)
        assert killed.returncode == -signal.SIGKILL and not (tmp_path / "card.json").exists()
    for stage in ("base", "sft"):
        name = Path(stage) / "model.safetensors"
        assert (whole / name).read_bytes() == (tmp_path / name).read_bytes()


@pytest.mark.slow
def test_the_shipped_policy_is_a_finished_build(capsys):
    from workbench.experiments.tiny.build import build_policy

    card = build_policy(ROOT / "data" / "tiny-policy")
    assert card["parameters"] == 1_013_248
    assert "contains this build already" in capsys.readouterr().err


@pytest.mark.slow
def test_a_folder_with_another_build_is_refused(tmp_path):
    import torch

    from workbench.experiments.tiny.build import build_policy

    (tmp_path / "work").mkdir()
    torch.save({"identity": "another build"}, tmp_path / "work" / "base.pt")
    with raises_error("--out"):
        build_policy(tmp_path, size="small")
    with raises_error("size"):
        build_policy(tmp_path, size="huge")


@pytest.mark.slow
def test_the_training_data_of_the_shipped_policy_do_not_change(tokenizer):
    """The shipped policy is not rebuilt: its training data must stay equal, by batch."""
    world, config = load_world(0), SIZES["full"]
    encoder = Encoder(tokenizer, config.emphasis, config.tokens)
    lessons = [
        lesson_batches(world, encoder, config, number, 0) for number in range(len(config.lessons))
    ]
    light = Encoder(tokenizer, config.sft_emphasis, config.tokens)
    data = [
        *lessons,
        pretraining_batches(world, encoder, config, 0)[0],
        sft_batches(world, light, config, 0),
    ]
    assert [digest(itertools.islice(stage, 3)) for stage in data] == DATA.split()
