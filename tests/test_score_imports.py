"""Completions logged by TRL and verl become feedback rows that can be scored."""

import math
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.helpers import Cli, examples, printed
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import read, write
from workbench.data.chat import text_of
from workbench.runs.store import iter_feedback
from workbench.scoring import Options, score_file
from workbench.scoring.imports import import_completions

TRL: list[dict[str, Any]] = [
    {"step": 3, "prompt": prompt, "completion": text, "accuracy": accuracy, "format": 0.5}
    for prompt, text, accuracy in (
        ("Where was Ada born?", "Paris.", 1.0),
        ("Where was Ada born?", "Rome.", math.nan),
        ("Who is Bo?", "", 0.0),
    )
]
TRL = [{**row, "advantage": 0.7} for row in TRL]
VERL = examples("verl_rollouts")


def test_trl_parquet(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("prompt", examples("prompts"))
def test_the_question_of_a_prompt_is_its_last_user_turn(prompt: Any) -> None:
    assert text_of(prompt, "user") == "Who painted this?\nName one."


@pytest.mark.parametrize("prompt", examples("prompts_as_they_are"))
def test_a_prompt_without_complete_turns_is_the_question(prompt: str) -> None:
    assert text_of(prompt, "user") == prompt


@pytest.mark.parametrize("mark", ["User: ", "user\n", "user\n\n", "Q: a\n", "[INST]", "<|user|>"])
def test_a_prompt_with_many_turn_marks_is_read_in_linear_time(mark: str) -> None:
    start = time.perf_counter()
    text_of(mark * 20_000 + "assistant", "user")
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize(("value", "text"), examples("conversations"))
def test_only_messages_are_a_conversation(value: Any, text: str | None) -> None:
    assert text_of(value, "assistant") == text


TOOLS = [{"role": "assistant", "content": None, "tool_calls": []}, {"role": "tool", "content": "T"}]


def test_completions_of_messages_and_steps_of_any_type(tmp_path: Path) -> None:
    turns = [{"role": "assistant", "content": "Paris."}, *TOOLS]
    rows = [{**TRL[0], "completion": turns, "step": step} for step in (1, "1", 1.0)]
    bad = [{**TRL[0], "completion": TOOLS[1:]}, {**TRL[0], "step": "x"}]
    summary = import_completions(
        "trl", write(tmp_path / "c.jsonl", [*rows, *bad]), tmp_path / "out.jsonl"
    )
    found = [row.response for row in iter_feedback(tmp_path / "out.jsonl")]
    assert [(one.text, one.step, one.sample) for one in found] == [
        ("Paris.", 1, sample) for sample in range(3)
    ]
    assert [problem["line"] for problem in summary["problems"]] == [4, 5]


def test_tables_with_columns_other_than_rewards(tmp_path: Path) -> None:
    rows = [[1, "Who?", "42", 1.0, 2, 0.5], [2, "Who?", "x", None, 2, None]]
    frame = pd.DataFrame(rows, columns="step prompt completion acc length len_reward".split())
    frame.to_csv(tmp_path / "c.csv")
    frame.to_json(tmp_path / "c.table.json", orient="split")  # the format of wandb
    for name in ("c.csv", "c.table.json"):
        summary = import_completions("trl", tmp_path / name, tmp_path / f"{name}.jsonl")
        assert summary["rewards"] == ["trl:acc", "trl:len_reward"]
        assert "length" in summary["not_rewards"]
        first, second = iter_feedback(tmp_path / f"{name}.jsonl")
        assert first.response.text == "42" and first.rewards["trl:len_reward"].value == 0.5
        assert second.response.step == 2 and second.rewards["trl:acc"].value is None


def test_verl_rollouts_have_gold_answers(tmp_path: Path) -> None:
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
    assert summary["without_gold"] == 1
    assert [row.rewards["verl:score"].value for row in rows] == [1.0, -1.0, 0.0, 0.0]
    assert [row.response.step for row in rows] == [7, 7, 7, 8]


@pytest.mark.parametrize("name", ["c.jsonl", "c.csv", "c.parquet"])
def test_logged_columns_of_the_data_set_belong_to_the_question(name: str, tmp_path: Path) -> None:
    extra = {"answers": ["Paris", "Lutetia"], "passages": ["p"], "solution": "Paris."}
    rows = [{**TRL[0], **extra}, {**TRL[2], "answers": None, "passages": None, "solution": None}]
    frame = pd.DataFrame(rows)
    {
        "c.jsonl": lambda path: write(path, rows),
        "c.csv": frame.to_csv,
        "c.parquet": frame.to_parquet,
    }[name](tmp_path / name)
    summary = import_completions("trl", tmp_path / name, tmp_path / "out.jsonl")
    assert (summary["without_gold"], summary["not_rewards"]) == (1, ["solution"])
    first, second = (row.response.question for row in iter_feedback(tmp_path / "out.jsonl"))
    assert first.answers == ("Paris", "Lutetia") and [p.text for p in first.passages] == ["p"]
    assert (second.answers, second.passages) == ((), ())


def test_scoring_judges_imported_rows_and_keeps_logged_rewards(
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


def test_bad_rows_are_reported_and_skipped(tmp_path: Path, cli: Cli) -> None:
    source = write(tmp_path / "c.jsonl", [TRL[0], "{", {"step": 1, "prompt": "p"}, TRL[2]])
    result = cli(f"import trl {source} --out {tmp_path / 'out.jsonl'} --json")
    summary, err = printed(result, 3), result[2]
    assert (summary["rows"], summary["malformed"]) == (2, 2)
    assert f"{source}:2: not a JSON object" in err and f"{source}:3: no " in err


def test_a_file_in_another_format_is_refused(tmp_path: Path) -> None:
    with raises_error('no "input"; the row has'):
        import_completions("verl", write(tmp_path / "c.jsonl", TRL), tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
    with raises_error("cannot read"):
        import_completions("verl", tmp_path / "nowhere.jsonl", tmp_path / "out.jsonl")
    import_completions("verl", write(tmp_path / "c.jsonl", VERL), tmp_path / "out.jsonl")
    with raises_error("exists: name a new .jsonl file"):
        import_completions("verl", tmp_path / "c.jsonl", tmp_path / "out.jsonl")
