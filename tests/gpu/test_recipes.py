"""On a GPU: every method trains the tiny policy for two steps with each stage that it has."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.test_cuda import OFFLINE
from tests.helpers import ROOT
from workbench.methods import TRAINED

pytestmark = pytest.mark.gpu
MORE = {
    "rlfh-grpo": ["rlfh.trainer=grpo", "rlfh.grpo.advantages=rtg"],
    "truthrl-twice": ["truthrl.iterations=2", "truthrl.beta=0.02"],
    "truthrl-recomputed": ["truthrl.gradient_checkpointing=yes"],
    "truthrl-4bit": ["truthrl.load_in_4bit=yes"],
}


@pytest.mark.parametrize("name", [*TRAINED, *MORE])
def test_a_method_trains(name: str, tmp_path: Path) -> None:
    method = name.partition("-")[0]
    settings = [f"{method}.eval_samples=0", *MORE.get(name, [])]
    sets = [word for one in settings for word in ("--set", one)]
    words = ["train", method, "--steps", 2, "--threads", 2, "--out", tmp_path / "run", *sets]
    log = tmp_path / "log"
    with log.open("w") as told:
        done = subprocess.run(
            [sys.executable, "-m", "workbench.cli", *map(str, words)],
            cwd=ROOT,
            env=os.environ | OFFLINE,
            stdout=told,
            stderr=told,
            timeout=540,
        )
    assert done.returncode == 0, log.read_text()[-6000:]
    assert "on NVIDIA" in log.read_text()
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "done" and summary["after"]
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    assert rows[-1]["step"] == 2 and all(row["grad_norm"] > 0 for row in rows if "grad_norm" in row)
