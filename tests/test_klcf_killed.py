"""A KLCF that is killed ends as one that is not: while the base is sampled, while the
truthfulness model learns, in GRPO.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.helpers import forked
from tests.test_klcf import FEW

pytestmark = pytest.mark.slow
USED = ("prompts", "prepare", "truth_model", "grpo")
SETTINGS = [
    f"klcf.{part}.{name}={'none' if value is None else value}"
    for part in USED
    for name, value in FEW[part].items()
] + [
    "klcf.truth_model.save_every=1",
    "klcf.prepare.samples=1",
    "klcf.prepare.questions=20",
    "klcf.grpo.max_new_tokens=32",
]


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


def test_a_run_that_is_killed_in_training_and_moved_ends_as_one_that_is_not(tmp_path: Path) -> None:
    """Rows of metrics: two of the truthfulness model, two of GRPO. Each process counts those
    that it writes.
    """

    def words(out: Path) -> list[str]:
        given = [f"--set={setting}" for setting in SETTINGS]
        return [
            "train",
            "klcf",
            "--bench",
            "tiny",
            "--seed",
            "1",
            "--threads",
            "1",
            *given,
            "--out",
            str(out),
        ]

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(words(whole), "workbench.cli")[0] == 0
    for row, unfinished in ((2, "stages/truth/model"), (3, "policy")):
        assert run(words(broken), "tests.helpers.dying_run", str(row))[0] == -signal.SIGKILL
        assert not (broken / unfinished).exists()
        broken = broken.rename(tmp_path / f"moved-{unfinished.replace('/', '-')}")
    assert run(words(broken), "workbench.cli")[0] == 0
    for name in (
        "stages/prepare/truth.jsonl",
        "stages/truth/model/head.safetensors",
        "stages/truth/held_out.json",
        "policy/adapter_model.safetensors",
    ):
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
