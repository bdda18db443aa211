"""On a GPU: every method trains the tiny policy for two steps in each of its stages."""

from pathlib import Path

import pytest

from tests.helpers import log_python, read_json
from workbench.methods import TRAINED
from workbench.runs.checkpoints import metrics_rows

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
    words = f"-m workbench.cli train {method} --steps 2 --threads 2 --out".split()
    run = tmp_path / "run"
    assert "on NVIDIA" in log_python(tmp_path / "log", *words, run, *sets, timeout=540)
    summary = read_json(run / "summary.json")
    assert summary["status"] == "done" and summary["after"]
    rows = metrics_rows(run)
    assert rows[-1]["step"] == 2 and all(row["grad_norm"] > 0 for row in rows if "grad_norm" in row)
