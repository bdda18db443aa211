"""A FoRAG run that is killed in training and moved ends like an uninterrupted run."""

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


def run(settings: Mapping[str, Any], out: Path, module: str, *words: str) -> int:
    """Train in a subprocess; return its exit status."""
    command = f"train forag --bench tiny --policy {POLICY} --seed 1 --threads 1 --out {out}"
    for name, value in settings.items():
        command += f" --set forag.{name}={'none' if value is None else value}"
    return forked.run(module, *words, *command.split()).returncode


def test_a_killed_and_moved_run_ends_like_an_uninterrupted_run(tmp_path: Path) -> None:
    """Rows of metrics: two each of cold start, reward model and PPO. Each process counts the rows
    that it writes.
    """
    settings = {**SETTINGS, "sft.save_every": 1, "reward_model.save_every": 1}
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(settings, whole, "workbench.cli") == 0
    for row, unfinished in (
        (2, "stages/cold_start/policy"),
        (3, "stages/reward_model/model"),
        (3, "policy"),
    ):
        assert run(settings, broken, "tests.helpers.dying_run", str(row)) == -signal.SIGKILL
        assert not (broken / unfinished).exists()
        broken = broken.rename(tmp_path / f"moved-{unfinished.replace('/', '-')}")
    assert run(settings, broken, "workbench.cli") == 0
    for name in (
        "stages/cold_start/policy/model.safetensors",
        "stages/reward_model/model/adapter_model.safetensors",
        "stages/reward_model/model/head.safetensors",
        "stages/reward_model/held_out.json",
        "policy/adapter_model.safetensors",
    ):
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
    paid = [[row.rewards["forag"] for row in iter_feedback(out)] for out in (whole, broken)]
    assert paid[0] == paid[1]
