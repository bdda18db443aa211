"""Queue files, the identities and status of runs, and real queues that are killed and resumed."""

import hashlib
import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import Cli, examples, read_json, refusal, start_python, write_json
from tests.helpers.credit import steps_of
from tests.helpers.errors import raises_error
from tests.helpers.small_bench import SETTINGS, make_bench
from tests.helpers.waiting import wait_for
from workbench.experiments.experiment import run_experiment
from workbench.experiments.queue import distinct, queue_runs, read_entries, status_of, train_queue
from workbench.experiments.run import Entry, Run, plan_run
from workbench.methods import METHODS
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.folder import in_use, lock
from workbench.types import JsonObject
from workbench.util.jsonl import json_digest

LIGHT = [
    f"truthrl.{part}"
    for part in (
        "eval_samples=0",
        "eval_kinds=list",
        "prompts_per_step=4",
        "group_size=4",
        "save_every=2",
    )
]
TWO = """
[defaults]
bench = "tiny"
set = ["truthrl.reward=binary", "rlfh.alpha=2"]

[[run]]
method = "truthrl"
seed = [1, 2]
set = ["truthrl.beta=0.1"]
name = "binary"

[[run]]
method = "rlfh"
steps = 3
threads = 1
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def table(**fields: Any) -> str:
    """A run as TOML; JSON's notation of these values is valid TOML."""
    return "\n".join(
        ["[[run]]", *(f"{key} = {json.dumps(value)}" for key, value in fields.items()), ""]
    )


def test_a_queue_file_is_read_in_order(tmp_path: Path) -> None:
    first, second, third = read_entries(write(tmp_path / "q.toml", TWO))
    # defaults of other methods do not apply
    settings = ("truthrl.reward=binary", "truthrl.beta=0.1")
    assert first == Entry(
        "truthrl", 1, "tiny", settings, name="binary", where=f"'{tmp_path / 'q.toml'}', run 1"
    )
    assert (second.seed, second.where) == (2, first.where)
    assert (third.method, third.seed, third.settings, third.steps, third.threads) == (
        "rlfh",
        0,
        ("rlfh.alpha=2",),
        3,
        1,
    )


REFUSED = examples("refused_queues")


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with raises_error(message):
        read_entries(write(tmp_path / "q.toml", text))
    with raises_error("cannot read"):
        read_entries(tmp_path / "none.toml")


@pytest.mark.parametrize(("fields", "message"), examples("invalid_runs"))
def test_an_invalid_run_is_refused_before_the_first_run(
    cli: Cli, tmp_path: Path, fields: JsonObject, message: str
) -> None:
    file = write(tmp_path / "q.toml", table(method="truthrl") + table(**fields))
    with raises_error(message):
        queue_runs(file, tmp_path / "runs")
    assert refusal(cli(f"queue {file} --out {tmp_path / 'runs'}"))
    assert not (tmp_path / "runs").exists()


def test_equal_runs_have_equal_hashes(tmp_path: Path) -> None:
    three: JsonObject = {"method": "truthrl", "steps": 3}
    same: JsonObject = {"method": "truthrl", "set": ["truthrl.grpo.steps=3"], "name": "same"}
    others: list[JsonObject] = [
        {"seed": 1},
        {"threads": 1},
        {"steps": 4},
        {"set": ["truthrl.reward=binary"]},
    ]
    tables = [three, same, *({**three, **other} for other in others)]
    file = write(tmp_path / "q.toml", "".join(table(**one) for one in tables))
    first, second, *rest = queue_runs(file, tmp_path / "runs")
    identity = first.identity
    assert identity["config"]["grpo"]["steps"] == first.steps == 3 and identity["threads"] == 2
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    assert first.folder == second.folder == tmp_path / "runs" / digest[:12]
    assert len({run.hash for run in (first, *rest)}) == 5
    found = plan_run(Entry("truthrl", settings=("truthrl.steps=3",)), tmp_path / "runs")
    assert found.folder == first.folder
    once = distinct([first, second, *rest])
    assert [run.hash for run in once] == [run.hash for run in (first, *rest)]
    assert once[0].entry.name == "same"


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Run]:
    """Create runs on a very small bench, by seed, in `tmp_path / "runs"`."""
    bench = make_bench(tmp_path / "policy")

    def make(seed: int = 1, name: str = "") -> Run:
        entry = Entry("truthrl", seed, "test", tuple(SETTINGS), threads=1, name=name)
        return plan_run(entry, tmp_path / "runs", lambda name, questions: bench)

    return make


@pytest.mark.slow
def test_a_trained_run_is_found_by_its_settings(small: Callable[..., Run]) -> None:
    run = small(name="first")
    assert run.summary is None
    summary = run_experiment(
        METHODS["truthrl"], run.config, run.bench, run.folder, seed=1, threads=1
    )
    assert run.summary == small().summary == summary and small(2).summary is None
    stored = read_json(run.folder / "config.json")
    del stored["versions"]
    assert json_digest(stored) == run.hash
    [row] = status_of([run])["runs"]
    assert (row["status"], row["step"], row["steps"]) == ("done", 2, 2)
    write_json(run.folder / "config.json", {**stored, "seed": 5})
    with raises_error(r"has another run \(seed is 5, not 1\)"):
        train_queue([run], run.folder.parent)


def test_status_is_read_from_the_folders(small: Callable[..., Run]) -> None:
    run = small()

    def status() -> str:
        return str(status_of([run])["runs"][0]["status"])

    assert status() == "waiting" and not run.folder.parent.exists()
    run.folder.mkdir(parents=True)
    write_json(run.folder / "config.json", run.identity)
    assert status() == "interrupted"
    with lock(run.folder):
        assert status() == "running"
    write_json(run.folder / "failed.json", {"error": "no memory", "exit_code": 1})
    assert status() == "failed" and status_of([run])["runs"][0]["error"] == "no memory"
    (run.folder / "failed.json").unlink()
    write_json(run.folder / "summary.json", {"status": "too_many_failures", "seconds": 1.0})
    assert status() == "failed"
    write_json(run.folder / "summary.json", {"status": "done", "seconds": 1.0})
    assert status() == "done"


def test_two_queues_do_not_share_a_folder(small: Callable[..., Run], tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with lock(tmp_path / "runs"), raises_error("another process is using"):
        train_queue([small()], tmp_path / "runs")
    assert not small().folder.exists()


def test_status_as_an_object_and_as_a_table(cli: Cli, tmp_path: Path) -> None:
    file = write(tmp_path / "q.toml", table(method="truthrl", seed=[1, 2], name="both", steps=7))
    code, out, err = cli(f"queue {file} --out {tmp_path / 'runs'} --status --json")
    rows = json.loads(out)["runs"]
    assert (code, err) == (0, "") and not (tmp_path / "runs").exists()
    assert all(
        {*"hash method seed status seconds name step steps".split()} <= row.keys() for row in rows
    )
    assert [(row["seed"], row["status"], row["step"], row["steps"]) for row in rows] == [
        (1, "waiting", 0, 7),
        (2, "waiting", 0, 7),
    ]
    code, out, _ = cli(f"queue {file} --out {tmp_path / 'runs'} --status")
    assert code == 0 and rows[0]["hash"] in out and "0/7" in out


def begin(file: Path, root: Path, *more: str) -> subprocess.Popen[str]:
    words = f"-m workbench.cli queue {file} --out {root} --json"
    return start_python(*words.split(), *more, stderr=subprocess.PIPE)


def finish(file: Path, root: Path) -> tuple[int, JsonObject, str]:
    with begin(file, root) as process:
        out, err = process.communicate()
    return process.returncode, json.loads(out), err


@pytest.mark.slow
def test_a_killed_queue_resumes_and_a_failed_run_does_not_stop_it(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    root = tmp_path / "runs"
    file = write(tmp_path / "q.toml", table(method="truthrl", seed=[1, 2], steps=12, set=LIGHT))
    bad, good = queue_runs(file, root)
    bad.folder.mkdir(parents=True)
    write(bad.folder / "config.json", "{")  # only this run's process is refused
    with begin(file, root) as queue:
        wait_for(lambda: len(metrics_rows(good.folder)) > 4, seconds=300)
        queue.kill()
    wait_for(lambda: not in_use(good.folder), seconds=60)  # no training continues
    made = len(metrics_rows(good.folder))
    assert 4 < made < 12 and [row["status"] for row in status_of([bad, good])["runs"]] == [
        "failed",
        "interrupted",
    ]

    code, result, err = finish(file, root)
    assert (code, result["status"], result["failed"]) == (3, "done", 1)
    assert [row["status"] for row in result["runs"]] == [
        "failed",
        "done",
    ] and "is damaged" in result["runs"][0]["error"]
    assert f"not done: {bad.hash}: " in err
    assert "[2/2] truthrl, seed 2: done in" in err
    assert "step 3/12" not in err
    assert f"resuming '{good.folder}' after step" in (good.folder / "log.txt").read_text()
    entry = Entry("truthrl", 2, settings=LIGHT, steps=12)
    whole = plan_run(entry, tmp_path).train(tmp_path / "whole")
    assert steps_of(good.folder) == steps_of(tmp_path / "whole")
    assert good.summary is not None and good.summary["after"] == whole["after"]

    (bad.folder / "config.json").unlink()
    code, result, err = finish(file, root)
    assert (code, result["failed"]) == (0, 0)
    assert bad.summary is not None
    assert "[2/2] truthrl, seed 2: done already" in err


@pytest.mark.slow
def test_ctrl_c_saves_all_runs_that_train_at_the_same_time(tmp_path: Path) -> None:
    root, more = tmp_path / "runs", ("--jobs", "2")
    long = {"steps": 4000, "set": LIGHT, "threads": 1}
    file = write(tmp_path / "q.toml", table(method="truthrl", seed=[1, 2, 3], **long))
    *both, last = queue_runs(file, root)
    with begin(file, root, *more) as queue:
        wait_for(lambda: all(len(metrics_rows(run.folder)) > 2 for run in both), seconds=300)
        queue.send_signal(signal.SIGINT)
        out, _ = queue.communicate(timeout=120)
    statuses = [row["status"] for row in json.loads(out)["runs"]]
    assert (queue.returncode, statuses) == (130, ["interrupted", "interrupted", "waiting"])
    for run in both:
        done = len(metrics_rows(run.folder))
        assert (run.folder / "checkpoints" / f"checkpoint-{done}" / "complete.json").exists()
    assert not last.folder.exists()


@pytest.mark.slow
def test_a_failed_run_does_not_stop_one_beside_it(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    file = write(tmp_path / "q.toml", table(method="truthrl", seed=[1, 2, 3], steps=2, set=LIGHT))
    bad, *good = queue_runs(file, root)
    bad.folder.mkdir(parents=True)
    write(bad.folder / "config.json", "{")  # only this run's process is refused
    result = train_queue([bad, *good], root, jobs=2)
    assert (result["status"], result["failed"]) == ("done", 1)
    assert all(run.summary is not None for run in good)
    with raises_error("at least 1 run at a time"):
        train_queue(good, root, jobs=0)


@pytest.mark.nightly
def test_ctrl_c_saves_and_stops(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    file = write(tmp_path / "q.toml", table(method="truthrl", seed=[1, 2], steps=4000, set=LIGHT))
    first, second = queue_runs(file, root)
    with begin(file, root) as queue:
        wait_for(lambda: len(metrics_rows(first.folder)) > 2, seconds=300)
        queue.send_signal(signal.SIGINT)
        out, err = queue.communicate(timeout=120)
    assert queue.returncode == 130 and err.endswith(
        "interrupted; the same command resumes an unfinished run\n"
    )
    assert [row["status"] for row in json.loads(out)["runs"]] == [
        "interrupted",
        "waiting",
    ] and not second.folder.exists()
    done = len(metrics_rows(first.folder))
    assert (first.folder / "checkpoints" / f"checkpoint-{done}" / "complete.json").exists()
    assert read_json(first.folder / "summary.json")["status"] == "interrupted"
