"""Shared fixtures, and settings that keep tests offline and limit their threads."""

import json
import os
import re
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from workbench.types import Question

# The libraries read these variables when they are imported, so they are set first. Torch is not
# imported here.
for variable in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"):
    os.environ[variable] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "2")
# spinning threads would take cores from tests in other processes
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

# A runner started in the background ignores SIGINT, and so would the processes that tests
# interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Hypothesis has no deadline: examples take longer on a loaded machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Seconds per test file; to update: WORKBENCH_DURATIONS=tests/durations.json make test-all
DURATIONS = Path(__file__).parent / "durations.json"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first, so that no core is idle at the end; unknown files come first."""
    seconds = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    items.sort(key=lambda item: -seconds.get(item.path.name, float("inf")))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write the seconds of each test file to the file that WORKBENCH_DURATIONS names."""
    target = os.environ.get("WORKBENCH_DURATIONS")
    if not target:
        return
    seconds: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                name = Path(report.fspath).name
                seconds[name] = seconds.get(name, 0.0) + report.duration
    text = json.dumps({name: round(seconds[name], 1) for name in sorted(seconds)}, indent=1)
    Path(target).write_text(text + "\n", encoding="utf-8")


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
    """The folder of a random two-layer policy. Tests must not modify it."""
    from tests.helpers.shared_runs import shared_policy

    return shared_policy(tmp_path_factory)


@pytest.fixture(scope="session")
def country() -> "Question":
    """A closed-world question whose answer is a fact of importance 4."""
    from workbench.world import load_world

    asked = load_world().questions("ood", ["single"])
    return next(question for question in asked if question.text.startswith("In which country is"))


@pytest.fixture(scope="session")
def grpo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short GRPO run of that policy. Tests must not modify it."""
    from tests.helpers.shared_runs import grpo_run

    return grpo_run(tmp_path_factory)


@pytest.fixture(scope="session")
def ppo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short PPO run of that policy. Tests must not modify it."""
    from tests.helpers.shared_runs import ppo_run

    return ppo_run(tmp_path_factory)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Call the command line in this process; return exit code, stdout and stderr (no colours)."""

    from workbench.cli import main

    def call(command: str, *arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit:
            main([*shlex.split(command), *map(str, arguments)])
        assert isinstance(exit.value.code, int)
        out, err = (re.sub(r"\x1b\[[\d;]*m", "", text) for text in capsys.readouterr())
        return exit.value.code, out, err

    return call
