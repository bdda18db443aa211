"""The verifier's labelled pairs, and calibration."""

import gzip
import json
import random
from pathlib import Path

import pytest

from tests.helpers import examples
from tests.helpers.errors import raises_error
from workbench.verifier.calibrate import fit_temperature, reliability
from workbench.verifier.rows import LABELS, Row, read_rows

TOWNS = "Arle Brun Calo Dorn Elst Fane Gorm Hult Ivre Jask Kell Lund".split()


def rows_of(count: int, seed: int = 0) -> list[Row]:
    """Towns and their rivers: a claim names the right river (support), another (contradict) or a
    mayor (neutral).
    """
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        town, right, other = rng.sample(TOWNS, 3)
        year = rng.randrange(1500, 1900)
        premise = f"The town of {town} was founded in {year}. It lies on the river {right}."
        claims = (
            f"{town} is on the river {right}.",
            f"{town} is on the river {other}.",
            f"The mayor of {town} has a dog.",
        )
        rows.append(Row(premise, claims[number % 3], number % 3, "towns"))
    return rows


def write(path: Path, rows: list[Row]) -> Path:
    lines = [
        json.dumps(
            {"premise": r.premise, "claim": r.claim, "label": LABELS[r.label], "source": r.source}
        )
        for r in rows
    ]
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def test_rows_are_read_plain_and_compressed(tmp_path: Path) -> None:
    rows = rows_of(6)
    for name in ("a.jsonl", "a.jsonl.gz"):
        assert read_rows(write(tmp_path / name, rows)) == rows


@pytest.mark.parametrize(("line", "said"), examples("bad_verifier_rows"))
def test_a_bad_row_is_named_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    path = write(tmp_path / "bad.jsonl", rows_of(2))
    path.write_text(path.read_text() + line + "\n")
    with raises_error(rf"bad\.jsonl:3: .*{said}"):
        read_rows(path)


def test_missing_empty_and_broken_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "plain.jsonl.gz").write_text("not compressed")
    for name, said in (
        ("none.jsonl", "cannot read"),
        ("empty.jsonl", "no rows"),
        ("plain.jsonl.gz", "broken"),
    ):
        with raises_error(said):
            read_rows(tmp_path / name)


def test_the_true_temperature_is_fitted() -> None:
    import torch

    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(4000, 3, generator=generator, dtype=torch.double)
    gold = torch.multinomial((scores * 2).softmax(-1), 1, generator=generator)[:, 0]  # true T = 0.5
    assert fit_temperature(scores, gold) == pytest.approx(0.5, abs=0.05)


def test_reliability_by_hand() -> None:
    found = reliability([0.95, 0.95, 0.55, 1.0], [True, False, True, True])
    # bin .9–1: three of mean confidence .9667, two right; bin .5–.6: one of .55, right
    assert found["ece"] == pytest.approx(0.75 * (2.9 / 3 - 2 / 3) + 0.25 * 0.45)
    assert [one["n"] for one in found["bins"]] == [1, 3]
