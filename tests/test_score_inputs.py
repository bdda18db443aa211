"""What is no number, and files that are no text in UTF-8: each is one line before anything is
scored or measured.
"""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path

import pytest

from tests.helpers.score_helpers import write
from workbench.cli import main

SAID = {
    "id": "a",
    "question": "Who is Ada?",
    "response": "Ada is a painter.",
    "claims": [],
    "outcome": "correct",
}


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as exit:
        main(list(map(str, arguments)))
    out, err = capsys.readouterr()
    return exit.value.code, out, err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (json.dumps(SAID).encode("utf-16"), "this is UTF-16: save it as UTF-8"),
        (json.dumps(SAID).encode("utf-16-be"), "this is UTF-16"),
        (gzip.compress(json.dumps(SAID).encode()), "this is compressed: unpack it first"),
        (bz2.compress(json.dumps(SAID).encode())[:20], "this is compressed"),
    ],
)
def test_a_file_that_is_no_text_in_utf8_is_told_as_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, told: str
) -> None:
    (tmp_path / "in.jsonl").write_bytes(content)
    write(tmp_path / "good.jsonl", [SAID])
    for command in (
        ("score", "--in", tmp_path / "in.jsonl", "--out", tmp_path / "f.jsonl"),
        ("metrics", tmp_path / "in.jsonl"),
    ):
        code, out, err = call(capsys, *command, "--json")
        assert (code, out, err.count("\n")) == (2, "", 1) and told in err
