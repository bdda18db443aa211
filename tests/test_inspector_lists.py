"""The inspector's list of runs: scored files, names of queued runs, evaluations side by side."""

import json
from pathlib import Path

import pytest

from tests.helpers import examples, write_json
from tests.test_inspector_runs import record_untagged
from workbench.inspector.curves import run_list
from workbench.inspector.evaluations import before_after
from workbench.inspector.opened import open_row
from workbench.inspector.page import settings
from workbench.inspector.runs import Runs
from workbench.runs.naming import labels
from workbench.types import WorkbenchError


def test_a_scored_file_opens_like_a_run(tmp_path: Path) -> None:
    record_untagged(tmp_path / "run")
    for folder in (tmp_path, tmp_path / "scored", tmp_path / "a" / "b" / "c"):
        folder.mkdir(parents=True, exist_ok=True)
        for file in (tmp_path / "run").iterdir():
            name = file.name.replace("rollouts", "answers")
            (folder / name).write_bytes(file.read_bytes())
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "answers.jsonl")
    runs = Runs(tmp_path)
    # at most three levels; questions, links and empty files are not rows
    assert runs.names() == ["answers.jsonl", "run", "scored/answers.jsonl"]
    for name in runs.names():
        assert open_row(runs, name, "r2").feedback.rewards["truthrl"].value == -1.0
        assert settings(tmp_path / name, tmp_path, 0).run == name
    for name in ("link.jsonl", "empty.jsonl", "questions.jsonl", "none.jsonl"):
        with pytest.raises(WorkbenchError):
            open_row(runs, name, "r0")


QUEUED = dict(examples("queued_runs"))


def test_runs_of_a_queue_are_named_by_the_settings_that_differ() -> None:
    assert list(labels(QUEUED).values()) == [
        "rlfh alpha=1 ppo.lr=2 seed 1",
        "rlfh alpha=2 ppo.lr=2 seed 1",
        "rlfh alpha=1 ppo.lr=3 seed 2",
        "klcf seed 1",
        "named",
    ]


def test_evaluations_are_compared_side_by_side(tmp_path: Path) -> None:
    names = list(QUEUED)[:2]
    for name, after in zip(names, (0.0, 0.5), strict=True):
        record_untagged(tmp_path / name)
        write_json(tmp_path / name / "config.json", QUEUED[name])
        reports = {
            when: {"greedy": {"accuracy": {"value": value, "low": 0.125, "high": 0.5}}}
            for when, value in (("before", 0.25), ("after", after))
        }
        write_json(tmp_path / name / "summary.json", reports)
    runs = Runs(tmp_path)
    evaluation, config = json.loads(before_after(runs, names))["tables"]
    first, second = sorted(run["label"] for run in run_list(runs))
    # the same policy before training is one column
    assert evaluation["head"] == ["", "Before", first, second]
    shares = [f"{share}% [12.5%, 50.0%]" for share in ("25.0", "0.0", "50.0")]
    assert evaluation["rows"] == [["Accuracy, greedy", *shares]]
    assert config == {"head": ["Setting", first, second], "rows": [["alpha", "1", "2"]]}
