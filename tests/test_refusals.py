"""A refused command changes nothing: no new folder, lock or empty file, and existing files stay."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT, Cli, examples, run_python
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import world_rows, write
from workbench.runs.folder import lock, open_run
from workbench.scoring import Options, score_file
from workbench.types import WorkbenchError

FOREIGN = {"mine": 1}


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    for name in ("foreign", "pages", "demo/ternary", "built"):
        (folder / name).mkdir(parents=True)
    write(folder / "rows.jsonl", world_rows(2))
    write(folder / "bare.jsonl", [{"id": 1, "question": "Who?", "response": "Ada is a painter."}])
    write(folder / "empty.jsonl", [{"id": 1}])
    write(folder / "blank.jsonl", [{"text": " "}])
    write(folder / "pages.jsonl", [{"text": "Ada is a painter."}])
    write(folder / "many.jsonl", [{"text": f"Ada has {number} pictures."} for number in range(600)])
    write(folder / "logged.jsonl", [{"step": 1, "prompt": "Who?", "completion": "Ada.", "r": 1.0}])
    for name in (
        "foreign/questions.jsonl",
        "foreign/metrics.jsonl",
        "pages/passages.jsonl",
        "demo/ternary/metrics.jsonl",
    ):
        write(folder / name, [FOREIGN])
    (folder / "built" / "card.json").write_text('{"seed": 9}')
    score_file(Options(folder / "rows.jsonl", folder / "scored" / "f.jsonl", "rlfh", "world"))
    (folder / "scored" / ".lock").unlink()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("command", "message"), examples("refused_commands"))
def test_a_refused_command_states_the_reason_and_changes_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, command: str, message: str
) -> None:
    monkeypatch.chdir(place)
    before = tree(place)
    code, out, err = cli(command)
    assert (code, out) == (2, "") and message in err.splitlines()[-1]
    assert tree(place) == before


TYPOS = dict(examples("typos"))
HEAVY = ("torch", "transformers", "trl", "peft", "datasets")
TOLD = """
import json, sys
from workbench.cli import main
for command in json.load(sys.stdin):
    try:
        main(command.split())
    except SystemExit as exit:
        loaded = [name for name in %r if name in sys.modules]
        print(json.dumps([exit.code, loaded]), file=sys.stdout)
        print("", file=sys.stderr)
"""


@pytest.mark.slow
def test_a_typo_is_reported_before_heavy_imports(place: Path) -> None:
    write(place / "nothing.jsonl", [])
    (place / "latin.jsonl").write_bytes('{"question": "Zoé?", "response": "x"}\n'.encode("latin-1"))
    env = {"PYTHONPATH": str(ROOT)}
    done = run_python("-c", TOLD % (HEAVY,), input=json.dumps([*TYPOS]), cwd=place, env=env)
    output = done.stderr.split("\n\n")
    assert len(output) == len(TYPOS) + 1, done.stderr
    for (command, remedy), line, message in zip(
        TYPOS.items(), done.stdout.splitlines(), output, strict=False
    ):
        assert json.loads(line) == [2, []], (command, line, message)
        assert remedy in f"{message}\n" and message.count("\n") == 0, (command, message)
    assert not (place / "new").exists() and not (place / "runs").exists()


def test_a_run_that_fails_to_load_its_policy_leaves_no_files(tmp_path: Path) -> None:
    """Its config.json is removed, too, unless it existed before or another file was written."""
    with raises_error("cannot load"), lock(tmp_path / "new" / "run"):
        open_run(tmp_path / "new" / "run", {"method": "truthrl"})
        raise WorkbenchError("cannot load")
    assert not (tmp_path / "new").exists()
    folder = tmp_path / "begun"
    with raises_error("later"), lock(folder):
        open_run(folder, {"method": "truthrl"})
        (folder / "before.json").write_text("{}")
        raise WorkbenchError("later")
    assert (folder / "config.json").exists()
    (folder / "before.json").unlink()
    with raises_error("again"), lock(folder):
        raise WorkbenchError("again")
    assert (folder / "config.json").exists()


def test_a_refusal_removes_only_its_own_lock(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with lock(tmp_path / "held"):
        with raises_error("another process"), lock(tmp_path / "held"):
            pass
        assert (tmp_path / "held" / ".lock").exists()
    with raises_error("mine"), lock(tmp_path / "held"):
        raise WorkbenchError("mine")
    assert (tmp_path / "held" / ".lock").exists()  # from before
    with raises_error("mine"), lock(tmp_path / "new" / "run"):
        raise WorkbenchError("mine")
    assert not (tmp_path / "new").exists()


def test_a_lock_of_a_deleted_file_is_not_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may open the file before its holder deletes it, and lock it afterwards."""
    fcntl = pytest.importorskip("fcntl")
    flock = fcntl.flock

    def late(file: Any, how: int) -> None:
        (tmp_path / ".lock").unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with raises_error("another process"), lock(tmp_path):
        pass
