"""A judge's marks for coherence and helpfulness: prompts, and shares by hand."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.scripted_judge import JudgeServer
from tests.helpers import Cli, printed
from tests.helpers.score_helpers import write
from workbench.judge import Element
from workbench.metrics import compare_files
from workbench.metrics.marks import mark_prompts
from workbench.types import WorkbenchError
from workbench.verdicts.llm_judge import LLMJudge

MARKS = {"coherence": "54321", "helpfulness": "44x55"}


def by_number(task: str, found: Sequence[Element]) -> str:
    """The mark of answer "N." is the N-th of `MARKS`; "x" is not a mark."""
    if task == "outcome":  # the trial question
        return '{"label": "correct"}'
    assert [element.tag for element in found] == ["question", "response"]
    return json.dumps({"label": MARKS[task][int(found[1].text[0])]})


def answers(folder: Path) -> Path:
    rows = [
        {"id": f"q{n}", "question": f"What of {n}?", "response": f"<think>Hm.</think>{n}."}
        for n in range(5)
    ]
    return write(folder / "a.jsonl", rows)


def test_the_share_of_marks_of_at_least_4(tmp_path: Path) -> None:
    """FoRAG, section 6.1: two of the marks 5 4 3 2 1 are at least 4: share .4, mean 3. A failed
    mark is left out: 4 4 5 5 have share 1 and mean 4.5.
    """
    with JudgeServer(by_number) as server:
        found = compare_files(answers(tmp_path), judge=LLMJudge(server.url, "m").ask, resamples=100)
        assert server.tasks == {"coherence": 5, "helpfulness": 6}  # with a retry
    coherence, helpfulness = found["coherence"], found["helpfulness"]
    assert (coherence["value"], coherence["n"]) == (0.4, 5)
    assert (helpfulness["value"], helpfulness["n"]) == (1.0, 4)
    assert found["coherence_mark"]["value"] == 3 and found["helpfulness_mark"]["value"] == 4.5
    assert found["judge"]["failures"] == {"parse: label": 1}


def test_the_command_marks_one_file(tmp_path: Path, cli: Cli) -> None:
    file = answers(tmp_path)
    with JudgeServer(by_number) as server:
        command = ("metrics", file, "--judge", server.url, "--judge-model", "m")
        assert (printed(cli(*command, "--dry-run", "--json"))["calls"], server.requests) == (10, 0)
        code, out, err = cli(*command)
        assert code == 3 and "1 × parse: label" in err
        assert "coherence_mark" in out and "40.0" in out
        asked = server.requests
        assert asked == 1 + 11  # the trial question and a retry
        cli(*command)
        assert server.requests == asked + 2  # only the failed mark; the others are cached


def test_rollouts_of_several_steps_are_not_marked(tmp_path: Path) -> None:
    rows = [{"id": "q", "question": "?", "response": "a", "step": step} for step in (1, 2)]
    with pytest.raises(WorkbenchError, match="rollouts of 2 steps"):
        mark_prompts(write(tmp_path / "a.jsonl", rows))


def test_a_file_without_answers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkbenchError, match="has no rows to compare"):
        mark_prompts(write(tmp_path / "a.jsonl", []))
