"""A killed or interrupted training ends like an uninterrupted one, once for each mechanism."""

import signal
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tests.helpers.grpo_run as run
from tests.helpers import examples, forked
from tests.helpers.credit import by_token, interrupting, steps_of
from workbench.runs.checkpoints import is_complete
from workbench.training.ppo import ppo_stage
from workbench.training.stage import Job
from workbench.util.threads import use_threads

pytestmark = pytest.mark.slow
Whole = Callable[[str], tuple[Any, ...]]


def launch(policy: str, out: Path, kind: str, moment: str = "") -> subprocess.CompletedProcess[str]:
    when = [moment] if moment else []
    return forked.run("tests.helpers.grpo_run", policy, str(out), kind, *when)


def result(out: Path) -> tuple[Any, ...]:
    """Return what is equal in two equal trainings: everything except the seconds."""
    files = [*out.glob("rollouts.jsonl"), *sorted(out.glob("*/*.safetensors"))]
    assert files
    return steps_of(out), *(path.read_bytes() for path in files)


@pytest.fixture(scope="module")
def whole(policy: str, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    @cache
    def train(kind: str) -> tuple[Any, ...]:
        out = tmp_path_factory.mktemp(kind) / "whole"
        assert launch(policy, out, kind).returncode == 0
        return result(out)

    return train


@pytest.mark.parametrize(("kind", "moment", "resumed"), examples("killed_trainings"))
def test_a_killed_training_ends_like_an_uninterrupted_one(
    policy: str, whole: Whole, tmp_path: Path, kind: str, moment: str, resumed: int
) -> None:
    out = tmp_path / "run"
    assert launch(policy, out, kind, moment).returncode == -signal.SIGKILL
    again = launch(policy, out, kind)
    assert again.returncode == 0, again.stderr
    assert (f"after step {resumed}\n" in again.stderr) is bool(resumed)
    assert ("resuming" in again.stderr) is bool(resumed)
    assert result(out) == whole(kind)


@pytest.mark.parametrize("kind", ["grpo", "ppo"])
def test_an_interrupted_training_saves_a_checkpoint_and_resumes(
    policy: str, whole: Whole, tmp_path: Path, kind: str
) -> None:
    with use_threads(1):
        if kind == "grpo":
            broken = interrupting(run.grade, call=5)  # in the third step: two batches a step
            status = run.grpo(run.CONFIG, policy, tmp_path, broken)
        else:
            broken = interrupting(by_token, call=3)
            status = ppo_stage(run.AS_PPO, lambda job: (run.QUESTIONS, broken), "m").run(
                Job(policy, tmp_path, 1)
            )
    assert status == "interrupted" and not (tmp_path / "policy").exists()
    assert is_complete(tmp_path / "checkpoints" / "checkpoint-3")
    again = launch(policy, tmp_path, kind)
    assert again.returncode == 0 and f"\n{tmp_path.name}: step 4/" in again.stderr
    assert result(tmp_path) == whole(kind)
