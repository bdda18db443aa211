"""A full disk: a one-line error, exit code 130, and no judge calls whose replies would be lost.

A limit on the file size (RLIMIT_FSIZE) simulates the full disk.
"""

import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

from benchmarks.scripted_judge import JudgeServer
from tests.helpers import run_python
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import read, world_rows, write
from tests.test_judge_cache import prompts
from workbench.judge import endpoint
from workbench.scoring import Options, score_file
from workbench.util import disk


def workbench(*arguments: object, most: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command whose files may not exceed `most` bytes."""
    limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))) if most else None
    return run_python("-m", "workbench.cli", *arguments, preexec_fn=limit)


def check_told(done: subprocess.CompletedProcess[str]) -> None:
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    output = [line for line in done.stderr.splitlines() if line.startswith("workbench: ")]
    assert len(output) == 1
    assert "the disk is full" in output[0]
    assert "free some space and run the same command again" in output[0]
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_scoring_stops_with_one_line_and_resumes(tmp_path: Path) -> None:
    rows = [{**row, "id": f"{row['id']}/{time}"} for time in range(2) for row in world_rows(150)]
    source, out = write(tmp_path / "in.jsonl", rows), tmp_path / "out" / "f.jsonl"
    command = [
        "score",
        "--in",
        source,
        "--out",
        out,
        "--judge",
        "world",
        "--method",
        "rlfh",
        "--json",
    ]
    check_told(workbench(*command, most=600_000))
    done = workbench(*command)
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["rows"]) == (0, 300) and summary["earlier"] > 0
    assert len({row["id"] for row in read(out)}) == 300


WRITES = {
    "safetensors": (
        "from safetensors.torch import save_file; import torch; save_file({'w': torch.zeros(1 <<"
        " 20)}, path)"
    ),
    "torch": "import torch; torch.save({'w': torch.zeros(1 << 20)}, path)",
    "sqlite": (
        "db = sqlite3.connect(path); db.execute('CREATE TABLE t (x)'); "
        "db.execute('INSERT INTO t VALUES (?)', ('x' * 900_000,)); db.commit()"
    ),
    "a file": "open(path, 'w').write('x' * 1_000_000)",
}
FILLED = """
import resource, sqlite3, sys
from workbench.util import disk
path = sys.argv[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000,) * 2)
try:
    try:
        exec(sys.argv[2])
    except Exception as error:  # the write's own error, of any type
        raise ValueError("what came of it") from error
except ValueError as error:
    print(disk.is_full(error), repr(error.__cause__))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITES)
def test_full_disk_errors_of_libraries_are_recognised(tmp_path: Path, name: str) -> None:
    done = run_python("-c", FILLED, tmp_path / "file", WRITES[name])
    assert done.stdout.startswith("True"), done.stdout + done.stderr


def test_too_little_space_is_refused_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    disk.check_space(tmp_path / "not" / "yet", 0, "…")
    with raises_error("MB are needed: free some space, or leave it"):
        disk.check_space(tmp_path / "not" / "yet", 2 * free, "leave it")
    source = write(tmp_path / "in.jsonl", world_rows(1))
    monkeypatch.setattr(disk, "MARGIN", 2 * free)
    with raises_error("name an --out on another disk"):
        score_file(Options(source, tmp_path / "out" / "f.jsonl", judge="world"))
    assert not list((tmp_path / "out").glob("*.jsonl"))


def test_the_judge_is_not_called_if_replies_cannot_be_cached(tmp_path: Path) -> None:
    with JudgeServer() as server:
        judge = endpoint(server.url, "m", cache=tmp_path / "c", concurrency=4)
        assert judge.cache
        judge.cache._connection().execute("PRAGMA max_page_count=3")
        replies = judge(prompts(400))
        kinds = {one.error.kind for one in replies if one.error}
        assert kinds == {"cache"}
        assert server.requests == sum(one.error is None for one in replies) < 200
        asked = server.requests
        (output,) = {one.error.message for one in replies if one.error}
        assert str(tmp_path / "c") in output and "free some space" in output
        # cached replies are used; no request is sent
        again = judge([*prompts(1), *prompts(3, start=500)])
        assert [one.error is None for one in again] == [
            True,
            False,
            False,
            False,
        ] and server.requests == asked
