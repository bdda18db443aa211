"""Every reader gets the same content from every file format and notation of gold answers."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import examples
from tests.helpers.score_helpers import write
from workbench.data import load
from workbench.data.record import strings
from workbench.runs.store import iter_feedback
from workbench.scoring.imports import import_completions
from workbench.scoring.rows import Reader, parse
from workbench.scoring.trl import question_from_row
from workbench.scoring.verl_rows import question_of
from workbench.types import Question

CITIES = ("Paris", "Rome")


def loaded(gold: Any, folder: Path) -> Question:
    return load(write(folder / "q.jsonl", [{"question": "Where?", "answers": gold}]))[0]


def scored(gold: Any, folder: Path) -> Question:
    row = {"id": 1, "question": "Where?", "response": "x", "answers": gold}
    return parse(row, {}, {}).response.question


def imported(gold: Any, folder: Path) -> Question:
    row = {"input": "Where?", "output": "x", "gts": gold, "score": 1.0}
    out = folder / f"{len(list(folder.iterdir()))}.jsonl"
    import_completions("verl", write(folder / "in.jsonl", [row]), out)
    return next(iter_feedback(out)).response.question


READERS: list[Callable[[Any, Path], Question]] = [
    loaded,
    scored,
    imported,
    lambda gold, _: question_from_row("Where?", {"answers": gold}),
    lambda gold, _: question_of({"raw_prompt": "Where?", "reward_model": {"ground_truth": gold}}),
]


@pytest.mark.parametrize("read", READERS)
def test_every_reader_reads_every_form_of_gold_answers(
    read: Callable[[Any, Path], Question], tmp_path: Path
) -> None:
    for spelling in [CITIES, *examples("gold_answers")]:
        assert read(spelling, tmp_path).answers == CITIES, spelling
    for one in (72, 72.0, "72", [72], "[72]", "[72.]", "tensor([72])"):
        assert read(one, tmp_path).answers == ("72",), one
    for affirmed in ("yes", ["Yes"], True, "True"):
        question = read(affirmed, tmp_path)
        assert (question.answers[0].lower(), question.kind) == ("yes", "yes_no"), affirmed
    assert read("Paris", tmp_path).kind == "single"


PRINTERS: list[Callable[[list[str]], Any]] = [
    json.dumps,
    repr,
    lambda texts: repr(tuple(texts)),
    lambda texts: str(np.array(texts, dtype=object)),
    lambda texts: repr(np.array(texts, dtype=object)),
    lambda texts: str(np.array(texts)),
    lambda texts: str([np.str_(text) for text in texts]),
    lambda texts: str({"text": np.array(texts, dtype=object), "answer_start": np.array([3])}),
    lambda texts: str([{"answer": text} for text in texts]),
    lambda texts: {"value": texts[0], "aliases": texts[1:]},
]
TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1
).filter(str.strip)


@given(st.lists(TEXT, min_size=1, max_size=4), st.sampled_from(PRINTERS))
def test_a_printed_list_is_parsed_back(
    texts: list[str], printer: Callable[[list[str]], Any]
) -> None:
    texts = list(dict.fromkeys(text.strip() for text in texts))
    assert strings(printer(texts)) == tuple(texts)


ROWS = examples("stored_rows")
FRAME = pd.DataFrame(ROWS)
ARRAYS = FRAME.assign(answers=FRAME["answers"].map(np.array))
FORMS: list[tuple[str, Callable[[Path], object]]] = [
    ("q.jsonl", lambda path: write(path, ROWS)),
    ("q.json", lambda path: path.write_text(json.dumps(ROWS))),
    ("q.json", lambda path: FRAME.to_json(path)),
    ("q.csv", lambda path: FRAME.to_csv(path, index=False)),
    ("q.csv", lambda path: ARRAYS.to_csv(path, sep=";", index=False)),
    ("q.csv", lambda path: ARRAYS.to_csv(path, sep="\t", quoting=csv.QUOTE_ALL)),
    ("q.tsv", lambda path: FRAME.to_csv(path, sep="\t", index=False)),
    ("q.tsv.gz", lambda path: FRAME.to_csv(path, sep="\t", index=False)),
    ("q.json.bz2", lambda path: FRAME.to_json(path, orient="records", lines=True)),
    ("q.parquet", lambda path: FRAME.astype({"step": float}).to_parquet(path)),
]


@pytest.mark.parametrize(("name", "write_file"), FORMS)
def test_every_file_format_gives_the_same_rows(
    name: str, write_file: Callable[[Path], object], tmp_path: Path
) -> None:
    write_file(tmp_path / name)
    expected = [(row["id"], row["question"], tuple(row["answers"])) for row in ROWS]
    found = load(tmp_path / name)
    assert [(one.id, one.text, one.answers) for one in found] == expected
    reader = Reader(tmp_path / name)
    items = [item.response for item in reader.items(reader.survey().ids)]
    assert [(one.id, one.text, one.step) for one in items] == [("a", "", 2), ("b", "x", 2)]
    assert [one.question.answers for one in items] == [answers for _, _, answers in expected]
