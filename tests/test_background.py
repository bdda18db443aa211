"""Functions in a subprocess: exit code, last output line, and termination with the parent."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT
from tests.helpers.background_jobs import count, crash, die, nothing, refuse, say_much
from tests.helpers.waiting import wait_for
from workbench.runs.folder import in_use
from workbench.util.subprocess import LOG_BYTES, Background, start


def ended(tmp_path: Path, function: Callable[..., Any], **job: Any) -> tuple[int, str]:
    """Run a function in a subprocess; return its exit code and last line."""
    process = start(function, job, tmp_path / "log.txt")
    return process.wait(), process.last_line()


def test_a_user_error_a_bug_and_a_kill_are_each_reported_in_one_line(tmp_path: Path) -> None:
    assert ended(tmp_path, refuse) == (2, "this cannot work: do that")
    assert ended(tmp_path, crash) == (1, "RuntimeError: a bug")
    assert ended(tmp_path, die) == (-9, "killed by SIGKILL")


def test_output_of_an_earlier_process_is_ignored(tmp_path: Path) -> None:
    ended(tmp_path, refuse)
    assert ended(tmp_path, nothing) == (0, "ended with exit code 0")
    assert (tmp_path / "log.txt").read_text() == "this cannot work: do that\n"


def test_a_log_has_a_maximum_size(tmp_path: Path) -> None:
    assert ended(tmp_path, say_much, size=LOG_BYTES)[0] == 0  # plus the newline
    assert ended(tmp_path, say_much, size=5) == (0, "xxxxx")
    assert (tmp_path / "log.txt").read_text() == "xxxxx\n"


@pytest.fixture
def counting(tmp_path: Path) -> Background:
    """A process that counts until it is ended."""
    process = start(count, {"folder": str(tmp_path / "job")}, tmp_path / "log.txt")
    wait_for((tmp_path / "job" / "number").exists, seconds=60)
    return process


def test_an_interrupted_process_exits_with_130(counting: Background) -> None:
    assert counting.running
    counting.interrupt()
    assert counting.wait() == 130 and not counting.running


def test_kill_ends_a_process_and_may_be_repeated(counting: Background) -> None:
    counting.kill()
    assert counting.wait() == -9
    counting.kill()


def test_a_process_is_killed_with_its_parent(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    job = tmp_path / "job"
    code = (
        "from tests.helpers.background_jobs import begin_counting as f;"
        f" f({str(tmp_path / 'log.txt')!r}, {str(job)!r})"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as began:
        wait_for((job / "number").exists, seconds=60)
        assert in_use(job)
        began.kill()
    wait_for(lambda: not in_use(job), seconds=60)  # a process that survived would use it
