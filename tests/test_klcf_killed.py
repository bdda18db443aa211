"""A killed `workbench klcf prepare` resumes and writes what an uninterrupted one writes."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.helpers import forked

pytestmark = pytest.mark.slow


def run(words: Sequence[str], module: str, *more: str) -> tuple[int, str]:
    """The exit status of a process with these arguments, and what it has printed on stderr."""
    done = forked.run(module, *more, *words)
    return done.returncode, done.stderr


def test_a_preparation_that_is_killed_goes_on_with_what_it_has_sampled(tmp_path: Path) -> None:
    """Twenty questions are two chunks; the second is half written when it is killed."""

    def words(out: Path) -> list[str]:
        return [
            "klcf",
            "prepare",
            "--out",
            str(out),
            "--limit",
            "20",
            "--samples",
            "1",
            "--seed",
            "1",
            "--threads",
            "1",
        ]

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(words(whole), "workbench.cli")[0] == 0
    assert run(words(broken), "tests.helpers.dying_run", "feedback:2")[0] == -signal.SIGKILL
    assert not (broken / "card.json").exists() and not (broken / "truth.jsonl").exists()
    status, said = run(words(broken), "workbench.cli")
    assert status == 0 and [line for line in said.splitlines() if line.startswith("sampled")] == [
        "sampled 20 of 20 questions"
    ]
    for name in ("checklists.jsonl", "truth.jsonl", "card.json", "samples/rollouts.jsonl"):
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
