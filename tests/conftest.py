"""Shared fixtures. No test may reach a network or take more than its share of the machine."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

# Read by the libraries when they are first imported, hence at the top; torch itself is not imported
# here.
for variable in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"):
    os.environ[variable] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "2")
# threads that spin while they wait take the cores of the tests beside them
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

# A runner that was itself started in the background ignores Ctrl-C, and so would every process that
# a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first, so that at the end no core waits for another that has begun
    with one of them.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")


@pytest.fixture(scope="session")
def slices() -> Path:
    """The folder with slices of real data sets; they are not part of the repository."""
    folder = os.environ.get("WORKBENCH_SLICES")
    if not folder:
        pytest.skip("WORKBENCH_SLICES does not name a folder with slices of the real data sets")
    return Path(folder)


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a random policy of two layers, which no test changes."""
    from tests.helpers.shared_runs import shared_policy

    return shared_policy(tmp_path_factory)


@pytest.fixture(scope="session")
def grpo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short GRPO run of that policy, which no test changes."""
    from tests.helpers.shared_runs import grpo_run

    return grpo_run(tmp_path_factory)


@pytest.fixture(scope="session")
def ppo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short PPO run of that policy, which no test changes."""
    from tests.helpers.shared_runs import ppo_run

    return ppo_run(tmp_path_factory)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """The command line, called in this process: arguments -> exit code, stdout and stderr
    without colours.
    """

    from workbench.cli import main

    def call(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit:
            main(list(map(str, arguments)))
        assert isinstance(exit.value.code, int)
        out, err = (re.sub(r"\x1b\[[\d;]*m", "", text) for text in capsys.readouterr())
        return exit.value.code, out, err

    return call
