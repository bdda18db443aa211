"""Another model as the verifier: class names, calibration, its card, and refusals."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers import examples
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import options as options_for
from tests.helpers.score_helpers import write
from workbench.scoring.options import check
from workbench.verdicts.checks import local_checks
from workbench.verifier import Row
from workbench.verifier.card import calibrate_named
from workbench.verifier.named import (
    NamedVerifier,
    choose_verifier,
    classes_of,
    load_named,
    with_known_labels,
)
from workbench.verifier.verifier import Settings

WORDS = (
    "[PAD] [UNK] [CLS] [SEP] the bridge opened in 1931 1932 is old new river long and it was"
    " closed . a".split()
)
THREE, TWO = ("contradiction", "ENTAILMENT", "Neutral"), ("unsupported", "supported")


def save_tokenizer(folder: Path, typed: bool) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = (
        ["input_ids", "token_type_ids", "attention_mask"]
        if typed
        else ["input_ids", "attention_mask"]
    )
    special = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
    }
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_input_names=names, model_max_length=64, **special
    )
    fast.save_pretrained(folder)


def save_model(folder: Path, kind: str, classes: tuple[str, ...]) -> Any:
    """Save a random classifier of one small layer."""
    import transformers

    config_class, model_class = {
        "bert": (transformers.BertConfig, transformers.BertForSequenceClassification),
        "roberta": (transformers.RobertaConfig, transformers.RobertaForSequenceClassification),
        "deberta": (transformers.DebertaV2Config, transformers.DebertaV2ForSequenceClassification),
    }[kind]
    config = config_class(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=80,
        type_vocab_size=1 if kind == "roberta" else 2,
        pad_token_id=0,
        id2label=dict(enumerate(classes)),
        label2id={name: i for i, name in enumerate(classes)},
    )
    torch.manual_seed(1)
    model = model_class(config).eval()
    model.save_pretrained(folder, safe_serialization=True)
    save_tokenizer(folder, typed=kind == "bert")
    return model


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, tuple[str, ...]], Path]:
    made: dict[tuple[str, tuple[str, ...]], Path] = {}

    def save(kind: str, classes: tuple[str, ...]) -> Path:
        if (kind, classes) not in made:
            made[kind, classes] = tmp_path_factory.mktemp(kind)
            save_model(made[kind, classes], kind, classes)
        return made[kind, classes]

    return save


PAIRS = [
    ("the bridge opened in 1931 .", "the bridge is old ."),
    ("the river is long .", "it was closed in 1932 ."),
]
ROWS = [
    Row("the bridge opened in 1931 .", "the bridge is old .", 0, "one"),
    Row("the bridge opened in 1931 .", "the bridge was closed .", 1, "one"),
    Row("the river is long .", "the bridge is new .", 2, "two"),
    Row("the river is long and old .", "the river is long .", 0, "two"),
]


@pytest.mark.parametrize(("names", "columns"), examples("classes"))
def test_classes_are_recognised_by_their_names(names: list[str], columns: list[int | None]) -> None:
    assert classes_of(names, "model") == tuple(columns)


@pytest.mark.parametrize(
    "names",
    examples("unknown_classes"),
)
def test_unrecognised_class_names_are_refused_with_the_remedy(names: tuple[str, ...]) -> None:
    with raises_error("--classes"):
        classes_of(names, "model")


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta"])
def test_a_three_way_models_probabilities_are_its_own_softmax(kind: str, saved: Any) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = saved(kind, THREE)
    verifier = load_named(str(folder))
    model, tokenizer = (
        AutoModelForSequenceClassification.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
    )
    for (premise, claim), (support, contradict, neutral) in zip(
        PAIRS, verifier.predict(PAIRS), strict=True
    ):
        own = model(**tokenizer(premise, claim, return_tensors="pt")).logits.softmax(-1)[0].tolist()
        assert [contradict, support, neutral] == pytest.approx(own, abs=1e-5)


def test_a_two_way_model_never_contradicts(saved: Any) -> None:
    verifier = load_named(str(saved("bert", TWO)))
    assert verifier.labels == ("support", "neutral")
    for support, contradict, neutral in verifier.predict(PAIRS):
        assert contradict == 0 and support + neutral == pytest.approx(1)
    assert [row.label for row in with_known_labels(ROWS, verifier)] == [0, 2, 2, 0]


@pytest.mark.parametrize("classes", [THREE, TWO])
def test_a_calibrated_model_is_loaded_from_its_folder(
    classes: tuple[str, ...], saved: Any, tmp_path: Path
) -> None:
    names = ("support", "contradict", "neutral")
    lines = [
        {"premise": r.premise, "claim": r.claim, "label": names[r.label], "source": r.source}
        for r in ROWS
    ]
    data = write(tmp_path / "dev.jsonl", lines)
    model = saved("bert", classes)
    card = calibrate_named(load_named(str(model)), data, tmp_path / "card", threads=1)
    again = choose_verifier(tmp_path / "card")
    assert isinstance(again, NamedVerifier) and again.settings == Settings(**card["settings"])
    raw = load_named(str(model)).scores(PAIRS).double() / card["settings"]["temperature"]
    assert again.predict(PAIRS)[0] == pytest.approx(raw.softmax(-1)[0].tolist())
    assert card["told"] == list(again.labels) and card["dev"]["n"] == 4


def test_a_long_passage_is_read_in_windows_and_a_long_claim_is_cut(saved: Any) -> None:
    verifier = load_named(str(saved("bert", THREE)), settings=Settings(window=10, max_length=40))
    check = verifier.check("the bridge is old .", ["the river is long and it was closed . " * 6])
    assert check.windows > 1 and check.support + check.contradict + check.neutral == pytest.approx(
        1
    )
    assert len(verifier.predict([("the bridge is old . " * 30, "it was new . " * 200)])) == 1


def test_classes_may_be_given(saved: Any) -> None:
    folder = saved("bert", ("LABEL_0", "LABEL_1"))
    with raises_error("--classes"):
        load_named(str(folder))
    assert load_named(str(folder), TWO).columns[0] == 1
    with raises_error("2 classes, but --classes names 3"):
        load_named(str(folder), THREE)


def test_pickles_and_folders_without_a_model_are_refused(tmp_path: Path) -> None:
    save_model(tmp_path / "pickled", "bert", THREE)
    (tmp_path / "pickled" / "model.safetensors").unlink()
    torch.save({}, tmp_path / "pickled" / "pytorch_model.bin")
    with raises_error("pickle"):
        choose_verifier(tmp_path / "pickled")
    with raises_error("no verifier there"):
        choose_verifier(tmp_path / "nothing")
    (tmp_path / "card").mkdir()
    (tmp_path / "card" / "card.json").write_text("{}", encoding="utf-8")
    with raises_error("is not a verifier's card"):
        choose_verifier(tmp_path / "card")


def test_a_named_verifier_judges_claims_of_the_local_checks(saved: Any, tmp_path: Path) -> None:
    assert set(local_checks(verifier=str(saved("bert", THREE))).verify) == {"fact", "outcome"}
    with raises_error("--verifier"):
        check(options_for(tmp_path, [], judge="world", verifier="some/model"))
