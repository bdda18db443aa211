"""Scoring a file: malformed rows, and rows from tables."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import Cli, printed, refusal
from tests.helpers.score_helpers import LABELLED, ids, options, read, world_rows, write
from workbench.metrics.rows import read_rows as read_metric_rows
from workbench.scoring import Options, score_file

BAD: list[tuple[Any, str]] = [
    ({"id": "b", "question": "Who?"}, 'no "response"'),
    ("not json", "not a JSON object"),
    ('{"id": "t", "resp', "not a JSON object"),
    ("[1]", "not a JSON object"),
    ({**LABELLED, "response": "again"}, "an earlier row has the id 'a' too"),
    *(
        ({"id": number, "question": "q", "response": 7}, '"response" is not a text')
        for number in range(6)
    ),
]


def test_malformed_rows_are_named_by_line_and_skipped(tmp_path: Path, cli: Cli) -> None:
    good = {"id": "z", "response": "I do not know.", "claims": [], "outcome": "uncertain"}
    source = write(tmp_path / "in.jsonl", [LABELLED, *(bad for bad, _ in BAD), "", good])
    out = tmp_path / "out.jsonl"
    result = cli(f"score --in {source} --out {out} --method rlfh --json")
    summary, err = printed(result, 3), result[2]
    assert (summary["malformed"], summary["duplicates"], summary["rows"]) == (len(BAD), 1, 2)
    for line, (problem, (_, message)) in enumerate(
        zip(summary["problems"], BAD, strict=True), start=2
    ):
        assert problem["line"] == line
        assert message in problem["problem"]
    assert f"{source}:2: " in err and f"{len(BAD) - 10} more rows" in err
    assert ids(out) == ["a", "z"]


@pytest.mark.parametrize("line", ["[", "[1, 2", '[{"id": 1},', "[1]"])
def test_a_first_line_starting_like_a_list_is_a_malformed_row(
    line: str, tmp_path: Path, cli: Cli
) -> None:
    source = write(tmp_path / "in.jsonl", [line, LABELLED])
    out = tmp_path / "out.jsonl"
    summary = printed(cli(f"score --in {source} --out {out} --method rlfh --json"), 3)
    assert (summary["malformed"], summary["rows"]) == (1, 1)
    assert summary["problems"][0]["line"] == 1


def test_a_file_without_scorable_rows_is_refused(tmp_path: Path, cli: Cli) -> None:
    [known] = world_rows(1)
    source = write(
        tmp_path / "in.jsonl", [{"id": 1, "prompt": known["question"], "output": known["response"]}]
    )
    command = f"score --in {source} --out {tmp_path / 'out.jsonl'} --judge world"
    code, out, err = cli(command)
    assert (code, out) == (2, "")
    assert "the row has id, prompt, output" in err and "--map" in err
    assert not (tmp_path / "out.jsonl").exists()
    assert cli(f"{command} --method none --map 'question=prompt, response=output'")[0] == 0
    other = f"score --in {source} --out {tmp_path / 'x.jsonl'} --map reply=output"
    assert "the fields are" in refusal(cli(other))


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_feedback_saved_as_a_table_is_replayed(form: str, tmp_path: Path) -> None:
    import pandas as pd

    declined = {"id": "b", "response": "I do not know.", "claims": [], "outcome": "uncertain"}
    first = options(tmp_path, [LABELLED, LABELLED | declined])
    score_file(first)
    stored = read(first.out)
    del stored[0]["rewards"]["klcf"]  # so that the table has a gap
    table, frame = first.out.with_name(f"f.{form}"), pd.DataFrame(stored)
    (frame.to_csv if form == "csv" else frame.to_parquet)(table)
    assert read_metric_rows(table) == read_metric_rows(first.out)
    second = Options(table, tmp_path / "again" / "g.jsonl")
    assert score_file(second)["malformed"] == 0
    again = read(second.out)
    for before, after in zip(read(first.out), again, strict=True):
        assert {**after, "rewards": 0} == {**before, "rewards": 0}
        for name, reward in before["rewards"].items():
            assert after["rewards"][name]["value"] == reward["value"]
            assert after["rewards"][name]["tokens"] == reward["tokens"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (json.dumps(LABELLED).encode("utf-16"), "the file is encoded as UTF-16: save it as UTF-8"),
        (json.dumps(LABELLED).encode("utf-16-be"), "the file is encoded as UTF-16"),
        (gzip.compress(json.dumps(LABELLED).encode()), "the file is compressed: unpack it"),
    ],
)
def test_a_file_that_is_not_utf8_text_is_refused(
    tmp_path: Path, cli: Cli, content: bytes, message: str
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(content)
    for command in (f"score --in {source} --out {tmp_path / 'f.jsonl'}", f"metrics {source}"):
        assert message in refusal(cli(command, "--json"))
