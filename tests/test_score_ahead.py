"""Working ahead: order, how far, what is raised where, and what a kill can lose."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.score_helpers import read, reply, responses, write
from tests.helpers.waiting import wait_for
from workbench.judge import Element
from workbench.judge.scripted import Fault, JudgeServer
from workbench.score.run import CHUNK, ahead

ROOT = Path(__file__).resolve().parent.parent


def test_ahead_keeps_order_and_takes_no_more_than_its_workers() -> None:
    taken: list[int] = []
    gate = threading.Event()

    def pieces() -> Any:
        for number in range(6):
            taken.append(number)
            yield number

    def work(number: int) -> int:
        if number == 0:
            assert gate.wait(5)
        return -number

    results = ahead(work, pieces(), 2)
    threading.Timer(0.05, gate.set).start()
    assert next(results) == 0
    assert taken == [0, 1]
    assert list(results) == [-1, -2, -3, -4, -5]
    assert list(ahead(lambda n: n + 1, [1, 2, 3], 1)) == [2, 3, 4]


def test_ahead_raises_where_the_result_would_stand() -> None:
    def work(number: int) -> int:
        if number == 1:
            raise OSError("full")
        return number

    results = ahead(work, [0, 1, 2], 2)
    assert next(results) == 0
    with pytest.raises(OSError, match="full"):
        next(results)


def start(folder: Path, url: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "workbench.cli",
        "score",
        "--in",
        folder / "in.jsonl",
        "--out",
        folder / "f.jsonl",
    ]
    command += ["--method", "truthrl", "--judge", url, "--model", "m", "--concurrency", "16"]
    return subprocess.Popen(
        list(map(str, command)), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def stored(cache: Path) -> int:
    with closing(sqlite3.connect(cache)) as connection:
        return int(connection.execute("SELECT count(*) FROM replies").fetchone()[0])


@pytest.mark.slow
@pytest.mark.nightly
def test_a_kill_loses_two_chunks_of_rows_at_most_and_no_reply(tmp_path: Path) -> None:
    """The third of four chunks waits for one reply, the fourth is done: as docs/numbers.md says,
    256 rows are not written.
    """
    count, late = 4 * CHUNK, "What about 300?"  # a row of the third chunk
    write(tmp_path / "in.jsonl", responses(count, claims=1, thinking=False))
    holding = True

    def script(task: str, elements: Sequence[Element]) -> str | Fault:
        text = reply(task, elements)
        return Fault("hang", text) if holding and elements[0].text == late else text

    with JudgeServer(script, hang=3600) as server:
        process = start(tmp_path, server.url)
        try:
            wait_for(
                lambda: (
                    server.requests == count and stored(tmp_path / "f.judge.sqlite") == count - 1
                ),
                60,
            )
        finally:
            process.kill()
            process.wait()
        assert len(read(tmp_path / "f.jsonl")) == count - 2 * CHUNK
        holding = False
        assert start(tmp_path, server.url).wait(60) == 0
        assert server.requests == count + 1  # what was under way is asked again, and nothing else
        assert sorted(server.asked.values()) == [1] * (count - 1) + [2]
    assert sorted(row["id"] for row in read(tmp_path / "f.jsonl")) == sorted(
        row["id"] for row in read(tmp_path / "in.jsonl")
    )
    told = (ROOT / "docs" / "numbers.md").read_text()
    assert f"at most {2 * CHUNK} rows with a\njudge URL, {CHUNK} without" in told
