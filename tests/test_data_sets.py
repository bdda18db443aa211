"""Each data set's reader on records of its schema, and on slices of real files if available."""

from pathlib import Path

import pytest

from tests.helpers import examples, write_json
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import write
from workbench.data import NAMES, load
from workbench.data.sets import SETS
from workbench.text import matches
from workbench.types import JsonObject, Question

# Records of each original schema (a name may have several), and fields of the first question.
RECORDS = [(one["name"], one["record"], one["expected"]) for one in examples("data_sets")]


def check(question: Question, expected: JsonObject) -> None:
    for field, value in expected.items():
        if field == "passages":
            assert [passage.text for passage in question.passages] == value
        elif field == "meta":
            assert {key: question.meta.get(key) for key in value} == value
        elif field != "id" or value:
            found = getattr(question, field)
            assert (list(found) if isinstance(found, tuple) else found) == value


@pytest.mark.parametrize(("name", "record", "expected"), RECORDS)
def test_a_record_of_each_schema(
    name: str, record: JsonObject, expected: JsonObject, tmp_path: Path
) -> None:
    question = load(write(tmp_path / "file.jsonl", [record]), schema=name)[0]
    check(question, expected)
    assert question.meta["source"] == name and question.id
    if question.kind in ("yes_no", "numeric", "false_premise", "single") and question.answers:
        assert matches(question.answers[0], question.answers, question.kind, question.text)
    if SETS[name].recognises(record):  # a recognised schema needs no name
        write_json(tmp_path / "file.json", [record])
        found = load(tmp_path / "file.json")[0]
        check(found, expected)
        assert found.meta["source"] == name


def test_every_data_set_is_tested_here() -> None:
    assert {name for name, _, _ in RECORDS} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_schema_error_names_the_columns(name: str, tmp_path: Path) -> None:
    (tmp_path / "file.jsonl").write_text('{"claim": "x", "label": 1}\n')
    with raises_error("found claim, label") as error:
        load(tmp_path / "file.jsonl", schema=name)
    assert SETS[name].columns[0] in str(error.value)


@pytest.mark.parametrize(("name", "file", "n", "kinds", "recognised"), examples("slices"))
def test_real_files(
    name: str, file: str, n: int, kinds: list[str], recognised: bool, slices: Path
) -> None:
    questions = load(slices / file, schema=name)
    assert len(questions) == n and {q.kind for q in questions} <= {*kinds}
    assert len({q.id for q in questions}) == n and all(q.text for q in questions)
    for question in questions:
        assert bool(question.answers) != (
            question.kind in ("unanswerable", "biography", "long_form")
        )
        assert not any(answer.startswith("[") for answer in question.answers)
    if recognised:
        assert load(slices / file) == questions
