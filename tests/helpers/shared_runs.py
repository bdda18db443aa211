"""Policies and runs that one test run creates once, for several test modules and all workers."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.tiny_model import make_policy


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder that `make` fills, shared by all workers of a test run; do not change it."""
    base = factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, mark = root / f"shared-{name}", root / f"shared-{name}.done"
    with (root / f"shared-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            mark.touch()
    return folder


def shared_policy(factory: pytest.TempPathFactory) -> str:
    """A random policy of two layers."""
    return str(once(factory, "policy", make_policy))


def grpo_run(factory: pytest.TempPathFactory) -> Path:
    """Two steps of GRPO."""
    import tests.helpers.grpo_run as run

    policy = shared_policy(factory)

    def train(out: Path) -> None:
        assert run.grpo(run.SHORT, policy, out) == "done"

    return once(factory, "grpo", train)


def ppo_run(factory: pytest.TempPathFactory) -> Path:
    """Two steps of PPO with two passes each."""
    import tests.helpers.grpo_run as run
    from tests.helpers.credit import by_token
    from workbench.training.ppo import train_ppo
    from workbench.util.config import scaled

    policy = shared_policy(factory)

    def train(out: Path) -> None:
        config = scaled(run.AS_PPO, steps=2)
        train_ppo(config, run.QUESTIONS, by_token, policy, out, method="m", seed=1)

    return once(factory, "ppo", train)
