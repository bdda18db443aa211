"""Chunks scored out of order, and the effects of a kill or an interrupt."""

import json
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scripted_judge import JudgeServer
from tests.helpers import start_python
from tests.helpers.score_helpers import ids, reply, responses, write
from tests.helpers.waiting import wait_for
from workbench.scoring.rows import Item
from workbench.scoring.run import CHUNK, CHUNK_CHARACTERS, as_completed, in_chunks
from workbench.types import Feedback, Question, Response


def test_results_are_yielded_when_finished_and_pieces_read_only_when_needed() -> None:
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

    results = as_completed(work, pieces(), 2)
    assert next(results) == -1  # the first piece is not finished
    assert taken == [0, 1]
    gate.set()
    assert sorted(results) == [-5, -4, -3, -2, 0]
    assert list(as_completed(lambda n: n + 1, [1, 2, 3], 1)) == [2, 3, 4]


def test_a_failed_piece_raises_after_the_results_before_it() -> None:
    def work(number: int) -> int:
        if number == 1:
            raise OSError("full")
        return number

    results = as_completed(work, [0, 1, 2], 1)
    assert next(results) == 0
    with pytest.raises(OSError, match="full"):
        next(results)
    with pytest.raises(OSError, match="full"):
        list(as_completed(work, [0, 1, 2], 2))


def test_a_long_response_is_a_chunk_of_its_own() -> None:
    sizes = [10, CHUNK_CHARACTERS + 1, *[10] * (CHUNK + 1)]
    question = Question("q", "?")
    items = [Item(Feedback(Response(str(n), question, "x" * n)), False) for n in sizes]
    assert [len(chunk) for chunk in in_chunks(items)] == [1, 1, CHUNK, 1]


def start(folder: Path, url: str, method: str = "rlfh") -> subprocess.Popen[str]:
    files = f"--in {folder}/in.jsonl --out {folder}/f.jsonl"
    options = f"--method {method} --judge {url} --model m --concurrency 16 --json"
    words = f"-m workbench.cli score {files} {options}".split()
    return start_python(*words, stderr=subprocess.PIPE)


@pytest.mark.slow
def test_after_two_kills_every_id_is_stored_once_without_repeated_calls(tmp_path: Path) -> None:
    rows = responses(500, claims=3, thinking=False)
    write(tmp_path / "in.jsonl", rows)
    unique = 500 * (1 + 3 + 1)
    with JudgeServer(reply=reply, delay=0.01) as server:
        for share in (0.02, 0.6):
            process = start(tmp_path, server.url)
            wait_for(lambda share=share: server.requests >= share * unique, 60)  # type: ignore[misc]
            process.kill()
            process.communicate()
        process = start(tmp_path, server.url)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert (json.loads(out)["rows"], json.loads(out)["failed"]) == (500, 0)
        assert sorted(ids(tmp_path / "f.jsonl")) == sorted(row["id"] for row in rows)
        # the calls in flight at a kill, at most 16, are repeated
        asked = server.requests
        assert len(server.asked) == unique and asked <= unique + 2 * 16
        again = start(tmp_path, server.url)
        assert again.communicate(timeout=60)[0] and again.returncode == 0
        assert server.requests == asked


@pytest.mark.slow
def test_an_interrupt_ends_with_130_and_is_resumed(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", responses(300, claims=2, thinking=False))
    with JudgeServer(reply=reply, delay=0.01) as server:
        process = start(tmp_path, server.url)
        wait_for(lambda: server.requests >= 100, 60)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 130, err
        assert json.loads(out)["status"] == "interrupted"
        assert "Traceback" not in err and "the same command" in err
        again = start(tmp_path, server.url)
        out, _ = again.communicate(timeout=60)
        assert (again.returncode, json.loads(out)["rows"]) == (0, 300)
        assert server.requests <= 300 * 4 + 16
