"""Completions logged by TRL and verl become feedback rows that can be scored."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.score_helpers import read, write
from workbench.cli import main
from workbench.runs.store import iter_feedback
from workbench.scoring import Options, score_file
from workbench.scoring.imports import import_completions
from workbench.types import WorkbenchError

TRL: list[dict[str, Any]] = [
    {"step": 3, "prompt": prompt, "completion": text, "accuracy": accuracy, "format": 0.5}
    for prompt, text, accuracy in (
        ("Where was Ada born?", "Paris.", 1.0),
        ("Where was Ada born?", "Rome.", math.nan),
        ("Who is Bo?", "", 0.0),
    )
]
TRL = [{**row, "advantage": 0.7} for row in TRL]
VERL: list[dict[str, Any]] = [
    {"input": prompt, "output": text, "gts": gold, "score": score, "step": step, "acc": score > 0}
    for prompt, text, gold, score, step in (
        ("Where was Ada born?", "Paris.", "Paris", 1.0, 7),
        ("Where was Ada born?", "Rome.", "Paris", -1.0, 7),
        ("Who is Bo?", "Nobody.", None, 0.0, 7),
        ("Name two.", "A and B.", ["A", "B"], 0.0, 8),
    )
]


def test_trl_parquet(tmp_path: Path) -> None:
    import pandas as pd

    folder = tmp_path / "completions"
    folder.mkdir()
    pd.DataFrame([{**row, "step": 10} for row in TRL]).to_parquet(
        folder / "completions_00010.parquet"
    )
    pd.DataFrame(TRL).to_parquet(folder / "completions_00003.parquet")
    summary = import_completions("trl", folder, tmp_path / "out" / "logged.jsonl")
    assert (summary["rows"], summary["malformed"]) == (6, 0)
    assert summary["rewards"] == ["trl:accuracy", "trl:format"]
    rows = list(iter_feedback(tmp_path / "out" / "logged.jsonl"))
    assert [row.response.step for row in rows] == [3, 3, 3, 10, 10, 10]
    assert [row.response.sample for row in rows] == [0, 1, 0, 0, 1, 0]
    assert rows[0].response.group == rows[1].response.group != rows[3].response.group
    assert len({row.response.id for row in rows}) == 6
    assert rows[0].rewards["trl:accuracy"].value == 1.0
    missing = rows[1].rewards["trl:accuracy"]
    assert missing.value is None and missing.error is not None


QWEN = (
    "<|im_start|>system\nBe"
    " brief.<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
)
LLAMA = "<|start_header_id|>{}<|end_header_id|>\n\n{}<|eot_id|>"
ASKED = "Who painted this?\nName one."


@pytest.mark.parametrize(
    ("prompt", "question"),
    [
        ([{"role": "system", "content": "Hm."}, {"role": "user", "content": ASKED}], ASKED),
        (QWEN.format(ASKED), ASKED),
        (
            LLAMA.format("system", "Today.")
            + LLAMA.format("user", ASKED)
            + "<|start_header_id|>assistant",
            ASKED,
        ),
        # decoded without the marks, as both trainers do
        (f"system\nBe brief.\nuser\n{ASKED}\nassistant\n", ASKED),
        # Qwen3, told not to think
        (f"system\nBe brief.\nuser\n{ASKED}\nassistant\n<think>\n\n</think>\n\n", ASKED),
        (f"user\nHi\nmodel\nHello.\nuser\n{ASKED}\nmodel\n", ASKED),  # Gemma
        (f"system\n\nToday.user\n\n{ASKED}assistant\n\n", ASKED),
        # What is no conversation, or not a whole one, is the question as it is.
        (ASKED, ASKED),
        ("user\nHi\nassistant\nHello.", "user\nHi\nassistant\nHello."),
        ("Explain:\nuser\nx\nassistant\n", "Explain:\nuser\nx\nassistant\n"),
        (QWEN.format(" "), QWEN.format(" ")),
    ],
)
def test_the_last_user_turn_of_a_decoded_conversation_is_the_question(
    tmp_path: Path, prompt: Any, question: str
) -> None:
    import_completions(
        "trl", write(tmp_path / "c.jsonl", [{**TRL[0], "prompt": prompt}]), tmp_path / "out.jsonl"
    )
    [found] = iter_feedback(tmp_path / "out.jsonl")
    assert found.response.question.text == question.strip()


@pytest.mark.parametrize(
    ("gold", "answers"),
    [
        ("['Paris' 'Rome']", ("Paris", "Rome")),
        ("['Paris', 'Rome']", ("Paris", "Rome")),
        ("""["O'Neill" 'say \\'hi\\'']""", ("O'Neill", "say 'hi'")),
        ("Paris", ("Paris",)),
        ("['Paris' + 'Rome']", ("['Paris' + 'Rome']",)),
        (r"['\x']", (r"['\x']",)),
    ],
)
def test_gold_answers_that_numpy_printed_are_a_list(
    tmp_path: Path, gold: str, answers: tuple[str, ...]
) -> None:
    """Also where they stand under "target", in which Search-R1's data sets have them."""
    for number, gts in enumerate((gold, {"target": gold})):
        source = write(tmp_path / f"{number}.jsonl", [{**VERL[0], "gts": gts}])
        import_completions("verl", source, tmp_path / f"out{number}.jsonl")
        [found] = iter_feedback(tmp_path / f"out{number}.jsonl")
        assert found.response.question.answers == answers


def test_verl_rollouts_bring_gold_answers(tmp_path: Path) -> None:
    logged = [{**row, "advantage": 0.5} for row in VERL]
    summary = import_completions(
        "verl", write(tmp_path / "7.jsonl", logged), tmp_path / "out.jsonl"
    )
    assert summary["rewards"] == ["verl:score"]  # an advantage is not a reward
    rows = list(iter_feedback(tmp_path / "out.jsonl"))
    assert [row.response.question.answers for row in rows] == [
        ("Paris",),
        ("Paris",),
        (),
        ("A", "B"),
    ]
    assert [row.rewards["verl:score"].value for row in rows] == [1.0, -1.0, 0.0, 0.0]
    assert [row.response.step for row in rows] == [7, 7, 7, 8]


def test_imported_rows_are_judged_when_they_are_scored_and_keep_what_was_logged(
    tmp_path: Path,
) -> None:
    rows = [{**VERL[0]}, {**VERL[1]}]
    import_completions("verl", write(tmp_path / "7.jsonl", rows), tmp_path / "out.jsonl")
    summary = score_file(
        Options(tmp_path / "out.jsonl", tmp_path / "s" / "f.jsonl", method="truthrl", judge="world")
    )
    assert summary["outcomes"] == {"correct": 1, "incorrect": 1}
    for row in read(tmp_path / "s" / "f.jsonl"):
        assert row["rewards"]["truthrl"]["value"] == row["rewards"]["verl:score"]["value"]


def test_bad_rows_are_reported_and_the_rest_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "c.jsonl", [TRL[0], "{", {"step": 1, "prompt": "p"}, TRL[2]])
    with pytest.raises(SystemExit) as exit:
        main(["import", "trl", str(source), "--out", str(tmp_path / "out.jsonl"), "--json"])
    out, err = capsys.readouterr()
    assert exit.value.code == 3
    assert (json.loads(out)["rows"], json.loads(out)["malformed"]) == (2, 2)
    assert f"{source}:2: not a JSON object" in err and f"{source}:3: no " in err


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkbenchError, match='no "input" or "output"'):
        import_completions("verl", write(tmp_path / "c.jsonl", TRL), tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
    with pytest.raises(WorkbenchError, match="cannot read"):
        import_completions("verl", tmp_path / "nowhere.jsonl", tmp_path / "out.jsonl")
    import_completions("verl", write(tmp_path / "c.jsonl", VERL), tmp_path / "out.jsonl")
    with pytest.raises(WorkbenchError, match="exists, or is not"):
        import_completions("verl", tmp_path / "c.jsonl", tmp_path / "out.jsonl")
