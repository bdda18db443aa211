"""docs/formats.md names exactly the fields that the code writes."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from benchmarks.scripted_judge import JudgeServer
from tests.helpers import ROOT, read_json
from tests.helpers.score_helpers import read, world_rows, write
from tests.helpers.small_bench import SMALL, make_bench
from workbench.experiments.experiment import run_experiment
from workbench.experiments.probe import probe_policy
from workbench.experiments.queue import status_of
from workbench.experiments.run import KEYS, Entry, plan_run
from workbench.inspector.examples import worked_example
from workbench.inspector.opened import with_rewards
from workbench.judge import LABELS
from workbench.judge.templates import TASKS
from workbench.judge.wire import read as read_reply
from workbench.methods import METHODS, method_configs
from workbench.methods.method import scaled
from workbench.runs.store import append_feedback
from workbench.scoring import Options, score_file
from workbench.types import ASPECTS, LACKING, SCHEMA, Failure, JsonObject
from workbench.verdicts.llm_judge import LLMJudge
from workbench.world.export import _tables
from workbench.world.world import load_world

PAGE = (ROOT / "docs" / "formats.md").read_text()


def table(mark: str) -> list[list[str]]:
    """The cells of the table after a marker of the page, without its header."""
    found = re.search(rf"^<!-- {mark} -->\n((?:.*\S.*\n)+)", PAGE, re.M)
    assert found, mark
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for line in found[1].splitlines()
    ]
    return rows[2:]


def names(mark: str) -> set[str]:
    return {name for row in table(f"fields: {mark}") for name in ticked(row[0])}


def ticked(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_a_feedback_row_has_the_fields_of_the_page(tmp_path: Path) -> None:
    append_feedback(tmp_path, [with_rewards(worked_example(), method_configs())])
    [row] = read(tmp_path / "rollouts.jsonl")
    assert row["schema"] == SCHEMA == 1 and set(row["rewards"]) == set(METHODS)
    reward = row["rewards"]["rlfh"]
    parts: dict[str, JsonObject] = {
        "row": row,
        "tokens": row["tokens"],
        "claim": row["claims"][0],
        "verdict": row["verdicts"][0],
        "reward": reward,
        "event": reward["events"][0],
        "cost": row["cost"],
        "question": read(tmp_path / "questions.jsonl")[0],
        "passage": read(tmp_path / "passages.jsonl")[0],
    }
    for name, part in parts.items():
        assert names(name) == part.keys(), name
    assert names("error") == {field.name for field in fields(Failure)}
    assert {target.partition(":")[0] for row in table("labels") for target in ticked(row[1])} <= {
        *(
            one.partition(":")[0]
            for one in ticked(
                next(row[1] for row in table("fields: verdict") if "`target`" in row[0])
            )
        )
    }


def test_labels_and_kinds_are_those_of_the_page() -> None:
    output = {
        aspect: tuple(ticked(labels))
        for aspects, _, labels in table("labels")
        for aspect in ticked(aspects)
    }
    unlabelled = {("p",), ("error",)}  # fields of aspects without labels
    assert {
        aspect: () if labels in unlabelled else labels for aspect, labels in output.items()
    } == ASPECTS
    [line] = re.findall(r"<!-- kinds: lacking -->\n(.*)\n", PAGE)
    assert ticked(line) == list(LACKING)


def test_settings_of_a_scoring_are_those_of_the_page(tmp_path: Path) -> None:
    score_file(
        Options(
            write(tmp_path / "in.jsonl", world_rows(1)),
            tmp_path / "out" / "f.jsonl",
            "rlfh",
            "world",
        )
    )
    assert names("settings") == read_json(tmp_path / "out" / "f.settings.json").keys()
    there = {path.name for path in (tmp_path / "out").iterdir()}
    assert all(name.replace("f.", "NAME.") in PAGE for name in there), there


@pytest.mark.nightly
def test_a_run_has_the_files_and_fields_of_the_page(tmp_path: Path) -> None:
    with JudgeServer() as server:
        bench = make_bench(tmp_path / "policy").with_judge(LLMJudge(server.url, "m"))
        run_experiment(
            METHODS["truthrl"], scaled(SMALL, grpo={"steps": 1}), bench, tmp_path / "run", seed=3
        )
    for name, file in (
        ("config", "config.json"),
        ("summary", "summary.json"),
        ("metrics", "metrics.jsonl"),
    ):
        stored = read_json(tmp_path / "run" / file)
        assert names(name) == {re.sub("^reward/.*", "reward/PART", field) for field in stored}, name
    there = {path.name + "/" * path.is_dir() for path in (tmp_path / "run").iterdir()}
    section = PAGE.partition("## A run's folder")[2].partition("<!--")[0]
    output = {
        re.sub("/.*", "/", name)
        for line in re.findall(r"^\| (`.*?) \|", section, re.M)
        for name in ticked(line)
    }
    # documented in a separate section
    assert there - output == {"questions.jsonl", "passages.jsonl"}
    # written when the inspector opens a large file
    assert output - there == {"rollouts.index.parquet"}


def test_a_probe_has_the_files_and_fields_of_the_page(tmp_path: Path) -> None:
    probe_policy(
        None, "validation", make_bench(tmp_path / "policy"), k=2, out=tmp_path / "probe", limit=2
    )
    assert names("probe") == read(tmp_path / "probe" / "probe.jsonl")[0].keys()
    assert names("probed") == read_json(tmp_path / "probe" / "summary.json").keys()
    section = PAGE.partition("## A probe's folder")[2].partition("<!--")[0]
    output = {ticked(line)[0] for line in re.findall(r"^\| (`.*?) \|", section, re.M)}
    assert {path.name for path in (tmp_path / "probe").iterdir()} - output == {".lock"}


def test_a_queue_has_the_fields_of_the_page(tmp_path: Path) -> None:
    [row] = status_of([plan_run(Entry("truthrl"), tmp_path)])["runs"]
    assert (names("queue"), names("queued")) == (KEYS.keys(), row.keys())


@pytest.mark.parametrize("task", TASKS)
def test_the_replies_of_the_page_can_be_read(task: str) -> None:
    [(reply, labels)] = [
        (row[1], ticked(row[2] if len(row) > 2 else ""))
        for row in table("wire")
        if ticked(row[0]) == [task]
    ]
    assert tuple(labels) == LABELS.get(task, ())
    text = re.sub(
        r'"labels?": (\[?)"…"', lambda match: match[0].replace("…", labels[0]), ticked(reply)[0]
    )
    assert not isinstance(read_reply(task, text), Failure), text
    assert isinstance(read_reply(task, text.replace("{", '{"more": 1, ', 1)), Failure)


def test_the_export_of_a_world_has_the_fields_of_the_page() -> None:
    documented = {ticked(file)[0]: set(ticked(row)) for file, row in table("export")}
    tables = _tables(load_world(0, 0.1))
    assert documented == {f"{name}.jsonl": set(next(iter(rows))) for name, rows in tables.items()}
