"""A FoRAG that is killed ends as one that is not: killed while it trains or samples, and
wherever its folder is moved.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import forked
from tests.test_forag import FEW, POLICY
from workbench.runs.store import iter_feedback

pytestmark = pytest.mark.slow
USED = ("prompts", "cold", "sft", "drawn", "reward_model", "ppo")
SETTINGS = {f"{group}.{name}": value for group in USED for name, value in FEW[group].items()}
ADAPTER = "policy/adapter_model.safetensors"


def run(settings: Mapping[str, Any], out: Path, module: str, *words: str) -> tuple[int, str]:
    """The exit status of a process that trains so, and what it has printed on stderr."""
    given = [
        f"--set=forag.{name}={'none' if value is None else value}"
        for name, value in settings.items()
    ]
    arguments = [
        "--bench",
        "tiny",
        "--policy",
        POLICY,
        "--seed",
        "1",
        "--threads",
        "1",
        *given,
        "--out",
        str(out),
    ]
    done = forked.run(module, *words, "train", "forag", *arguments)
    return done.returncode, done.stderr


def test_a_run_that_is_killed_in_training_and_moved_ends_as_one_that_is_not(tmp_path: Path) -> None:
    """Rows of metrics: two of the cold start, two of the reward model, two of PPO. Each process
    counts those that it writes.
    """
    settings = {**SETTINGS, "sft.save_every": 1, "reward_model.save_every": 1}
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(settings, whole, "workbench.cli")[0] == 0
    for row, unfinished in (
        (2, "stages/cold_start/policy"),
        (3, "stages/reward_model/model"),
        (3, "policy"),
    ):
        assert run(settings, broken, "tests.helpers.dying_run", str(row))[0] == -signal.SIGKILL
        assert not (broken / unfinished).exists()
        broken = broken.rename(tmp_path / f"moved-{unfinished.replace('/', '-')}")
    assert run(settings, broken, "workbench.cli")[0] == 0
    for name in (
        "stages/cold_start/policy/model.safetensors",
        "stages/reward_model/model/adapter_model.safetensors",
        "stages/reward_model/model/head.safetensors",
        "stages/reward_model/held_out.json",
        ADAPTER,
    ):
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
    paid = [[row.rewards["forag"] for row in iter_feedback(out)] for out in (whole, broken)]
    assert paid[0] == paid[1]


def test_what_was_written_before_a_kill_is_not_judged_again(tmp_path: Path) -> None:
    """Seventy questions are two chunks, of the samples that are judged and of the reference's;
    each is killed in its second.
    """
    settings = {
        name: value for name, value in SETTINGS.items() if not name.startswith(("cold.", "sft."))
    }
    settings |= {"cold.cold_samples": 0, "drawn.questions": 70, "drawn.samples": 1}
    settings |= {"drawn.references": 1} | {
        f"ppo.{name}": 35 for name in ("prompts_per_step", "minibatch", "micro_batch")
    }
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(settings, whole, "workbench.cli")[0] == 0
    told = []
    # the third time: after the evaluation, and after the rest of the samples that are judged
    for time, stage in ((3, "reward_model"), (3, "reference")):
        status, said = run(settings, broken, "tests.helpers.dying_run", f"feedback:{time}")
        assert status == -signal.SIGKILL and len(lines(broken, stage)) == 64 + 3
        told.append(said)
    status, said = run(settings, broken, "workbench.cli")
    assert status == 0
    sampled = [
        [line for line in one.splitlines() if line.startswith("sampled")] for one in (*told, said)
    ]
    begun, finished = "sampled 64 of 70 questions", "sampled 70 of 70 questions"
    assert sampled == [[begun], [finished, begun], [finished]]
    for stage in ("reward_model", "reference"):
        assert lines(broken, stage) == lines(whole, stage)
    assert (whole / ADAPTER).read_bytes() == (broken / ADAPTER).read_bytes()


def lines(out: Path, stage: str) -> list[bytes]:
    """The rows of feedback that a stage's samples have."""
    return (out / "stages" / stage / "samples" / "rollouts.jsonl").read_bytes().splitlines()
