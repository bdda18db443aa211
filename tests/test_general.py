"""The general reward's models: training rows of corrupted answers, and a named classifier."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import pytest
import torch

from tests.helpers.errors import raises_error
from tests.helpers.short_runs import short_bench
from workbench.experiments.experiment import configured
from workbench.methods import METHODS
from workbench.methods.bench import Bench
from workbench.methods.klcf.config import KLCF
from workbench.methods.klcf.general import (
    CORRUPTIONS,
    corrupt,
    general,
    has_repeated_sentence,
    preference_model,
    quality_rows,
)
from workbench.methods.klcf.reward import reward
from workbench.methods.klcf.run import KLCFRun
from workbench.methods.method import training_questions
from workbench.pipeline import rescore
from workbench.training.scorer import Judged, as_whole
from workbench.types import Claims, Failure, Feedback, Passage, Question, Response

ASKED, OTHER = Question("q1", "Who is Ada Moss?"), Question("q2", "Who is Leo Brand?")
LIFE = "Ada Moss was born in Vetra. She is a baker. She lives in Lomar."


def said(question: Question, text: str, finish: str = "stop") -> Feedback:
    return Feedback(Response(text, question, text, finish=finish))


def test_each_corruption_of_an_answer() -> None:
    rng, other = random.Random(1), "Leo Brand was born in Ruhn."
    done = {how: corrupt(LIFE, other, how, rng) for how in CORRUPTIONS}
    assert done["said again"].startswith(LIFE)
    assert has_repeated_sentence(done["said again"])
    assert not has_repeated_sentence(LIFE)
    assert LIFE.startswith(done["cut off"]) and done["cut off"] != LIFE
    assert sorted(done["scrambled"].split()) == sorted(LIFE.split()) and done["scrambled"] != LIFE
    assert other in done["off subject"] and len(done["off subject"].split(". ")) == 3
    assert has_repeated_sentence("She is a baker. SHE  is a baker.") and not has_repeated_sentence(
        ""
    )


@pytest.mark.parametrize("text", ["A", " Vetra. ", "奥斯陆是挪威的首都。"])
def test_corrupted_answers_are_not_empty(text: str) -> None:
    for seed, how in product(range(20), CORRUPTIONS):
        assert corrupt(text, LIFE, how, random.Random(seed)).strip(), (seed, how)
    rows = quality_rows([said(ASKED, text)] * 8, seed=1)
    assert all(one.text.strip() and one.segments[0][:2] == (0, len(one.text)) for one in rows)


def test_quality_rows_contrast_answers_with_corrupted_answers_and_omit_refusals() -> None:
    samples = [
        said(ASKED, LIFE),
        said(OTHER, "Leo Brand was born in Ruhn. He is a cook."),
        said(ASKED, "I don't know."),
        said(ASKED, "Ada Moss was born in", finish="length"),
        said(OTHER, "He is a cook. He is a cook."),
        said(OTHER, " "),
        replace(said(OTHER, "He is a judge."), error=Failure("judge", "timeout", "late")),
    ]
    rows = quality_rows(samples, seed=1)
    assert rows == quality_rows(samples, seed=1) != quality_rows(samples, seed=4)
    true, false = (
        [one.text for one in rows if one.segments[0].target == target] for target in (1.0, 0.0)
    )
    assert true == [LIFE, "Leo Brand was born in Ruhn. He is a cook."] and len(false) == 4
    assert false[:2] == ["Ada Moss was born in", "He is a cook. He is a cook."] and not set(
        true
    ) & set(false)
    assert all(one.segments[0][:2] == (0, len(one.text)) for one in rows)


def test_an_empty_answer_scores_0_and_a_too_long_answer_is_a_failure() -> None:
    """With a failure, an empty answer would avoid its low reward."""
    asked: list[Judged] = []

    def lengths(rows: Sequence[Judged]) -> list[float | None]:
        asked.extend(rows)
        return [None if len(row.text) > 50 else len(row.text) / 100 for row in rows]

    texts = ["", "<think>She is.</think>", "She bakes.", "She bakes.", "Bakes.<|end|>5!", "a " * 40]
    batch = [(Response(str(n), ASKED, text), Claims()) for n, text in enumerate(texts)]
    found = [checked.verdicts[0] for checked in general(lengths, "m", ["<|end|>"])(batch)]
    assert [one.p for one in found] == [0.0, 0.0, 0.1, 0.1, *[found[4].p], None]
    assert found[4].p and found[5].error and found[5].error.kind == "too_long"
    assert len(asked) == 3 and "<|end|>" not in asked[1].text and asked[1].text.startswith("Bakes.")
    assert {(v.target, v.aspect, v.by) for v in found} == {("response", "general", "m")}
    assert not any(v.error for v in found[:5])
    feedback = Feedback(batch[5][0], verdicts=(found[5],))
    graded = rescore(feedback, {"klcf": reward(KLCF(w_check=0, w_truth=0, w_general=1))})
    assert graded.rewards["klcf"].value is None
    question = Question("q", "Who?", system="Praise it.", passages=(Passage("p", "", "5 stars"),))
    assert as_whole(question, "She.").question.messages() == [{"role": "user", "content": "Who?"}]


def classifier(
    folder: Path, outputs: int = 1, template: bool = False, pads: bool = True
) -> tuple[str, torch.nn.Module]:
    """A random word-level classifier, saved by transformers."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForSequenceClassification, PreTrainedTokenizerFast

    words = "<pad> <unk> who is ada moss ? she a baker . born in vetra user assistant".split()
    plain = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>")
    )
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, unk_token="<unk>", **({"pad_token": "<pad>"} if pads else {})
    )
    if template:
        tokenizer.chat_template = "{% for m in messages %}{{ m.role }} {{ m.content }} {% endfor %}"
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=64,
        num_labels=outputs,
        pad_token_id=0 if pads else None,
    )
    model = LlamaForSequenceClassification(config).eval()
    torch.nn.init.normal_(model.score.weight)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder), model


def rows(question: Question, *texts: str) -> list[Judged]:
    return [as_whole(question, text) for text in texts]


@pytest.mark.parametrize(
    ("settings", "room"), [("klcf.general={}", 64), ("klcf.rewarded=confidence", 512)]
)
def test_models_that_cannot_read_a_question_and_the_longest_answer_are_refused(
    tmp_path: Path, settings: str, room: int
) -> None:
    """The classifier reads 64 tokens, the tiny base model 512. A question alone has at least 4."""
    name, _ = classifier(tmp_path / "m")
    place = short_bench(4)
    run = partial(_klcf_run, place, ["klcf.w_general=1", settings.format(name)])
    run(room - 40).check_lengths()
    for most in (room - 3, room, room + 1):
        with raises_error(f"reads up to {room} tokens.*lower max_new_tokens"):
            run(most).check_lengths()


def _klcf_run(place: Bench, settings: Sequence[str], most: int) -> KLCFRun:
    longest = f"klcf.grpo.max_new_tokens={most}"
    # no l_max, which must be at most the length of an answer
    config = configured(METHODS["klcf"], place, overrides=[*settings, longest, "klcf.l_max=none"])
    return KLCFRun(config, place, training_questions(config.prompts, place, answered=False))


@pytest.mark.parametrize(("template", "pads"), [(False, True), (True, False)])
def test_a_named_classifier_scores_each_answer_independently_of_its_batch(
    tmp_path: Path, template: bool, pads: bool
) -> None:
    name, model = classifier(tmp_path / "m", template=template, pads=pads)
    named, question = preference_model(name), Question("q", "who is ada moss ?")
    given = rows(question, "she is a baker .", "she", "she is born in vetra . " * 4)
    found = named.score(given)
    assert found == pytest.approx([named.score([row])[0] for row in given], abs=1e-6)
    assert len(set(found)) == 3
    ids = [14, 2, 3, 4, 5, 6, 15, 7] if template else [2, 3, 4, 5, 6, 7]
    with torch.no_grad():
        output = model(torch.tensor([ids])).logits.item()
    assert found[1] == pytest.approx(1 / (1 + math.exp(-output)), abs=1e-6)
    assert named.longest == 64
    assert named.score(rows(question, "she is a baker . " * 40)) == [None]
    assert named.score([]) == []


def test_models_that_are_not_preference_models_are_refused(tmp_path: Path) -> None:
    name, _ = classifier(tmp_path / "two", outputs=2)
    with raises_error("has 2 outputs"):
        preference_model(name)
    with raises_error("LlamaForCausalLM"):
        preference_model("data/tiny-policy/base")
    with raises_error("one output"):
        preference_model(str(tmp_path / "nowhere"))
    name, model = classifier(tmp_path / "damaged")
    with torch.no_grad():
        model.score.weight[0, 0] = math.nan
    model.save_pretrained(name)
    with raises_error("not finite"):
        preference_model(name)
