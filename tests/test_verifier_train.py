"""Small trainings of the local verifier: augmentation, resuming, compression, calibration and the
card.
"""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.verifier.augment import (
    CONTRADICT,
    NEUTRAL,
    SUPPORT,
    augment,
    exchange_name,
    exchange_number,
    instruct,
    mismatch_premise,
    negate,
    surround,
)
from tests.helpers import read_json
from tests.helpers.errors import raises_error
from tests.test_verifier_rows import rows_of, write
from workbench.verifier.evaluate import evaluate_verifier
from workbench.verifier.rows import Row, read_rows

BORN = Row(
    "Ada Kern was born in Graz in 1871 and is buried in Linz. She had three sons.",
    "Ada Kern was born in Graz in 1871.",
    SUPPORT,
)


@given(st.integers(0, 10_000))
def test_augmented_pairs_change_the_claim_and_its_label(seed: int) -> None:
    rng = random.Random(seed)
    number = exchange_number(BORN, rng)
    assert number and number.label == CONTRADICT and "1871" not in number.claim
    name = exchange_name(["Oslo"])(BORN, rng)
    assert name and name.label == CONTRADICT and name.claim != BORN.claim and "1871" in name.claim
    denied = negate(BORN, rng)
    assert denied == replace(BORN, claim="Ada Kern was not born in Graz in 1871.", label=CONTRADICT)
    instructed = instruct(BORN, rng)
    assert instructed and BORN.claim.rstrip(".") in instructed.claim and instructed.label == SUPPORT
    assert len(instructed.claim) > len(BORN.claim)
    among = surround(["It rained.", "Bread is cheap."])(BORN, rng)
    assert among and BORN.premise in among.premise and replace(among, premise=BORN.premise) == BORN
    away = mismatch_premise(["Bread is cheap.", "Kern was born to rule, they said.", BORN.premise])(
        BORN, rng
    )
    assert away and away.premise == "Kern was born to rule, they said." and away.label == NEUTRAL


def test_rules_skip_unsuitable_rows() -> None:
    rng = random.Random(0)
    refuted = Row(BORN.premise, BORN.claim, CONTRADICT)
    assert (
        exchange_number(refuted, rng)
        is negate(refuted, rng)
        is exchange_name(["Oslo"])(refuted, rng)
        is None
    )
    assert negate(Row("", "Ada was not born.", SUPPORT), rng) is None
    # not in the premise
    assert exchange_number(Row("Ada lived.", "Ada lived in 1871.", SUPPORT), rng) is None


def test_augmentation_is_a_function_of_its_seed() -> None:
    rows = rows_of(60)
    made = augment(rows, 1, 0.5)
    assert len(made) == 30 and made == augment(rows, 1, 0.5) and made != augment(rows, 2, 0.5)
    assert augment(rows, 1, 0.0) == []


@pytest.mark.slow
def test_compression_keeps_only_a_change_of_low_rank() -> None:
    import torch

    from benchmarks.verifier.train import compress
    from workbench.verifier.model import expand, new_model

    torch.manual_seed(1)
    model = new_model()
    name = "encoder.encoder.layer.3.intermediate.dense.weight"
    change = torch.randn(1536, 2) @ torch.randn(2, 384) * 0.01
    with torch.no_grad():
        model.get_parameter(name).add_(change)
    for rank, error in ((2, 1e-3), (1, None)):
        small = compress(model, rank)
        assert small[f"{name}.up"].shape == (1536, rank) and small[f"{name}.down"].shape == (
            rank,
            384,
        )
        left = (
            expand(small).get_parameter(name) - model.get_parameter(name)
        ).norm() / change.norm()
        assert left < error if error else left > 0.1
    with raises_error("do not fit this version of the workbench"):
        expand({**small, "encoder.other.weight.up": small[f"{name}.up"]})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from benchmarks.verifier.train import TrainConfig, train_verifier

    folder = tmp_path_factory.mktemp("verifier")
    data = write(folder / "data.jsonl.gz", rows_of(48))
    train_verifier(
        data,
        write(folder / "dev.jsonl", rows_of(30, seed=9)),
        folder / "out",
        TrainConfig(epochs=1, rank=8, threads=1),
    )
    return folder


@pytest.mark.slow
def test_a_training_writes_a_verifier_with_its_card(trained: Path) -> None:
    from workbench.verifier import load_verifier

    card = read_json(trained / "out" / "card.json")
    assert sorted(path.name for path in (trained / "out").iterdir()) == [
        "adapter.safetensors",
        "card.json",
    ]
    assert card["rows"]["train"] == 48 and card["dev"]["n"] == card["rows"]["dev"] <= 30
    rows = read_rows(trained / "dev.jsonl")
    again = evaluate_verifier(load_verifier(trained / "out"), rows)
    assert again["accuracy"] == pytest.approx(card["dev"]["accuracy"], abs=1e-4)
    assert sum(n for said in again["confusion"].values() for n in said.values()) == again["n"] == 30


@pytest.mark.slow
def test_a_killed_training_resumes_to_the_same_weights(tmp_path: Path) -> None:
    import torch

    from benchmarks.verifier.train import TrainConfig, _Training, fit
    from workbench.verifier.model import new_model

    rows, config = (
        rows_of(48),
        TrainConfig(epochs=2, rows=8, save_every=3, threads=1, bfloat16=False),
    )
    whole, _ = fit(rows, config, tmp_path / "whole.pt")

    class Killed(Exception):
        pass

    update, calls = _Training.update, iter(range(100))

    def dying(self: _Training, *arguments: object) -> float:
        if next(calls) == 10:
            raise Killed
        return update(self, *arguments)  # type: ignore[arg-type]

    _Training.update = dying  # type: ignore[method-assign, assignment]
    try:
        with pytest.raises(Killed):
            fit(rows, config, tmp_path / "cut.pt")
    finally:
        _Training.update = update  # type: ignore[method-assign]
    resumed, _ = fit(rows, config, tmp_path / "cut.pt")
    torch.manual_seed(config.seed)
    start = new_model().state_dict()
    same = {name for name, value in whole.state_dict().items() if torch.equal(value, start[name])}
    assert same == {"encoder.embeddings.word_embeddings.weight"}  # frozen
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
    with raises_error("other data or settings"):
        fit(rows[1:], config, tmp_path / "cut.pt")
