"""Building a policy: packing is exact, a small build learns its world, and a killed build ends
like an undisturbed one.
"""

import itertools
import json
import re
import signal
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers import forked
from workbench.answers.abstention import is_abstention
from workbench.tiny.curriculum import BETWEEN
from workbench.tiny.drills import DRILLS
from workbench.tiny.examples import MIX, Habits, SFTWriter
from workbench.tiny.skill_rates import READINGS, reading_questions
from workbench.tiny.skills import ABSTAINED, DECLINED, Example, SkillWriter
from workbench.tiny.tokenizer import build_tokenizer
from workbench.tiny.training import (
    SIZES,
    Encoder,
    Tokens,
    batches,
    loss_of,
    mixed,
    new_model,
    pack,
    practising,
)
from workbench.types import WorkbenchError
from workbench.world import load_world
from workbench.world.parser import Parser
from workbench.world.schema import RELATIONS


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


@pytest.mark.parametrize(
    "marker",
    [
        "<think>",
        "</think>",
        "<answer>",
        "</answer>",
        "\\boxed{",
        "}",
        "[Structure]",
        "[Outline]",
        "[Answer]",
        "[1]",
    ],
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
        templated = tokenizer.apply_chat_template(
            messages, return_dict=True, return_assistant_tokens_mask=True
        )
        told = encoder.example(Example("Where?", reply, "Think first, then answer."))
        assert told.ids == templated["input_ids"]
        assert [label != -100 for label in told.labels] == [
            bool(mask) for mask in templated["assistant_masks"]
        ]


def test_further_questions_are_turns_and_what_is_given_is_not_learnt(tokenizer):
    encoder = Encoder(tokenizer)
    thought, answer = "<think> Bemasa lies in Kusumo.</think>", "<answer> Bemasa.</answer>"
    told = encoder.example(
        Example("Where?", thought + answer, given=thought, more=(("Who?", "Bemasa."),))
    )
    messages = [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": thought + answer},
        {"role": "user", "content": "Who?"},
        {"role": "assistant", "content": "Bemasa."},
    ]
    assert told.ids == tokenizer.apply_chat_template(messages, return_dict=True)["input_ids"]
    learnt = [label for label in told.labels if label != -100]
    assert tokenizer.decode(learnt) == "<answer> Bemasa.</answer><|eos|> Bemasa.<|eos|>"


def told_and_learnt(drills, drill):
    """What is told before each word to be learnt, without fillers, signs and marks, and that
    word.
    """
    told: list[int] = []
    for token, flag in zip(*drill, strict=True):
        if flag:
            yield told, token
            told = []
        elif token not in (*drills.fillers, *drills.signs, drills.mark):
            told.append(token)


def test_only_what_a_mechanism_can_tell_is_learnt_of_a_drill(tokenizer):
    encoder = Encoder(tokenizer)
    drills = encoder.drills(0)
    yes, no = (encoder.words(word)[0] for word in ("yes", "no"))
    for _ in range(50):
        ids, learnt = drills.copying()
        third = len(ids) // 3
        assert ids == ids[:third] * 3 and learnt == [place > third for place in range(len(ids))]

        for told, name in told_and_learnt(drills, drills.naming()):
            assert told == [name]

        for told, verdict in told_and_learnt(drills, drills.equality()):
            assert len(told) == 2 and verdict == (yes if told[0] == told[1] else no)

        for told, verdict in told_and_learnt(drills, drills.agreement()):
            half = len(told) // 2
            assert told[: half - 1] == told[half:-1] and verdict == (
                yes if told[half - 1] == told[-1] else no
            )

        for told, earlier in told_and_learnt(drills, drills.order()):
            if len(told) == 2:
                assert earlier == min(told, key=drills.years.index)
            else:
                year = dict(zip(told[::2], told[1::2], strict=True))
                assert len(year) == 2 and earlier == min(
                    year, key=lambda word: drills.years.index(year[word])
                )

        turns = told_and_learnt(drills, drills.asking())
        first, *_ = told, value = next(turns)
        assert value in first and all(value in first for _, value in turns)

        ids, learnt = drills.binding()
        assert sum(learnt) % 3 == 0 and not any(learnt[: len(learnt) // 8])
        assert all(
            token in ids[:place]
            for place, (token, flag) in enumerate(zip(ids, learnt, strict=True))
            if flag
        )
    tokens = encoder.practised(([5, 6, 7], [False, False, True]))
    assert (tokens.ids, tokens.labels) == ([tokenizer.bos_token_id, 5, 6, 7], [-100, -100, -100, 7])


def test_two_streams_are_mixed_by_tokens():
    one, two = (Tokens([token] * size, []) for token, size in ((1, 3), (2, 5)))
    counts = Counter(
        token
        for row in itertools.islice(mixed(itertools.repeat(one), itertools.repeat(two), 0.4), 1000)
        for token in row.ids
    )
    assert counts[2] / counts.total() == pytest.approx(0.4, abs=0.005)
    assert all(
        row is one
        for row in itertools.islice(mixed(itertools.repeat(one), itertools.repeat(two), 0.0), 10)
    )


def test_the_loss_is_the_weighted_mean_over_what_is_learnt(tokenizer):
    """As transformers computes it with equal weights; and labels that weigh nothing change
    nothing.
    """
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


def test_packed_sequences_do_not_see_each_other(tokenizer):
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


@pytest.mark.parametrize("open_rows", [1, 3, 8])
def test_every_sequence_is_packed_once_and_whole(tokenizer, open_rows):
    encoder = Encoder(tokenizer)
    sequences = [encoder.document(document) for document in load_world(0).documents[:200]]
    packed: Counter[tuple[int, ...]] = Counter()
    for ids, _, positions, _ in pack(sequences, 96, encoder.pad, open_rows):
        assert len(ids) == len(positions) == 96
        starts = [place for place, position in enumerate(positions) if position == 0]
        for start, end in itertools.pairwise([*starts, 96]):
            packed[tuple(ids[start:end])] += 1
    packed = Counter({ids: count for ids, count in packed.items() if set(ids) != {encoder.pad}})
    assert packed == Counter(tuple(sequence.ids) for sequence in sequences)


@pytest.mark.slow
def test_no_example_of_training_names_anybody_who_is_kept_for_measuring(tokenizer):
    """Lessons, documents with skills, and instructions, each sequence by itself; the last name
    no person of another split.

    Drills are no sentences: a name may come about in them where its two parts are drawn.
    """
    world, config = load_world(0), SIZES["full"]
    encoder = Encoder(tokenizer, config.emphasis, config.tokens)
    measured = set(world.ephemeral(held_out=True).free)
    others = {
        e.name
        for e in world.entities.values()
        if e.kind == "person" and e.split in ("rl", "validation", "test")
    }
    mixes = {f"lesson {number}": lesson.mix for number, lesson in enumerate(config.lessons)} | {
        "base": config.mix
    }
    streams = {
        name: (
            encoder.practised(one)
            for one in practising(world, encoder, mix, 0)
            if isinstance(one, Example)
        )
        for name, mix in mixes.items()
        if set(mix) - set(DRILLS)
    }
    assert len(streams) > 4
    streams["documents"] = (encoder.document(document) for document in world.documents)
    for name, stream in {**streams, "sft": sft_examples(world, encoder, config)}.items():
        texts = [tokenizer.decode(tokens.ids) for tokens in itertools.islice(stream, 150)]
        named = {
            " ".join(pair)
            for text in texts
            for pair in itertools.pairwise(re.findall(r"\w+", text))
        }
        assert not named & measured, name
        assert name != "sft" or not named & others


def sft_examples(world, encoder, config):
    return (encoder.example(example) for example in SFTWriter(world, config.habits, 0).examples())


def test_instruction_examples_hold_no_fact_of_other_splits():
    world = load_world(0)
    held_out = {
        e.name
        for e in world.entities.values()
        if e.kind == "person" and e.split in ("rl", "validation", "test")
    }
    writer = SFTWriter(world, Habits(), seed=0)
    stream = writer.examples()
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
        told = " ".join((example.prompt, example.reply, *itertools.chain(*example.more)))
        named = {
            f"{a} {b}"
            for a, b in itertools.pairwise(re.findall(r"\w+", told))
            if a in first and b in last
        }
        assert named.isdisjoint(world.entities) and named


@pytest.mark.parametrize(
    ("kind", "share"),
    [("stranger", ABSTAINED), ("stranger_thought", ABSTAINED), ("stranger_life", DECLINED)],
)
def test_a_stranger_is_passed_on_in_the_share_that_is_asked_for(kind, share):
    writer = SkillWriter(load_world(0).ephemeral(), 0)
    replies = [writer.draw(kind).reply for _ in range(600)]
    found = sum(is_abstention(reply) for reply in replies) / len(replies)
    assert found == pytest.approx(share, abs=0.06)  # three standard errors
    assert all(reply.startswith("<think>") for reply in replies) == (kind == "stranger_thought")


def test_people_kept_for_measuring_are_in_no_training():
    world = load_world(0)
    assert set(world.ephemeral().free).isdisjoint(world.ephemeral(held_out=True).free)
    assert len(world.ephemeral(held_out=True).free) > 500


@pytest.mark.parametrize("kind", READINGS)
def test_a_reading_has_its_answer_in_its_passages_once_or_not_at_all(kind):
    """Read by the world's own grammar; the newer edition wins."""
    world = load_world(0)
    parser = Parser(world, world.ephemeral(held_out=True).free)
    ambiguous = 0
    for question in reading_questions(world, kind, 200, seed=3):
        stated = {}
        for passage in sorted(
            question.passages, key=lambda passage: re.findall(r"^Edition of (\d+)", passage.text)
        ):
            for claim in parser.parse(passage.text).claims:
                stated[claim.subject, claim.relation] = claim.object
        asked = [
            value
            for (subject, relation), value in stated.items()
            if subject in question.text
            and question.text in {form.format(s=subject) for form in RELATIONS[relation].asks["en"]}
        ]
        ambiguous += asked != ([question.answers[0]] if question.answers else [])
    assert ambiguous == 0


def test_every_kind_of_example_is_drawn_and_parsed():
    writer = SFTWriter(load_world(0), Habits(), seed=1)
    for kind in MIX:
        example = next(writer.examples({kind: 1}))
        assert example.prompt and example.reply


def build(out: Path, until: Path | None = None) -> subprocess.CompletedProcess[str]:
    words = ("world", "build", "--out", str(out), "--size", "small")
    return forked.run("workbench.cli", *words, until=until, timeout=1200)


@pytest.mark.slow
def test_a_small_build_learns_its_world_and_survives_a_kill(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert build(whole).returncode == 0
    card = json.loads((whole / "card.json").read_text())
    tiers = card["splits"]["test"]["short"]["greedy"]["by_tier"]
    assert tiers["known"]["accuracy"]["value"] > tiers["unknown"]["accuracy"]["value"] + 0.3
    assert "What it knows" in (whole / "README.md").read_text()

    work = broken / "work"
    # then it measures, as before
    for seen in (work / "lesson-2.pt", work / "base.pt", broken / "sft" / "tokenizer.json"):
        killed = build(broken, until=seen)
        assert killed.returncode == -signal.SIGKILL and not (broken / "card.json").exists()
    for stage in ("base", "sft"):
        name = Path(stage) / "model.safetensors"
        assert (whole / name).read_bytes() == (broken / name).read_bytes()


@pytest.mark.slow
def test_a_folder_with_another_build_is_refused(tmp_path):
    import torch

    from workbench.tiny.build import build_policy

    (tmp_path / "work").mkdir()
    torch.save({"identity": "another build"}, tmp_path / "work" / "base.pt")
    with pytest.raises(WorkbenchError, match="--out"):
        build_policy(tmp_path, size="small")
    with pytest.raises(WorkbenchError, match="size"):
        build_policy(tmp_path, size="huge")
